"""Nominal columns with any number of levels: softmax of one function per level, its expectation exact.

A block has both forms: one cell's, and the whole block's with levels first, which is several times faster.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import CellFeatures, CellMean, CellValues, Likelihood, Start, Theta, one_per_level
from plurigp.likelihoods.rules import CellFunctions, Rule
from plurigp.likelihoods.softmax import expected_logsumexp, expected_softmax

BlockValues = Float[Array, "C W B"]
BlockFunctions = Float[Array, "C H B"]
LogProbs = Float[Array, "C B"]


def _levels(theta: Theta, like: CellFunctions) -> Bool[Array, " H"]:
    """True for the column's own levels, False for the padding up to the block's width."""
    return jnp.arange(len(like)) < theta["n_levels"]


def _pick(y: CellValues, of: CellFunctions) -> Scalar:
    return jnp.where(jnp.arange(len(of)) == y[0], of, 0).sum()


def _log(probability: Float[Array, "..."], dtype: jnp.dtype) -> Float[Array, "..."]:
    return jnp.log(jnp.maximum(probability, jnp.finfo(dtype).tiny))


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _pick(y, f) - jax.nn.logsumexp(jnp.where(_levels(theta, f), f, -jnp.inf))


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _pick(y, mean) - expected_logsumexp(mean, var, _levels(theta, mean), rule)


def _predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _log(_pick(y, _predictive_mean(theta, y, mean, var, rule)), mean.dtype)


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jax.nn.softmax(jnp.where(_levels(theta, f), f, -jnp.inf))


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return expected_softmax(mean, var, _levels(theta, mean), rule)


def _point(expected: CellMean) -> Scalar:
    return jnp.argmax(expected).astype(expected.dtype)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    level = np.arange(f.shape[-1]) < np.asarray(theta["n_levels"])[..., None]
    return np.argmax(np.where(level, f + rng.gumbel(size=f.shape), -np.inf), axis=-1).astype(float)


def _start(y: np.ndarray, column: Column) -> Start:
    counts = np.bincount(y[:, 0].astype(int), minlength=len(column.levels)) + 0.5
    bias = np.log(counts / counts.sum())
    return Start(bias - bias.mean(), {})


def _one_hot(y: CellValues, width: int) -> CellFeatures:
    return (jnp.arange(width) == y[0]).astype(y.dtype)


# --- a whole block ---


def _block_levels(theta: Theta, cells: BlockFunctions) -> Bool[Array, "H C B"]:
    C, H, B = cells.shape
    return jnp.broadcast_to(jnp.arange(H)[:, None, None] < theta["n_levels"][:, None], (H, C, B))


def _block_pick(y: BlockValues, of: BlockFunctions) -> Float[Array, "C B"]:
    return jnp.where(jnp.arange(of.shape[1])[:, None] == y, of, 0).sum(1)


def _block_expected(theta: Theta, y: BlockValues, mean: BlockFunctions, var: BlockFunctions, rule: Rule) -> LogProbs:
    a, v = (jnp.moveaxis(part, 1, 0) for part in (mean, var))
    return _block_pick(y, mean) - expected_logsumexp(a, v, _block_levels(theta, mean), rule)


def _block_log_share(y: BlockValues, shares: BlockFunctions) -> LogProbs:
    return _log(_block_pick(y, shares), shares.dtype)


def _block_predictive(theta: Theta, y: BlockValues, mean: BlockFunctions, var: BlockFunctions, rule: Rule) -> LogProbs:
    return _block_log_share(y, _block_predictive_mean(theta, y, mean, var, rule))


def _block_predictive_mean(
    theta: Theta, y: BlockValues, mean: BlockFunctions, var: BlockFunctions, rule: Rule
) -> BlockFunctions:
    """In float32 whatever comes in: many times faster, and its rounding (1e-6) lies far below the rule's own error."""
    a, v = (jnp.moveaxis(part.astype(jnp.float32), 1, 0) for part in (mean, var))
    return jnp.moveaxis(expected_softmax(a, v, _block_levels(theta, mean), rule), 0, 1).astype(mean.dtype)


categorical = Likelihood(
    kind="categorical",
    log_prob=_log_prob,
    mean=_mean,
    point=_point,
    sample=_sample,
    start=_start,
    features=_one_hot,
    n_functions=one_per_level,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
    block_expected_log_prob=_block_expected,
    block_predictive_log_prob=_block_predictive,
    block_predictive_mean=_block_predictive_mean,
    block_log_share=_block_log_share,
    adaptive=True,
)
