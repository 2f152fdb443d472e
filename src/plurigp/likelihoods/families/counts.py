"""Counts: y ~ Poisson(e^f), and the families with more spread or more zeros than a Poisson.

The rate is at most a ceiling that the column's counts set; counts beyond it are slips.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.data.scale import largest_in_scale
from plurigp.likelihoods.base import (
    CellFeatures,
    CellMean,
    CellValues,
    Likelihood,
    NumberScale,
    Start,
    Theta,
    nearest_whole,
)
from plurigp.likelihoods.rules import CellFunctions, Rule, even, expect_with_slopes
from plurigp.likelihoods.special import HALF_LOG_2PI, both_sides, exp_excess, log_factorial_rest, log_ndtr, softplus

# --- what all families of counts share: rates, slips, the feature ---

LOG_LARGEST = 41.0  # of a rate: counts end at 1e15 or so, and NumPy draws none beyond 1e18


def _log_ceiling(theta: Theta) -> Scalar | float:
    """The largest log rate, a fact and not learned: LOG_LARGEST where theta does not say."""
    return jax.lax.stop_gradient(theta["log_ceiling"]) if "log_ceiling" in theta else LOG_LARGEST


def _ceiling(theta: Theta) -> dict[str, Scalar]:
    """The part of theta that `log_rate` reads."""
    return {"log_ceiling": theta["log_ceiling"]} if "log_ceiling" in theta else {}


def _counts_in_scale(y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " _"]:
    """The counts without those out of scale with the rest: one of these would be all of the column's mean."""
    return y[y <= largest_in_scale(y)]


def _ceiling_start(y: Float[np.ndarray, " n"]) -> dict[str, float]:
    """(√y + 3)² for y the largest count in scale: with such a rate a Poisson count is this small once in a thousand
    million times, so no cell asks for more, and no gap is filled with more."""
    return {"log_ceiling": min(2 * float(np.log(np.sqrt(_counts_in_scale(y).max()) + 3)), LOG_LARGEST)}


def _log_rate(theta: Theta, f: Float[Array, "..."]) -> Float[Array, "..."]:
    """f, at most the ceiling."""
    return jnp.minimum(f, _log_ceiling(theta))


def _rate(theta: Theta, f: np.ndarray) -> np.ndarray:
    """The same as a rate, in NumPy, from cells [... 1]."""
    return np.exp(np.minimum(f[..., 0], theta.get("log_ceiling", LOG_LARGEST)))


def _rate_moments(theta: Theta, mean: Float[Array, "..."], var: Float[Array, "..."]) -> tuple[Array, Array]:
    """E[g] and E[e^g] − e^E[g], never negative, for g = min(f, T), f ~ N(mean, var). With d = (a − T) / s,
    E[g] = min(a, T) − s (φ(d) − |d| Φ(−|d|)) and E[e^g] = e^{a + v/2} Φ(−d − s) + e^T Φ(d), which far below the ceiling
    are a and e^{a + v/2}."""
    top, sd = _log_ceiling(theta), jnp.sqrt(var)
    d = (mean - top) / sd
    below, beyond = both_sides(d)
    over = sd * jnp.maximum(jnp.exp(-d * d / 2 - HALF_LOG_2PI) - jnp.abs(d) * jnp.minimum(below, beyond), 0)
    low = jnp.minimum(mean, top) - over
    step = mean - low + var / 2 + log_ndtr(-d - sd)  # from E[g] to log E[e^f; f < T]
    first = jnp.minimum(step, 1.0)
    rest = jnp.exp(low) * jnp.expm1(first) + jnp.exp(low + step) - jnp.exp(low + first) + jnp.exp(top) * below
    return low, jnp.maximum(rest, 0)


def _log_poisson(y: Scalar, log_rate: Scalar) -> Scalar:
    """log p(y) by its deviance: nothing of the size of log y! cancels, and it is never above zero."""
    count = jnp.where(y > 0, y, 1)
    deviance = jnp.where(y > 0, count * exp_excess(log_rate - jnp.log(count)), jnp.exp(log_rate))
    return -deviance - log_factorial_rest(y)


