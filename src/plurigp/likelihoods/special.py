"""Special functions that jax.scipy has too slow, or with values or slopes that fail in float32 or far out in the tails.

Each says which; `benchmarks/special.py` shows it.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc

from plurigp.core.arrays import Array

HALF_LOG_2PI = 0.9189385332046727


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Σ_n c_n x^n by Horner's rule."""
    total = jnp.zeros_like(x)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _n_bytes(x: Array) -> int:
    return jnp.asarray(x).dtype.itemsize


# --- log Γ and its kin ---

SHIFT = {4: 3, 8: 8}  # by bytes of a number: from here on Stirling's series is exact to rounding; below it,
# log Γ(x) = log Γ(x + SHIFT) − log x (x + 1) …
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # B_2n / (2n (2n − 1))
STIRLING_SLOPE = tuple((2 * n + 1) * c for n, c in enumerate(STIRLING))


def _raised(x: Array) -> tuple[Array, Array, Array]:
    """z ≥ the shift with Γ(x) = Γ(z) / product, and the slope of the product by x."""
    shift = SHIFT[_n_bytes(x)]
    small = x < shift
    product, slope = x, jnp.ones_like(x)
    for k in range(1, shift):
        product, slope = product * (x + k), slope * (x + k) + product
    return jnp.where(small, x + shift, x), jnp.where(small, product, 1), jnp.where(small, slope, 0)


@jax.custom_jvp
def log_gamma(x: Array) -> Array:
    """log Γ(x) for x > 0, eight times as fast as the library's."""
    z, product, _ = _raised(x)
    inverse = 1 / z
    series = _polynomial(STIRLING, inverse**2)
    return (z - 0.5) * jnp.log(z) - z + HALF_LOG_2PI + series * inverse - jnp.log(product)


def digamma(x: Array) -> Array:
    """The slope of log Γ at x > 0, twenty times as fast as the library's."""
    z, product, slope = _raised(x)
    inverse = 1 / z
    series = _polynomial(STIRLING_SLOPE, inverse**2)
    return jnp.log(z) - 0.5 * inverse - series * inverse**2 - slope / product


@log_gamma.defjvp
def _log_gamma_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return log_gamma(*primals), digamma(*primals) * tangents[0]


def _binet(x: Array) -> Array:
    """log Γ(x) less Stirling's (x − ½) log x − x + ½ log 2π, for x > 0."""
    z, product, _ = _raised(x)
    inverse = 1 / z
    near = (z - 0.5) * jnp.log(z) - z - (x - 0.5) * jnp.log(x) + x - jnp.log(product)
    return _polynomial(STIRLING, inverse**2) * inverse + jnp.where(z > x, near, 0)


@jax.custom_jvp
def log_beta_density(n: Array, a: Array, b: Array, y: Array) -> Array:
    """log of the Beta(a, b) density at y, for n = a + b.

    With z ≥ the shift for both, z_a = a + k_a, a log y − log Γ(a) is (z_a − ½) log(y n / z_a) and small terms: nothing
    of the size of log Γ(n) cancels, of which float32 would leave whole nats.
    """
    (z_a, below_a, _), (z_b, below_b, _) = _raised(a), _raised(b)
    k_a, k_b, log_n = z_a - a, z_b - b, jnp.log(n)
    ratios = (z_a - 0.5) * jnp.log(y * n / z_a) + (z_b - 0.5) * jnp.log((1 - y) * n / z_b)
    series = sum(_polynomial(STIRLING, (1 / z) ** 2) / z for z in (z_a, z_b))
    edges = (k_a + 0.5) * jnp.log(y) + (k_b + 0.5) * jnp.log1p(-y)
    whole = (0.5 - k_a - k_b) * log_n + k_a + k_b - HALF_LOG_2PI + _binet(n)
    return ratios + whole - edges - series + jnp.log(below_a * below_b)


@log_beta_density.defjvp
def _log_beta_density_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    n, a, b, y = primals
    by_y = (a - 1) / y - (b - 1) / (1 - y)
    slopes = digamma(n), jnp.log(y) - digamma(a), jnp.log1p(-y) - digamma(b), by_y
    return log_beta_density(*primals), sum(s * t for s, t in zip(slopes, tangents, strict=True))


STEP_SHIFT = 4
STEP_SERIES = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432, 691 / 180224)  # in odd powers of 1 / x


def log_gamma_step(x: Array) -> Array:
    """log Γ(x + ½) − log Γ(x) for x > 0, without the cancellation that two large logarithms suffer."""
    z = x + STEP_SHIFT
    below = x / (x + 0.5)
    for k in range(1, STEP_SHIFT):
        below = below * ((x + k) / (x + k + 0.5))
    inverse = 1 / z
    return 0.5 * jnp.log(z) + _polynomial(STEP_SERIES, inverse**2) * inverse + jnp.log(below)


