"""Packing, the inverse root and the jitter against dense NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp.inference.gp import linalg
from plurigp.inference.gp.linalg import JITTER, JITTER_LIMIT, packed_eye

whitening, inverse_root, pack, pack_doubled, pack_outer = (
    jax.jit(function)
    for function in (linalg.whitening, linalg.inverse_root, linalg.pack, linalg.pack_doubled, linalg.pack_outer)
)
unpack = jax.jit(linalg.unpack, static_argnums=1)

SIZES = [1, 2, 7, 10, 11, 50, 53]
B = 5


def symmetric(rng: np.random.Generator, P: int, M: int) -> np.ndarray:
    A = rng.normal(size=(P, M, M))
    return A + A.swapaxes(1, 2)


def precisions(rng: np.random.Generator, P: int, M: int) -> np.ndarray:
    """I + Σ A Aᵀ, as natural steps make them."""
    A = rng.normal(size=(P, M, 2 * M))
    return np.eye(M) + A @ A.swapaxes(1, 2)


@pytest.mark.parametrize("M", SIZES)
def test_pack_is_the_lower_triangle_and_unpack_its_undoing(M, rng):
    S = symmetric(rng, 4, M)
    packed = pack(jnp.asarray(S))
    assert packed.shape == (4, M * (M + 1) // 2)
    np.testing.assert_array_equal(packed, S[:, *np.tril_indices(M)])
    np.testing.assert_array_equal(unpack(packed, M), S)


@pytest.mark.parametrize("M", SIZES)
def test_packed_product_is_the_quadratic_form(M, rng):
    S, A = symmetric(rng, 4, M), rng.normal(size=(M, B))
    packed = pack_doubled(jnp.asarray(S)) @ pack_outer(jnp.asarray(A))
    np.testing.assert_allclose(packed, np.einsum("ib,pij,jb->pb", A, S, A), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("M", SIZES)
def test_pack_doubled_counts_what_lies_off_the_diagonal_twice(M, rng):
    S = symmetric(rng, 4, M).astype(np.float32)
    doubled = pack_doubled(jnp.asarray(S))
    twice = 2 * S - S * np.eye(M, dtype=np.float32)
    assert doubled.dtype == jnp.float32
    np.testing.assert_array_equal(doubled, pack(jnp.asarray(twice)))


@pytest.mark.parametrize("M", SIZES)
def test_unpack_gives_weighted_sums_of_outer_products(M, rng):
    A, weight = rng.normal(size=(M, B)), rng.normal(size=(B, 3))
    dense = unpack(jnp.asarray(weight.T) @ pack_outer(jnp.asarray(A)).T, M)
    np.testing.assert_allclose(dense, np.einsum("bp,ib,jb->pij", weight, A, A), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(dense, np.swapaxes(dense, 1, 2))


def dense_outer(A: jax.Array) -> jax.Array:
    """pack_outer by whole matrices, for autodiff to go through."""
    return jnp.einsum("ib,jb->ijb", A, A)[np.tril_indices(len(A))]


@pytest.mark.parametrize("M", SIZES)
def test_pack_outer_has_the_value_and_the_slope_of_the_dense_form(M, rng):
    A, slope = jnp.asarray(rng.normal(size=(M, B))), jnp.asarray(rng.normal(size=(M * (M + 1) // 2, B)))
    pulled = [jax.jit(lambda A, s, f=f: (f(A), jax.vjp(f, A)[1](s)[0])) for f in (linalg.pack_outer, dense_outer)]
    (ours, by_ours), (theirs, by_theirs) = (both(A, slope) for both in pulled)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(by_ours, by_theirs, rtol=1e-12, atol=1e-12)


def test_pack_outer_slope_by_finite_differences(rng):
    A, direction, weight = rng.normal(size=(7, B)), rng.normal(size=(7, B)), rng.normal(size=(28, B))
    value = lambda A: (jnp.asarray(weight) * pack_outer(A)).sum()  # noqa: E731
    up, down = (float(value(jnp.asarray(A + sign * 1e-6 * direction))) for sign in (1, -1))
    slope = jax.grad(value)(jnp.asarray(A))
    assert float((slope * direction).sum()) == pytest.approx((up - down) / 2e-6, rel=1e-7)


@pytest.mark.parametrize("M", SIZES)
def test_packed_eye_is_the_identity(M):
    eye = packed_eye(M, np.float32)
    assert eye.dtype == np.float32
    np.testing.assert_array_equal(unpack(jnp.asarray(eye)[None], M)[0], np.eye(M))


@pytest.mark.parametrize("M", SIZES)
def test_inverse_root_and_logdet_are_numpys(M, rng):
    Lam = precisions(rng, 3, M)
    R, logdet = inverse_root(jnp.asarray(Lam))
    np.testing.assert_allclose(R.mT @ R, np.linalg.inv(Lam), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(Lam)[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(np.triu(R, 1), 0)


def raised(Lam: np.ndarray) -> np.ndarray:
    """Λ in float64, its diagonal raised by its own rounding as the source says."""
    rounding = np.finfo(Lam.dtype).eps * np.trace(Lam.astype(float), axis1=1, axis2=2)
    return Lam.astype(float) + rounding[:, None, None] * np.eye(Lam.shape[-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decades", [0, 2, 4, 6, 8])
def test_inverse_root_over_condition_numbers(decades, dtype, rng):
    """To the rounding of R, not to Λ's condition number times it."""
    U = np.linalg.qr(rng.normal(size=(3, 50, 50)))[0]
    Lam = (U * np.logspace(0, decades, 50)) @ U.swapaxes(1, 2)
    Lam = ((Lam + Lam.swapaxes(1, 2)) / 2).astype(dtype)
    R, logdet = inverse_root(jnp.asarray(Lam))
    assert (R.dtype, logdet.dtype) == (dtype, jnp.float64)
    R, expected = np.asarray(R, float), np.linalg.inv(raised(Lam))
    within = 1e-6 if dtype == np.float32 else 1e-8
    for ours, theirs in zip(R.swapaxes(1, 2) @ R, expected, strict=True):
        assert np.linalg.norm(ours - theirs, 2) < within * np.linalg.norm(theirs, 2)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(raised(Lam))[1], rtol=1e-8, atol=1e-8)