def _expected_log_poisson(theta: Theta, y: Scalar, mean: Scalar, var: Scalar) -> Scalar:
    """E[log p(y)], in closed form: log p is linear in the log rate and in the rate."""
    log_mean, rest = _rate_moments(theta, mean, var)
    return _log_poisson(y, log_mean) - rest


SLIP = 1e-6  # share of counts that are slips


def _with_slips(theta: Theta, y: Scalar, log_prob: Scalar) -> Scalar:
    """log((1 − SLIP) p(y) + SLIP q(y)) with q(y) = m / (y (y + 1)) for counts y ≥ m above the ceiling, whatever f is.

    So a count that the column's rates cannot explain costs tens of nats and not as many as it is, and a fit leaves it
    alone. Of E[log p] it makes a lower bound of the expectation. Where theta has no ceiling there are no slips.
    """
    if "log_ceiling" not in theta:
        return log_prob
    first = jnp.floor(jnp.exp(_log_ceiling(theta))) + 1
    high = jnp.maximum(y, first)
    slip = math.log(SLIP) + jnp.log(first) - jnp.log(high) - jnp.log(high + 1)
    counted = math.log1p(-SLIP) + log_prob
    return jnp.where(y < first, counted, jnp.logaddexp(counted, slip))


def _count_feature(y: CellValues, width: int) -> CellFeatures:
    """The encoder reads log(1 + count)."""
    return jnp.log1p(y[:1])


def _minus_log1p(y: np.ndarray) -> np.ndarray:
    return -np.log1p(y)


COUNT_SCALE = NumberScale(np.log1p, np.expm1, _minus_log1p)

# --- Poisson ---


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _with_slips(theta, y[0], _log_poisson(y[0], _log_rate(theta, f[0])))


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _with_slips(theta, y[0], _expected_log_poisson(theta, y[0], mean[0], var[0]))


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jnp.exp(_log_rate(theta, f))


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    log_mean, rest = _rate_moments(theta, mean, var)
    return jnp.exp(log_mean) + rest


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return rng.poisson(_rate(theta, f)).astype(float)


def _start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([np.log(max(_counts_in_scale(y[:, 0]).mean(), 1e-2))]), _ceiling_start(y[:, 0]))


poisson = Likelihood(
    kind="poisson",
    log_prob=_log_prob,
    mean=_mean,
    point=nearest_whole,
    sample=_sample,
    start=_start,
    features=_count_feature,
    scale=COUNT_SCALE,
    expected_log_prob=_expected,
    predictive_mean=_predictive_mean,
    n_quadrature=20,
    single_precision=True,
)


# --- negative binomial: mean e^f, variance e^f + e^{2f} / r ---


def _nb_saturated(log_r: Scalar, y: Scalar) -> Scalar:
    """log p(y) of the saturated model, whose mean is y."""
    r = jnp.exp(log_r)
    both = log_factorial_rest(y + r) - log_factorial_rest(r) - log_factorial_rest(y)
    return both - jnp.log1p(y / r)


def _nb_tilted_softplus(given: dict[str, Scalar], data: tuple[Scalar, Scalar], f: CellFunctions) -> Scalar:
    """softplus(t + logit h) − h t."""
    t = data[0] * (_log_rate(given, f[0]) - data[1])
    return softplus(given["logit"] + t) - given["h"] * t


def _nb_log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _nb_expected(theta, y, f, jnp.zeros_like(f), None)


def _nb_expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule | None) -> Scalar:
    """The saturated log p(y) less the deviance D, which is left to the rule; without one, f is known.

    With h the lesser share of the two in y + r, and t = log(mean / y) if that is the share of y, −log(mean / y) if it
    is the share of r, D = (y + r) (log(1 − h + h e^t) − h t) = (y + r) (softplus(t + logit h) − h t + log(1 − h)).
    Where one of the two is small nothing of the size of the other cancels. At y = 0, t + logit h is log(mean / r).
    """
    log_r, count = theta["log_r"], y[0]
    r = jnp.exp(log_r)
    sign, log_count = jnp.where(count < r, 1, -1).astype(r.dtype), jnp.log(jnp.where(count > 0, count, 1))
    lesser, larger = jnp.minimum(count, r), jnp.maximum(count, r)
    slopes = {"logit": sign * (log_count - log_r), "h": lesser / (count + r), **_ceiling(theta)}
    if rule is None:
        tilted = _nb_tilted_softplus(slopes, (sign, log_count), mean)
    else:
        tilted = expect_with_slopes(_nb_tilted_softplus, rule, slopes, (sign, log_count), mean, var)
    deviance = (count + jnp.exp(log_r)) * (tilted - jnp.log1p(lesser / larger))
    return _with_slips(theta, count, _nb_saturated(log_r, count) - jnp.maximum(deviance, 0))


