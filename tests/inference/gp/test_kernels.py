"""Kernels are their plain formulas, and covariances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp.inference.gp import kernels
from plurigp.inference.gp.kernels import Kernel, make_kernel, parse_kernel

diagonal, gram = jax.jit(kernels.diagonal), jax.jit(kernels.gram)

NAMES = ["rbf", "matern52", "linear", "linear+rbf", "rbf+matern52"]


def plain(part: str, x: np.ndarray, z: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Loops over pairs, nothing shared with the source."""
    out = np.empty((len(x), len(z)))
    for i in range(len(x)):
        for j in range(len(z)):
            r2 = (((x[i] - z[j]) / scales) ** 2).sum()
            r = np.sqrt(5 * r2)
            out[i, j] = {
                "rbf": np.exp(-r2 / 2),
                "matern52": (1 + r + r**2 / 3) * np.exp(-r),
                "linear": (x[i] * z[j] / scales**2).sum(),
            }[part]
    return out


def random_kernel(name: str, rng: np.random.Generator, Q: int = 3) -> Kernel:
    parts = parse_kernel(name)
    return Kernel(parts, jnp.asarray(rng.uniform(-0.5, 1, (len(parts), Q))), jnp.asarray(rng.normal(size=len(parts))))


@pytest.mark.parametrize("name", NAMES)
def test_gram_is_the_plain_formula(name, rng):
    kernel, x, z = random_kernel(name, rng), rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    scales, weights = np.exp(kernel.log_lengthscales), np.exp(kernel.log_weights)
    if len(kernel.parts) == 1:
        weights = [1.0]  # the output scales of the functions already do this
    expected = sum(w * plain(p, x, z, s) for p, s, w in zip(kernel.parts, scales, weights, strict=True))
    np.testing.assert_allclose(gram(kernel, jnp.asarray(x), jnp.asarray(z)), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("part", ["rbf", "matern52"])
def test_near_pairs_far_from_the_origin_keep_their_distance(part, rng):
    """Distances come from one matrix product: what that loses must not be seen."""
    x = 20 + rng.normal(size=(6, 3))
    z = x + 1e-3 * rng.normal(size=(6, 3))
    kernel = make_kernel(part, 3, 0.7)
    lost = 1 - gram(kernel, jnp.asarray(x), jnp.asarray(z)).diagonal()
    np.testing.assert_allclose(lost, 1 - plain(part, x, z, np.full(3, 0.7)).diagonal(), rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_gram_is_symmetric_and_positive_semidefinite(name, rng):
    kernel, x = random_kernel(name, rng), jnp.asarray(rng.normal(size=(20, 3)))
    K = np.asarray(gram(kernel, x, x))
    np.testing.assert_allclose(K, K.T, atol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.trace(K)
    np.testing.assert_allclose(diagonal(kernel, x), np.diagonal(K), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_slopes_are_finite_where_two_positions_meet(name, rng):
    kernel, x = random_kernel(name, rng), jnp.asarray(rng.normal(size=(4, 3)))
    x = x.at[1].set(x[0])
    for leaf in jax.tree.leaves(jax.jit(jax.grad(lambda k, x: gram(k, x, x).sum(), argnums=(0, 1)))(kernel, x)):
        assert np.isfinite(leaf).all()


def test_matern_is_one_at_no_distance_and_falls():
    kernel = make_kernel("matern52", 1, 1.0)
    values = gram(kernel, jnp.zeros((1, 1)), jnp.linspace(0, 5, 20)[:, None])[0]
    assert float(values[0]) == pytest.approx(1, abs=1e-10)
    assert (np.diff(values) < 0).all()


def test_start_of_a_sum():
    kernel = make_kernel("linear + rbf", 4, 6.0)
    assert kernel.parts == ("linear", "rbf")
    np.testing.assert_allclose(np.exp(kernel.log_lengthscales), [[1.0] * 4, [6.0] * 4])
    np.testing.assert_array_equal(kernel.log_weights, 0)


def test_an_unknown_part_is_named():
    with pytest.raises(ValueError, match="'periodic' is not one of rbf, matern52, linear"):
        parse_kernel("rbf+periodic")
