"""q(x) of every row: the encoder's answer, refined by steps of the row's own where asked for."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float

from plurigp.answers.predictor import Predictor, over_chunks, standard_draws
from plurigp.core.arrays import Array, Scalar
from plurigp.data import Table
from plurigp.inference.encoder import FreeRows, LatentNormal, independent, kl_x
from plurigp.inference.gp.sparse import moments, project
from plurigp.inference.model import encode
from plurigp.likelihoods import evaluate

REFINE_STEPS, REFINE_RATE, REFINE_DRAWS = 100, 0.1, 4


@jax.jit
def encode_chunk(p: Predictor, values: Array, seen: Array) -> LatentNormal:
    return encode(p.model, p.layout, values, seen)


def latent_chunk(predictor: Predictor, values: np.ndarray, seen: np.ndarray) -> LatentNormal:
    if isinstance(predictor.model.encoder, FreeRows):
        shape = (len(values), predictor.n_components)
        return _refine(predictor, values, seen, independent(np.zeros(shape), np.full(shape, 0.5)))
    q = encode_chunk(predictor, values, seen)
    return _refine(predictor, values, seen, q) if predictor.refined else q


def latent(predictor: Predictor, table: Table) -> LatentNormal:
    """q(x) of every row: the encoder's answer, refined if asked for, or from the prior where there is no encoder."""
    return over_chunks(predictor, table, partial(latent_chunk, predictor))


def positions(predictor: Predictor, table: Table) -> tuple[Float[np.ndarray, "N Q"], Float[np.ndarray, "N Q"]]:
    """Mean and sd of q(x) of every row, dimension by dimension: what a table of a million rows has room for."""

    return over_chunks(predictor, table, lambda values, seen: _mean_and_sd(latent_chunk(predictor, values, seen)))


@jax.jit
def _mean_and_sd(q: LatentNormal) -> tuple[Array, Array]:
    return q.mean, q.sd


@jax.jit
def _refine(p: Predictor, values: Float[Array, "B V"], seen: Bool[Array, "B D"], start: LatentNormal) -> LatentNormal:
    """Adam on each row's own mean and on the logarithm of what its root is multiplied by, dimension by dimension, with
    the decoder frozen; rows do not touch each other."""
    noise = jnp.asarray(standard_draws(REFINE_DRAWS, start.mean.shape[1]))

    def refined(free: tuple[Array, Array]) -> LatentNormal:
        return LatentNormal(free[0], jnp.exp(free[1]) * start.stretch, start.base)

    def objective(free: tuple[Array, Array]) -> Scalar:
        qx = refined(free)

        def one_draw(z: Array) -> Scalar:
            f_mean, f_var = moments(p.model.gp, p.q, project(p.model.gp, qx.at(z[None, None])[0]))
            cells = evaluate.expected_log_probs(p.layout, p.model.thetas, values, seen, f_mean, f_var, p.rules)
            return sum((block.sum() for block in cells), jnp.zeros(()))

        return p.kl_weight * kl_x(qx).sum() - jax.lax.map(one_draw, noise).mean()

    adam = optax.adam(optax.cosine_decay_schedule(REFINE_RATE, REFINE_STEPS, 0.02))
    free = (jnp.asarray(start.mean), jnp.zeros_like(start.mean))

    def body(carry: Any, _: None) -> tuple[Any, None]:
        free, state = carry
        update, state = adam.update(jax.grad(objective)(free), state)
        return (optax.apply_updates(free, update), state), None

    (free, _), _ = jax.lax.scan(body, (free, adam.init(free)), None, length=REFINE_STEPS)
    return refined(free)
