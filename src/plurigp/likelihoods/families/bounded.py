"""What families with limits share. A cell is (lower, upper, log unit): equal bounds are a value, open ends lie far out.

A gap holds bounds that say nothing. So `mean`, `sample` and `quantile`, which stay within a cell's bounds, are those of
the plain distribution at a gap, keep a limit's promise at a limit, and give a known value back.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy.special import log_ndtr, ndtri_exp

from plurigp.core.arrays import Array, Scalar
from plurigp.likelihoods.base import Theta
from plurigp.likelihoods.rules import Rule, gauss_hermite, log_expect
from plurigp.likelihoods.special import HALF_LOG_2PI

OPEN = 1e9  # an end as far out as this is open, on the scale of f
SMALLEST, LARGEST = 1e-29, 1e29  # the same for numbers above zero
EM_STEPS = 40
MEAN_POINTS = 16


class Bounds(NamedTuple):
    """A cell's bounds; `value`, `low` and `high` are harmless numbers where `exact` makes them beside the point."""

    exact: Bool[Array, ""]
    value: Scalar
    low: Scalar
    high: Scalar


def bounds_of(y: Float[Array, " W"]) -> Bounds:
    """The bounds of one cell."""
    exact = y[0] == y[1]
    value = jnp.where(exact, y[0], 0.0)
    return Bounds(exact, value, jnp.where(exact, -1.0, y[0]), jnp.where(exact, 1.0, y[1]))


def log_bounds(y: Float[Array, " W"]) -> Float[Array, " W"]:
    """A cell of a positive column on the log scale; the log unit of a value takes in the slope of the logarithm."""
    log_y = jnp.log(y[:2])
    low = jnp.where(y[0] < SMALLEST, -OPEN, log_y[0])
    high = jnp.where(y[1] > LARGEST, OPEN, log_y[1])
    return jnp.stack([low, high, y[2] + jnp.where(y[0] == y[1], log_y[0], 0)])


def features_of_bounds(y: Float[Array, " W"]) -> Float[Array, " E"]:
    """The value, limit or middle, and on which side of it the cell may lie."""
    low_open, high_open = y[0] <= -OPEN, y[1] >= OPEN
    middle = (jnp.where(low_open, y[1], y[0]) + jnp.where(high_open, y[0], y[1])) / 2
    place = jnp.where(low_open & high_open, 0.0, middle)
    return jnp.stack([place, high_open.astype(y.dtype) - low_open.astype(y.dtype)])


def mean_within(
    log_prob: Callable[[Theta, Any, Any], Scalar],
    log_mean: Callable[[Theta, Any, Any], Scalar],
    theta: Theta,
    y: Float[Array, " W"],
    mean: Float[Array, " H"],
    var: Float[Array, " H"],
    rule: Rule,
) -> Float[Array, " R"]:
    """E[y | its bounds] of a positive family: E[y | f, bounds] over f, weighted by what the bounds say of f.

    A value to fill in needs no long rule, and a mass inside it is dear.
    """
    rule = gauss_hermite(min(len(rule.points), MEAN_POINTS))
    mass = log_expect(lambda f: log_prob(theta, y, f), mean, var, rule)
    total = log_expect(lambda f: log_prob(theta, y, f) + log_mean(theta, y, f), mean, var, rule)
    return jnp.clip(jnp.exp(total - mass), y[0], y[1])[None]


# --- many cells at once, in NumPy ---


def truncated_quantile(level: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The quantile of a standard normal between two bounds, exact far out in the tails."""
    turn = low + high > 0
    a, b = np.where(turn, -high, low), np.where(turn, -low, high)
    u = np.where(turn, 1 - level, level)
    with np.errstate(divide="ignore"):
        log_p = np.logaddexp(np.log1p(-u) + log_ndtr(a), np.log(u) + log_ndtr(b))
    x = np.clip(ndtri_exp(log_p), a, b)
    return np.where(turn, -x, x)


def log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log(Φ(high) − Φ(low)) of many cells."""
    turn = low + high > 0
    a, b = np.where(turn, -high, low), np.where(turn, -low, high)
    top = log_ndtr(b)
    return top + np.log(-np.expm1(np.minimum(log_ndtr(a) - top, -1e-300)))


def truncated_moments(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a standard normal between two bounds; of a value itself where they are equal."""
    turn, exact = low + high > 0, low >= high
    a, b = np.where(turn, -high, low), np.where(turn, -low, high)
    a, b = np.where(exact, -1.0, a), np.where(exact, 1.0, b)
    mass = log_mass(a, b)
    at_a, at_b = (np.exp(np.minimum(-x * x / 2 - HALF_LOG_2PI - mass, 700.0)) for x in (a, b))
    mean = np.clip(at_a - at_b, a, b)
    var = np.clip(1 + a * at_a - b * at_b - mean**2, 0.0, 1.0)
    return np.where(exact, low, np.where(turn, -mean, mean)), np.where(exact, 0.0, var)


def normal_with_limits(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Mean and sd of a column of values and limits under a normal, by EM."""
    known = np.where(np.abs(low) < OPEN, low, np.where(np.abs(high) < OPEN, high, 0.0))
    mean, sd = float(known.mean()), max(float(known.std()), 1e-2)
    for _ in range(EM_STEPS):
        centre, var = truncated_moments((low - mean) / sd, (high - mean) / sd)
        cells = mean + sd * centre
        mean, sd = float(cells.mean()), max(float(np.sqrt(cells.var() + (sd**2 * var).mean())), 1e-2)
    return mean, sd
