"""Times to an event: y = e^f E^{1/k}, E standard exponential, a learned shape k; the survivor is exp(−(y e^{−f})^k)."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaincc

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import CellMean, CellValues, Likelihood, Start, Theta, mean_as_point
from plurigp.likelihoods.families.censored import OPEN, bounds_of, log_bound_feature, log_bounds, log_start, mean_within
from plurigp.likelihoods.rules import CellFunctions, Rule, even, expect_with_slopes
from plurigp.likelihoods.special import bounded_exp, log_gamma, safe_exp

EULER = 0.5772156649015329  # −E[log E]


def _hazard(k: Scalar, log_time: Scalar, f: Scalar, var: Scalar | float = 0.0) -> Scalar:
    """The cumulative hazard (y e^{−f})^k, or its expectation over f ~ N(f, var)."""
    return safe_exp(k * (log_time - f) + k**2 * var / 2, 80.0)


def _log_event_before(k: Scalar, bounds: tuple[Scalar, Scalar], f: CellFunctions) -> Scalar:
    """log P(y < high | y > low), both as logs; 0 where `high` is open."""
    low, high = jnp.maximum(bounds[0], -1e3), bounds[1]
    closed = high < OPEN
    high = jnp.where(closed, high, low + 1)
    rise = k * (high - low)
    near = _hazard(k, low, f[0]) * jnp.expm1(jnp.minimum(rise, 1.0))
    more = jnp.where(rise < 1, near, _hazard(k, high, f[0]) - _hazard(k, low, f[0]))
    inside = jnp.log(-jnp.expm1(-jnp.maximum(more, jnp.finfo(more.dtype).tiny)))
    return jnp.where(closed, inside, 0.0)


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _expected(theta, y, f, jnp.zeros_like(f), None)


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule | None) -> Scalar:
    """Closed form for values and for times without an event; the rule is left an upper bound."""
    k, logs = jnp.exp(theta["log_shape"]), log_bounds(y)
    cell = bounds_of(logs)
    value = theta["log_shape"] + jnp.exp(theta["log_shape"]) * (cell.value - mean[0])
    value = value - _hazard(k, cell.value, mean[0], var[0]) - logs[2]
    survived = jnp.where(cell.low > -OPEN, _hazard(k, jnp.maximum(cell.low, -1e3), mean[0], var[0]), 0.0)
    bounds = cell.low, cell.high
    if rule is None:
        ended = _log_event_before(k, bounds, mean)
    else:
        ended = expect_with_slopes(_log_event_before, rule, k, bounds, mean, var)
    return jnp.where(cell.exact, value, ended - survived)


def _log_mean(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    """log E[y | bounds] = f + log ∫ over the hazards between the bounds of h^{1/k} e^{−h} dh, over their mass."""
    k = jnp.exp(theta["log_shape"])
    cell = bounds_of(log_bounds(y))
    low, high = (_hazard(k, jnp.clip(u, -1e3, 1e3), f[0]) for u in (cell.low, cell.high))
    a = 1 + 1 / k
    lower, upper = gammainc(a, high) - gammainc(a, low), gammaincc(a, low) - gammaincc(a, high)
    part = jnp.log(jnp.maximum(jnp.where(low > a, upper, lower), jnp.finfo(k.dtype).tiny)) + log_gamma(a)
    mass = -low + _log_event_before(k, (cell.low, cell.high), f)
    far = jnp.log(jnp.maximum(y[0], jnp.finfo(k.dtype).tiny)) + jnp.log1p(1 / (k * jnp.maximum(low, 1.0)))
    inside = jnp.where(low > 60, far, f[0] + part - mass)  # the last term of the series for a late lower bound
    return jnp.where(cell.exact, jnp.log(y[0]), inside)


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jnp.clip(safe_exp(_log_mean(theta, y, f)), y[0], y[1])[None]


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return mean_within(_log_prob, _log_mean, theta, y, mean, var, rule)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """At the hazard h at which e^{−h} lies between the survivors of the two bounds."""
    k, scale = np.exp(np.asarray(theta["log_shape"])), bounded_exp(f[..., 0])
    with np.errstate(over="ignore", divide="ignore"):
        low, high = ((y[..., i] / scale) ** k for i in (0, 1))
        more = -np.log1p(rng.random(f.shape[:-1]) * np.expm1(low - high))
        time = np.clip(scale * (low + more) ** (1 / k), y[..., 0], y[..., 1])
    return np.maximum(time, np.finfo(float).tiny)


def _start(y: np.ndarray, column: Column) -> Start:
    """log y has mean f − γ/k and sd π/(k √6); both from a normal with the same limits."""
    start = log_start(y, column)
    k = np.clip(np.pi / np.sqrt(6) / np.exp(start.theta["log_sd"]), 0.2, 50.0)
    return Start(start.bias + EULER / k, {"log_shape": float(np.log(k))})


weibull = Likelihood(
    kind="weibull",
    log_prob=_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_sample,
    start=_start,
    predictive_mean=_predictive_mean,
    expected_log_prob=_expected,
    features=log_bound_feature,
    rule=even,
    n_quadrature=64,
)
