"""log Γ, log Φ and the mass between two bounds, with their slopes, against SciPy and plain integrals."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special as theirs

from plurigp.likelihoods import special as ours

X = np.concatenate([np.logspace(-8, 8, 400), np.arange(1, 40), [7.999999999, 8.0, 8.000000001]])


def test_log_gamma_is_scipys():
    np.testing.assert_allclose(jax.jit(ours.log_gamma)(jnp.asarray(X)), theirs.gammaln(X), rtol=1e-12, atol=1e-13)


def test_its_slope_is_digamma():
    np.testing.assert_allclose(jax.jit(ours.digamma)(jnp.asarray(X)), theirs.digamma(X), rtol=1e-11, atol=1e-12)
    slope = jax.jit(jax.vmap(jax.grad(ours.log_gamma)))(jnp.asarray(X))
    np.testing.assert_array_equal(slope, jax.jit(ours.digamma)(jnp.asarray(X)))


@pytest.mark.parametrize("function", ["log_gamma", "digamma"])
def test_float32_is_finite_and_close(function):
    x = np.logspace(-6, 8, 300).astype(np.float32)
    exact = {"log_gamma": theirs.gammaln, "digamma": theirs.digamma}[function](x.astype(float))
    np.testing.assert_allclose(jax.jit(getattr(ours, function))(x), exact, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize(("dtype", "within"), [(np.float64, 1e-14), (np.float32, 3e-7)])
def test_softplus_and_its_slope_are_scipys(dtype, within):
    """To a few roundings relative to itself: also where it is e^x, far below zero."""
    x = np.concatenate([np.linspace(-80, 80, 4001), np.linspace(-1, 1, 401)]).astype(dtype)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(ours.softplus)))(jnp.asarray(x))
    assert value.dtype == slope.dtype == dtype
    np.testing.assert_allclose(value, np.logaddexp(x.astype(float), 0), rtol=within)
    np.testing.assert_allclose(slope, theirs.expit(x.astype(float)), rtol=within)


BETAS = [1e-2, 1.0, 5.9, 6.0, 40.0, 1e3, 1e5]


def betas(n, size=500):
    rng = np.random.default_rng(0)
    mean = theirs.ndtr(rng.normal(size=size))
    a, b = n * mean, n * (1 - mean)
    y = np.clip(rng.beta(a, b), 1e-3, 1 - 1e-3)
    return np.full(size, n), a, b, y


@pytest.mark.parametrize("n", BETAS)
def test_beta_density_and_its_slopes_are_scipys(n):
    n, a, b, y = betas(n)
    log_n, log_a, log_b = (theirs.gammaln(part) for part in (n, a, b))
    exact = log_n - log_a - log_b + (a - 1) * np.log(y) + (b - 1) * np.log1p(-y)
    np.testing.assert_allclose(jax.jit(ours.log_beta_density)(n, a, b, y), exact, rtol=1e-9, atol=1e-9)
    slopes = jax.jit(jax.vmap(jax.grad(ours.log_beta_density, (0, 1, 2, 3))))(n, a, b, y)
    by_y = (a - 1) / y - (b - 1) / (1 - y)
    by_shapes = theirs.digamma(n), np.log(y) - theirs.digamma(a), np.log1p(-y) - theirs.digamma(b)
    for found, expected in zip(slopes, (*by_shapes, by_y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", BETAS)
def test_beta_density_keeps_its_digits_in_float32(n):
    """log Γ(1e5) is a million: rounded, it would leave tenths of a nat."""
    _, a, b, y = (part.astype(np.float32) for part in betas(n))
    n = a + b
    wide = [part.astype(float) for part in (n, a, b, y)]
    exact = jax.jit(ours.log_beta_density)(*wide)
    np.testing.assert_allclose(jax.jit(ours.log_beta_density)(n, a, b, y), exact, rtol=1e-5, atol=2e-7 * n.max() + 2e-5)


def test_a_half_step_of_log_gamma():
    """In float32 too, where the difference of two log Γ would lose all digits; SciPy's by log B(x, ½)."""
    x = np.concatenate([np.logspace(-6, 9, 200), np.arange(1, 30) / 2])
    exact = 0.5 * np.log(np.pi) - theirs.betaln(x, 0.5)
    np.testing.assert_allclose(jax.jit(ours.log_gamma_step)(jnp.asarray(x)), exact, rtol=1e-9, atol=3e-9)
    np.testing.assert_allclose(jax.jit(ours.log_gamma_step)(jnp.asarray(x, jnp.float32)), exact, rtol=2e-6, atol=2e-6)
    slope = jax.jit(jax.vmap(jax.grad(ours.log_gamma_step)))(jnp.asarray(x))
    np.testing.assert_allclose(slope, theirs.digamma(x + 0.5) - theirs.digamma(x), rtol=1e-6, atol=1e-8)


