"""Positive columns, in units of their geometric mean: y ~ Gamma with mean e^f and a learned shape per column."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, bounded_exp, first, one_function, safe_exp
from plurigp.likelihoods.rules import Rule, even
from plurigp.likelihoods.special import log_gamma


def _given_inverse_mean(theta: Theta, y: Scalar, f: Scalar, inverse_mean: Scalar) -> Scalar:
    shape = jnp.exp(theta["log_shape"])
    log_y = jnp.log(y)
    return shape * (theta["log_shape"] - f + log_y - y * inverse_mean) - log_gamma(shape) - log_y


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return _given_inverse_mean(theta, y[0], f[0], safe_exp(-f[0]))


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """E[e^{−f}] = e^{−a + v/2}."""
    return _given_inverse_mean(theta, y[0], mean[0], safe_exp(-mean[0] + var[0] / 2))


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return safe_exp(f[:1])


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return safe_exp(mean[:1] + var[:1] / 2)


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    shape = np.exp(np.asarray(theta["log_shape"]))
    return np.maximum(rng.gamma(shape, bounded_exp(f[..., 0]) / shape), np.finfo(float).tiny)


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return bounded_exp(f[..., 0]) / np.exp(0.5 * np.asarray(theta["log_shape"]))


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    shape = np.exp(np.asarray(theta["log_shape"]))
    return bounded_exp(f[..., 0]) / shape * gammaincinv(shape, level)


def _start(y: np.ndarray, column: Column) -> Start:
    """The shape from log mean − mean log, which for a gamma is about 1 / (2 shape)."""
    mean = float(y[:, 0].mean())
    gap = max(float(np.log(mean) - np.log(y[:, 0]).mean()), 1e-3)
    return Start(np.array([np.log(mean)]), {"log_shape": float(np.log(np.clip(0.5 / gap, 0.2, 1e3)))})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return jnp.log(y[:1])


gamma = Likelihood(
    kind="gamma",
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
    predictive_mean=_predictive_mean,
    rule=even,
    n_quadrature=48,
    continuous=True,
)