def _nb_sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    r = np.exp(np.asarray(theta["log_r"]))
    return rng.poisson(rng.gamma(r, _rate(theta, f) / r)).astype(float)


def _nb_start(y: np.ndarray, column: Column) -> Start:
    """r by the method of moments, within what a column can tell."""
    usual = _counts_in_scale(y[:, 0])
    mean, var = max(float(usual.mean()), 1e-2), float(usual.var())
    r = mean**2 / max(var - mean, 1e-3 * mean)
    theta = {"log_r": float(np.log(np.clip(2 * r, 0.1, 100))), **_ceiling_start(y[:, 0])}
    return Start(np.array([np.log(mean)]), theta)


negative_binomial = Likelihood(
    kind="negative_binomial",
    log_prob=_nb_log_prob,
    mean=_mean,
    point=nearest_whole,
    sample=_nb_sample,
    start=_nb_start,
    features=_count_feature,
    scale=COUNT_SCALE,
    expected_log_prob=_nb_expected,
    predictive_mean=_predictive_mean,
    rule=even,
    n_quadrature=32,
    single_precision=True,
)


# --- zero-inflated Poisson: 0 with probability π, Poisson(e^f) otherwise ---


def _zip_zero(theta: Theta, f: Scalar) -> Scalar:
    """log p(0) = log(π + (1 − π) e^{−rate})."""
    some = -softplus(theta["logit_zero"]) - jnp.exp(_log_rate(theta, f))
    return jnp.logaddexp(-softplus(-theta["logit_zero"]), some)


def _zip_log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    positive = _log_poisson(y[0], _log_rate(theta, f[0])) - softplus(theta["logit_zero"])
    return _with_slips(theta, y[0], jnp.where(y[0] == 0, _zip_zero(theta, f[0]), positive))


def _zip_expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """Closed form above zero, the rule at zero."""
    known = {"logit_zero": theta["logit_zero"], **_ceiling(theta)}
    zero = expect_with_slopes(lambda theta, _, f: _zip_zero(theta, f[0]), rule, known, None, mean, var)
    positive = _expected_log_poisson(theta, y[0], mean[0], var[0]) - softplus(theta["logit_zero"])
    return _with_slips(theta, y[0], jnp.where(y[0] == 0, zero, positive))


def _zip_mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jax.nn.sigmoid(-theta["logit_zero"]) * _mean(theta, y, f)


def _zip_predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    return jax.nn.sigmoid(-theta["logit_zero"]) * _predictive_mean(theta, y, mean, var, rule)


def _zip_sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    structural = rng.random(f.shape[:-1]) < expit(np.asarray(theta["logit_zero"]))
    return np.where(structural, 0.0, rng.poisson(_rate(theta, f)))


def _zip_start(y: np.ndarray, column: Column) -> Start:
    """Half of the zeros that a Poisson with the mean of the others does not explain are structural."""
    usual = _counts_in_scale(y[:, 0])
    zeros, mean = float((usual == 0).mean()), float(usual[usual > 0].mean()) if (usual > 0).any() else 0.1
    extra = np.clip(0.5 * (zeros - np.exp(-mean)), 0.02, 0.95)
    theta = {"logit_zero": float(np.log(extra / (1 - extra))), **_ceiling_start(y[:, 0])}
    return Start(np.array([np.log(mean)]), theta)


zero_inflated_poisson = Likelihood(
    kind="zero_inflated_poisson",
    log_prob=_zip_log_prob,
    mean=_zip_mean,
    point=nearest_whole,
    sample=_zip_sample,
    start=_zip_start,
    features=_count_feature,
    scale=COUNT_SCALE,
    expected_log_prob=_zip_expected,
    predictive_mean=_zip_predictive_mean,
    rule=even,
    n_quadrature=64,
    single_precision=True,
)
