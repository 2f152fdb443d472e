"""Packing, the block inverse and the jitter against dense NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp.gp import linalg
from plurigp.gp.linalg import JITTER, JITTER_LIMIT

cholesky, inverse_and_logdet, pack, pack_outer = (
    jax.jit(function) for function in (linalg.cholesky, linalg.inverse_and_logdet, linalg.pack, linalg.pack_outer)
)
unpack = jax.jit(linalg.unpack, static_argnums=1)

SIZES = [1, 2, 7, 10, 11, 50, 53]  # around the edge of the packing's blocks


def symmetric(rng: np.random.Generator, P: int, M: int) -> np.ndarray:
    A = rng.normal(size=(P, M, M))
    return A + A.swapaxes(1, 2)


def precisions(rng: np.random.Generator, P: int, M: int) -> np.ndarray:
    """I + Σ A Aᵀ, as natural steps make them."""
    A = rng.normal(size=(P, M, 2 * M))
    return np.eye(M) + A @ A.swapaxes(1, 2)


@pytest.mark.parametrize("M", SIZES)
def test_packed_product_is_the_quadratic_form(M, rng):
    S, A = symmetric(rng, 4, M), rng.normal(size=(5, M))
    packed = pack_outer(jnp.asarray(A)) @ pack(jnp.asarray(S)).T
    np.testing.assert_allclose(packed, np.einsum("bi,pij,bj->bp", A, S, A), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("M", SIZES)
def test_packing_saves_about_half(M):
    width = pack(jnp.zeros((1, M, M))).shape[1]
    assert width == pack_outer(jnp.zeros((1, M))).shape[1]
    assert M * (M + 1) / 2 <= width <= M * M
    if M >= 50:
        assert width <= 0.62 * M * M


@pytest.mark.parametrize("M", SIZES)
def test_unpack_gives_weighted_sums_of_outer_products(M, rng):
    A, weight = rng.normal(size=(5, M)), rng.normal(size=(5, 3))
    dense = unpack(jnp.asarray(weight.T) @ pack_outer(jnp.asarray(A)), M)
    np.testing.assert_allclose(dense, np.einsum("bp,bi,bj->pij", weight, A, A), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(dense, np.swapaxes(dense, 1, 2))


@pytest.mark.parametrize("M", SIZES)
def test_inverse_and_logdet_are_numpys(M, rng):
    Lam = precisions(rng, 3, M)
    S, logdet = inverse_and_logdet(jnp.asarray(Lam))
    np.testing.assert_allclose(S, np.linalg.inv(Lam), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(Lam)[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(S, np.swapaxes(S, 1, 2), atol=1e-12)


def test_inverse_of_a_float32_precision_over_eight_decades(rng):
    """What many confident rows give: still positive definite, still the inverse."""
    A = rng.normal(size=(2, 50, 50)) * np.logspace(0, 4, 50)[:, None]
    Lam = (np.eye(50) + A @ A.swapaxes(1, 2)).astype(np.float32)
    S, logdet = inverse_and_logdet(jnp.asarray(Lam))
    assert S.dtype == jnp.float64
    assert np.isfinite(logdet).all()
    raised = Lam.astype(float) + np.finfo(np.float32).eps * np.diagonal(Lam, axis1=1, axis2=2).max(1)[
        :, None, None
    ] * np.eye(50)
    for ours, theirs in zip(np.asarray(S), raised, strict=True):
        np.linalg.cholesky(ours)
        np.testing.assert_allclose(ours @ theirs, np.eye(50), atol=1e-6)


def test_cholesky_takes_the_first_jitter_where_it_can(rng):
    K = precisions(rng, 1, 6)[0]
    L, jitter = cholesky(jnp.asarray(K))
    assert float(jitter) == pytest.approx(JITTER)
    np.testing.assert_allclose(L @ L.T, K + JITTER * np.mean(np.diag(K)) * np.eye(6), rtol=1e-12)
    np.testing.assert_array_equal(np.triu(L, 1), 0)


def test_cholesky_raises_the_jitter_of_a_bad_matrix_and_says_so():
    K = jnp.diag(jnp.array([1.0, 1.0, -3e-5]))
    L, jitter = cholesky(K)
    assert np.isfinite(L).all()
    assert float(jitter) == pytest.approx(1e-4, rel=1e-6)
    np.testing.assert_allclose(np.diag(L @ L.T) - np.diag(K), jitter * np.mean(np.diag(K)), rtol=1e-6)


def test_cholesky_of_equal_points_is_finite_with_finite_slopes():
    K = jnp.ones((5, 5), jnp.float32)
    L, jitter = cholesky(K)
    assert np.isfinite(L).all()
    assert JITTER * 0.99 <= float(jitter) <= JITTER_LIMIT * 1.01
    assert np.isfinite(jax.jit(jax.grad(lambda K: cholesky(K).factor.sum()))(K)).all()


def test_cholesky_of_a_hopeless_matrix_gives_up_at_the_limit():
    L, jitter = cholesky(jnp.diag(jnp.array([1.0, -1.0, 1.0])))
    assert np.isnan(L).any()
    assert JITTER_LIMIT <= float(jitter) <= 11 * JITTER_LIMIT


def test_cholesky_slopes_are_those_of_numpys_formula(rng):
    """log det K by its factor: ∂/∂K = K⁻¹ (with the jitter in)."""
    K = jnp.asarray(precisions(rng, 1, 5)[0])
    slope = jax.jit(jax.grad(lambda K: 2 * jnp.log(jnp.diagonal(cholesky(K).factor)).sum()))(K)
    raised = np.asarray(K) + JITTER * np.mean(np.diag(K)) * np.eye(5)
    inverse = np.linalg.inv(raised)
    expected = inverse + JITTER / 5 * np.trace(inverse) * np.eye(5)
    np.testing.assert_allclose((slope + slope.T) / 2, expected, rtol=1e-8, atol=1e-12)
