"""Proportions: y ~ Beta(ν μ, ν (1 − μ)) with the paper's probit mean μ = Φ(f) and a learned ν per column."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from scipy.special import ndtr as np_ndtr
from scipy.special import ndtri as np_ndtri

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import (
    CellFeatures,
    CellMean,
    CellValues,
    Likelihood,
    NumberScale,
    Start,
    Theta,
    mean_as_point,
)
from plurigp.likelihoods.rules import CellFunctions
from plurigp.likelihoods.special import both_sides, log_beta_density, ndtr

EDGE = 1e-5  # μ lies in [EDGE, 1 − EDGE]: both shape parameters stay positive at the outermost node


def _off_edges(share: Any) -> Any:
    return EDGE + (1 - 2 * EDGE) * share


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    nu = jnp.exp(theta["log_nu"])
    a, b = (nu * _off_edges(side) for side in both_sides(f[0]))
    return log_beta_density(nu, a, b, y[0])


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return _off_edges(ndtr(f[:1]))


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    nu, tiny = np.exp(np.asarray(theta["log_nu"])), np.finfo(float).eps
    a, b = (nu * _off_edges(np_ndtr(side)) for side in (f[..., 0], -f[..., 0]))
    return np.clip(rng.beta(a, b), tiny, 1 - tiny)


def _start(y: np.ndarray, column: Column) -> Start:
    mean = float(np.clip(y[:, 0].mean(), 0.01, 0.99))
    nu = mean * (1 - mean) / max(float(y[:, 0].var()), 1e-6) - 1
    return Start(np.array([np_ndtri(mean)]), {"log_nu": np.log(np.clip(nu, 0.5, 1e3))})


def _probit_feature(y: CellValues, width: int) -> CellFeatures:
    return ndtri(jnp.clip(y[:1], 1e-4, 1 - 1e-4))


def _probit(y: np.ndarray) -> np.ndarray:
    return np_ndtri(np.clip(y, 1e-4, 1 - 1e-4))


def _log_probit_slope(y: np.ndarray) -> np.ndarray:
    """Of dΦ⁻¹(y)/dy = 1/φ(Φ⁻¹(y))."""
    return 0.5 * (_probit(y) ** 2 + np.log(2 * np.pi))


beta = Likelihood(
    "beta",
    _log_prob,
    _mean,
    mean_as_point,
    _sample,
    _start,
    features=_probit_feature,
    scale=NumberScale(_probit, np_ndtr, _log_probit_slope),
    n_quadrature=20,
    single_precision=True,
)
