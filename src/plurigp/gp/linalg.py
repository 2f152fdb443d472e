"""The only jitter, the only Cholesky, and the packing of symmetric matrices for the big product."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from plurigp.arrays import Array, Scalar

JITTER = 1e-6  # first try, relative to the mean of the diagonal
JITTER_LIMIT = 1e-2
BLOCK = 10  # edge of the blocks in which a symmetric matrix is packed


class Factor(NamedTuple):
    """A lower Cholesky factor and the relative jitter it took; `factor` is NaN if even the limit was not enough."""

    factor: Float[Array, "M M"]
    jitter: Scalar


def cholesky(K: Float[Array, "M M"]) -> Factor:
    """L with L Lᵀ = K + jitter·mean(diag K)·I; the jitter is raised tenfold until the factor is finite."""
    eye = jnp.eye(len(K), dtype=K.dtype) * jnp.mean(jnp.diagonal(K))
    still = jax.lax.stop_gradient(K)

    def fails(jitter: Scalar) -> Array:
        bad = ~jnp.isfinite(jnp.linalg.cholesky(still + jitter * jax.lax.stop_gradient(eye))).all()
        return bad & (jitter < JITTER_LIMIT)

    jitter = jax.lax.while_loop(fails, lambda jitter: 10 * jitter, jnp.asarray(JITTER, K.dtype))
    return Factor(jnp.linalg.cholesky(K + jitter * eye), jitter)


def inverse_and_logdet(Lam: Float[Array, "P M M"]) -> tuple[Float[Array, "P M M"], Float[Array, " P"]]:
    """S = Λ⁻¹ and log det Λ for every function, in float64.

    The diagonal is raised by the rounding of a float32 Λ, so that a precision of 10⁸ stays positive definite.
    """
    n, m = len(Lam), Lam.shape[-1]
    padded = -(-m // BLOCK) * BLOCK
    X = jnp.zeros((n, padded, padded), jnp.float64).at[:, :m, :m].set(Lam.astype(jnp.float64))
    rounding = jnp.finfo(Lam.dtype).eps * jnp.diagonal(X, axis1=1, axis2=2).max(1)
    X = X + jnp.where(jnp.arange(padded) < m, rounding[:, None], 1.0)[:, :, None] * jnp.eye(padded)
    S, logdet = _sweep_inverse(X, BLOCK)
    return S[:, :m, :m], logdet


def _sweep_inverse(X: Float[Array, "P m m"], block: int) -> tuple[Float[Array, "P m m"], Float[Array, " P"]]:
    """Sweep one block of rows after the other; after the last sweep X is minus the inverse.

    With D the pivot block, C its columns outside it and G = C D⁻¹, a sweep puts X − G Cᵀ outside, G beside and −D⁻¹
    in the pivot, each written where it belongs: reaching them by cancellation loses all digits at a condition number
    of 10⁴. D itself is inverted row by row. Plain products: batched LAPACK calls fight XLA's own threads and are far
    slower.
    """
    m = X.shape[-1]

    def sweep(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        X, logdet = carry
        columns = jax.lax.dynamic_slice_in_dim(X, k * block, block, axis=2)
        pivot = jax.lax.dynamic_slice_in_dim(columns, k * block, block, axis=1)
        D_inv, D_logdet = _sweep_inverse(pivot, 1) if block > 1 else (1 / pivot, jnp.log(pivot[:, 0, 0]))
        E = (jnp.arange(m)[:, None] == k * block + jnp.arange(block)).astype(X.dtype)
        inside = jnp.arange(m) // block == k
        C = jnp.where(inside[:, None], 0, columns)
        G = jnp.matmul(C, D_inv)
        outside = jnp.where(inside[:, None] | inside, 0, X - jnp.matmul(G, C.mT))
        return outside + G @ E.T + E @ G.mT - E @ D_inv @ E.T, logdet + D_logdet

    X, logdet = jax.lax.fori_loop(0, m // block, sweep, (X, jnp.zeros(len(X), X.dtype)))
    return -X, logdet


def _edges(m: int) -> list[tuple[int, int]]:
    return [(i, min(i + BLOCK, m)) for i in range(0, m, BLOCK)]


def _pairs(m: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    edges = _edges(m)
    return [(edges[i], edges[j]) for i in range(len(edges)) for j in range(i + 1)]


def pack(S: Float[Array, "P M M"]) -> Float[Array, "P T"]:
    """The lower blocks of every symmetric matrix, flat: about half the entries."""
    n = len(S)
    return jnp.concatenate([S[:, slice(*i), slice(*j)].reshape(n, -1) for i, j in _pairs(S.shape[-1])], 1)


def pack_outer(A: Float[Array, "B M"]) -> Float[Array, "B T"]:
    """A Aᵀ of every row, packed; off-diagonal blocks doubled, so pack_outer(A) · pack(S) = Aᵀ S A."""
    n, m = A.shape
    return jnp.concatenate(
        [
            ((1.0 if i == j else 2.0) * A[:, slice(*i), None] * A[:, None, slice(*j)]).reshape(n, -1)
            for i, j in _pairs(m)
        ],
        1,
    )


def unpack(flat: Float[Array, "P T"], m: int) -> Float[Array, "P M M"]:
    """Symmetric matrices from sums of `pack_outer` rows: what it doubled is halved."""
    edges = _edges(m)
    block: dict[tuple[int, int], Array] = {}
    at = 0
    for i, j in _pairs(m):
        rows, columns = i[1] - i[0], j[1] - j[0]
        part = flat[:, at : at + rows * columns].reshape(-1, rows, columns)
        block[i[0], j[0]] = part if i == j else 0.5 * part
        if i != j:
            block[j[0], i[0]] = 0.5 * part.mT
        at += rows * columns
    return jnp.concatenate([jnp.concatenate([block[i[0], j[0]] for j in edges], 2) for i in edges], 1)
