"""Proportions: y ~ Beta(ν μ, ν (1 − μ)) with the paper's probit mean μ = Φ(f) and a learned ν per column."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Float
from scipy.special import betaincinv
from scipy.special import ndtr as np_ndtr
from scipy.special import ndtri as np_ndtri

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, first, one_function
from plurigp.likelihoods.special import both_sides, log_gamma, ndtr

EDGE = 1e-5  # μ lies in [EDGE, 1 − EDGE]: both shape parameters stay positive at the outermost node


def _off_edges(share: Any) -> Any:
    return EDGE + (1 - 2 * EDGE) * share


def beta_mean(f: Scalar) -> Scalar:
    """μ = EDGE + (1 − 2 EDGE) Φ(f)."""
    return _off_edges(ndtr(f))


def _shapes(theta: Theta, f: Scalar) -> tuple[Scalar, Scalar]:
    nu = jnp.exp(theta["log_nu"])
    below, above = both_sides(f)
    return nu * _off_edges(below), nu * _off_edges(above)


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    a, b = _shapes(theta, f[0])
    density = (a - 1) * jnp.log(y[0]) + (b - 1) * jnp.log1p(-y[0])
    return log_gamma(jnp.exp(theta["log_nu"])) - log_gamma(a) - log_gamma(b) + density


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return beta_mean(f[0])[None]


def beta_shapes(theta: Theta, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both shape parameters of many cells, in NumPy."""
    nu = np.exp(np.asarray(theta["log_nu"]))
    return nu * _off_edges(np_ndtr(f)), nu * _off_edges(np_ndtr(-f))


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    tiny = np.finfo(float).eps
    return np.clip(rng.beta(*beta_shapes(theta, f[..., 0])), tiny, 1 - tiny)


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    a, b = beta_shapes(theta, f[..., 0])
    return np.sqrt(a * b / (a + b + 1)) / (a + b)


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    return betaincinv(*beta_shapes(theta, f[..., 0]), level)


def _start(y: np.ndarray, column: Column) -> Start:
    mean = float(np.clip(y[:, 0].mean(), 0.01, 0.99))
    nu = mean * (1 - mean) / max(float(y[:, 0].var()), 1e-6) - 1
    return Start(np.array([np_ndtri(mean)]), {"log_nu": np.log(np.clip(nu, 0.5, 1e3))})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return ndtri(jnp.clip(y[:1], 1e-4, 1 - 1e-4))


beta = Likelihood(
    kind="beta",
    log_prob=_log_prob,
    mean=_mean,
    point=first,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=one_function,
    sd=_sd,
    quantile=_quantile,
    n_quadrature=20,
    continuous=True,
)
