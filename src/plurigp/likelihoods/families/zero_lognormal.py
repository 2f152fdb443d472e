"""Amounts of which some are exactly zero: P(y > 0) = σ(f₀), and log y ~ N(f₁, sd²) where there is any."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods import base
from plurigp.likelihoods.base import (
    VALUE_SCALE,
    CellFeatures,
    CellMean,
    CellValues,
    Likelihood,
    Start,
    Theta,
    mean_as_point,
    two_functions,
)
from plurigp.likelihoods.families.bernoulli import bernoulli
from plurigp.likelihoods.families.lognormal import lognormal
from plurigp.likelihoods.rules import CellFunctions, Rule


def _parts(y: CellValues) -> tuple[Float[Array, " 1"], Float[Array, " 1"]]:
    """Whether there is any, and the amount (1 where there is none). A cell is (amount, log unit of a density)."""
    return (y[:1] > 0).astype(y.dtype), jnp.where(y[:1] > 0, y[:1], 1)


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    there, amount = _parts(y)
    how_much = jnp.where(there[0] > 0, lognormal.log_prob(theta, amount, f[1:]) - y[1], 0)
    return bernoulli.log_prob({}, there, f[:1]) + how_much


def _averaged(
    average: Callable[..., Scalar], theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule
) -> Scalar:
    """The expected or predictive log density: f₀ and f₁ are independent given x."""
    there, amount = _parts(y)
    some = average(bernoulli, {}, there, mean[:1], var[:1], rule)
    how_much = average(lognormal, theta, amount, mean[1:], var[1:], rule)
    return some + jnp.where(there[0] > 0, how_much - y[1], 0)


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _averaged(base.expected_log_prob, theta, y, mean, var, rule)


def _predictive(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _averaged(base.predictive_log_prob, theta, y, mean, var, rule)


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jax.nn.sigmoid(f[:1]) * lognormal.mean(theta, y, f[1:])


def _predictive_mean(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> CellMean:
    some = base.predictive_mean(bernoulli, {}, y, mean[:1], var[:1], rule)
    return some * base.predictive_mean(lognormal, theta, y, mean[1:], var[1:], rule)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return bernoulli.sample(rng, {}, y, f) * lognormal.sample(rng, theta, y, f[..., 1:])


def _start(y: np.ndarray, column: Column) -> Start:
    there = y[:, :1] > 0
    some = bernoulli.start(there.astype(float), column)
    amounts = lognormal.start(y[there[:, 0], :1] if there.any() else np.ones((1, 1)), column)
    return Start(np.concatenate([some.bias, amounts.bias]), amounts.theta)


def _any_and_log(y: CellValues, width: int) -> CellFeatures:
    there, amount = _parts(y)
    return jnp.concatenate([there, jnp.log(amount)])


zero_lognormal = Likelihood(
    kind="zero_lognormal",
    log_prob=_log_prob,
    mean=_mean,
    point=mean_as_point,
    sample=_sample,
    start=_start,
    features=_any_and_log,
    scale=VALUE_SCALE,
    n_functions=two_functions,
    expected_log_prob=_expected,
    predictive_log_prob=_predictive,
    predictive_mean=_predictive_mean,
)
