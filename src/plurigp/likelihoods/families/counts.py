"""Counts with more spread, or more zeros, than a Poisson has."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import expit
from scipy.stats import nbinom
from scipy.stats import poisson as poisson_law

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, nearest_whole, one_function
from plurigp.likelihoods.families.poisson import (
    ceiling_start,
    counts_in_scale,
    expected_log_poisson,
    expected_rate,
    log_poisson,
    log_rate,
    rate,
    with_slips,
)
from plurigp.likelihoods.rules import Rule, even, expect_with_slopes
from plurigp.likelihoods.special import log_factorial_rest, softplus


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return jnp.log1p(y[:1])


# --- negative binomial: mean e^f, variance e^f + e^{2f} / r ---


def _nb_saturated(log_r: Scalar, y: Scalar) -> Scalar:
    """log p(y) of the saturated model, whose mean is y."""
    r = jnp.exp(log_r)
    both = log_factorial_rest(y + r) - log_factorial_rest(r) - log_factorial_rest(y)
    return both - jnp.log1p(y / r)


class _DevianceParts(NamedTuple):
    """What the deviance D of a count y takes from y and r. With h the lesser share of the two in y + r, and
    t = log(mean / y) if that is the share of y, −log(mean / y) if it is the share of r,

        D = (y + r) (log(1 − h + h e^t) − h t) = (y + r) (softplus(t + logit h) − h t + log(1 − h)).

    Where one of the two is small nothing of the size of the other cancels. At y = 0, t + logit h is log(mean / r).
    """

    logit: Scalar
    h: Scalar
    most: Scalar  # −log(1 − h)
    sign: Scalar
    log_count: Scalar


def _deviance_parts(log_r: Scalar, y: Scalar) -> _DevianceParts:
    r = jnp.exp(log_r)
    sign, log_count = jnp.where(y < r, 1, -1).astype(r.dtype), jnp.log(jnp.where(y > 0, y, 1))
    lesser, larger = jnp.minimum(y, r), jnp.maximum(y, r)
    return _DevianceParts(sign * (log_count - log_r), lesser / (y + r), jnp.log1p(lesser / larger), sign, log_count)


def _nb_tilted_softplus(given: dict[str, Scalar], data: tuple[Scalar, Scalar], f: Float[Array, " H"]) -> Scalar:
    """softplus(t + logit h) − h t."""
    t = data[0] * (log_rate(given, f[0]) - data[1])
    return softplus(given["logit"] + t) - given["h"] * t


def _nb_log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return _nb_expected(theta, y, f, jnp.zeros_like(f), None)


def _nb_expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule | None
) -> Scalar:
    """The deviance alone is left to the rule; without one, the functions are known."""
    parts = _deviance_parts(theta["log_r"], y[0])
    slopes = {"logit": parts.logit, "h": parts.h, **_ceiling(theta)}
    data = parts.sign, parts.log_count
    tilted = (
        _nb_tilted_softplus(slopes, data, mean)
        if rule is None
        else expect_with_slopes(_nb_tilted_softplus, rule, slopes, data, mean, var)
    )
    deviance = (y[0] + jnp.exp(theta["log_r"])) * (tilted - parts.most)
    return with_slips(theta, y[0], _nb_saturated(theta["log_r"], y[0]) - jnp.maximum(deviance, 0))


def _ceiling(theta: Theta) -> dict[str, Scalar]:
    return {"log_ceiling": theta["log_ceiling"]} if "log_ceiling" in theta else {}


def _nb_mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jnp.exp(log_rate(theta, f))


def _nb_predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return expected_rate(theta, mean, var)


def _nb_sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    r = np.exp(np.asarray(theta["log_r"]))
    return rng.poisson(rng.gamma(r, rate(theta, f) / r)).astype(float)


def _nb_sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    mean = rate(theta, f)
    return np.sqrt(mean + mean**2 / np.exp(np.asarray(theta["log_r"])))


def _nb_quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    r = np.exp(np.asarray(theta["log_r"]))
    return np.maximum(nbinom.ppf(level, r, r / (r + rate(theta, f))), 0.0)


def _nb_start(y: np.ndarray, column: Column) -> Start:
    """r by the method of moments, within what a column can tell."""
    usual = counts_in_scale(y[:, 0])
    mean, var = max(float(usual.mean()), 1e-2), float(usual.var())
    r = mean**2 / max(var - mean, 1e-3 * mean)
    theta = {"log_r": float(np.log(np.clip(2 * r, 0.1, 100))), **ceiling_start(y[:, 0])}
    return Start(np.array([np.log(mean)]), theta)


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
    """log p(0) = log(π + (1 − π) e^{−rate})."""
    some = -softplus(theta["logit_zero"]) - jnp.exp(log_rate(theta, f))
    return jnp.logaddexp(-softplus(-theta["logit_zero"]), some)


def _zip_log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    positive = log_poisson(y[0], log_rate(theta, f[0])) - softplus(theta["logit_zero"])
    return with_slips(theta, y[0], jnp.where(y[0] == 0, _zip_zero(theta, f[0]), positive))


def _zip_expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """Closed form above zero, the rule at zero."""
    known = {"logit_zero": theta["logit_zero"], **_ceiling(theta)}
    zero = expect_with_slopes(lambda theta, _, f: _zip_zero(theta, f[0]), rule, known, None, mean, var)
    positive = expected_log_poisson(theta, y[0], mean[0], var[0]) - softplus(theta["logit_zero"])
    return with_slips(theta, y[0], jnp.where(y[0] == 0, zero, positive))


def _zip_mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jax.nn.sigmoid(-theta["logit_zero"]) * jnp.exp(log_rate(theta, f))


def _zip_predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return jax.nn.sigmoid(-theta["logit_zero"]) * expected_rate(theta, mean, var)


def _zip_sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    structural = rng.random(f.shape[:-1]) < expit(np.asarray(theta["logit_zero"]))
    return np.where(structural, 0.0, rng.poisson(rate(theta, f)))


def _zip_sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    zero, mean = expit(np.asarray(theta["logit_zero"])), rate(theta, f)
    return np.sqrt((1 - zero) * mean * (1 + zero * mean))


def _zip_quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    zero = expit(np.asarray(theta["logit_zero"]))
    rest = np.clip((level - zero) / (1 - zero), 0.0, 1.0)
    return np.maximum(poisson_law.ppf(rest, rate(theta, f)), 0.0)


def _zip_start(y: np.ndarray, column: Column) -> Start:
    """Half of the zeros that a Poisson with the mean of the others does not explain are structural."""
    usual = counts_in_scale(y[:, 0])
    zeros, mean = float((usual == 0).mean()), float(usual[usual > 0].mean()) if (usual > 0).any() else 0.1
    extra = np.clip(0.5 * (zeros - np.exp(-mean)), 0.02, 0.95)
    theta = {"logit_zero": float(np.log(extra / (1 - extra))), **ceiling_start(y[:, 0])}
    return Start(np.array([np.log(mean)]), theta)


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
