"""Nominal columns with any number of levels: softmax of one function per level, its expectation exact."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Shaped

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta
from plurigp.likelihoods.rules import Rule, expected_logsumexp, expected_softmax


def _levels(theta: Theta, like: Float[Array, " H"]) -> Bool[Array, " H"]:
    """True for the column's own levels, False for the padding up to the block's width."""
    return jnp.arange(len(like)) < theta["n_levels"]


def _pick(y: Float[Array, " W"], of: Float[Array, " H"]) -> Scalar:
    return jnp.where(jnp.arange(len(of)) == y[0], of, 0).sum()


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return _pick(y, f) - jax.nn.logsumexp(jnp.where(_levels(theta, f), f, -jnp.inf))


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    return _pick(y, mean) - expected_logsumexp(mean, var, _levels(theta, mean), rule)


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return expected_softmax(mean, var, _levels(theta, mean), rule)


def _predictive(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    probability = _pick(y, _predictive_mean(theta, y, mean, var, rule))
    return jnp.log(jnp.maximum(probability, jnp.finfo(mean.dtype).tiny))


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jax.nn.softmax(jnp.where(_levels(theta, f), f, -jnp.inf))


def _point(expected: Float[Array, " R"]) -> Scalar:
    return jnp.argmax(expected).astype(expected.dtype)


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    level = np.arange(f.shape[-1]) < np.asarray(theta["n_levels"])[..., None]
    return np.argmax(np.where(level, f + rng.gumbel(size=f.shape), -np.inf), axis=-1).astype(float)


def _levels_first(cells: Shaped[Array, "C H B"]) -> Shaped[Array, "H n"]:
    """Levels first, all cells of the block in one last axis."""
    return jnp.moveaxis(cells, 1, 0).reshape(cells.shape[1], -1)


def _real_levels(theta: Theta, cells: Float[Array, "C H B"]) -> Bool[Array, "H n"]:
    own = jnp.arange(cells.shape[1])[:, None] < theta["n_levels"][:, None, None]
    return _levels_first(jnp.broadcast_to(own, cells.shape))


def _own_level(y: Float[Array, "C W B"], of: Float[Array, "C H B"]) -> Float[Array, "C B"]:
    return jnp.where(jnp.arange(of.shape[1])[:, None] == y, of, 0).sum(1)


def _block_expected(
    theta: Theta, y: Float[Array, "C W B"], mean: Float[Array, "C H B"], var: Float[Array, "C H B"], rule: Rule
) -> Float[Array, "C B"]:
    own = _own_level(y, mean)
    lse = expected_logsumexp(_levels_first(mean), _levels_first(var), _real_levels(theta, mean), rule)
    return own - lse.reshape(own.shape)


def _block_predictive_mean(
    theta: Theta, y: Float[Array, "C W B"], mean: Float[Array, "C H B"], var: Float[Array, "C H B"], rule: Rule
) -> Float[Array, "C H B"]:
    """In float32 whatever comes in: many times faster, and its rounding (1e-6) lies far below the rule's own error."""
    a, v = (_levels_first(part.astype(jnp.float32)) for part in (mean, var))
    probability = expected_softmax(a, v, _real_levels(theta, mean), rule)
    C, H, B = mean.shape
    return jnp.moveaxis(probability.reshape(H, C, B), 0, 1).astype(mean.dtype)


def _block_predictive(
    theta: Theta, y: Float[Array, "C W B"], mean: Float[Array, "C H B"], var: Float[Array, "C H B"], rule: Rule
) -> Float[Array, "C B"]:
    own = _own_level(y, _block_predictive_mean(theta, y, mean, var, rule))
    return jnp.log(jnp.maximum(own, jnp.finfo(mean.dtype).tiny))


def _start(y: np.ndarray, column: Column) -> Start:
    counts = np.bincount(y[:, 0].astype(int), minlength=len(column.levels)) + 0.5
    bias = np.log(counts / counts.sum())
    return Start(bias - bias.mean(), {})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return (jnp.arange(width) == y[0]).astype(y.dtype)


def _one_per_level(column: Column) -> int:
    return len(column.levels)


categorical = Likelihood(
    kind="categorical",
    log_prob=_log_prob,
    mean=_mean,
    point=_point,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=_one_per_level,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
    block_expected_log_prob=_block_expected,
    block_predictive_log_prob=_block_predictive,
    block_predictive_mean=_block_predictive_mean,
    adaptive=True,
)
