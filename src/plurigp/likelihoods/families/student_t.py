"""Real columns with heavy tails, standardised: y = f + scale · t, t from Student's t with a learned df above 1."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, first, one_function
from plurigp.likelihoods.families.gaussian import FLOOR, log_student
from plurigp.likelihoods.rules import even


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    df = 1 + jnp.exp(theta["log_df"])
    var = FLOOR**2 + jnp.exp(2 * theta["log_scale"])
    return log_student(y[0], f[0], var, df)


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return f[:1]


def _scale_and_df(theta: Theta, f: Cells) -> tuple[np.ndarray, np.ndarray]:
    scale = np.sqrt(FLOOR**2 + np.exp(2 * np.asarray(theta["log_scale"])))
    df = 1 + np.exp(np.asarray(theta["log_df"]))
    return np.broadcast_to(scale, f.shape[:-1]), np.broadcast_to(df, f.shape[:-1])


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    scale, df = _scale_and_df(theta, f)
    return f[..., 0] + scale * rng.standard_t(df)


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    """Infinite up to two degrees of freedom."""
    scale, df = _scale_and_df(theta, f)
    return scale * np.where(df > 2, np.sqrt(df / np.where(df > 2, df - 2, 1)), np.inf)


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    scale, df = _scale_and_df(theta, f)
    return f[..., 0] + scale * stdtrit(df, level)


def _start(y: np.ndarray, column: Column) -> Start:
    """Scale from the quartiles, which tails do not move."""
    low, high = np.quantile(y[:, 0], [0.25, 0.75])
    scale = max(float(high - low) / 1.5, 0.05)
    return Start(np.array([np.median(y[:, 0])]), {"log_scale": float(np.log(scale)), "log_df": float(np.log(4.0))})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return y[:1]


student_t = Likelihood(
    kind="student_t",
    log_prob=_log_prob,
    mean=_mean,
    point=first,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=one_function,
    sd=_sd,
    quantile=_quantile,
    rule=even,
    n_quadrature=96,
    continuous=True,
)
