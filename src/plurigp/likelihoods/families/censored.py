"""Numbers of which some are known up to a limit: what such families share, the Gaussian and the lognormal.

A cell is (lower, upper, log unit): equal bounds are a value, open ends lie far out. log p of a limit is the log of the
mass it allows. A gap holds bounds that say nothing. `mean` and `sample` are truncated to the cell's bounds: at a gap
they are those of the plain distribution, at a limit they stay on its side, and at a known value they give it back.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool
from scipy.special import log_ndtr, ndtri_exp

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import CellFeatures, CellMean, CellValues, Likelihood, Start, Theta, mean_as_point
from plurigp.likelihoods.families.gaussian import log_normal, noise_sd, noise_var
from plurigp.likelihoods.rules import CellFunctions, Rule, even, expect_with_slopes, gauss_hermite, log_expect
from plurigp.likelihoods.special import HALF_LOG_2PI, bounded_exp, log_between, safe_exp

OPEN = 1e9  # an end as far out as this is open, on the scale of f
SMALLEST, LARGEST = 1e-29, 1e29  # the same for numbers above zero
EM_STEPS = 40
MEAN_POINTS = 16  # of the rule for a mean, at most: a value to fill in needs no long one


class Bounds(NamedTuple):
    """A cell's bounds; `value`, `low` and `high` are harmless numbers where `exact` makes them beside the point."""

    exact: Bool[Array, ""]
    value: Scalar
    low: Scalar
    high: Scalar


def bounds_of(y: CellValues) -> Bounds:
    """The bounds of one cell."""
    exact = y[0] == y[1]
    value = jnp.where(exact, y[0], 0.0)
    return Bounds(exact, value, jnp.where(exact, -1.0, y[0]), jnp.where(exact, 1.0, y[1]))


def log_bounds(y: CellValues) -> CellValues:
    """A cell of a positive column on the log scale; the log unit of a value takes in the slope of the logarithm."""
    log_y = jnp.log(y[:2])
    low = jnp.where(y[0] < SMALLEST, -OPEN, log_y[0])
    high = jnp.where(y[1] > LARGEST, OPEN, log_y[1])
    return jnp.stack([low, high, y[2] + jnp.where(y[0] == y[1], log_y[0], 0)])


def bound_feature(y: CellValues, width: int) -> CellFeatures:
    """The encoder reads the value, limit or middle, and on which side of it the cell may lie."""
    low_open, high_open = y[0] <= -OPEN, y[1] >= OPEN
    middle = (jnp.where(low_open, y[1], y[0]) + jnp.where(high_open, y[0], y[1])) / 2
    place = jnp.where(low_open & high_open, 0.0, middle)
    return jnp.stack([place, high_open.astype(y.dtype) - low_open.astype(y.dtype)])


def log_bound_feature(y: CellValues, width: int) -> CellFeatures:
    """The same on the log scale of a positive column."""
    return bound_feature(log_bounds(y), width)


def mean_within(
    log_prob: Callable,
    log_mean: Callable,
    theta: Theta,
    y: CellValues,
    mean: CellFunctions,
    var: CellFunctions,
    rule: Rule,
) -> CellMean:
    """E[y | its bounds] of a positive family: E[y | f, bounds] over f, weighted by p(bounds | f), by a short rule."""
    rule = gauss_hermite(min(len(rule.points), MEAN_POINTS))
    mass = log_expect(lambda f: log_prob(theta, y, f), mean, var, rule)
    total = log_expect(lambda f: log_prob(theta, y, f) + log_mean(theta, y, f), mean, var, rule)
    return jnp.clip(jnp.exp(total - mass), y[0], y[1])[None]


# --- many cells at once, in NumPy ---