def test_a_precision_along_one_direction_stays_positive_definite(rng):
    """I + 10⁸ u uᵀ, spread over all inducing points and rounded to float32."""
    u = rng.normal(size=(20, 50, 1))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    Lam = (np.eye(50) + 1e8 * u @ u.swapaxes(1, 2)).astype(np.float32)
    R, logdet = inverse_root(jnp.asarray(Lam))
    assert np.isfinite(R).all()
    assert np.isfinite(logdet).all()


def test_inverse_of_a_float32_precision_over_eight_decades(rng):
    """What many confident rows give: still positive definite, still the inverse."""
    A = rng.normal(size=(2, 50, 50)) * np.logspace(0, 4, 50)[:, None]
    Lam = (np.eye(50) + A @ A.swapaxes(1, 2)).astype(np.float32)
    R, logdet = inverse_root(jnp.asarray(Lam))
    assert R.dtype == jnp.float32
    np.testing.assert_allclose(logdet, np.linalg.slogdet(raised(Lam))[1], rtol=1e-10)
    for root, inverse in zip(np.asarray(R, float), np.linalg.inv(raised(Lam)), strict=True):
        np.linalg.cholesky(root.T @ root)
        np.testing.assert_allclose(root.T @ root, inverse, atol=1e-6 * np.abs(inverse).max())


def with_jitter(K: np.ndarray, jitter: float = JITTER) -> np.ndarray:
    """K with its diagonal raised as the source says."""
    return K + jitter * np.mean(np.diag(K)) * np.eye(len(K))


def plain_whitening(K: np.ndarray) -> np.ndarray:
    """By NumPy, at the first jitter."""
    return np.linalg.inv(np.linalg.cholesky(with_jitter(K)))


