"""Positive columns, in units of their geometric mean: y ~ Gamma with mean e^f and a learned shape per column."""

import jax.numpy as jnp
import numpy as np

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import (
    LOG_SCALE,
    CellMean,
    CellValues,
    Likelihood,
    Start,
    Theta,
    log_feature,
    mean_as_point,
)
from plurigp.likelihoods.rules import CellFunctions, Rule, even
from plurigp.likelihoods.special import bounded_exp, log_gamma, safe_exp


def log_density_of_log(theta: Theta, y: Scalar, log_y: Scalar, f: Scalar, inverse_mean: Scalar) -> Scalar:
    """The log density of log y, or its expectation over f, from e^{−f} or the expectation of that."""
    shape = jnp.exp(theta["log_shape"])
    return shape * (theta["log_shape"] - f + log_y - y * inverse_mean) - log_gamma(shape)


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    log_y = jnp.log(y[0])
    return log_density_of_log(theta, y[0], log_y, f[0], safe_exp(-f[0])) - log_y


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """E[e^{−f}] = e^{−a + v/2}."""
    log_y = jnp.log(y[0])
    return log_density_of_log(theta, y[0], log_y, mean[0], safe_exp(-mean[0] + var[0] / 2)) - log_y


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return safe_exp(f[:1])


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return safe_exp(mean[:1] + var[:1] / 2)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    shape = np.exp(np.asarray(theta["log_shape"]))
    return np.maximum(rng.gamma(shape, bounded_exp(f[..., 0]) / shape), np.finfo(float).tiny)


def _start(y: np.ndarray, column: Column) -> Start:
    """The shape from log mean − mean log, which for a gamma is about 1 / (2 shape)."""
    mean = float(y[:, 0].mean())
    gap = max(float(np.log(mean) - np.log(y[:, 0]).mean()), 1e-3)
    return Start(np.array([np.log(mean)]), {"log_shape": float(np.log(np.clip(0.5 / gap, 0.2, 1e3)))})


gamma = Likelihood(
    kind="gamma",
    log_prob=_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_sample,
    start=_start,
    rule=even,
    n_quadrature=48,
    features=log_feature,
    scale=LOG_SCALE,
    expected_log_prob=_expected,
    predictive_mean=_predictive_mean,
)
