"""The only jitter, the only Cholesky, and the packing of symmetric matrices for the big product."""

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar

JITTER = 1e-6  # first try, relative to the mean of the diagonal
JITTER_LIMIT = 1e-2


def whitening(K: Float[Array, "M M"]) -> tuple[Float[Array, "M M"], Scalar]:
    """W lower triangular with WᵀW = (K + jitter·mean(diag K)·I)⁻¹, and the jitter, raised tenfold until W is finite.

    W is NaN if JITTER_LIMIT is too little.
    """
    eye = jnp.eye(len(K), dtype=K.dtype)
    unit = jnp.mean(jnp.diagonal(K)) * eye

    def factor(jitter: Scalar) -> Float[Array, "M M"]:
        return jax.lax.linalg.cholesky(jnp.asarray(K + jitter * unit), symmetrize_input=False)

    def fails(tried: tuple[Scalar, Array]) -> Array:
        jitter, L = tried
        return ~jnp.isfinite(L).all() & (jitter < JITTER_LIMIT)

    first = jnp.asarray(JITTER, K.dtype)
    jitter, L = jax.lax.while_loop(fails, lambda tried: (10 * tried[0], factor(10 * tried[0])), (first, factor(first)))
    return jax.lax.linalg.triangular_solve(L, eye, left_side=True, lower=True), jitter


class Projection(NamedTuple):
    """A = W k(Z, x) of every row, the variance that the inducing points leave, k(x, x) − Σ_m A², and the jitter."""

    A: Float[Array, "M B"]
    rest: Float[Array, " B"]
    jitter: Scalar


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def whitened(K: Float[Array, "M M"], across: Float[Array, "M B"], own: Float[Array, " B"], dtype: Any) -> Projection:
    """From k(Z, Z), k(Z, x) and k(x, x) in their own precision; what comes back, and slopes on the way, in `dtype`."""
    return _whitened_forward(K, across, own, dtype)[0]


def _whitened_forward(
    K: Float[Array, "M M"], across: Float[Array, "M B"], own: Float[Array, " B"], dtype: Any
) -> tuple[Projection, tuple[Array, Scalar, Array, Array]]:
    W, jitter = whitening(K)
    A = W @ across
    rest = jnp.maximum(own - (A**2).sum(0), 0)
    projection = Projection(*(part.astype(dtype) for part in (A, rest, jitter)))
    return projection, (W, jitter, projection.A, projection.rest)


def _lower_and_half(m: int, dtype: Any) -> np.ndarray:
    """Φ as a factor: 1 below the diagonal, ½ on it."""
    return (np.tril(np.ones((m, m))) - np.eye(m) / 2).astype(dtype)


def _whitened_backward(dtype: Any, kept: Any, slopes: Projection) -> tuple[Any, Any, Any]:
    """From dW = −Φ(W dK Wᵀ) W: products alone, where Cholesky's own slope is a chain of triangular solves. What W meets
    on its left, slope · Aᵀ, is a plain sum over rows that `dtype` can hold. The jitter counts as a constant share of
    the mean diagonal."""
    W, jitter, A, rest = kept
    m = len(W)
    by_own = jnp.where(rest > 0, slopes.rest, 0)
    by_A = slopes.A - 2 * by_own * A
    by_K = -W.T @ (_lower_and_half(m, dtype) * (by_A @ A.T)).astype(W.dtype) @ W
    by_unit = jitter * jnp.trace(by_K) / m
    by_K = (by_K + by_K.T) / 2 + by_unit * jnp.eye(m, dtype=W.dtype)
    return by_K, W.T @ by_A.astype(W.dtype), by_own.astype(W.dtype)


whitened.defvjp(_whitened_forward, _whitened_backward)


