"""Times to an event: y = e^f E^{1/k}, E standard exponential, a learned shape k; the survivor is exp(−(y e^{−f})^k)."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaincc
from jaxtyping import Float
from scipy.special import gamma as gamma_function
from scipy.special import gammainc as np_gammainc

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.base import Cells, Likelihood, Start, Theta, bounded_exp, first, one_function, safe_exp
from plurigp.likelihoods.families.bounded import OPEN, bounds_of, features_of_bounds, log_bounds, mean_within
from plurigp.likelihoods.families.censored import censored_lognormal
from plurigp.likelihoods.rules import Rule, even, expect_with_slopes
from plurigp.likelihoods.special import log_gamma

EULER = 0.5772156649015329  # −E[log E]


def _hazard(k: Scalar, log_time: Scalar, f: Scalar, var: Scalar | float = 0.0) -> Scalar:
    """The cumulative hazard (y e^{−f})^k, or its expectation over f ~ N(f, var)."""
    return safe_exp(k * (log_time - f) + k**2 * var / 2, 80.0)


def _log_event_before(k: Scalar, low: Scalar, high: Scalar, f: Scalar) -> Scalar:
    """log P(y < high | y > low), both as logs; 0 where `high` is open."""
    closed, low = high < OPEN, jnp.maximum(low, -1e3)
    high = jnp.where(closed, high, low + 1)
    rise = k * (high - low)
    near = _hazard(k, low, f) * jnp.expm1(jnp.minimum(rise, 1.0))
    more = jnp.where(rise < 1, near, _hazard(k, high, f) - _hazard(k, low, f))
    inside = jnp.log(-jnp.expm1(-jnp.maximum(more, jnp.finfo(more.dtype).tiny)))
    return jnp.where(closed, inside, 0.0)


def _value(theta: Theta, log_time: Scalar, f: Scalar, hazard: Scalar) -> Scalar:
    """log density of log y."""
    return theta["log_shape"] + jnp.exp(theta["log_shape"]) * (log_time - f) - hazard


def _log_prob(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    return _expected(theta, y, f, jnp.zeros_like(f), None)


def _expected(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule | None
) -> Scalar:
    """Closed form for values and for times without an event; the rule is left an upper bound."""
    k, logs = jnp.exp(theta["log_shape"]), log_bounds(y)
    cell = bounds_of(logs)
    value = _value(theta, cell.value, mean[0], _hazard(k, cell.value, mean[0], var[0])) - logs[2]
    survived = jnp.where(cell.low > -OPEN, _hazard(k, jnp.maximum(cell.low, -1e3), mean[0], var[0]), 0.0)

    def before(k: Scalar, bounds: tuple[Scalar, Scalar], f: Float[Array, " H"]) -> Scalar:
        return _log_event_before(k, *bounds, f[0])

    bounds = cell.low, cell.high
    ended = before(k, bounds, mean) if rule is None else expect_with_slopes(before, rule, k, bounds, mean, var)
    return jnp.where(cell.exact, value, ended - survived)


def _log_mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Scalar:
    """log E[y | bounds] = f + log ∫ over the hazards between the bounds of h^{1/k} e^{−h} dh, over their mass."""
    k = jnp.exp(theta["log_shape"])
    cell = bounds_of(log_bounds(y))
    low, high = (_hazard(k, jnp.clip(u, -1e3, 1e3), f[0]) for u in (cell.low, cell.high))
    a = 1 + 1 / k
    lower, upper = gammainc(a, high) - gammainc(a, low), gammaincc(a, low) - gammaincc(a, high)
    part = jnp.log(jnp.maximum(jnp.where(low > a, upper, lower), jnp.finfo(k.dtype).tiny)) + log_gamma(a)
    mass = -low + _log_event_before(k, cell.low, cell.high, f[0])
    far = jnp.log(jnp.maximum(y[0], jnp.finfo(k.dtype).tiny)) + jnp.log1p(1 / (k * jnp.maximum(low, 1.0)))
    inside = jnp.where(low > 60, far, f[0] + part - mass)  # the last term of the series for a late lower bound
    return jnp.where(cell.exact, jnp.log(y[0]), inside)


def _mean(theta: Theta, y: Float[Array, " W"], f: Float[Array, " H"]) -> Float[Array, " R"]:
    return jnp.clip(safe_exp(_log_mean(theta, y, f)), y[0], y[1])[None]


def _predictive_mean(
    theta: Theta, y: Float[Array, " W"], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Float[Array, " R"]:
    return mean_within(_log_prob, _log_mean, theta, y, mean, var, rule)


def _quantile(theta: Theta, y: Cells, f: Cells, level: Cells) -> np.ndarray:
    """The hazard h at which e^{−h} lies between the survivors of the two bounds."""
    k, scale = np.exp(np.asarray(theta["log_shape"])), bounded_exp(f[..., 0])
    with np.errstate(over="ignore", divide="ignore"):
        low, high = ((y[..., i] / scale) ** k for i in (0, 1))
        more = -np.log1p(level * np.expm1(low - high))
        return np.clip(scale * (low + more) ** (1 / k), y[..., 0], y[..., 1])


def _sample(rng: np.random.Generator, theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    return np.maximum(_quantile(theta, y, f, rng.random(f.shape[:-1])), np.finfo(float).tiny)


def _sd(theta: Theta, y: Cells, f: Cells) -> np.ndarray:
    """E[y^n | bounds] from the incomplete gamma functions between their hazards."""
    k, scale = np.exp(np.asarray(theta["log_shape"])), bounded_exp(f[..., 0])
    with np.errstate(over="ignore"):
        low, high = ((y[..., i] / scale) ** k for i in (0, 1))
    mass = np.maximum(np.exp(-low) - np.exp(-high), 1e-300)
    one, two = (
        gamma_function(1 + n / k) * (np_gammainc(1 + n / k, high) - np_gammainc(1 + n / k, low)) / mass for n in (1, 2)
    )
    return scale * np.sqrt(np.maximum(two - one**2, 0.0))


def _start(y: np.ndarray, column: Column) -> Start:
    """log y has mean f − γ/k and sd π/(k √6); both from a normal with the same limits."""
    start = censored_lognormal.start(y, column)
    k = np.clip(np.pi / np.sqrt(6) / np.exp(start.theta["log_sd"]), 0.2, 50.0)
    return Start(start.bias + EULER / k, {"log_shape": float(np.log(k))})


def _features(y: Float[Array, " W"], width: int) -> Float[Array, " E"]:
    return features_of_bounds(log_bounds(y))


weibull = Likelihood(
    kind="weibull",
    log_prob=_log_prob,
    mean=_mean,
    point=first,
    sample=_sample,
    start=_start,
    features=_features,
    n_functions=one_function,
    sd=_sd,
    quantile=_quantile,
    expected_log_prob=_expected,
    predictive_mean=_predictive_mean,
    rule=even,
    n_quadrature=64,
    continuous=True,
)
