"""Expected values: of gaps given their rows, of levels, and at given latent positions."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.answers.latent import (
    effective_size,
    log_weights,
    map_rows,
    map_rows_weighted,
    propose,
    warn_of_few_draws,
)
from plurigp.answers.predictor import Predictor, chunk_size, moments_at, moments_of_draws, over_chunks, schema_order
from plurigp.core.arrays import Array
from plurigp.data import KINDS, Table
from plurigp.inference.compiling import Program, jax_runtime
from plurigp.inference.encoder import LatentNormal
from plurigp.likelihoods import evaluate


@Program
def _means(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[tuple[Float[Array, "B _ _"], ...], Float[Array, " B"]]:
    """Σ_s w_s E[y_d|x_s], per block (a probability per level for categories), and the effective number of draws."""
    proposals = propose(p.model.prior, qx, noise)

    def one_draw(x: Array) -> tuple[Array, tuple[Array, ...]]:
        f = moments_of_draws(p, x, values)
        cells, means = evaluate.predictive_log_probs_and_means(p.layout, p.model.thetas, values, seen, *f, p.rules)
        return evaluate.weighted_row_sum(p.layout, cells), means

    rows, means = jax.lax.map(one_draw, proposals.x)
    logs = log_weights(proposals.log_ratio, rows)
    weights = jnp.exp(logs)[:, :, None, None]
    return jax.tree.map(lambda leaf: (weights * leaf).sum(0), means), effective_size(logs)


@Program
def _points(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B D"], Float[Array, " B"]]:
    means, size = _means(p, values, seen, qx, noise)
    return evaluate.points(p.layout, means), size


@Program
def _points_at(p: Predictor, values: Array, x: Float[Array, "B Q"]) -> Float[Array, "B D"]:
    f = moments_at(p, x, values)
    return evaluate.points(p.layout, evaluate.predictive_means(p.layout, p.model.thetas, values, *f, p.rules))


def fill_values(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """One coded value per cell [N D], schema order: E[y | the row's observed cells], or the likeliest level."""
    return schema_order(predictor.layout, map_rows_weighted(predictor, table, _points, n_draws))


def expected_columns(
    predictor: Predictor, table: Table, n_draws: int = 32, warn: bool = True
) -> list[Float[np.ndarray, "N _"]]:
    """E[y | the row's observed cells] of every used column [N 1], or p(level | …) [N K], by one sweep over the rows."""
    blocks, sizes = map_rows(predictor, table, _means, n_draws)
    if warn:
        warn_of_few_draws(sizes)
    return by_column(predictor, table, blocks)


def by_column(
    predictor: Predictor, table: Table, blocks: Sequence[Float[np.ndarray, "N _ _"]]
) -> list[Float[np.ndarray, "N _"]]:
    """E[y] of every used column [N 1], or p(level) [N K], from what the blocks have."""
    found: dict[int, np.ndarray] = {}
    for block, means in zip(predictor.layout.blocks, blocks, strict=True):
        for place in range(*block.columns):
            column = table.schema.used[predictor.layout.order[place]]
            own = means[:, place - block.columns[0]]
            if column.levels:
                own = np.concatenate([1 - own, own], 1) if own.shape[1] == 1 else own[:, : len(column.levels)]
            found[predictor.layout.order[place]] = own
    return [found[d] for d in range(len(found))]


def levels_of_columns(
    predictor: Predictor, table: Table, columns: Sequence[int], n_draws: int = 32
) -> list[np.ndarray]:
    """p(level | the row's observed cells) [N K] of columns of levels, given by their places among the used ones."""
    expected = expected_columns(predictor, table, n_draws)
    return [expected[d] for d in columns]


def points_of_columns(predictor: Predictor, columns: Sequence[Float[np.ndarray, "N _"]]) -> Float[np.ndarray, "N D"]:
    """One coded value per cell from what is expected of every column."""
    blocks = []
    for block in predictor.layout.blocks:
        own = [columns[d] for d in predictor.layout.order[slice(*block.columns)]]
        if KINDS[block.likelihood.kind].yes_or_no:
            own = [shares[:, 1:] for shares in own]
        width = max(part.shape[1] for part in own)
        padded = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in own]
        blocks.append(np.stack(padded, 1))
    N, parts = len(columns[0]), []
    with jax_runtime():
        for start in range(0, N, size := chunk_size(N)):  # as in `chunks`: a few compilations serve all lengths
            rows = np.minimum(np.arange(start, start + size), N - 1)
            found = np.asarray(_points_of(predictor, tuple(block[rows] for block in blocks)))
            parts.append(found[: min(size, N - start)])
    return schema_order(predictor.layout, np.concatenate(parts))


@Program
def _points_of(p: Predictor, means: tuple[Float[Array, "B _ _"], ...]) -> Float[Array, "B D"]:
    return evaluate.points(p.layout, means)


def values_at(predictor: Predictor, table: Table, x: np.ndarray) -> np.ndarray:
    """One coded value per cell [N D] at given latent positions; the (empty) table gives companion slots."""
    x = np.asarray(x, np.float64)
    values = over_chunks(predictor, table, lambda p, chunk: _points_at(p, chunk.values, x[chunk.rows]))
    return schema_order(predictor.layout, values)