def inverse_root(Lam: Float[Array, "P M M"]) -> tuple[Float[Array, "P M M"], Float[Array, " P"]]:
    """R = L⁻¹ with L Lᵀ = Λ, so that Λ⁻¹ = Rᵀ R, and log det Λ, for every function.

    Only the factorisation needs float64, since it meets Λ's whole condition number; R meets its square root.
    The diagonal is raised by the rounding of a float32 Λ, so that a precision of 10⁸ stays positive definite even
    when it lies along a single direction.

    A loop over single factorisations, never a batched one: jaxlib's batched LAPACK kernels run on XLA's thread pool and
    wait there for batches that they hand to the same pool, so that as many of them as the pool has threads wait for
    ever. The loop is also faster.
    """
    eye = jnp.eye(Lam.shape[-1])

    def one(Lam_p: Float[Array, "M M"]) -> tuple[Float[Array, "M M"], Scalar]:
        wide = jnp.asarray(Lam_p, jnp.float64)
        rounding = jnp.finfo(Lam.dtype).eps * jnp.trace(wide)
        L = jax.lax.linalg.cholesky(wide + rounding * eye, symmetrize_input=False)
        R = jax.lax.linalg.triangular_solve(L.astype(Lam.dtype), eye.astype(Lam.dtype), left_side=True, lower=True)
        return R, 2 * jnp.log(jnp.diagonal(L)).sum()

    R, logdet = jax.lax.map(one, Lam)
    return R, logdet


def solve_upper(U: Float[Array, "B Q Q"], b: Float[Array, "S B Q"]) -> Float[Array, "S B Q"]:
    """U⁻¹ b for small upper triangular matrices, by back substitution on all rows at once (not LAPACK's batched
    solve: see `inverse_root`)."""
    Q = U.shape[-1]
    diagonal = jnp.diagonal(U, axis1=1, axis2=2)

    def substitute(n: Array, x: Float[Array, "Q S B"]) -> Float[Array, "Q S B"]:
        k = Q - 1 - n
        known = jnp.einsum("bj,jsb->sb", U[:, k], x)  # those below k are solved, the others still zero
        return jnp.asarray(x).at[k].set((b[:, :, k] - known) / diagonal[:, k])

    x: Array = jax.lax.fori_loop(0, Q, substitute, jnp.zeros((Q, *b.shape[:2]), b.dtype))
    return jnp.moveaxis(x, 0, 2)


@jax.custom_vjp
def inverse_factors(A: Float[Array, "Q Q B"]) -> Float[Array, "B Q Q"]:
    """W lower triangular with WᵀW = A⁻¹, for matrices I + (positive semidefinite), which need no pivoting: the inverse
    of Cholesky's factor, faster than as many small factorisations.

    Forward elimination of [A | I] on all matrices at once, in place: what leaves A's columns enters I's.
    """
    Q, B = len(A), A.shape[2]
    rows, columns = jnp.arange(Q)[:, None, None], jnp.arange(Q)[None, :, None]

    def eliminate(k: Array, W: Float[Array, "Q Q B"]) -> Float[Array, "Q Q B"]:
        row = jax.lax.dynamic_slice(W, (k, 0, 0), (1, Q, B))
        pivot = jax.lax.dynamic_slice(row, (0, k, 0), (1, 1, B))
        share = jnp.where(rows > k, jax.lax.dynamic_slice(W, (0, k, 0), (Q, 1, B)) / pivot, 0)
        below = (rows > k) & (columns == k)
        return jnp.where(below, 0, W) - share * jnp.where(columns == k, 1, row)

    W = jax.lax.fori_loop(0, Q, eliminate, A)
    root = jnp.sqrt(jnp.diagonal(W).T)[:, None]  # [Q 1 B], of the pivots
    lower = jnp.where(rows > columns, W, jnp.where(rows == columns, 1, 0)) / root
    return jnp.moveaxis(lower, -1, 0)


def _inverse_factors_forward(A: Float[Array, "Q Q B"]) -> tuple[Float[Array, "B Q Q"], Float[Array, "B Q Q"]]:
    W = inverse_factors(A)
    return W, W


