"""Positive columns with limits under a gamma: log of the mass between two bounds by quadrature of the log scale.

With u = log y − f the density of log y is exp(k (u − e^u) + const): one mode at u = 0, and tails whose reach is known.
Between the bounds it is integrated from the highest point to either side, which is exact in float32 however far out.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import CellMean, CellValues, Likelihood, Start, Theta, mean_as_point
from plurigp.likelihoods.families.censored import OPEN, bounds_of, log_bound_feature, log_bounds, log_start, mean_within
from plurigp.likelihoods.families.gamma import log_density_of_log
from plurigp.likelihoods.rules import CellFunctions, Rule, even, expect_with_slopes
from plurigp.likelihoods.special import bounded_exp, digamma, log_gamma, safe_exp

NATS = 36.0  # what lies so many nats below the top is left out
NEAR = 8.0  # to the left of the top the density falls fast at first, then like e^{k u}: two panels
PANELS = {4: np.polynomial.legendre.leggauss(16), 8: np.polynomial.legendre.leggauss(32)}  # by bytes of a number


def _panels(k: Scalar, top: Scalar, to_low: Scalar, to_high: Scalar) -> tuple[tuple[Scalar, Scalar], ...]:
    """Starts and ends, seen from the highest point between the bounds: far left, near left and right of it. They end
    where k (u − e^u) has surely fallen by NATS."""
    q, e_top = NATS / k, safe_exp(top)
    left = jnp.minimum(q + jnp.sqrt(2 * q), q / jnp.maximum(1 - e_top, 1e-6))
    right = jnp.minimum(jnp.sqrt(2 * q / e_top), jnp.log1p(2 * q / e_top) + 1)
    right = jnp.minimum(right, q / jnp.maximum(e_top - 1, 1e-6))
    first, last = jnp.maximum(to_low, -left), jnp.minimum(to_high, right)
    near = jnp.maximum(first, -NEAR)
    return (first, near), (near, jnp.zeros_like(top)), (jnp.zeros_like(top), last)


def _hazard(log_k: Scalar, low: Scalar, f: Scalar) -> Scalar:
    """k e^{low − f}, which a lower bound costs: the log mass above it is minus this and a slow function of f."""
    return jnp.where(low > -OPEN, safe_exp(log_k + jnp.maximum(low, -1e3) - f), 0.0)


def _integrate(log_k: Scalar, low: Scalar, high: Scalar, f: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """log P(low < log y < high) + k e^{low − f}, in which nothing large is left to cancel, and its slopes by log k and
    f. One sweep over the panels gives the mass and the means of u and of e^u − e^{low − f} under it."""
    k, is_open = jnp.exp(log_k), low <= -OPEN
    low, high = low - f, high - f
    top = jnp.clip(0.0, low, high)
    to_low = jnp.where(low > 0, 0.0, low - jnp.minimum(high, 0.0))  # from the top; exactly zero where it is the top
    to_high = jnp.where(high < 0, 0.0, high - jnp.maximum(low, 0.0))
    e_top = safe_exp(top)
    base = jnp.where(is_open, e_top, safe_exp(low) * jnp.expm1(jnp.where(is_open, 0.0, -to_low)))  # e^top − e^low
    panels = [(start, (end - start) / 2) for start, end in _panels(k, top, to_low, to_high)]

    def add(sums: Any, node: Any) -> tuple[Any, None]:
        mass, sum_u, sum_growth = sums
        for start, half in panels:
            step = start + half * (1 + node[0])
            growth = e_top * jnp.expm1(step)
            part = half * (node[1] * jnp.exp(k * (step - growth)))
            mass, sum_u, sum_growth = mass + part, sum_u + part * step, sum_growth + part * growth
        return (mass, sum_u, sum_growth), None

    nodes = tuple(jnp.asarray(part, k.dtype) for part in PANELS[k.dtype.itemsize])
    (mass, sum_u, sum_growth), _ = jax.lax.scan(add, (jnp.zeros_like(top),) * 3, nodes)
    mass = jnp.maximum(mass, jnp.finfo(k.dtype).tiny)
    u, growth = top + sum_u / mass, base + sum_growth / mass
    value = jnp.log(mass) + k * (top - base + log_k) - log_gamma(k)
    both = is_open & (high >= OPEN / 2)  # nothing is known
    by_log_k, by_f = k * (u - growth + log_k + 1 - digamma(k)), k * (growth - 1)
    return jnp.where(both, 0.0, value), jnp.where(both, 0.0, by_log_k), jnp.where(both, 0.0, by_f)


@jax.custom_jvp
def _log_excess(log_k: Scalar, low: Scalar, high: Scalar, f: Scalar) -> Scalar:
    return _integrate(log_k, low, high, f)[0]


@_log_excess.defjvp
def _log_excess_jvp(primals: Any, tangents: Any) -> tuple[Scalar, Scalar]:
    """The bounds are data: they have no slopes."""
    value, by_log_k, by_f = _integrate(*primals)
    return value, by_log_k * tangents[0] + by_f * tangents[3]


def _log_mass(log_k: Scalar, low: Scalar, high: Scalar, f: Scalar) -> Scalar:
    return _log_excess(log_k, low, high, f) - _hazard(log_k, low, f)


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    logs = log_bounds(y)
    cell = bounds_of(logs)
    value = log_density_of_log(theta, jnp.exp(cell.value), cell.value, f[0], safe_exp(-f[0])) - logs[2]
    return jnp.where(cell.exact, value, _log_mass(theta["log_shape"], cell.low, cell.high, f[0]))


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """Closed form for a value and for what a lower bound costs, the rule for the rest."""
    logs = log_bounds(y)
    cell, log_k, inverse_mean = bounds_of(logs), theta["log_shape"], safe_exp(-mean[0] + var[0] / 2)
    value = log_density_of_log(theta, jnp.exp(cell.value), cell.value, mean[0], inverse_mean) - logs[2]
    excess = expect_with_slopes(
        lambda log_k, bounds, f: _log_excess(log_k, *bounds, f[0]), rule, log_k, (cell.low, cell.high), mean, var
    )
    return jnp.where(cell.exact, value, excess - _hazard(log_k, cell.low, mean[0] - var[0] / 2))


def _log_mean(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    """log E[y | bounds]: y p(y) is a gamma density with a shape higher by one."""
    cell, log_k = bounds_of(log_bounds(y)), theta["log_shape"]
    higher = jnp.logaddexp(log_k, 0.0)
    raised = _log_mass(higher, cell.low, cell.high, f[0] + higher - log_k)
    return jnp.where(cell.exact, jnp.log(y[0]), f[0] + raised - _log_mass(log_k, cell.low, cell.high, f[0]))


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jnp.clip(safe_exp(_log_mean(theta, y, f)), y[0], y[1])[None]


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return mean_within(_log_prob, _log_mean, theta, y, mean, var, rule)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """By the lower tail's inverse below the median of the cell's range, by the upper tail's above."""
    k, level = np.exp(np.asarray(theta["log_shape"])), rng.random(f.shape[:-1])
    scale = bounded_exp(f[..., 0]) / k
    low, high = y[..., 0] / scale, y[..., 1] / scale
    below = (1 - level) * gammainc(k, low) + level * gammainc(k, high)
    above = (1 - level) * gammaincc(k, low) + level * gammaincc(k, high)
    x = np.where(below < 0.5, gammaincinv(k, below), gammainccinv(k, above))
    return np.maximum(np.clip(scale * x, y[..., 0], y[..., 1]), np.finfo(float).tiny)


def _start(y: np.ndarray, column: Column) -> Start:
    """From the lognormal with the same limits: the gamma of the same mean and spread of logs."""
    start = log_start(y, column)
    var = np.exp(2 * start.theta["log_sd"])
    return Start(start.bias + var / 2, {"log_shape": float(np.log(np.clip(1 / var, 0.2, 1e3)))})


censored_gamma = Likelihood(
    kind="censored_gamma",
    log_prob=_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_sample,
    start=_start,
    features=log_bound_feature,
    expected_log_prob=_expected,
    predictive_mean=_predictive_mean,
    rule=even,
    n_quadrature=64,
)
