"""Expected values: of gaps given their rows, of levels, and at given latent positions."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.answers.predictor import Predictor, chunks, schema_order
from plurigp.answers.weights import ask_weighted, effective_size, log_probs_at, log_weights, propose
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.compiling import compiled_work
from plurigp.inference.encoder import LatentNormal
from plurigp.inference.gp.sparse import moments, project
from plurigp.likelihoods import evaluate


@jax.jit
def _means(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[tuple[Float[Array, "B _ _"], ...], Float[Array, " B"]]:
    """Σ_s w_s E[y_d|x_s], per block (a probability per level for categories), and the effective number of draws."""
    proposals = propose(qx, noise)

    def one_draw(x: Array) -> tuple[Array, tuple[Array, ...]]:
        cells, f = log_probs_at(p, values, seen, x)
        return cells.sum(1), evaluate.predictive_means(p.layout, p.model.thetas, values, *f, p.rules)

    rows, means = jax.lax.map(one_draw, proposals.x)
    logs = log_weights(proposals.log_ratio, rows)
    weights = jnp.exp(logs)[:, :, None, None]
    return jax.tree.map(lambda leaf: (weights * leaf).sum(0), means), effective_size(logs)


@jax.jit
def _points(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B D"], Float[Array, " B"]]:
    means, size = _means(p, values, seen, qx, noise)
    return evaluate.points(p.layout, means), size


@jax.jit
def _points_at(p: Predictor, values: Array, x: Float[Array, "B Q"]) -> Float[Array, "B D"]:
    f = moments(p.model.gp, p.q, project(p.model.gp, x))
    return evaluate.points(p.layout, evaluate.predictive_means(p.layout, p.model.thetas, values, *f, p.rules))


def fill_values(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """One coded value per cell [N D], schema order: E[y | the row's observed cells], or the likeliest level."""
    return schema_order(predictor.layout, ask_weighted(predictor, table, _points, n_draws))


def level_probabilities(predictor: Predictor, table: Table, column: int, n_draws: int = 32) -> np.ndarray:
    """p(level | the row's observed cells) [N K] of a column of levels, given by its place among the used ones."""
    return levels_of_columns(predictor, table, [column], n_draws)[0]


def levels_of_columns(
    predictor: Predictor, table: Table, columns: Sequence[int], n_draws: int = 32
) -> list[np.ndarray]:
    """The same of several columns from one sweep over the rows, which costs as much as for one of them."""
    expected = ask_weighted(predictor, table, _means, n_draws)
    found = []
    for column in columns:
        place = predictor.layout.order.index(column)
        number = next(n for n, block in enumerate(predictor.layout.blocks) if place < block.columns[1])
        own = expected[number][:, place - predictor.layout.blocks[number].columns[0]]
        found.append(np.concatenate([1 - own, own], 1) if own.shape[1] == 1 else own)
    return found


def values_at(predictor: Predictor, table: Table, x: np.ndarray) -> np.ndarray:
    """One coded value per cell [N D] at given latent positions; the (empty) table gives companion slots."""
    parts = []
    with compiled_work():
        for n, rows, values, _ in chunks(predictor.layout, table):
            parts.append(np.asarray(_points_at(predictor, values, np.asarray(x[rows], np.float64)))[:n])
    return schema_order(predictor.layout, np.concatenate(parts))