def _inverse_factors_backward(W: Float[Array, "B Q Q"], slope: Float[Array, "B Q Q"]) -> tuple[Any]:
    """From dW = −Φ(W dA Wᵀ) W, where Φ keeps the lower triangle and half of the diagonal. The barriers make plain
    products of all three: XLA's small products with a transposed factor take twice as long."""
    kept = _lower_and_half(W.shape[1], W.dtype)
    T = jax.lax.optimization_barrier(W.swapaxes(1, 2))
    middle = jax.lax.optimization_barrier(kept * _small_products(slope, T))
    return (jnp.moveaxis(-_small_products(T, _small_products(middle, W)), 0, -1),)


SMALL = 8  # matrices of fewer rows are multiplied term by term: XLA's batched product takes ten times as long on them


def _small_products(A: Float[Array, "B Q Q"], C: Float[Array, "B Q Q"]) -> Float[Array, "B Q Q"]:
    """A C for every row."""
    Q = A.shape[1]
    if Q >= SMALL:
        return A @ C
    return jax.lax.optimization_barrier(sum(A[:, :, k, None] * C[:, k, None, :] for k in range(Q)))


inverse_factors.defvjp(_inverse_factors_forward, _inverse_factors_backward)


# --- symmetric matrices as the rows of their lower triangle: half the work in the three big products ---


@lru_cache
def _places(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row i and column j of every packed entry [T]; where each entry of the full matrix [M M] is packed."""
    i, j = np.tril_indices(m)
    full = np.empty((m, m), np.int32)
    full[i, j] = full[j, i] = np.arange(len(i))
    return i.astype(np.int32), j.astype(np.int32), full


def pack(S: Float[Array, "P M M"]) -> Float[Array, "P T"]:
    """The lower triangle of every symmetric matrix, T = M (M + 1) / 2."""
    m = S.shape[-1]
    i, j, _ = _places(m)
    return S.reshape(len(S), m * m)[:, i * m + j]


def unpack(flat: Float[Array, "P T"], m: int) -> Float[Array, "P M M"]:
    """The whole symmetric matrices again."""
    return flat[:, _places(m)[2].ravel()].reshape(-1, m, m)


@jax.custom_vjp
def pack_outer(A: Float[Array, "M B"]) -> Float[Array, "T B"]:
    """A_n A_nᵀ of every row n, packed. Rows come last, here and in A, so that all loops run along them."""
    i, j, _ = _places(len(A))
    return A[i] * A[j]


def _pack_outer_forward(A: Float[Array, "M B"]) -> tuple[Float[Array, "T B"], Float[Array, "M B"]]:
    return pack_outer(A), A


def _pack_outer_backward(A: Float[Array, "M B"], slope: Float[Array, "T B"]) -> tuple[Any]:
    """∂/∂A_i = Σ_j slope_ij A_j, once more on the diagonal; a loop is faster than a reduction or a scatter."""
    _, _, full = _places(len(A))

    def add(total: Array, at: tuple[Array, Array]) -> tuple[Array, None]:
        places, A_j = at
        return total + slope[places] * A_j, None

    total, _ = jax.lax.scan(add, slope[np.diagonal(full)] * A, (jnp.asarray(full), A))
    return (total,)


pack_outer.defvjp(_pack_outer_forward, _pack_outer_backward)


def pack_doubled(S: Float[Array, "P M M"]) -> Float[Array, "P T"]:
    """Packed with what lies off the diagonal doubled, so that pack_doubled(S) · pack_outer(A) = Aᵀ S A."""
    i, j, _ = _places(S.shape[-1])
    return pack(S) * np.where(i == j, 1, 2).astype(S.dtype)


def unpack_doubled(flat: Float[Array, "P T"], m: int) -> Float[Array, "P M M"]:
    """The matrices that `pack_doubled` packed."""
    return unpack(flat, m) * (1 + np.eye(m, dtype=flat.dtype)) / 2


def packed_eye(m: int, dtype: Any) -> Float[Array, " T"]:
    """The identity, packed."""
    i, j, _ = _places(m)
    return (i == j).astype(dtype)
