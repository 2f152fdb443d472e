"""Real columns, standardised: y ~ N(f, sd²), and the two-function form y ~ N(f₁, FLOOR² + exp(2 f₂))."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import (
    VALUE_SCALE,
    CellMean,
    CellValues,
    Likelihood,
    Start,
    Theta,
    mean_as_point,
    two_functions,
)
from plurigp.likelihoods.rules import CellFunctions, Rule, even, expect_with_slopes, log_expect
from plurigp.likelihoods.special import bounded_exp, log_gamma_step, softplus

LOG_2PI = float(np.log(2 * np.pi))
FLOOR = 0.01  # smallest noise sd, in units of the column's own sd: a density must stay bounded

# --- the noise, which other families share ---


def noise_var(theta: Theta) -> Scalar:
    """The noise variance, never below FLOOR²."""
    return FLOOR**2 + jnp.exp(2 * theta["log_sd"])


def noise_sd(theta: Theta) -> np.ndarray:
    """The noise as a deviation, in NumPy; `noise_scale` is there where the noise itself is drawn (`draw_noise`)."""
    return np.sqrt(FLOOR**2 + np.exp(2 * np.asarray(theta["log_sd"]))) * theta.get("noise_scale", 1.0)


def noise_start(y: Float[np.ndarray, " n"]) -> dict[str, float]:
    """All of the column is noise; `n_cells`, which is not learned, is what tells it."""
    return {"log_sd": 0.5 * np.log(max(float(np.var(y)), 1e-4)), "n_cells": float(len(y))}


def log_normal(y: Scalar, mean: Scalar, var: Scalar) -> Scalar:
    """The log density of a normal."""
    return -0.5 * (LOG_2PI + jnp.log(var) + (y - mean) ** 2 / var)


def log_student(y: Scalar, mean: Scalar, var: Scalar, df: Scalar) -> Scalar:
    """The log density of Student's t; var is its squared scale."""
    spread = df * var
    return log_gamma_step(df / 2) - 0.5 * jnp.log(jnp.pi * spread) - (df + 1) / 2 * jnp.log1p((y - mean) ** 2 / spread)


def log_predictive(theta: Theta, y: Scalar, mean: Scalar, var: Scalar) -> Scalar:
    """The log density of a new cell, f ~ N(mean, var) integrated out, and the noise as well: n cells tell it no better
    than a χ² with n degrees of freedom, so far from the mean the density falls as Student's t and not as a normal.

    This is the predictive of a normal-inverse-gamma posterior, whose var grows and shrinks with the noise. A theta that
    does not say how many cells it has seen is taken at its word.
    """
    total = noise_var(theta) + var
    return log_student(y, mean, total, theta["n_cells"]) if "n_cells" in theta else log_normal(y, mean, total)


def draw_noise(rng: np.random.Generator, theta: Theta, shape: tuple[int, ...]) -> np.ndarray:
    """What the noise sd of each column is to be multiplied by, drawn from its posterior [*shape C]: √(n / χ²_n).

    With f's deviation from its mean scaled by it too, a draw of a cell has the density `log_predictive`.
    """
    n = np.asarray(theta["n_cells"], float)
    return np.sqrt(n / rng.chisquare(n, (*shape, len(n))))


# --- one function: the mean ---


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return log_normal(y[0], f[0], noise_var(theta))


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return log_normal(y[0], mean[0], noise_var(theta)) - 0.5 * var[0] / noise_var(theta)


def _predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return log_predictive(theta, y[0], mean[0], var[0])


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return f[:1]


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return rng.normal(f[..., 0], noise_sd(theta))


def _start(y: np.ndarray, column: Column) -> Start:
    return Start(np.zeros(1), noise_start(y[:, 0]))


gaussian = Likelihood(
    kind="gaussian",
    scale=VALUE_SCALE,
    log_prob=_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_sample,
    start=_start,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    constant_curvature=True,
)


# --- two functions: the mean, and the log sd above the floor ---

LOG_FLOOR = float(np.log(FLOOR))


def _log_var(f: Scalar) -> Scalar:
    """log(FLOOR² + e^{2f}): no log sd makes it overflow, or the density grow without bound."""
    return 2 * LOG_FLOOR + softplus(2 * (f - LOG_FLOOR))


def _given_log_var(square: Scalar, log_var: Scalar) -> Scalar:
    """The log density of a normal, or its expectation over the mean, from (y − mean)² or the expectation of that."""
    return -0.5 * (LOG_2PI + log_var + square * jnp.exp(-log_var))


def _hetero_log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _given_log_var((y[0] - f[0]) ** 2, _log_var(f[1]))


def _hetero_expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """f₁ goes in closed form, E[(y − f₁)²] = (y − a₁)² + v₁; only the log sd is left to the rule."""
    square = (y[0] - mean[0]) ** 2 + var[0]
    return expect_with_slopes(lambda s, _, f: _given_log_var(s, _log_var(f[0])), rule, square, None, mean[1:], var[1:])


def _hetero_predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """The same: N(y; a₁, v₁ + FLOOR² + e^{2 f₂}), and the rule for f₂."""
    square, log_v = (y[0] - mean[0]) ** 2, jnp.log(var[0])
    return log_expect(lambda f: _given_log_var(square, jnp.logaddexp(log_v, _log_var(f[0]))), mean[1:], var[1:], rule)


def _hetero_sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return rng.normal(f[..., 0], np.hypot(FLOOR, bounded_exp(f[..., 1])))


def _hetero_start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([0.0, 0.5 * np.log(max(float(np.var(y[:, 0])), 1e-4))]), {})


gaussian_hetero = Likelihood(
    kind="gaussian_hetero",
    scale=VALUE_SCALE,
    log_prob=_hetero_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_hetero_sample,
    start=_hetero_start,
    n_functions=two_functions,
    expected_log_prob=_hetero_expected,
    predictive_log_prob=_hetero_predictive,
    rule=even,
    n_quadrature=32,
)
