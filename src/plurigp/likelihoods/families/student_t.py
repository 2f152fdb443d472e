"""Real columns with heavy tails, standardised: y = f + scale · t, t from Student's t with a learned df above 1."""

import jax.numpy as jnp
import numpy as np

from plurigp.core.arrays import Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import VALUE_SCALE, CellValues, Likelihood, Start, Theta, mean_as_point
from plurigp.likelihoods.families.gaussian import FLOOR, gaussian, log_student
from plurigp.likelihoods.rules import CellFunctions, even


def _log_prob(theta: Theta, y: CellValues, f: CellFunctions) -> Scalar:
    df = 1 + jnp.exp(theta["log_df"])
    var = FLOOR**2 + jnp.exp(2 * theta["log_scale"])
    return log_student(y[0], f[0], var, df)


def _sample(rng: np.random.Generator, theta: Theta, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    scale = np.sqrt(FLOOR**2 + np.exp(2 * np.asarray(theta["log_scale"])))
    df = 1 + np.exp(np.asarray(theta["log_df"]))
    return f[..., 0] + scale * rng.standard_t(np.broadcast_to(df, f.shape[:-1]))


def _start(y: np.ndarray, column: Column) -> Start:
    """Scale from the quartiles, which tails do not move."""
    low, high = np.quantile(y[:, 0], [0.25, 0.75])
    scale = max(float(high - low) / 1.5, 0.05)
    return Start(np.array([np.median(y[:, 0])]), {"log_scale": float(np.log(scale)), "log_df": float(np.log(4.0))})


student_t = Likelihood(
    "student_t",
    _log_prob,
    gaussian.mean,
    mean_as_point,
    _sample,
    _start,
    scale=VALUE_SCALE,
    rule=even,
    n_quadrature=96,
)
