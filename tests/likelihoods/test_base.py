"""The small functions that every family leans on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp.data import Column
from plurigp.likelihoods.base import mean_as_point, nearest_whole, one_function
from plurigp.likelihoods.special import safe_exp, softplus


def test_softplus_is_log1p_exp_without_overflow():
    f = jnp.linspace(-30, 30, 121)
    np.testing.assert_allclose(jax.vmap(softplus)(f), np.logaddexp(0, f), rtol=1e-14)
    for far in (-1e4, 1e4):
        assert float(softplus(jnp.float32(far))) == pytest.approx(max(far, 0), abs=1e-6)
        assert float(jax.grad(softplus)(jnp.float32(far))) == pytest.approx(float(far > 0), abs=1e-6)
    assert float(jax.grad(softplus)(jnp.asarray(0.0))) == 0.5


def test_safe_exp_is_exp_up_to_its_top():
    x = jnp.linspace(-20, 29.9, 100)
    np.testing.assert_allclose(jax.vmap(safe_exp)(x), np.exp(x), rtol=1e-14)
    np.testing.assert_allclose(jax.vmap(jax.grad(safe_exp))(x), np.exp(x), rtol=1e-14)


def test_safe_exp_goes_on_as_its_tangent():
    top, edge = np.exp(30.0), 1e-4
    for x in (30 + edge, 35.0, 1000.0):
        assert float(safe_exp(jnp.asarray(x))) == pytest.approx(top * (1 + x - 30), rel=1e-12)
        assert float(jax.grad(safe_exp)(jnp.asarray(x))) == pytest.approx(top, rel=1e-12)
    assert float(safe_exp(jnp.float32(1e6))) < np.finfo(np.float32).max
    assert float(safe_exp(jnp.asarray(3.0), 2.0)) == pytest.approx(np.exp(2) * 2)


def test_point_values():
    assert float(mean_as_point(jnp.array([2.6]))) == 2.6
    assert float(nearest_whole(jnp.array([2.6]))) == 3
    assert one_function(Column("x", "gaussian")) == 1
