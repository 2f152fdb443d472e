"""Counts: y ~ Poisson(e^f)."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.stats import poisson as poisson_law

from plurigp.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, bounded_exp, nearest_whole, one_function, safe_exp
from plurigp.likelihoods.rules import Rule
from plurigp.likelihoods.special import log_gamma


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return y[0] * f[0] - safe_exp(f[0]) - log_gamma(y[0] + 1)


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """E[e^f] = e^{a + v/2}."""
    return y[0] * mean[0] - safe_exp(mean[0] + var[0] / 2) - log_gamma(y[0] + 1)


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return safe_exp(f[:1])


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return safe_exp(mean[:1] + var[:1] / 2)


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return rng.poisson(bounded_exp(f[..., 0])).astype(float)


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return bounded_exp(f[..., 0] / 2)


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    return np.maximum(poisson_law.ppf(level, bounded_exp(f[..., 0])), 0.0)


def _start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([np.log(max(y[:, 0].mean(), 1e-2))]), {})


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
