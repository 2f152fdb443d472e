"""Counts with more spread, or more zeros, than a Poisson has."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit
from scipy.stats import nbinom
from scipy.stats import poisson as poisson_law

from plurigp.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import (
    Cells,
    Likelihood,
    Start,
    Theta,
    bounded_exp,
    expected_softplus,
    nearest_whole,
    one_function,
    safe_exp,
)
from plurigp.likelihoods.rules import Rule, even, expect_with_slopes
from plurigp.likelihoods.special import log_gamma, softplus


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return jnp.log1p(y[:1])


# --- negative binomial: mean e^f, variance e^f + e^{2f} / r ---


def _nb_constant(theta: Theta, y: Scalar) -> Scalar:
    r = jnp.exp(theta["log_r"])
    return log_gamma(y + r) - log_gamma(r) - log_gamma(y + 1)


def _nb_log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    u = f[0] - theta["log_r"]
    return _nb_constant(theta, y[0]) + y[0] * u - (y[0] + jnp.exp(theta["log_r"])) * softplus(u)


def _nb_expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """Only E[softplus(f − log r)] is left to the rule."""
    u = mean - theta["log_r"]
    return _nb_constant(theta, y[0]) + y[0] * u[0] - (y[0] + jnp.exp(theta["log_r"])) * expected_softplus(u, var, rule)


def _nb_mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return safe_exp(f[:1])


def _nb_predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return safe_exp(mean[:1] + var[:1] / 2)


def _nb_sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    r = np.exp(np.asarray(theta["log_r"]))
    return rng.poisson(rng.gamma(r, bounded_exp(f[..., 0]) / r)).astype(float)


def _nb_sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    mean = bounded_exp(f[..., 0])
    return np.sqrt(mean + mean**2 / np.exp(np.asarray(theta["log_r"])))


def _nb_quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    log_r = np.asarray(theta["log_r"])
    return np.maximum(nbinom.ppf(level, np.exp(log_r), expit(log_r - f[..., 0])), 0.0)


def _nb_start(y: np.ndarray, column: Column) -> Start:
    """r by the method of moments, within what a column can tell."""
    mean, var = max(float(y[:, 0].mean()), 1e-2), float(y[:, 0].var())
    r = mean**2 / max(var - mean, 1e-3 * mean)
    return Start(np.array([np.log(mean)]), {"log_r": float(np.log(np.clip(2 * r, 0.1, 100)))})


negative_binomial = Likelihood(
    kind="negative_binomial",
    log_prob=_nb_log_prob,
    mean=_nb_mean,
    point=nearest_whole,
    sample=_nb_sample,
    start=_nb_start,
    features=_features,
    n_functions=one_function,
    sd=_nb_sd,
    quantile=_nb_quantile,
    expected_log_prob=_nb_expected,
    predictive_mean=_nb_predictive_mean,
    rule=even,
    n_quadrature=32,
)


# --- zero-inflated Poisson: 0 with probability π, Poisson(e^f) otherwise ---


def _zip_zero(theta: Theta, f: Scalar) -> Scalar:
    """log p(0) = log(π + (1 − π) e^{−e^f})."""
    return jnp.logaddexp(-softplus(-theta["logit_zero"]), -softplus(theta["logit_zero"]) - safe_exp(f))


def _zip_log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    positive = -softplus(theta["logit_zero"]) + y[0] * f[0] - safe_exp(f[0]) - log_gamma(y[0] + 1)
    return jnp.where(y[0] == 0, _zip_zero(theta, f[0]), positive)


def _zip_expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """Closed form above zero, the rule at zero."""
    learned = {"logit_zero": theta["logit_zero"]}
    zero = expect_with_slopes(lambda theta, _, f: _zip_zero(theta, f[0]), rule, learned, None, mean, var)
    poisson = y[0] * mean[0] - safe_exp(mean[0] + var[0] / 2) - log_gamma(y[0] + 1)
    return jnp.where(y[0] == 0, zero, poisson - softplus(theta["logit_zero"]))


def _zip_mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jax.nn.sigmoid(-theta["logit_zero"]) * safe_exp(f[:1])


def _zip_predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return _zip_mean(theta, y, mean + var / 2)


def _zip_sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    structural = rng.random(f.shape[:-1]) < expit(np.asarray(theta["logit_zero"]))
    return np.where(structural, 0.0, rng.poisson(bounded_exp(f[..., 0])))


def _zip_sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    zero, mean = expit(np.asarray(theta["logit_zero"])), bounded_exp(f[..., 0])
    return np.sqrt((1 - zero) * mean * (1 + zero * mean))


def _zip_quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    zero = expit(np.asarray(theta["logit_zero"]))
    rest = np.clip((level - zero) / (1 - zero), 0.0, 1.0)
    return np.maximum(poisson_law.ppf(rest, bounded_exp(f[..., 0])), 0.0)


def _zip_start(y: np.ndarray, column: Column) -> Start:
    """Half of the zeros that a Poisson with the mean of the others does not explain are structural."""
    zeros, mean = float((y[:, 0] == 0).mean()), float(y[y[:, 0] > 0, 0].mean()) if (y[:, 0] > 0).any() else 0.1
    extra = np.clip(0.5 * (zeros - np.exp(-mean)), 0.02, 0.95)
    return Start(np.array([np.log(mean)]), {"logit_zero": float(np.log(extra / (1 - extra)))})


zero_inflated_poisson = Likelihood(
    kind="zero_inflated_poisson",
    log_prob=_zip_log_prob,
    mean=_zip_mean,
    point=nearest_whole,
    sample=_zip_sample,
    start=_zip_start,
    features=_features,
    n_functions=one_function,
    sd=_zip_sd,
    quantile=_zip_quantile,
    expected_log_prob=_zip_expected,
    predictive_mean=_zip_predictive_mean,
    rule=even,
    n_quadrature=64,
)
