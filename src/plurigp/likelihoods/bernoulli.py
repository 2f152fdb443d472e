"""Two-valued columns and successes out of n, both through the logit."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from plurigp.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Likelihood, Start, Theta, nearest_whole, one_function, softplus


def _logit(share: float) -> float:
    share = float(np.clip(share, 1e-3, 1 - 1e-3))
    return float(np.log(share / (1 - share)))


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return y[0] * f[0] - softplus(f[0])


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jax.nn.sigmoid(f[:1])


def _sample(key: Array, theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return (jax.random.uniform(key, dtype=f.dtype) < jax.nn.sigmoid(f[0])).astype(f.dtype)


def _start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([_logit(y[:, 0].mean())]), {})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return y[:1]


bernoulli = Likelihood(
    kind="bernoulli",
    log_prob=_log_prob,
    mean=_mean,
    point=nearest_whole,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=one_function,
)


def _binomial_log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    successes, trials = y[0], y[1]
    choose = gammaln(trials + 1) - gammaln(successes + 1) - gammaln(trials - successes + 1)
    return choose + successes * f[0] - trials * softplus(f[0])


def _successes(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return y[1:] * jax.nn.sigmoid(f[:1])


def _binomial_sample(key: Array, theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return jax.random.binomial(key, y[1], jax.nn.sigmoid(f[0]), dtype=f.dtype)


def _binomial_start(y: np.ndarray, column: Column) -> Start:
    return Start(np.array([_logit(y[:, 0].sum() / max(y[:, 1].sum(), 1.0))]), {})


def _share(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return y[:1] / jnp.maximum(y[1:], 1)


binomial = Likelihood(
    kind="binomial",
    log_prob=_binomial_log_prob,
    mean=_successes,
    point=nearest_whole,
    sample=_binomial_sample,
    start=_binomial_start,
    features=_share,
    n_functions=one_function,
)
