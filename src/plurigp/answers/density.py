"""Log densities: of whole rows, of hidden cells, and of cells that the encoder has read."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.answers import latent
from plurigp.answers.predictor import Chunk, Predictor, moments_at, over_chunks, schema_order, standard_draws
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.compiling import Program
from plurigp.inference.encoder import LatentNormal
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.layout import arrange


@Program
def _densities(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
    """log (1/S) Σ_s p(x_s)/r(x_s) Π_d p(y_d|x_s), and the effective number of draws that answers rest on."""
    proposals = latent.propose(p.model.prior, qx, noise)

    def one_draw(x: Array) -> tuple[Array, Array]:
        cells = latent.log_probs_at(p, values, seen, x)[0]
        return cells.sum(1), evaluate.weighted_row_sum(p.layout, cells)

    rows, weighed = (part + proposals.log_ratio for part in jax.lax.map(one_draw, proposals.x))
    total = jax.nn.logsumexp(rows, axis=0)
    return total - np.log(len(noise)), latent.effective_size(jax.nn.log_softmax(weighed, axis=0))


@Program
def _reconstructed(p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array) -> Float[Array, "B D"]:
    """E over q(x) and q(f|x) of log p(y_d|f), zero at gaps."""

    def one_draw(z: Array) -> Array:
        f = moments_at(p, qx.at(z[None, None])[0], values)
        return jnp.concatenate(evaluate.expected_log_probs(p.layout, p.model.thetas, values, seen, *f, p.rules), 1)

    return jax.lax.map(one_draw, noise).mean(0)


@Program
def _cells(
    p: Predictor, truth: Array, known: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B D"], Float[Array, " B"]]:
    """log Σ_s w_s p(y_d|x_s) for every known cell, the weights by the seen ones alone, and their effective number."""
    proposals = latent.propose(p.model.prior, qx, noise)
    cells = jax.lax.map(lambda x: latent.log_probs_at(p, truth, known, x)[0], proposals.x)
    shown = jax.vmap(lambda own: evaluate.weighted_row_sum(p.layout, own))(jnp.where(seen, cells, 0))
    weights = latent.log_weights(proposals.log_ratio, shown)
    return jax.nn.logsumexp(weights[:, :, None] + cells, axis=0), latent.effective_size(weights)


def effective_sample_size(
    predictor: Predictor, table: Table, n_draws: int = latent.N_PROPOSALS
) -> Float[np.ndarray, " N"]:
    """How many of n_draws importance-weighted draws of x carry each row's answers."""
    return latent.map_rows(predictor, table, _densities, n_draws)[1]


def log_density(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """The importance-weighted lower bound on log p(observed cells) of every row [N], in coded units."""
    return latent.map_rows_weighted(predictor, table, _densities, n_draws)


def reconstruction(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """E log p of every observed cell [N D], NaN at gaps, coded units: the encoder has read what is scored."""
    cells = schema_order(predictor.layout, latent.map_rows(predictor, table, _reconstructed, n_draws))
    return np.where(table.seen, cells, np.nan)


def cell_log_density(predictor: Predictor, shown: Table, complete: Table, n_draws: int = 32) -> np.ndarray:
    """log p(y_d | the cells shown) for every cell of `complete` [N D], coded units, NaN where it has none.

    `shown` has the scored cells hidden; `complete` has the same rows with them in place.
    """
    truth, known = arrange(predictor.layout, complete)
    noise = standard_draws(n_draws, predictor.n_components)

    def score(p: Predictor, chunk: Chunk) -> tuple[Array, Array]:
        own = known[chunk.rows]
        return _cells(p, truth[chunk.rows], own, chunk.seen & own, latent.latent_chunk(p, chunk), noise)

    cells, sizes = over_chunks(predictor, shown, score)
    latent.warn_of_few_draws(sizes)
    return np.where(complete.seen, schema_order(predictor.layout, cells), np.nan)
