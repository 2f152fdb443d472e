"""Two-valued columns and successes out of n, both through the logit."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import CellFeatures, CellMean, CellValues, Likelihood, Start, Theta, nearest_whole
from plurigp.likelihoods.rules import CellFunctions, Rule, expect_with_slopes
from plurigp.likelihoods.special import log_gamma, softplus


def _expected_softplus(mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """E[log(1 + e^f)]."""
    return expect_with_slopes(lambda _, __, f: softplus(f[0]), rule, {}, None, mean, var)


def _start_at(share: float) -> Start:
    share = float(np.clip(share, 1e-3, 1 - 1e-3))
    return Start(np.array([float(np.log(share / (1 - share)))]), {})


# --- Bernoulli: P(1) = σ(f) ---


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return y[0] * f[0] - softplus(f[0])


def _expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return y[0] * mean[0] - _expected_softplus(mean, var, rule)


def _mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return jax.nn.sigmoid(f[:1])


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return (rng.random(f.shape[:-1]) < expit(f[..., 0])).astype(float)


def _start(y: np.ndarray, column: Column) -> Start:
    return _start_at(y[:, 0].mean())


bernoulli = Likelihood(
    kind="bernoulli",
    log_prob=_log_prob,
    mean=_mean,
    point=nearest_whole,
    sample=_sample,
    start=_start,
    expected_log_prob=_expected,
    single_precision=True,
)


# --- binomial: a cell is (successes, trials) ---


def _log_choose(y: CellValues) -> Scalar:
    return log_gamma(y[1] + 1) - log_gamma(y[0] + 1) - log_gamma(y[1] - y[0] + 1)


def _binomial_log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    return _log_choose(y) + y[0] * f[0] - y[1] * softplus(f[0])


def _binomial_expected(theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    return _log_choose(y) + y[0] * mean[0] - y[1] * _expected_softplus(mean, var, rule)


def _binomial_mean(theta: Theta, y: CellValues, f: CellFunctions) -> CellMean:
    return y[1:] * jax.nn.sigmoid(f[:1])


def _binomial_sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return rng.binomial(y[..., 1].astype(int), expit(f[..., 0])).astype(float)


def _binomial_start(y: np.ndarray, column: Column) -> Start:
    return _start_at(y[:, 0].sum() / max(y[:, 1].sum(), 1.0))


def _share_feature(y: CellValues, width: int) -> CellFeatures:
    return y[:1] / jnp.maximum(y[1:], 1)


binomial = Likelihood(
    kind="binomial",
    log_prob=_binomial_log_prob,
    mean=_binomial_mean,
    point=nearest_whole,
    sample=_binomial_sample,
    start=_binomial_start,
    features=_share_feature,
    expected_log_prob=_binomial_expected,
    single_precision=True,
)
