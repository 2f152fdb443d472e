"""Ordered levels: P(y ≤ k | f) = Φ(c_k − f), with learned cut points c_1 < … < c_{K−1}."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import ndtri as np_ndtri

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import CellMean, CellValues, Likelihood, Start, Theta, one_per_level
from plurigp.likelihoods.rules import CellFunctions, Rule, even
from plurigp.likelihoods.special import log_between, ndtr

END = 1e3  # the outermost cut points, as good as infinite


def _cuts(theta: Theta) -> Float[Array, " K1"]:
    """c_0 = −END, c_1 … c_{K−1}, c_K = END."""
    steps = jnp.concatenate([theta["first_cut"][None], jnp.exp(theta["log_gaps"])])
    return jnp.concatenate([jnp.full(1, -END, steps.dtype), jnp.cumsum(steps), jnp.full(1, END, steps.dtype)])


def _between(theta: Theta, y: Scalar, f: Scalar, spread: Scalar | float) -> Scalar:
    cuts, k = _cuts(theta), y.astype(int)
    return log_between((cuts[k] - f) / spread, (cuts[k + 1] - f) / spread)


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _between(theta, y[0], f[0], 1.0)


def _predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """E[Φ(c − f)] = Φ((c − a) / √(1 + v))."""
    return _between(theta, y[0], mean[0], jnp.sqrt(1 + var[0]))


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jnp.diff(ndtr(_cuts(theta) - f[0]))


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return jnp.diff(ndtr((_cuts(theta) - mean[0]) / jnp.sqrt(1 + var[0])))


def _point(expected: CellMean) -> Scalar:
    """The median level: the smallest expected distance in ranks."""
    return (jnp.cumsum(expected)[:-1] < 0.5).sum().astype(expected.dtype)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    steps = np.concatenate([np.asarray(theta["first_cut"])[..., None], np.exp(np.asarray(theta["log_gaps"]))], -1)
    noisy = f[..., 0] + rng.normal(size=f.shape[:-1])
    return (noisy[..., None] > np.cumsum(steps, -1)).sum(-1).astype(float)


def _start(y: np.ndarray, column: Column) -> Start:
    """Cut points from the shares of the levels, at the spread of f and its noise together."""
    counts = np.bincount(y[:, 0].astype(int), minlength=len(column.levels)) + 0.5
    cuts = np.sqrt(2) * np_ndtri(np.cumsum(counts / counts.sum())[:-1])
    return Start(np.zeros(1), {"first_cut": float(cuts[0]), "log_gaps": np.log(np.maximum(np.diff(cuts), 1e-2))})


ordinal = Likelihood(
    kind="ordinal",
    log_prob=_log_prob,
    mean=_mean,
    point=_point,
    sample=_sample,
    start=_start,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
    rule=even,
    n_quadrature=32,
    block_width=one_per_level,
)