def log_factorial_rest(x: Array) -> Array:
    """log x! − x log x + x for x ≥ 0: about ½ log 2πx, without cancellation however large log x! is."""
    shift = SHIFT[_n_bytes(x)]
    small = x < shift
    z, low = jnp.where(small, shift, x), jnp.where(small, x, 0)
    inverse = 1 / z
    series = _polynomial(STIRLING, inverse**2)
    above_zero = jnp.where(low > 0, low, 1)
    near = log_gamma(low + 1) - above_zero * jnp.log(above_zero) + low
    return jnp.where(small, near, HALF_LOG_2PI + 0.5 * jnp.log(z) + series * inverse)


# --- e^x within float32, e^x − 1 − x and log(1 + e^x) ---

HIGHEST = 30.0  # of an exponent


def bounded_exp(x: np.ndarray) -> np.ndarray:
    """e^x for draws, which need no slope, in NumPy: held at e^HIGHEST."""
    return np.exp(np.minimum(x, HIGHEST))


def safe_exp(x: Array, top: float = HIGHEST) -> Array:
    """e^x, continued by its tangent above `top`, so a wild step gives a large finite slope and not an overflow."""
    low = jnp.minimum(x, top)
    return jnp.exp(low) * (1 + x - low)


EXCESS_TERMS = {4: 8, 8: 15}  # of the series of e^x − 1 − x up to ½, by bytes of a number


@jax.custom_jvp
def exp_excess(x: Array) -> Array:
    """e^x − 1 − x, never negative: near zero expm1(x) − x cancels."""
    near, series = jnp.clip(x, -0.5, 0.5), jnp.ones_like(x)
    for n in range(EXCESS_TERMS[_n_bytes(x)] + 1, 2, -1):
        series = 1 + near / n * series
    return jnp.where(jnp.abs(x) < 0.5, near * near / 2 * series, jnp.expm1(x) - x)


@exp_excess.defjvp
def _exp_excess_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return exp_excess(*primals), jnp.expm1(*primals) * tangents[0]


LOG1P_SERIES = (  # log(1 + e) / e in powers of e, to 5e-9: least squares for e between 0 and 1
    0.999999995, -0.49999904, 0.33330004, -0.249545589, 0.196781173,
    -0.153118631, 0.106142647, -0.0570642008, 0.0199071609, -0.00325637847,
)  # fmt: skip


def _log1p(e: Array) -> Array:
    """log(1 + e) for e between 0 and 1."""
    return jnp.log1p(e) if _n_bytes(e) > 4 else _polynomial(LOG1P_SERIES, e) * e


@jax.custom_jvp
def softplus(x: Array) -> Array:
    """log(1 + e^x) and its slope by one exponential that cannot overflow: thrice as fast as the library's."""
    return jnp.maximum(x, 0) + _log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,) = primals
    e = jnp.exp(-jnp.abs(x))
    return jnp.maximum(x, 0) + _log1p(e), jnp.where(x > 0, 1, e) / (1 + e) * tangents[0]


# --- Φ, log Φ and the mass between two bounds ---

BEND = 0.4
TAIL_SERIES = (  # log(Φ(−t) e^{t²/2} / s) in powers of s = 1 / (1 + BEND t), to 1e-7: least squares for t up to 14
    -1.83511277, 0.996978762, 0.373005092, -0.185107215, 0.55112, -1.76482423, 1.96064132, -0.981641124, 0.19179307,
)  # fmt: skip

TAIL = 8.0  # below −TAIL, Φ(−t) = φ(t) R(t) with Mills' ratio R by its continued fraction
DEPTH = {4: 4, 8: 8}  # of the fraction, by bytes of a number: exact to rounding from TAIL on
NARROW = 0.1  # an interval as narrow as this has the mass of a short series around its middle


def _mills(t: Array) -> Array:
    """R(t) = 1 / (t + 1 / (t + 2 / (t + …))) for t ≥ TAIL."""
    below = t
    for k in range(DEPTH[_n_bytes(t)], 0, -1):
        below = t + k / below
    return 1 / below


def _log_density(x: Array) -> Array:
    return -x * x / 2 - HALF_LOG_2PI


def _beyond(t: Array) -> Array:
    """Φ(−t) for t ≥ 0. In float32 by one exponential, which the compiler keeps; erfc, of which it makes polynomials, it
    repeats in every loop that reads it, and a beta's expectation takes twice as long."""
    if _n_bytes(t) > 4:
        return erfc(t * 0.7071067811865476) / 2
    s = 1 / (1 + BEND * t)
    return s * jnp.exp(_polynomial(TAIL_SERIES, s) - t * t / 2)


