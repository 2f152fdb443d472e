"""Counts: y ~ Poisson(e^f), the rate at most a ceiling that the column's counts set; beyond it there are slips."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import poisson as poisson_law

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.data.scale import largest_in_scale
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, nearest_whole, one_function
from plurigp.likelihoods.rules import Rule
from plurigp.likelihoods.special import HALF_LOG_2PI, both_sides, exp_excess, log_factorial_rest, log_ndtr

# --- the rate, which all families of counts share ---

LOG_LARGEST = 41.0  # of a rate: counts end at 1e15 or so, and NumPy draws none beyond 1e18


def log_ceiling(theta: Theta) -> Scalar | float:
    """The largest log rate, a fact and not learned: LOG_LARGEST where theta does not say."""
    return jax.lax.stop_gradient(theta["log_ceiling"]) if "log_ceiling" in theta else LOG_LARGEST


def counts_in_scale(y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " _"]:
    """The counts without those out of scale with the rest: one of these would be all of the column's mean."""
    return y[y <= largest_in_scale(y)]


def ceiling_start(y: Float[np.ndarray, " n"]) -> dict[str, float]:
    """(√y + 3)² for y the largest count in scale: with such a rate a Poisson count is this small once in a thousand
    million times, so no cell asks for more, and no gap is filled with more."""
    return {"log_ceiling": min(2 * float(np.log(np.sqrt(counts_in_scale(y).max()) + 3)), LOG_LARGEST)}


def log_rate(theta: Theta, f: Float[Array, "..."]) -> Float[Array, "..."]:
    """f, at most the ceiling."""
    return jnp.minimum(f, log_ceiling(theta))


def rate(theta: Theta, f: Cells) -> np.ndarray:
    """The same as a rate, in NumPy, from cells [... 1]."""
    return np.exp(np.minimum(f[..., 0], theta.get("log_ceiling", LOG_LARGEST)))


class RateMoments(NamedTuple):
    """Of a rate e^g: E[g], and E[e^g] − e^E[g], which is never negative."""

    log_mean: Float[Array, "..."]
    rest: Float[Array, "..."]


def rate_moments(theta: Theta, mean: Float[Array, "..."], var: Float[Array, "..."]) -> RateMoments:
    """For g = min(f, T), f ~ N(mean, var): E[g] = min(a, T) − s (φ(d) − |d| Φ(−|d|)) and
    E[e^g] = e^{a + v/2} Φ(−d − s) + e^T Φ(d), d = (a − T) / s. Far below the ceiling these are a and e^{a + v/2}."""
    top, sd = log_ceiling(theta), jnp.sqrt(var)
    d = (mean - top) / sd
    below, beyond = both_sides(d)
    over = sd * jnp.maximum(jnp.exp(-d * d / 2 - HALF_LOG_2PI) - jnp.abs(d) * jnp.minimum(below, beyond), 0)
    low = jnp.minimum(mean, top) - over
    step = mean - low + var / 2 + log_ndtr(-d - sd)  # from E[g] to log E[e^f; f < T]
    first = jnp.minimum(step, 1.0)
    rest = jnp.exp(low) * jnp.expm1(first) + jnp.exp(low + step) - jnp.exp(low + first) + jnp.exp(top) * below
    return RateMoments(low, jnp.maximum(rest, 0))


def log_poisson(y: Scalar, log_rate: Scalar) -> Scalar:
    """log p(y) by its deviance: nothing of the size of log y! cancels, and it is never above zero."""
    count = jnp.where(y > 0, y, 1)
    deviance = jnp.where(y > 0, count * exp_excess(log_rate - jnp.log(count)), jnp.exp(log_rate))
    return -deviance - log_factorial_rest(y)


def expected_log_poisson(theta: Theta, y: Scalar, mean: Scalar, var: Scalar) -> Scalar:
    """E[log p(y)], in closed form: log p is linear in the log rate and in the rate."""
    log_mean, rest = rate_moments(theta, mean, var)
    return log_poisson(y, log_mean) - rest


def expected_rate(theta: Theta, mean: Float[Array, " H"], var: Float[Array, " H"]) -> Float[Array, " H"]:
    """E[e^min(f, T)]."""
    log_mean, rest = rate_moments(theta, mean, var)
    return jnp.exp(log_mean) + rest


SLIP = 1e-6  # share of counts that are slips


def with_slips(theta: Theta, y: Scalar, log_prob: Scalar) -> Scalar:
    """log((1 − SLIP) p(y) + SLIP q(y)) with q(y) = m / (y (y + 1)) for counts y ≥ m above the ceiling, whatever f is.

    So a count that the column's rates cannot explain costs tens of nats and not as many as it is, and a fit leaves it
    alone. Of E[log p] it makes a lower bound of the expectation. Where theta has no ceiling there are no slips.
    """
    if "log_ceiling" not in theta:
        return log_prob
    first = jnp.floor(jnp.exp(log_ceiling(theta))) + 1
    high = jnp.maximum(y, first)
    slip = math.log(SLIP) + jnp.log(first) - jnp.log(high) - jnp.log(high + 1)
    counted = math.log1p(-SLIP) + log_prob
    return jnp.where(y < first, counted, jnp.logaddexp(counted, slip))


# --- the Poisson itself ---


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return with_slips(theta, y[0], log_poisson(y[0], log_rate(theta, f[0])))


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    return with_slips(theta, y[0], expected_log_poisson(theta, y[0], mean[0], var[0]))


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jnp.exp(log_rate(theta, f))


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return expected_rate(theta, mean, var)


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return rng.poisson(rate(theta, f)).astype(float)


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return np.sqrt(rate(theta, f))


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    return np.maximum(poisson_law.ppf(level, rate(theta, f)), 0.0)


def _start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([np.log(max(counts_in_scale(y[:, 0]).mean(), 1e-2))]), ceiling_start(y[:, 0]))


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return jnp.log1p(y[:1])


poisson = Likelihood(
    kind="poisson",
    log_prob=_log_prob,
    mean=_mean,
    point=nearest_whole,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=one_function,
    sd=_sd,
    quantile=_quantile,
    expected_log_prob=_expected,
    predictive_mean=_predictive_mean,
    n_quadrature=20,
)
