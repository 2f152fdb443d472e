"""q(x) of every row: by the encoder, and refined row by row where asked for."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from plurigp.answers.predictor import Chunk, Predictor, moments_at, over_chunks, standard_draws
from plurigp.core.arrays import Array, Scalar
from plurigp.data import Table
from plurigp.inference.encoder import FreeRows, LatentNormal, independent, kl_x
from plurigp.inference.model import encode
from plurigp.inference.optimise import minimise
from plurigp.likelihoods import evaluate

REFINE_STEPS, REFINE_RATE, REFINE_DRAWS = 100, 0.1, 4


@jax.jit
def encode_chunk(p: Predictor, values: Array, seen: Array) -> LatentNormal:
    return encode(p.model, p.layout, values, seen)


def latent_chunk(predictor: Predictor, chunk: Chunk) -> LatentNormal:
    """q(x) by the encoder, refined if asked for; without an encoder, refined from a start of mean 0 and sd ½."""
    if isinstance(predictor.model.encoder, FreeRows):
        shape = (len(chunk.values), predictor.n_components)
        return _refine(predictor, chunk.values, chunk.seen, independent(np.zeros(shape), np.full(shape, 0.5)))
    q = encode_chunk(predictor, chunk.values, chunk.seen)
    return _refine(predictor, chunk.values, chunk.seen, q) if predictor.refined else q


def latent(predictor: Predictor, table: Table) -> LatentNormal:
    """q(x) of every row."""
    return over_chunks(predictor, table, latent_chunk)


def positions(predictor: Predictor, table: Table) -> tuple[Float[np.ndarray, "N Q"], Float[np.ndarray, "N Q"]]:
    """Mean and marginal sd of q(x) of every row, without the covariances: a million rows fit into memory."""
    return over_chunks(predictor, table, lambda p, chunk: _mean_and_sd(latent_chunk(p, chunk)))


@jax.jit
def _mean_and_sd(q: LatentNormal) -> tuple[Array, Array]:
    return q.mean, q.sd


@jax.jit
def _refine(p: Predictor, values: Float[Array, "B V"], seen: Bool[Array, "B D"], start: LatentNormal) -> LatentNormal:
    """Adam on each row's mean and on the log factor of its root per dimension, with the decoder frozen; rows are
    independent of each other."""
    noise = jnp.asarray(standard_draws(REFINE_DRAWS, start.mean.shape[1]))

    def refined(free: tuple[Array, Array]) -> LatentNormal:
        return LatentNormal(free[0], jnp.exp(free[1]) * start.stretch, start.base)

    def objective(free: tuple[Array, Array]) -> Scalar:
        qx = refined(free)

        def one_draw(z: Array) -> Scalar:
            f_mean, f_var = moments_at(p, qx.at(z[None, None])[0])
            cells = evaluate.expected_log_probs(p.layout, p.model.thetas, values.T, seen.T, f_mean, f_var, p.rules)
            return sum((block.sum() for block in cells), jnp.zeros(()))

        return p.kl_weight * kl_x(qx).sum() - jax.lax.map(one_draw, noise).mean()

    free = (jnp.asarray(start.mean), jnp.zeros_like(start.mean))
    return refined(minimise(objective, free, REFINE_STEPS, REFINE_RATE, 0.02))
