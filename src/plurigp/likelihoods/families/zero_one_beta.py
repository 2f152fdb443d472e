"""Proportions with exact zeros and ones: 0 below a learned cut of f plus noise, 1 above another, a beta between them.

P(0) = Φ(c₀ − f), P(1) = Φ(f − c₁), and the beta's mean is Φ(f): the lower a proportion, the likelier its zero.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from scipy.special import ndtri as np_ndtri

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import CellFeatures, CellMean, CellValues, Likelihood, Start, Theta, mean_as_point
from plurigp.likelihoods.families.beta import beta
from plurigp.likelihoods.rules import CellFunctions, even
from plurigp.likelihoods.special import log_between, log_ndtr, ndtr


def _cuts(theta: Theta, f: CellFunctions) -> tuple[Scalar, Scalar]:
    """Both cuts less f."""
    return theta["low_cut"] - f[0], theta["low_cut"] + jnp.exp(theta["log_gap"]) - f[0]


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    """A cell is (proportion, log unit of a density)."""
    low, high = _cuts(theta, f)
    inside = (y[0] > 0) & (y[0] < 1)
    between = log_between(low, high) + beta.log_prob(theta, jnp.where(inside, y[0], 0.5)[None], f) - y[1]
    return jnp.where(inside, between, jnp.where(y[0] <= 0, log_ndtr(low), log_ndtr(-high)))


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    low, high = _cuts(theta, f)
    return ndtr(-high) + (ndtr(high) - ndtr(low)) * beta.mean(theta, y, f)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    low = np.asarray(theta["low_cut"]) - f[..., 0]
    high = low + np.exp(np.asarray(theta["log_gap"]))
    noise = rng.normal(size=f.shape[:-1])
    return np.where(noise < low, 0.0, np.where(noise > high, 1.0, beta.sample(rng, theta, y, f)))


def _start(y: np.ndarray, column: Column) -> Start:
    """Cuts from the shares of zeros and ones, at the spread of f and its noise together; the beta from the rest."""
    share = y[:, 0]
    inside = share[(share > 0) & (share < 1)]
    plain = beta.start(inside[:, None] if len(inside) else np.full((1, 1), 0.5), column)
    zeros, ones = (float(((share == end).sum() + 0.5) / (len(share) + 1)) for end in (0.0, 1.0))
    low = plain.bias[0] + np.sqrt(2) * np_ndtri(zeros)
    high = plain.bias[0] - np.sqrt(2) * np_ndtri(ones)
    return Start(plain.bias, {**plain.theta, "low_cut": float(low), "log_gap": float(np.log(max(high - low, 0.1)))})


def _probit_and_edge(y: CellValues, width: int) -> CellFeatures:
    edge = (y[0] >= 1).astype(y.dtype) - (y[0] <= 0).astype(y.dtype)
    return jnp.stack([ndtri(jnp.clip(y[0], 1e-3, 1 - 1e-3)), edge])


zero_one_beta = Likelihood(
    "zero_one_beta",
    _log_prob,
    _mean,
    mean_as_point,
    _sample,
    _start,
    features=_probit_and_edge,
    rule=even,
    n_quadrature=96,
    single_precision=True,
)
