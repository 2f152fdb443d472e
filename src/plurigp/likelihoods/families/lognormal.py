"""Positive, skewed columns, in units of their geometric mean: log y ~ N(f, sd²)."""

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
from plurigp.likelihoods.families.gaussian import gaussian, log_normal, log_predictive, noise_start, noise_var
from plurigp.likelihoods.rules import CellFunctions, Rule
from plurigp.likelihoods.special import bounded_exp, safe_exp


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    log_y = jnp.log(y[0])
    return log_normal(log_y, f[0], noise_var(theta)) - log_y


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _log_prob(theta, y, mean) - 0.5 * var[0] / noise_var(theta)


def _predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    log_y = jnp.log(y[0])
    return log_predictive(theta, log_y, mean[0], var[0]) - log_y


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return safe_exp(f[:1] + noise_var(theta) / 2)


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    """E[y] = e^{a + v/2 + sd²/2}."""
    return _mean(theta, y, mean + var / 2)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return bounded_exp(gaussian.sample(rng, theta, y, f))


def _start(y: np.ndarray, column: Column) -> Start:
    log_y = np.log(y[:, 0])
    return Start(np.array([log_y.mean()]), noise_start(log_y))


lognormal = Likelihood(
    kind="lognormal",
    log_prob=_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_sample,
    start=_start,
    features=log_feature,
    scale=LOG_SCALE,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
    constant_curvature=True,
)
