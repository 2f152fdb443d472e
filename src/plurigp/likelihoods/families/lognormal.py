"""Positive, skewed columns, in units of their geometric mean: log y ~ N(f, sd²)."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, bounded_exp, first, one_function, safe_exp
from plurigp.likelihoods.families.gaussian import gaussian, log_normal, log_predictive, noise_sd, noise_start, noise_var
from plurigp.likelihoods.rules import Rule


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    log_y = jnp.log(y[0])
    return log_normal(log_y, f[0], noise_var(theta)) - log_y


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    return _log_prob(theta, y, mean) - 0.5 * var[0] / noise_var(theta)


def _predictive(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    log_y = jnp.log(y[0])
    return log_predictive(theta, log_y, mean[0], var[0]) - log_y


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return safe_exp(f[:1] + noise_var(theta) / 2)


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    """E[y] = e^{a + v/2 + sd²/2}."""
    return _mean(theta, y, mean + var / 2)


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return bounded_exp(gaussian.sample(rng, theta, y, f))


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    var = noise_sd(theta) ** 2
    return bounded_exp(f[..., 0] + var / 2) * np.sqrt(np.expm1(var))


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    return bounded_exp(f[..., 0] + noise_sd(theta) * ndtri(level))


def _start(y: np.ndarray, column: Column) -> Start:
    log_y = np.log(y[:, 0])
    return Start(np.array([log_y.mean()]), noise_start(log_y))


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return jnp.log(y[:1])


lognormal = Likelihood(
    kind="lognormal",
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
    continuous=True,
    constant_curvature=True,
)
