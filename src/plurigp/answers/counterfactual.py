"""What the same rows would be with other covariates: placed by their own, decoded with the others."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.answers.latent import latent_chunk, warn_of_few_draws, weighted_draws
from plurigp.answers.predictor import Chunk, Predictor, moments_at, over_chunks, schema_order, standard_draws
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.compiling import Program
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.layout import arrange

SEED = 20240229  # of the draws of f: the same for every row, so answers are repeatable


@Program
def _decoded(
    p: Predictor, values: Float[Array, "B V"], x: Float[Array, "S B Q"], weights: Float[Array, "S B"]
) -> tuple[Float[Array, "B D"], Float[Array, "S B D"]]:
    """E[y] over x and f as one point per cell, and E[y | x_s, f_s] for one draw of f at every draw of x."""

    def one_draw(at: tuple[Array, Array]) -> tuple[tuple[Array, ...], Array]:
        position, key = at
        mean, var = moments_at(p, position, values)
        f = mean + jnp.sqrt(var) * jax.random.normal(key, (len(mean), 1), mean.dtype)
        known = evaluate.predictive_means(p.layout, p.model.thetas, values, f, jnp.zeros_like(f), p.rules)
        means = evaluate.predictive_means(p.layout, p.model.thetas, values, mean, var, p.rules)
        return means, evaluate.points(p.layout, known)

    means, draws = jax.lax.map(one_draw, (x, jax.random.split(jax.random.key(SEED), len(x))))
    average = jax.tree.map(lambda leaf: (weights[:, :, None, None] * leaf).sum(0), means)
    return evaluate.points(p.layout, average), draws


def expected_at(
    predictor: Predictor, table: Table, other: Table, n_draws: int, quantiles: Sequence[float] = ()
) -> list[Float[np.ndarray, "N D"]]:
    """Coded values expected of the table's rows with the covariates of `other`, and quantiles of these expectations.

    The quantiles are those of E[y | x, f] over where a row may lie and what its functions may be, without the noise
    of a single cell.
    """
    values, _ = arrange(predictor.layout, other)
    noise = standard_draws(n_draws, predictor.n_components)

    def answer(p: Predictor, chunk: Chunk) -> tuple[np.ndarray, ...]:
        x, weights, size = weighted_draws(p, chunk.values, chunk.seen, latent_chunk(p, chunk), noise)
        mean, draws = _decoded(p, values[chunk.rows], x, weights)
        ends = _weighted_quantiles(np.asarray(draws), np.asarray(weights), quantiles)
        return np.asarray(size), np.asarray(mean), *ends

    size, *found = over_chunks(predictor, table, answer)
    warn_of_few_draws(size)
    return [schema_order(predictor.layout, part) for part in found]


def _weighted_quantiles(
    draws: Float[np.ndarray, "S B D"], weights: Float[np.ndarray, "S B"], quantiles: Sequence[float]
) -> list[Float[np.ndarray, "B D"]]:
    """The smallest draw up to which lies that share of the weight, for every cell."""
    order = np.argsort(draws, axis=0)
    ends = np.cumsum(np.take_along_axis(np.broadcast_to(weights[:, :, None], draws.shape), order, axis=0), axis=0)
    found = []
    for quantile in quantiles:
        place = np.minimum((ends < quantile * ends[-1]).sum(0), len(draws) - 1)
        chosen = np.take_along_axis(order, place[None], axis=0)
        found.append(np.take_along_axis(draws, chosen, axis=0)[0])
    return found
