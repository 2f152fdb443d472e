"""Numbers of which some are known up to a limit: log p of a limit is the log of the mass it allows, log(Φ − Φ)."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, bounded_exp, first, one_function, safe_exp
from plurigp.likelihoods.families.bounded import (
    LARGEST,
    OPEN,
    SMALLEST,
    bounds_of,
    features_of_bounds,
    log_bounds,
    log_mass,
    normal_with_limits,
    truncated_moments,
    truncated_quantile,
)
from plurigp.likelihoods.families.gaussian import log_normal, noise_sd, noise_var
from plurigp.likelihoods.rules import Rule, even, expect_with_slopes
from plurigp.likelihoods.special import HALF_LOG_2PI, log_between


def _given(y: Float[Array, " W"], mean: Scalar, var: Scalar) -> Scalar:
    """log N(value; mean, var) in raw units, or log of the normal mass between the bounds."""
    cell, sd = bounds_of(y), jnp.sqrt(var)
    mass = log_between((cell.low - mean) / sd, (cell.high - mean) / sd)
    return jnp.where(cell.exact, log_normal(cell.value, mean, var) - y[2], mass)


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return _given(y, f[0], noise_var(theta))


def _log_mass(sd: Scalar, bounds: tuple[Scalar, Scalar], f: Float[Array, " H"]) -> Scalar:
    low, high = bounds
    return log_between((low - f[0]) / sd, (high - f[0]) / sd)


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """Closed form for a value, the rule for a limit."""
    cell, noise = bounds_of(y), noise_var(theta)
    sd = jnp.sqrt(noise)
    value = log_normal(cell.value, mean[0], noise) - 0.5 * var[0] / noise - y[2]
    mass = expect_with_slopes(_log_mass, rule, sd, (cell.low, cell.high), mean, var)
    return jnp.where(cell.exact, value, mass)


def _predictive(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """E[Φ((c − f) / sd)] = Φ((c − a) / √(sd² + v))."""
    return _given(y, mean[0], noise_var(theta) + var[0])


def _mean_between(y: Float[Array, " W"], mean: Scalar, var: Scalar) -> Float[Array, " R"]:
    """mean + sd (φ(l) − φ(h)) / (Φ(h) − Φ(l))."""
    cell, sd = bounds_of(y), jnp.sqrt(var)
    low, high = (cell.low - mean) / sd, (cell.high - mean) / sd
    mass = log_between(low, high)
    at_low, at_high = (jnp.exp(-z * z / 2 - HALF_LOG_2PI - mass) for z in (low, high))
    inside = jnp.clip(mean + sd * (at_low - at_high), cell.low, cell.high)
    return jnp.where(cell.exact, cell.value, inside)[None]


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return _mean_between(y, f[0], noise_var(theta))


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return _mean_between(y, mean[0], noise_var(theta) + var[0])


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    sd = noise_sd(theta)
    return sd * np.sqrt(truncated_moments((y[..., 0] - f[..., 0]) / sd, (y[..., 1] - f[..., 0]) / sd)[1])


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    sd, mean = noise_sd(theta), f[..., 0]
    z = truncated_quantile(np.asarray(level), (y[..., 0] - mean) / sd, (y[..., 1] - mean) / sd)
    return np.clip(mean + sd * z, y[..., 0], y[..., 1])


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return _quantile(theta, y, f, rng.random(f.shape[:-1]))


def _start(y: np.ndarray, column: Column) -> Start:
    mean, sd = normal_with_limits(y[:, 0], y[:, 1])
    return Start(np.array([mean]), {"log_sd": float(np.log(sd))})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return features_of_bounds(y)


censored_gaussian = Likelihood(
    kind="censored_gaussian",
    log_prob=_log_prob,
    mean=_mean,
    point=first,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=one_function,
    sd=_sd,
    quantile=_quantile,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
    rule=even,
    n_quadrature=64,
    continuous=True,
)


# --- the same for log y ---


def _log_log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return _log_prob(theta, log_bounds(y), f)


def _log_expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    return _expected(theta, log_bounds(y), mean, var, rule)


def _log_predictive(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    return _predictive(theta, log_bounds(y), mean, var, rule)


def _exp_mean_between(y: Float[Array, " W"], mean: Scalar, var: Scalar) -> Float[Array, " R"]:
    """e^{mean + var/2} times the mass between the bounds of a normal that lies var higher, over that mass."""
    cell, sd = bounds_of(log_bounds(y)), jnp.sqrt(var)
    low, high = (cell.low - mean) / sd, (cell.high - mean) / sd
    inside = safe_exp(mean + var / 2 + log_between(low - sd, high - sd) - log_between(low, high))
    return jnp.where(cell.exact, y[0], jnp.clip(inside, y[0], y[1]))[None]


def _log_mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return _exp_mean_between(y, f[0], noise_var(theta))


def _log_predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return _exp_mean_between(y, mean[0], noise_var(theta) + var[0])


def _logs(y: Cells) -> Cells:
    low = np.where(y[..., 0] < SMALLEST, -OPEN, np.log(y[..., 0]))
    high = np.where(y[..., 1] > LARGEST, OPEN, np.log(y[..., 1]))
    return np.stack([low, high, y[..., 2]], -1)


def _log_quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    return np.clip(bounded_exp(_quantile(theta, _logs(y), f, level)), y[..., 0], y[..., 1])


def _log_sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    """E[y^k | bounds] = e^{k f + k² sd² / 2} mass(bounds − k sd) / mass(bounds)."""
    logs, sd, mean = _logs(y), noise_sd(theta), f[..., 0]
    exact = y[..., 0] == y[..., 1]
    low, high = (np.where(exact, end, (logs[..., i] - mean) / sd) for i, end in ((0, -1.0), (1, 1.0)))
    one, two = (
        k * mean + k**2 * sd**2 / 2 + log_mass(low - k * sd, high - k * sd) - log_mass(low, high) for k in (1, 2)
    )
    return np.where(exact, 0.0, bounded_exp(one) * np.sqrt(np.maximum(np.expm1(two - 2 * one), 0.0)))


def _log_sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return _log_quantile(theta, y, f, rng.random(f.shape[:-1]))


def _log_start(y: np.ndarray, column: Column) -> Start:
    return _start(_logs(y), column)


def _log_features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return features_of_bounds(log_bounds(y))


censored_lognormal = Likelihood(
    kind="censored_lognormal",
    log_prob=_log_log_prob,
    mean=_log_mean,
    point=first,
    sample=_log_sample,
    start=_log_start,
    features=_log_features,
    n_functions=one_function,
    sd=_log_sd,
    quantile=_log_quantile,
    expected_log_prob=_log_expected,
    predictive_log_prob=_log_predictive,
    predictive_mean=_log_predictive_mean,
    rule=even,
    n_quadrature=64,
    continuous=True,
)
