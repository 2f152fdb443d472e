"""The trained model as answers use it, and the loop over a table's rows in chunks of a few fixed sizes."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array
from plurigp.core.types import DataError
from plurigp.data import Table
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.gp.sparse import Posterior, moments
from plurigp.inference.model import Model, project_rows
from plurigp.likelihoods.layout import Layout, arrange
from plurigp.likelihoods.rules import Rule

CHUNK_SIZES = (1, 16, 256, 512)  # rows: a few compilations serve one row and a million


class Predictor(eqx.Module):
    """A trained model with all that its answers need; in float64, except where it only weighs draws."""

    model: Model
    q: Posterior
    layout: Layout = eqx.field(static=True)
    rules: tuple[Rule, ...] = eqx.field(static=True)
    kl_weight: float = eqx.field(static=True, default=1.0)
    refined: bool = eqx.field(static=True, default=False)  # the encoder's q(x) is improved row by row

    @property
    def n_components(self) -> int:
        return self.model.gp.Z.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.model.gp.Z.dtype


def moments_at(
    p: Predictor, x: Float[Array, "B Q"], values: Float[Array, "B V"] | None = None
) -> tuple[Float[Array, "P B"], Float[Array, "P B"]]:
    """Mean and variance of f at latent positions, with the covariates of these rows, or at their average."""
    return moments(p.model.gp, p.q, project_rows(p.model, p.layout, x, values))


def moments_of_draws(
    p: Predictor, x: Float[Array, "B Q"], values: Float[Array, "B V"]
) -> tuple[Float[Array, "P B"], Float[Array, "P B"]]:
    """The same for one of many draws of x: in float32 once the kernel is solved, which is half of the time."""
    projection = project_rows(p.model, p.layout, x, values)
    gp, q, narrow = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), (p.model.gp, p.q, projection))
    f_mean, f_var = moments(gp, q, narrow)
    return f_mean.astype(values.dtype), f_var.astype(values.dtype)


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


class Chunk(NamedTuple):
    """Rows of a table in block order, the last one repeated until there are as many as one of CHUNK_SIZES."""

    n_rows: int  # without the repeated ones
    rows: np.ndarray  # [B] their numbers in the table
    values: np.ndarray  # [B V]
    seen: np.ndarray  # [B D]


def chunks(layout: Layout, table: Table, dtype: Any = np.float64) -> Iterator[Chunk]:
    """The table, chunk by chunk."""
    values, seen = arrange(layout, table)
    values = values.astype(dtype, copy=False)
    size = chunk_size(len(values))
    for start in range(0, len(values), size):
        rows = np.minimum(np.arange(start, start + size), len(values) - 1)
        yield Chunk(min(size, len(values) - start), rows, values[rows], seen[rows])


def chunk_size(n_rows: int) -> int:
    """The smallest size that holds so many rows, or else the largest."""
    return next((size for size in CHUNK_SIZES if size >= n_rows), CHUNK_SIZES[-1])


def over_chunks(predictor: Predictor, table: Table, answer: Callable[[Predictor, Chunk], Any]) -> Any:
    """Arrays, rows first, for the whole table from an answer for a chunk; none is NaN."""
    parts = []
    with jax_runtime():
        for chunk in chunks(predictor.layout, table):
            found = answer(predictor, chunk)
            parts.append(jax.tree.map(lambda leaf, n=chunk.n_rows: np.asarray(leaf)[:n], found))
            for leaf in jax.tree.leaves(parts[-1]):
                _refuse_nan(leaf, chunk)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _refuse_nan(answer: np.ndarray, chunk: Chunk) -> None:
    """A gap that stays empty, or a position that is none, would pass for an answer: the model is at fault."""
    wrong = np.isnan(answer).reshape(len(answer), -1).any(1)
    if wrong.any():
        row = int(chunk.rows[np.argmax(wrong)])
        raise DataError(f"row {row}: the model has no number for an answer, so its parameters are no use; fit it anew.")


def schema_order(layout: Layout, block_ordered: np.ndarray) -> np.ndarray:
    """Columns [N D] from block order to the schema's."""
    out = np.empty_like(block_ordered)
    out[:, list(layout.order)] = block_ordered
    return out
