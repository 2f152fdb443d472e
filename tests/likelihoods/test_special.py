"""log Γ and its slope against SciPy."""

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
