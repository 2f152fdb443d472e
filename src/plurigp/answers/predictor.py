"""A trained model with all that its answers need, and how a table is asked chunk by chunk."""

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from plurigp.data import Table
from plurigp.inference.compiling import compiled_work
from plurigp.inference.gp.sparse import Posterior
from plurigp.inference.model import Model
from plurigp.likelihoods.layout import Layout, arrange
from plurigp.likelihoods.rules import Rule

CHUNKS = (1, 16, 256, 512)  # rows: a few compilations serve one row and a million


class Predictor(eqx.Module):
    """A trained model with all that its answers need; in float64, but for what only weighs draws."""

    model: Model
    q: Posterior
    layout: Layout = eqx.field(static=True)
    rules: tuple[Rule, ...] = eqx.field(static=True)
    kl_weight: float = eqx.field(static=True, default=1.0)
    refined: bool = eqx.field(static=True, default=False)  # the encoder's q(x) is only where each row's own begins

    @property
    def n_components(self) -> int:
        return self.model.gp.Z.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.model.gp.Z.dtype


def in_precision(tree: Any, dtype: Any) -> Any:
    """Every array in this precision."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype), tree)


def make_predictor(
    model: Model, q: Posterior, layout: Layout, rules: tuple[Rule, ...], kl_weight: float = 1.0
) -> Predictor:
    """Widen every array to float64."""
    return Predictor(in_precision(model, np.float64), in_precision(q, np.float64), layout, rules, kl_weight)


def standard_draws(n_draws: int, n_components: int) -> np.ndarray:
    """The same draws for every row: antithetic pairs [S Q] with variance one, so answers are repeatable."""
    half = np.random.default_rng(20210413).normal(size=((n_draws + 1) // 2, n_components))
    half /= np.sqrt((half**2).mean(0)) if len(half) > 1 else 1.0
    return np.concatenate([half, -half])[:n_draws]


def chunks(
    layout: Layout, table: Table, dtype: Any = np.float64
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """(number of real rows, row numbers, values, seen) in block order, padded to one of the sizes."""
    values, seen = arrange(layout, table)
    values = values.astype(dtype, copy=False)
    size, at = chunk_size(len(values)), 0
    while at < len(values):
        n = min(size, len(values) - at)
        fill = np.minimum(np.arange(at, at + size), len(values) - 1)
        yield n, fill, values[fill], seen[fill]
        at += n


def chunk_size(n_rows: int) -> int:
    return next((size for size in CHUNKS if size >= n_rows), CHUNKS[-1])


def over_chunks(predictor: Predictor, table: Table, answer: Callable[..., Any]) -> Any:
    """Apply a compiled answer chunk by chunk under a local float64 switch and put the rows together again."""
    parts = []
    with compiled_work():
        for n, _, values, seen in chunks(predictor.layout, table):
            parts.append(jax.tree.map(lambda leaf, n=n: np.asarray(leaf)[:n], answer(values, seen)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def schema_order(layout: Layout, block_ordered: np.ndarray) -> np.ndarray:
    out = np.empty_like(block_ordered)
    out[:, list(layout.order)] = block_ordered
    return out
