"""P functions on shared, whitened inducing variables: moments of f, kl_u, the natural-gradient update."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from plurigp.arrays import Array, Scalar
from plurigp.gp.kernels import Kernel, diagonal, gram
from plurigp.gp.linalg import cholesky, inverse_and_logdet, pack, pack_outer, unpack


class SparseGP(eqx.Module):
    """f_p ~ GP(b_p, s_p² k): one kernel and one Z for all functions, a bias and an output scale for each."""

    kernel: Kernel
    Z: Float[Array, "M Q"]
    bias: Float[Array, " P"]
    log_scale: Float[Array, " P"]


class Natural(NamedTuple):
    """q(v_p) by its natural parameters: λ_p = S_p⁻¹ m_p and Λ_p = S_p⁻¹."""

    lam: Float[Array, "P M"]
    Lam: Float[Array, "P M M"]


class Posterior(NamedTuple):
    """q(v_p) = N(m_p, S_p), S packed, with log det S for kl_u."""

    m: Float[Array, "P M"]
    S: Float[Array, "P T"]
    trace: Float[Array, " P"]
    logdet: Float[Array, " P"]


class Features(NamedTuple):
    """A row seen by the inducing points: A = Lz⁻¹ k(Z, x), and the variance they leave, k(x,x) − Σ_m A²."""

    A: Float[Array, "B M"]
    rest: Float[Array, " B"]
    jitter: Scalar


def prior(n_functions: int, n_inducing: int, dtype: jnp.dtype) -> Natural:
    """q(v) = p(v): λ = 0, Λ = I."""
    eye = jnp.eye(n_inducing, dtype=dtype)
    return Natural(
        jnp.zeros((n_functions, n_inducing), dtype), jnp.broadcast_to(eye, (n_functions, n_inducing, n_inducing))
    )


def prior_posterior(natural: Natural) -> Posterior:
    """The same as mean and covariance: m = 0, S = I."""
    n_functions, n_inducing = natural.lam.shape
    one = jnp.ones(n_functions, natural.lam.dtype)
    return Posterior(natural.lam, pack(natural.Lam), n_inducing * one, 0 * one)


def posterior_of(natural: Natural) -> Posterior:
    """(λ, Λ) -> (m, S), factorised in float64 and handed back in λ's own precision."""
    S, logdet = inverse_and_logdet(natural.Lam)
    m = jnp.einsum("pij,pj->pi", S, natural.lam.astype(S.dtype))
    dtype = natural.lam.dtype
    trace = jnp.trace(S, axis1=1, axis2=2)
    return Posterior(m.astype(dtype), pack(S).astype(dtype), trace.astype(dtype), (-logdet).astype(dtype))


def posterior_of_root(m: Float[Array, "P M"], root: Float[Array, "P M M"]) -> Posterior:
    """(m, R) -> q(v) with S = R Rᵀ, R lower with e^{diagonal}: the form Adam can move freely."""
    L = jnp.tril(root, -1) + jnp.exp(jnp.diagonal(root, axis1=1, axis2=2))[:, :, None] * jnp.eye(root.shape[-1])
    L = L.astype(m.dtype)
    logdet = 2 * jnp.diagonal(root, axis1=1, axis2=2).sum(1)
    return Posterior(m, pack(jnp.matmul(L, L.mT)), (L**2).sum((1, 2)), logdet)


def features(gp: SparseGP, x: Float[Array, "B Q"]) -> Features:
    """The kernel part, in float64 whatever the precision of x, since Lz⁻¹ magnifies rounding."""
    wide = eqx.tree_at(
        lambda g: (g.Z, g.kernel.log_lengthscales, g.kernel.log_weights),
        gp,
        replace_fn=lambda leaf: leaf.astype(jnp.float64),
    )
    X = x.astype(jnp.float64)
    Lz, jitter = cholesky(gram(wide.kernel, wide.Z, wide.Z))
    A = solve_triangular(Lz, gram(wide.kernel, wide.Z, X), lower=True).T  # [B M]  (Lz⁻¹ Kzx)ᵀ
    rest = jnp.maximum(diagonal(wide.kernel, X) - (A**2).sum(1), 0)
    return Features(A.astype(x.dtype), rest.astype(x.dtype), jitter.astype(x.dtype))


def moments(gp: SparseGP, q: Posterior, seen_by_Z: Features) -> tuple[Float[Array, "B P"], Float[Array, "B P"]]:
    """f_mean = b + s Aᵀm and f_var = s² (rest + diag(Aᵀ S A)), for all functions in one product."""
    A, rest, _ = seen_by_Z
    scale = jnp.exp(gp.log_scale)
    f_mean = gp.bias + scale * (A @ q.m.T)
    f_var = scale**2 * (rest[:, None] + pack_outer(A) @ q.S.T)
    return f_mean, f_var


def kl_u(q: Posterior) -> Scalar:
    """Σ_p KL(q(v_p) ‖ N(0, I)) = ½ Σ_p (tr S + |m|² − M − log det S)."""
    n_inducing = q.m.shape[1]
    return 0.5 * ((q.trace - n_inducing - q.logdet).sum() + (q.m**2).sum())


def natural_step(
    gp: SparseGP,
    q: Natural,
    A: Float[Array, "B M"],
    f_mean: Float[Array, "B P"],
    by_mean: Float[Array, "B P"],
    by_var: Float[Array, "B P"],
    step: Scalar,
    caution: Scalar,
) -> Natural:
    """One step of size ρ towards the optimum for these rows; slopes are of the whole weighted bound.

    Λ ← (1−ρ) Λ + ρ (I + Σ_n s² β_n A_n A_nᵀ),  λ ← (1−ρ) λ + ρ Σ_n s (g_n + β_n (a_n − b)) A_n,
    with g = ∂/∂a and β = −2 ∂/∂v. A negative β (likelihoods that are not log-concave) counts as zero,
    which keeps Λ ⪰ (1−ρ) Λ + ρ I positive definite by construction. `caution` κ raises β to κ|g|: no cell then asks
    for a step of more than 1/κ, which a Poisson or a log sd far from its place otherwise does; 0 is the exact update.
    """
    scale = jnp.exp(gp.log_scale)
    beta = jnp.maximum(-2 * by_var, caution * jnp.abs(by_mean))
    Lam = unpack((beta * scale**2).T @ pack_outer(A), A.shape[1])
    eye = jnp.eye(A.shape[1], dtype=A.dtype)
    lam = ((by_mean + beta * (f_mean - gp.bias)) * scale).T @ A
    return Natural((1 - step) * q.lam + step * lam, (1 - step) * q.Lam + step * (eye + Lam))