@pytest.mark.parametrize("M", SIZES)
def test_whitening_takes_the_first_jitter_where_it_can(M, rng):
    K = precisions(rng, 1, M)[0]
    W, jitter = whitening(jnp.asarray(K))
    assert float(jitter) == pytest.approx(JITTER)
    np.testing.assert_allclose(W, plain_whitening(K), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(W.T @ W @ with_jitter(K), np.eye(M), atol=1e-10)
    np.testing.assert_array_equal(np.triu(W, 1), 0)


def test_whitening_raises_the_jitter_of_a_bad_matrix_and_says_so():
    K = np.diag([1.0, 1.0, -3e-5])
    W, jitter = whitening(jnp.asarray(K))
    assert np.isfinite(W).all()
    assert float(jitter) == pytest.approx(1e-4, rel=1e-6)
    raised_by = np.diag(np.linalg.inv(W.T @ W)) - np.diag(K)
    np.testing.assert_allclose(raised_by, jitter * np.mean(np.diag(K)), rtol=1e-6)


def test_whitening_of_equal_points_is_finite_with_finite_slopes():
    K = jnp.ones((5, 5), jnp.float32)
    W, jitter = whitening(K)
    assert W.dtype == jnp.float32
    assert np.isfinite(W).all()
    assert JITTER * 0.99 <= float(jitter) <= JITTER_LIMIT * 1.01

    def total(K):
        A, rest, _ = linalg.whitened(K, K[:, :3], jnp.ones(3, K.dtype), K.dtype)
        return A.sum() + rest.sum()

    assert np.isfinite(jax.jit(jax.grad(total))(K)).all()


def test_whitening_of_a_hopeless_matrix_gives_up_at_the_limit():
    W, jitter = whitening(jnp.diag(jnp.array([1.0, -1.0, 1.0])))
    assert np.isnan(W).any()
    assert JITTER_LIMIT <= float(jitter) <= 11 * JITTER_LIMIT


@pytest.mark.parametrize("M", SIZES)
def test_whitened_is_numpys_and_so_are_its_slopes(M, rng):
    """A, what it leaves, and the slopes by all three arguments: along a symmetric direction, by central differences."""
    K, along = precisions(rng, 1, M)[0], symmetric(rng, 1, M)[0]
    across, sideways, own, up = rng.normal(size=(M, 6)), rng.normal(size=(M, 6)), rng.uniform(20, 30, 6), np.ones(6)
    weight, rest_weight = rng.normal(size=(M, 6)), rng.normal(size=6)

    def plain(step: float) -> tuple[np.ndarray, np.ndarray]:
        A = plain_whitening(K + step * along) @ (across + step * sideways)
        return A, own + step * up - (A**2).sum(0)

    def total(A, rest):
        return (weight * A).sum() + (rest_weight * rest).sum()

    args = [jnp.asarray(part) for part in (K, across, own)]
    found = jax.jit(linalg.whitened, static_argnums=3)(*args, np.dtype(float))
    for ours, numpys in zip(found[:2], plain(0.0), strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-7, atol=1e-9)
    assert (np.asarray(found.rest) > 0).all()
    slopes = jax.jit(jax.grad(lambda *args: total(*linalg.whitened(*args, np.dtype(float))[:2]), (0, 1, 2)))(*args)
    ours = sum(float((slope * way).sum()) for slope, way in zip(slopes, (along, sideways, up), strict=True))
    exact = (total(*plain(1e-6)) - total(*plain(-1e-6))) / 2e-6
    assert ours == pytest.approx(exact, rel=1e-6, abs=1e-7)


def test_whitened_leaves_nothing_negative_and_no_slope_there(rng):
    K, across = precisions(rng, 1, 4)[0], rng.normal(size=(4, 3))
    nothing = jnp.zeros(3)

    def rest(own):
        return linalg.whitened(jnp.asarray(K), jnp.asarray(across), own, np.dtype(float)).rest

    np.testing.assert_array_equal(jax.jit(rest)(nothing), 0)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda own: rest(own).sum()))(nothing), 0)


def test_whitened_in_float32_has_the_slopes_of_float64(rng):
    """Wide matrices in, float32 out: the slopes of a kernel matrix that is nearly singular, as those of close Z are."""
    Z, x = rng.normal(size=(20, 2)), rng.normal(size=(40, 2))
    K, across = (jnp.asarray(np.exp(-((Z[:, None] - other[None]) ** 2).sum(2) / 8)) for other in (Z, x))
    weight = rng.normal(size=(20, 40))

    def slopes(dtype):
        def total(K, across):
            return (weight * linalg.whitened(K, across, jnp.ones(40), np.dtype(dtype)).A).sum()

        return jax.jit(jax.grad(total, (0, 1)))(K, across)

    for narrow, wide in zip(slopes(np.float32), slopes(float), strict=True):
        assert narrow.dtype == jnp.float64
        assert np.linalg.norm(narrow - wide) < 1e-4 * np.linalg.norm(wide)


def test_unpack_doubled_undoes_pack_doubled(rng):
    S = symmetric(rng, 3, 5)
    np.testing.assert_allclose(linalg.unpack_doubled(pack_doubled(S), 5), S, rtol=1e-6)


@pytest.mark.parametrize("Q", [1, 2, 5, 7, 8, 10])
def test_inverse_factors_and_their_slope(Q, rng):
    """Along a symmetric direction, by central differences of NumPy's."""
    half, along, weight = (rng.normal(size=(4, Q, n)) for n in (2 * Q, Q, Q))
    A, along = half @ half.transpose(0, 2, 1) + np.eye(Q), along + along.transpose(0, 2, 1)

    def plain(step: float) -> np.ndarray:
        return np.linalg.inv(np.linalg.cholesky(A + step * along))

    with jax.enable_x64(True):
        W, pull_back = jax.vjp(linalg.inverse_factors, jnp.asarray(np.moveaxis(A, 0, -1)))
        slope = np.moveaxis(pull_back(jnp.asarray(weight))[0], -1, 0)
    np.testing.assert_allclose(W, plain(0.0), rtol=1e-9, atol=1e-12)
    exact = (weight * (plain(1e-6) - plain(-1e-6))).sum((1, 2)) / 2e-6
    np.testing.assert_allclose((slope * along).sum((1, 2)), exact, rtol=1e-5, atol=1e-7)
