"""Amounts of which some are exactly zero: P(y > 0) = σ(f₀), and log y ~ N(f₁, sd²) where there is any."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import (
    Cells,
    Likelihood,
    Start,
    Theta,
    bounded_exp,
    expected_log_prob,
    first,
    predictive_log_prob,
    predictive_mean,
    two_functions,
)
from plurigp.likelihoods.families.bernoulli import bernoulli
from plurigp.likelihoods.families.gaussian import noise_sd
from plurigp.likelihoods.families.lognormal import lognormal
from plurigp.likelihoods.rules import Rule


def _parts(y: Float[Array, " W"]) -> tuple[Float[Array, " 1"], Float[Array, " 1"]]:
    """Whether there is any, and the amount (1 where there is none). A cell is (amount, log unit of a density)."""
    return (y[:1] > 0).astype(y.dtype), jnp.where(y[:1] > 0, y[:1], 1)


def _together(any_there: Float[Array, " 1"], y: Float[Array, " W"], some: Scalar, how_much: Scalar) -> Scalar:
    return some + jnp.where(any_there[0] > 0, how_much - y[1], 0)


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    there, amount = _parts(y)
    return _together(there, y, bernoulli.log_prob({}, there, f[:1]), lognormal.log_prob(theta, amount, f[1:]))


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    there, amount = _parts(y)
    some = expected_log_prob(bernoulli, {}, there, mean[:1], var[:1], rule)
    return _together(there, y, some, expected_log_prob(lognormal, theta, amount, mean[1:], var[1:], rule))


def _predictive(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    there, amount = _parts(y)
    some = predictive_log_prob(bernoulli, {}, there, mean[:1], var[:1], rule)
    return _together(there, y, some, predictive_log_prob(lognormal, theta, amount, mean[1:], var[1:], rule))


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jax.nn.sigmoid(f[:1]) * lognormal.mean(theta, y, f[1:])


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    """f₀ and f₁ are independent given x."""
    some = predictive_mean(bernoulli, {}, y, mean[:1], var[:1], rule)
    return some * predictive_mean(lognormal, theta, y, mean[1:], var[1:], rule)


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return bernoulli.sample(rng, {}, y, f) * lognormal.sample(rng, theta, y, f[..., 1:])


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    share, var = expit(f[..., 0]), noise_sd(theta) ** 2
    return bounded_exp(f[..., 1] + var / 2) * np.sqrt(share * (np.exp(var) - share))


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    assert lognormal.quantile is not None
    share = expit(f[..., 0])
    rest = np.clip((level - (1 - share)) / np.maximum(share, 1e-300), 0.0, 1.0)
    return np.where(rest > 0, lognormal.quantile(theta, y, f[..., 1:], rest), 0.0)


def _start(y: np.ndarray, column: Column) -> Start:
    there = y[:, :1] > 0
    some = bernoulli.start(there.astype(float), column)
    amounts = lognormal.start(y[there[:, 0], :1] if there.any() else np.ones((1, 1)), column)
    return Start(np.concatenate([some.bias, amounts.bias]), amounts.theta)


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    there, amount = _parts(y)
    return jnp.concatenate([there, jnp.log(amount)])


zero_lognormal = Likelihood(
    kind="zero_lognormal",
    log_prob=_log_prob,
    mean=_mean,
    point=first,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=two_functions,
    sd=_sd,
    quantile=_quantile,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
    continuous=True,
)
