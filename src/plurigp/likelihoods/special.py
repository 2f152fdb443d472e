"""log Γ of positive numbers and log Φ, with slopes that hold in float32 and far out in the tails."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr as plain_log_ndtr

from plurigp.arrays import Array

SHIFT = 8  # below it, log Γ(x) = log Γ(x + SHIFT) − log x (x + 1) … ; from it on Stirling's series is exact to 1e-14
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # B_2n / (2n (2n − 1))
HALF_LOG_2PI = 0.9189385332046727


def _raised(x: Array) -> tuple[Array, Array, Array]:
    """z ≥ SHIFT with Γ(x) = Γ(z) / product, and the slope of the product by x."""
    small = x < SHIFT
    product, slope = jnp.ones_like(x), jnp.zeros_like(x)
    for k in range(SHIFT):
        product, slope = product * (x + k), slope * (x + k) + product
    return jnp.where(small, x + SHIFT, x), jnp.where(small, product, 1), jnp.where(small, slope, 0)


@jax.custom_jvp
def log_gamma(x: Array) -> Array:
    """log Γ(x) for x > 0."""
    z, product, _ = _raised(x)
    inverse = 1 / z
    series = jnp.zeros_like(z)
    for c in reversed(STIRLING):
        series = series * inverse**2 + c
    return (z - 0.5) * jnp.log(z) - z + HALF_LOG_2PI + series * inverse - jnp.log(product)


def digamma(x: Array) -> Array:
    """The slope of log Γ at x > 0."""
    z, product, slope = _raised(x)
    inverse = 1 / z
    series = jnp.zeros_like(z)
    for n, c in reversed(tuple(enumerate(STIRLING))):
        series = series * inverse**2 + (2 * n + 1) * c
    return jnp.log(z) - 0.5 * inverse - series * inverse**2 - slope / product


@log_gamma.defjvp
def _log_gamma_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return log_gamma(*primals), digamma(*primals) * tangents[0]


# --- log Φ and the mass between two bounds ---

TAIL = 8.0  # below −TAIL, Φ(−t) = φ(t) R(t) with Mills' ratio R by its continued fraction
DEPTH = 8
NARROW = 0.1  # an interval as narrow as this has the mass of a short series around its middle


def _mills(t: Array) -> Array:
    """R(t) = 1 / (t + 1 / (t + 2 / (t + …))) for t ≥ TAIL."""
    below = t
    for k in range(DEPTH, 0, -1):
        below = t + k / below
    return 1 / below


@jax.custom_jvp
def log_ndtr(x: Array) -> Array:
    """log Φ(x)."""
    far = -x * x / 2 - HALF_LOG_2PI + jnp.log(_mills(jnp.maximum(-x, TAIL)))
    return jnp.where(x < -TAIL, far, plain_log_ndtr(jnp.maximum(x, -TAIL)))


@log_ndtr.defjvp
def _log_ndtr_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """φ / Φ, which in the tail is 1 / R: nothing of the size of x² cancels."""
    (x,), value = primals, log_ndtr(*primals)
    near = jnp.maximum(x, -TAIL)
    slope = jnp.where(
        x < -TAIL,
        1 / _mills(jnp.maximum(-x, TAIL)),
        jnp.exp(-near * near / 2 - HALF_LOG_2PI - jnp.where(x < -TAIL, 0, value)),
    )
    return value, slope * tangents[0]


def log_between(low: Array, high: Array) -> Array:
    """log(Φ(high) − Φ(low)) for low < high, turned to the side where Φ is small, so that nothing cancels."""
    turn = low + high > 0
    low, high = jnp.where(turn, -high, low), jnp.where(turn, -low, high)
    width, middle = high - low, (low + high) / 2
    narrow = width * (1 + jnp.abs(middle)) < NARROW
    w, m = jnp.where(narrow, width, NARROW / 2), jnp.where(narrow, middle, 0.0)
    series = (m**2 - 1) * w**2 / 24 + (m**4 - 6 * m**2 + 3) * w**4 / 1920
    slim = -m * m / 2 - HALF_LOG_2PI + jnp.log(w) + jnp.log1p(series)
    gap = jnp.where(narrow, 1.0, _log_ratio(low, high))
    return jnp.where(narrow, slim, log_ndtr(high) + jnp.log(-jnp.expm1(-gap)))


def _log_ratio(low: Array, high: Array) -> Array:
    """log Φ(high) − log Φ(low); where both are in the tail, without the difference of their squares."""
    tail = high < -TAIL
    a, b = jnp.where(tail, -high, TAIL), jnp.where(tail, -low, TAIL)
    far = (b - a) * (a + b) / 2 + jnp.log(_mills(a)) - jnp.log(_mills(b))
    return jnp.where(tail, far, log_ndtr(jnp.where(tail, 0.0, high)) - log_ndtr(jnp.where(tail, -1.0, low)))