@jax.custom_jvp
def both_sides(x: Array) -> tuple[Array, Array]:
    """Φ(x) and Φ(−x)."""
    tail = _beyond(jnp.abs(x))
    return jnp.where(x > 0, 1 - tail, tail), jnp.where(x > 0, tail, 1 - tail)


@both_sides.defjvp
def _both_sides_jvp(primals: Any, tangents: Any) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    change = jnp.exp(_log_density(*primals)) * tangents[0]
    return both_sides(*primals), (change, -change)


def ndtr(x: Array) -> Array:
    """Φ(x)."""
    return both_sides(x)[0]


@jax.custom_jvp
def log_ndtr(x: Array) -> Array:
    """log Φ(x). The library's is as fast, but its slope is wrong far out in float32: x² cancels."""
    beyond = _beyond(jnp.minimum(jnp.abs(x), TAIL))
    near = jnp.where(x > 0, jnp.log1p(-beyond), jnp.log(beyond))
    return jnp.where(x < -TAIL, _log_density(x) + jnp.log(_mills(jnp.maximum(-x, TAIL))), near)


@log_ndtr.defjvp
def _log_ndtr_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """φ / Φ, which in the tail is 1 / R: nothing of the size of x² cancels."""
    (x,), value = primals, log_ndtr(*primals)
    tail = x < -TAIL
    near = jnp.exp(_log_density(jnp.where(tail, 0.0, x)) - jnp.where(tail, 0.0, value))
    return value, jnp.where(tail, 1 / _mills(jnp.maximum(-x, TAIL)), near) * tangents[0]


def log_between(low: Array, high: Array) -> Array:
    """log(Φ(high) − Φ(low)) for low < high, which no library has, on the side where Φ is small: nothing cancels."""
    turn = low + high > 0
    return _log_between(jnp.where(turn, -high, low), jnp.where(turn, -low, high))


# log mass and its slopes: (φ(high) − φ(low)) / mass by a shift of both ends, and half the sum by the width
_MassAndSlopes = tuple[Array, ...]


def _slopes(at_high: Array, at_low: Array) -> tuple[Array, Array]:
    return at_high - at_low, (at_high + at_low) / 2


def _narrow(width: Array, middle: Array) -> _MassAndSlopes:
    """By a short series around the middle."""
    series = (middle**2 - 1) * width**2 / 24 + (middle**4 - 6 * middle**2 + 3) * width**4 / 1920
    log_mass = jnp.log(width) + jnp.log1p(series)  # over φ(middle)
    tilt, size = middle * width / 2, jnp.exp(-width * width / 8 - log_mass)
    return _log_density(middle) + log_mass, -2 * size * jnp.sinh(tilt), size * jnp.cosh(tilt)


def _in_tail(low: Array, high: Array) -> _MassAndSlopes:
    """Where both ends lie beyond −TAIL: relative to φ(high), so that no square of an end is left to cancel."""
    a, b = -high, -low
    fall = jnp.exp(-(b - a) * (a + b) / 2)  # φ(low) / φ(high)
    mass = _mills(a) - fall * _mills(b)  # over φ(high)
    return _log_density(high) + jnp.log(mass), *_slopes(1 / mass, fall / mass)


def _in_middle(low: Array, high: Array) -> _MassAndSlopes:
    mass = ndtr(high) - ndtr(low)
    value = jnp.log(mass)
    return value, *_slopes(*(jnp.exp(_log_density(end) - value) for end in (high, low)))


def _between(low: Array, high: Array) -> _MassAndSlopes:
    """Each way sees only what it is made for; the others get harmless stand-ins, since all of them are computed."""
    width, middle = high - low, (low + high) / 2
    narrow, tail = width * (1 + jnp.abs(middle)) < NARROW, high < -TAIL
    thin = _narrow(jnp.where(narrow, width, NARROW / 2), jnp.where(narrow, middle, 0.0))
    far = tail & ~narrow
    out = _in_tail(jnp.where(far, low, -TAIL - 1), jnp.where(far, high, -TAIL))
    near = ~(narrow | tail)
    mid = _in_middle(jnp.where(near, low, -1.0), jnp.where(near, high, 0.0))
    return tuple(jnp.where(narrow, a, jnp.where(tail, b, c)) for a, b, c in zip(thin, out, mid, strict=True))


@jax.custom_jvp
def _log_between(low: Array, high: Array) -> Array:
    return _between(low, high)[0]


@_log_between.defjvp
def _log_between_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    (value, by_shift, by_width), (d_low, d_high) = _between(*primals), tangents
    return value, by_shift * (d_low + d_high) / 2 + by_width * (d_high - d_low)