gauss_legendre = cache(np.polynomial.legendre.leggauss)


def exact_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log ∫ φ from low to high by four hundred Gauss–Legendre points, relative to the largest density inside."""
    points, weights = gauss_legendre(400)
    top = np.clip(0, low, high)
    low, high = np.maximum(low, top - 12), np.minimum(high, top + 12)
    at = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * points
    inside = (np.exp(-(at**2 - top[:, None] ** 2) / 2) @ weights) * (high - low) / 2
    return np.log(inside) - top**2 / 2 - ours.HALF_LOG_2PI


def test_log_ndtr_and_its_slope_are_scipys():
    x = np.concatenate([np.linspace(-60, 4, 500), [-8.0, -8 - 1e-12, -1e4, -1e11]])
    np.testing.assert_allclose(jax.jit(ours.log_ndtr)(x), theirs.log_ndtr(x), rtol=1e-12)
    slope = jax.jit(jax.vmap(jax.grad(ours.log_ndtr)))(x)
    hazard = np.sqrt(2 / np.pi) / theirs.erfcx(-x / np.sqrt(2))
    np.testing.assert_allclose(slope, hazard, rtol=1e-11)
    low = jax.jit(jax.vmap(jax.grad(ours.log_ndtr)))(x.astype(np.float32))
    np.testing.assert_allclose(low, hazard, rtol=2e-5)  # even at −1e11


@pytest.mark.parametrize("middle", [-3000.0, -40.0, -4.9, 0.0, 0.7, 5.2, 60.0])
@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.09, 0.11, 1.0, 8.0])
def test_mass_between_two_bounds(middle, width):
    low, high = np.array([middle - width / 2]), np.array([middle + width / 2])
    exact, within = exact_between(low, high), 1e-10 if width > 1e-6 else 1e-7  # a width of 1e-9 is itself rounded
    np.testing.assert_allclose(jax.jit(ours.log_between)(low, high), exact, rtol=1e-10, atol=within)


def test_open_ends_and_slopes_in_float32():
    """One side open is log Φ; slopes are finite and right wherever the bounds lie."""
    end = np.float32(1e9)
    x = np.linspace(-40, 5, 100).astype(np.float32)
    np.testing.assert_allclose(
        jax.jit(ours.log_between)(-end, x), theirs.log_ndtr(x.astype(float)), rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(
        jax.jit(ours.log_between)(-x, end), theirs.log_ndtr(x.astype(float)), rtol=1e-5, atol=1e-7
    )

    def shifted(f, low, high):
        return ours.log_between(low - f, high - f)

    slope = jax.jit(jax.vmap(jax.grad(shifted), (0, None, None)))
    f = np.linspace(-60, 60, 241).astype(np.float32)
    with jax.enable_x64(True):
        for low, high in [(-end, 0.0), (0.0, end), (-1.0, 2.0), (0.5, 0.5001), (-end, end)]:
            exact = slope(f.astype(float), float(low), float(high))
            np.testing.assert_allclose(slope(f, np.float32(low), np.float32(high)), exact, rtol=3e-3, atol=1e-4)


def test_ndtr_and_its_slope_are_scipys():
    x = np.concatenate([np.linspace(-14, 14, 2001), [0.0, -0.0, 30.0, -30.0]])
    for dtype, within in ((np.float64, 1e-13), (np.float32, 1e-6)):
        at = x.astype(dtype)
        exact = theirs.ndtr(at.astype(float))
        rtol = within * (1 + at.astype(float) ** 2)  # t² in the exponent is rounded
        off = np.abs(np.asarray(jax.jit(ours.ndtr)(at), float) - exact)
        assert (off <= rtol * exact + np.finfo(dtype).tiny).all()
        slope = jax.jit(jax.vmap(jax.grad(ours.ndtr)))(at)
        density = np.exp(-(at.astype(float) ** 2) / 2) / np.sqrt(2 * np.pi)
        assert (np.abs(slope - density) <= rtol * density + np.finfo(dtype).tiny).all()