def _turned(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether bounds are mirrored to the side where Φ is small, and the bounds that result."""
    turn = low + high > 0
    return turn, np.where(turn, -high, low), np.where(turn, -low, high)


def _truncated_quantile(level: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The quantile of a standard normal between two bounds, exact in the tails (truncnorm has no equal bounds)."""
    turn, a, b = _turned(low, high)
    u = np.where(turn, 1 - level, level)
    with np.errstate(divide="ignore"):
        log_p = np.logaddexp(np.log1p(-u) + log_ndtr(a), np.log(u) + log_ndtr(b))
    x = np.clip(ndtri_exp(log_p), a, b)
    return np.where(turn, -x, x)


def log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log(Φ(high) − Φ(low)) of many cells."""
    _, a, b = _turned(low, high)
    top = log_ndtr(b)
    return top + np.log(-np.expm1(np.minimum(log_ndtr(a) - top, -1e-300)))


def _truncated_moments(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a standard normal between two bounds; of a value itself where they are equal."""
    exact = low >= high
    turn, a, b = _turned(low, high)
    a, b = np.where(exact, -1.0, a), np.where(exact, 1.0, b)
    mass = log_mass(a, b)
    at_a, at_b = (np.exp(np.minimum(-x * x / 2 - HALF_LOG_2PI - mass, 700.0)) for x in (a, b))
    mean = np.clip(at_a - at_b, a, b)
    var = np.clip(1 + a * at_a - b * at_b - mean**2, 0.0, 1.0)
    return np.where(exact, low, np.where(turn, -mean, mean)), np.where(exact, 0.0, var)


# --- censored Gaussian ---


def _given(y: CellValues, mean: Scalar, var: Scalar) -> Scalar:
    """log N(value; mean, var) in raw units, or log of the normal mass between the bounds."""
    cell, sd = bounds_of(y), jnp.sqrt(var)
    mass = log_between((cell.low - mean) / sd, (cell.high - mean) / sd)
    return jnp.where(cell.exact, log_normal(cell.value, mean, var) - y[2], mass)


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _given(y, f[0], noise_var(theta))


def _log_mass_given(sd: Scalar, bounds: tuple[Scalar, Scalar], f: CellFunctions) -> Scalar:
    low, high = bounds
    return log_between((low - f[0]) / sd, (high - f[0]) / sd)


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """Closed form for a value, the rule for a limit."""
    cell, noise = bounds_of(y), noise_var(theta)
    sd = jnp.sqrt(noise)
    value = log_normal(cell.value, mean[0], noise) - 0.5 * var[0] / noise - y[2]
    mass = expect_with_slopes(_log_mass_given, rule, sd, (cell.low, cell.high), mean, var)
    return jnp.where(cell.exact, value, mass)


def _predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """E[Φ((c − f) / sd)] = Φ((c − a) / √(sd² + v))."""
    return _given(y, mean[0], noise_var(theta) + var[0])


def _mean_between(y: CellValues, mean: Scalar, var: Scalar) -> CellMean:
    """mean + sd (φ(l) − φ(h)) / (Φ(h) − Φ(l))."""
    cell, sd = bounds_of(y), jnp.sqrt(var)
    low, high = (cell.low - mean) / sd, (cell.high - mean) / sd
    mass = log_between(low, high)
    at_low, at_high = (jnp.exp(-z * z / 2 - HALF_LOG_2PI - mass) for z in (low, high))
    inside = jnp.clip(mean + sd * (at_low - at_high), cell.low, cell.high)
    return jnp.where(cell.exact, cell.value, inside)[None]


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return _mean_between(y, f[0], noise_var(theta))


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return _mean_between(y, mean[0], noise_var(theta) + var[0])


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    sd, mean = noise_sd(theta), f[..., 0]
    z = _truncated_quantile(rng.random(f.shape[:-1]), (y[..., 0] - mean) / sd, (y[..., 1] - mean) / sd)
    return np.clip(mean + sd * z, y[..., 0], y[..., 1])


def _start(y: np.ndarray, column: Column) -> Start:
    """Mean and sd under a normal with the same limits, by EM."""
    low, high = y[:, 0], y[:, 1]
    known = np.where(np.abs(low) < OPEN, low, np.where(np.abs(high) < OPEN, high, 0.0))
    mean, sd = float(known.mean()), max(float(known.std()), 1e-2)
    for _ in range(EM_STEPS):
        centre, var = _truncated_moments((low - mean) / sd, (high - mean) / sd)
        cells = mean + sd * centre
        mean, sd = float(cells.mean()), max(float(np.sqrt(cells.var() + (sd**2 * var).mean())), 1e-2)
    return Start(np.array([mean]), {"log_sd": float(np.log(sd))})


censored_gaussian = Likelihood(
    kind="censored_gaussian",
    log_prob=_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_sample,
    start=_start,
    features=bound_feature,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
    rule=even,
    n_quadrature=64,
)


# --- censored lognormal: the same for log y ---


def _log_log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _log_prob(theta, log_bounds(y), f)


def _log_expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _expected(theta, log_bounds(y), mean, var, rule)


def _log_predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _predictive(theta, log_bounds(y), mean, var, rule)


def _exp_mean_between(y: CellValues, mean: Scalar, var: Scalar) -> CellMean:
    """e^{mean + var/2} times the mass between the bounds of a normal that lies var higher, over that mass."""
    cell, sd = bounds_of(log_bounds(y)), jnp.sqrt(var)
    low, high = (cell.low - mean) / sd, (cell.high - mean) / sd
    inside = safe_exp(mean + var / 2 + log_between(low - sd, high - sd) - log_between(low, high))
    return jnp.where(cell.exact, y[0], jnp.clip(inside, y[0], y[1]))[None]


def _log_mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return _exp_mean_between(y, f[0], noise_var(theta))


def _log_predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return _exp_mean_between(y, mean[0], noise_var(theta) + var[0])


def _logs(y: np.ndarray) -> np.ndarray:
    """`log_bounds` of many cells, in NumPy; their log units stay."""
    low = np.where(y[..., 0] < SMALLEST, -OPEN, np.log(y[..., 0]))
    high = np.where(y[..., 1] > LARGEST, OPEN, np.log(y[..., 1]))
    return np.stack([low, high, y[..., 2]], -1)


def _log_sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return np.clip(bounded_exp(_sample(rng, theta, _logs(y), f)), y[..., 0], y[..., 1])


def log_start(y: np.ndarray, column: Column) -> Start:
    """Of the lognormal; other positive families begin with the same moments of log y."""
    return _start(_logs(y), column)


censored_lognormal = Likelihood(
    kind="censored_lognormal",
    log_prob=_log_log_prob,
    mean=_log_mean,
    point=mean_as_point,
    sample=_log_sample,
    start=log_start,
    features=log_bound_feature,
    expected_log_prob=_log_expected,
    predictive_log_prob=_log_predictive,
    predictive_mean=_log_predictive_mean,
    rule=even,
    n_quadrature=64,
)
