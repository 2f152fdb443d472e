"""Two-valued columns and successes out of n, both through the logit."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit
from scipy.stats import binom

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, expected_softplus, nearest_whole, one_function
from plurigp.likelihoods.rules import Rule
from plurigp.likelihoods.special import log_gamma, softplus


def _logit(share: float) -> float:
    share = float(np.clip(share, 1e-3, 1 - 1e-3))
    return float(np.log(share / (1 - share)))


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return y[0] * f[0] - softplus(f[0])


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jax.nn.sigmoid(f[:1])


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return (rng.random(f.shape[:-1]) < expit(f[..., 0])).astype(float)


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return np.sqrt(expit(f[..., 0]) * expit(-f[..., 0]))


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    return (np.asarray(level) > expit(-f[..., 0])).astype(float)


def _start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([_logit(y[:, 0].mean())]), {})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return y[:1]


def _log_choose(y: Float[Array, " W"]) -> Scalar:
    return log_gamma(y[1] + 1) - log_gamma(y[0] + 1) - log_gamma(y[1] - y[0] + 1)


def _binomial_log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return _log_choose(y) + y[0] * f[0] - y[1] * softplus(f[0])


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    return y[0] * mean[0] - expected_softplus(mean, var, rule)


def _binomial_expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    return _log_choose(y) + y[0] * mean[0] - y[1] * expected_softplus(mean, var, rule)


def _successes(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return y[1:] * jax.nn.sigmoid(f[:1])


def _binomial_sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return rng.binomial(y[..., 1].astype(int), expit(f[..., 0])).astype(float)


def _binomial_sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return np.sqrt(y[..., 1]) * _sd(theta, y, f)


def _binomial_quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    return np.maximum(binom.ppf(level, y[..., 1].astype(int), expit(f[..., 0])), 0.0)


def _binomial_start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([_logit(y[:, 0].sum() / max(y[:, 1].sum(), 1.0))]), {})


def _share(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return y[:1] / jnp.maximum(y[1:], 1)


bernoulli = Likelihood(
    kind="bernoulli",
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
)

binomial = Likelihood(
    kind="binomial",
    log_prob=_binomial_log_prob,
    mean=_successes,
    point=nearest_whole,
    sample=_binomial_sample,
    start=_binomial_start,
    features=_share,
    n_functions=one_function,
    sd=_binomial_sd,
    quantile=_binomial_quantile,
    expected_log_prob=_binomial_expected,
)
