"""P functions on shared, whitened inducing variables: moments of f, kl_u, the natural-gradient update."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar
from plurigp.inference.gp.kernels import Kernel, diagonal, gram
from plurigp.inference.gp.linalg import Projection, inverse_root, pack_doubled, pack_outer, packed_eye, unpack, whitened


class SparseGP(eqx.Module):
    """f_p ~ GP(b_p, s_p² k): one kernel and one Z for all functions, a bias and an output scale for each."""

    kernel: Kernel
    Z: Float[Array, "M Q"]
    bias: Float[Array, " P"]
    log_scale: Float[Array, " P"]


class Natural(NamedTuple):
    """q(v_p) by its natural parameters: λ_p = S_p⁻¹ m_p and Λ_p = S_p⁻¹, packed."""

    lam: Float[Array, "P M"]
    Lam: Float[Array, "P T"]


class LogCholesky(NamedTuple):
    """q(v_p) as Adam can move it freely: m and a root of S, lower with e^{diagonal}."""

    m: Float[Array, "P M"]
    root: Float[Array, "P M M"]


class SharedBasis(NamedTuple):
    """Functions whose curvature β_p is the same in every row (Gaussian columns without gaps): all Λ_p = I + s²β_p G.

    Kept are running averages over batches of G = Σ_n A_n A_nᵀ and Σ_n (y_np − b_p) A_n, and the last β.
    """

    G: Float[Array, "M M"]
    targets: Float[Array, "C M"]
    beta: Float[Array, " C"]


class SharedBasisPosterior(NamedTuple):
    """S_p = U diag(shrink_p) Uᵀ: one basis for all of them."""

    U: Float[Array, "M M"]
    shrink: Float[Array, "C M"]


class Posterior(NamedTuple):
    """q(v_p) = N(m_p, S_p), S packed and doubled off the diagonal, with log det S for kl_u.

    In training the last functions may share a basis; then S has fewer rows than m, and `shared` holds the rest.
    """

    m: Float[Array, "P G"]
    S: Float[Array, "O T"]
    trace: Float[Array, " P"]
    logdet: Float[Array, " P"]
    shared: SharedBasisPosterior | None = None
    whole: Float[Array, "O M M"] | None = None  # S again, as it is; in training only


def prior(n_functions: int, n_inducing: int, dtype: Any) -> Natural:
    """q(v) = p(v): λ = 0, Λ = I."""
    eye = packed_eye(n_inducing, dtype)
    return Natural(np.zeros((n_functions, n_inducing), dtype), np.tile(eye, (n_functions, 1)))


def zero_posterior(n_functions: int, n_inducing: int, dtype: Any) -> Posterior:
    """Zeros of a posterior's shapes."""
    per_function = np.zeros(n_functions, dtype)
    packed = np.zeros((n_functions, n_inducing * (n_inducing + 1) // 2), dtype)
    return Posterior(np.zeros((n_functions, n_inducing), dtype), packed, per_function, per_function)


def shared_basis_prior(n_functions: int, n_inducing: int, dtype: Any) -> SharedBasis:
    """No rows seen yet."""
    zeros = np.zeros((n_functions, n_inducing), dtype)
    return SharedBasis(np.zeros((n_inducing, n_inducing), dtype), zeros, np.ones(n_functions, dtype))


def posterior_of(natural: Natural) -> Posterior:
    """(λ, Λ) -> (m, S), by one Cholesky per function."""
    lam, dtype = natural.lam, natural.lam.dtype
    R, logdet = inverse_root(unpack(natural.Lam, lam.shape[1]))
    m = jnp.matmul(jnp.matmul(lam[:, None, :], R.mT), R)[:, 0]  # Rᵀ (R λ)
    S = jnp.matmul(R.mT, R)
    return Posterior(m, pack_doubled(S), (R**2).sum((1, 2)), (-logdet).astype(dtype), whole=S)


def append_shared_basis(
    own: Posterior, shared: SharedBasis, scale: Float[Array, " C"], kl_covariance_weight: Scalar | float = 1.0
) -> Posterior:
    """Append the functions that share a basis, by one eigendecomposition: S = U diag(shrink) Uᵀ, and m = S s β targets
    with the S of the full KL. In float64 until the end."""
    g, U = jnp.linalg.eigh(shared.G.astype(jnp.float64))
    precision = (scale**2 * shared.beta).astype(jnp.float64)[:, None] * jnp.maximum(g, 0)
    shrink = 1 / (1 + precision / kl_covariance_weight)
    lam = (scale * shared.beta)[:, None] * shared.targets
    m = ((lam @ U) / (1 + precision)) @ U.T
    parts = (m, shrink.sum(1), jnp.log(shrink).sum(1), U, shrink)
    m, trace, logdet, U, shrink = (part.astype(own.m.dtype) for part in parts)
    m, trace, logdet = (jnp.concatenate(pair) for pair in ((own.m, m), (own.trace, trace), (own.logdet, logdet)))
    return Posterior(m, own.S, trace, logdet, SharedBasisPosterior(U, shrink), own.whole)


def expand_shared_basis(q: Posterior) -> Posterior:
    """The same q(v) with every function's S written out: what a trained model keeps. NumPy stays NumPy."""
    if q.shared is None:
        return q._replace(whole=None)
    U, shrink = q.shared
    concatenate = np.concatenate if isinstance(U, np.ndarray) else jnp.concatenate
    return Posterior(q.m, concatenate([q.S, pack_doubled((U * shrink[:, None, :]) @ U.T)]), q.trace, q.logdet)


def posterior_of_log_cholesky(m: Float[Array, "P M"], root: Float[Array, "P M M"]) -> Posterior:
    """(m, R) -> q(v) with S = R Rᵀ, R lower with e^{diagonal}."""
    L = jnp.tril(root, -1) + jnp.exp(jnp.diagonal(root, axis1=1, axis2=2))[:, :, None] * jnp.eye(root.shape[-1])
    L = L.astype(m.dtype)
    logdet = 2 * jnp.diagonal(root, axis1=1, axis2=2).sum(1)
    return Posterior(m, pack_doubled(jnp.matmul(L, L.mT)), (L**2).sum((1, 2)), logdet)


def project(gp: SparseGP, x: Float[Array, "B Q"]) -> Projection:
    """The kernel part, in float64 whatever the precision of x, since Lz⁻¹ magnifies rounding."""
    k, Z, X = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (gp.kernel, gp.Z, x))
    return whitened(gram(k, Z, Z), gram(k, Z, X), diagonal(k, X), x.dtype)


def moments(gp: SparseGP, q: Posterior, projection: Projection) -> tuple[Float[Array, "P B"], Float[Array, "P B"]]:
    """f_mean = b + s Aᵀm and f_var = s² (rest + diag(Aᵀ S A)), for all functions in one product."""
    A, rest, _ = projection
    scale = jnp.exp(gp.log_scale)[:, None]
    f_mean = gp.bias[:, None] + scale * (q.m @ A)
    spent = q.S @ pack_outer(A)
    if q.shared is not None:
        spent = jnp.concatenate([spent, q.shared.shrink @ (q.shared.U.T @ A) ** 2])
    return f_mean, scale**2 * (rest + spent)


def kl_covariance(q: Posterior) -> Scalar:
    """The part of kl_u that S has: ½ Σ_p (tr S − M − log det S)."""
    return 0.5 * (q.trace - q.m.shape[1] - q.logdet).sum()


def kl_u(q: Posterior) -> Scalar:
    """Σ_p KL(q(v_p) ‖ N(0, I)) = ½ Σ_p (tr S + |m|² − M − log det S)."""
    n_inducing = q.m.shape[1]
    return 0.5 * ((q.trace - n_inducing - q.logdet).sum() + (q.m**2).sum())


Total = Callable[[Any], Any]  # sums over some rows of a batch -> over all of them


def _all_rows(sums: Any) -> Any:
    return sums


class MomentGradients(NamedTuple):
    """What a batch says about q(v): A and f_mean of its rows, and the weighted bound's slopes by the moments of f."""

    A: Float[Array, "M B"]
    f_mean: Float[Array, "P B"]
    by_mean: Float[Array, "P B"]
    by_var: Float[Array, "P B"]


def natural_step(
    gp: SparseGP,
    q: Natural,
    slopes: MomentGradients,
    step: Scalar,
    caution: Scalar,
    kl_covariance_weight: Scalar | float = 1.0,
    total: Total = _all_rows,
) -> Natural:
    """One step of size ρ towards the optimum for these rows, for the functions that come first in `slopes`.

    Λ ← (1−ρ) Λ + ρ (I + Σ_n s² β_n A_n A_nᵀ),  λ ← (1−ρ) λ + ρ Σ_n s (g_n + β_n (a_n − b)) A_n,
    with g = ∂/∂a and β = −2 ∂/∂v. A negative β (likelihoods that are not log-concave) counts as zero,
    which keeps Λ ⪰ (1−ρ) Λ + ρ I positive definite by construction. `caution` κ raises β to κ|g|: no cell then asks
    for a step of more than 1/κ, which a Poisson or a log sd far from its place otherwise does; 0 is the exact update.
    `kl_covariance_weight` τ divides β: the optimum of the bound with τ `kl_covariance` in kl_u, which leaves its m in
    place.
    """
    n, A = len(q.lam), slopes.A
    scale, bias = jnp.exp(gp.log_scale[:n, None]), gp.bias[:n, None]
    by_mean, by_var, f_mean = (part[:n] for part in (slopes.by_mean, slopes.by_var, slopes.f_mean))
    beta = jnp.maximum(-2 * by_var / kl_covariance_weight, caution * jnp.abs(by_mean))
    Lam, lam = total(((beta * scale**2) @ pack_outer(A).T, ((by_mean + beta * (f_mean - bias)) * scale) @ A.T))
    eye = packed_eye(len(A), A.dtype)
    return Natural((1 - step) * q.lam + step * lam, (1 - step) * q.Lam + step * (eye + Lam))


def with_full_kl(q: Natural, kl_covariance_weight: Scalar | float) -> Natural:
    """Λ as the full kl_u gives it, from one that was learned with weight τ: I + τ (Λ − I)."""
    eye = packed_eye(q.lam.shape[1], q.Lam.dtype)
    return Natural(q.lam, eye + kl_covariance_weight * (q.Lam - eye))


def shared_basis_step(
    gp: SparseGP,
    q: SharedBasis,
    slopes: MomentGradients,
    weight: Float[Array, " B"],
    step: Scalar,
    total: Total = _all_rows,
) -> SharedBasis:
    """The same step for the functions that share a basis, the last ones; a row counts with its weight in the bound.

    g/β + (a − b) is y − b, so both averages are free of θ: q(v) follows a change of noise or scale at once.
    """
    n, A = len(q.beta), slopes.A
    by_mean, by_var, f_mean = (part[-n:] for part in (slopes.by_mean, slopes.by_var, slopes.f_mean))
    weighted = (weight * A).T
    rows = by_mean @ A.T, (f_mean - gp.bias[-n:, None]) @ weighted, A @ weighted, by_var.sum(1), weight.sum()
    uphill, fitted, G, curved, n_rows = total(rows)
    beta = -2 * curved / n_rows
    targets = uphill / beta[:, None] + fitted
    return SharedBasis((1 - step) * q.G + step * G, (1 - step) * q.targets + step * targets, beta)


def update_mean_with_stale_covariance(
    gp: SparseGP, q: Posterior, slopes: MomentGradients, step: Scalar, total: Total = _all_rows
) -> Posterior:
    """m ← m + α S ∂bound/∂m with α = min(ρ, α*), between two factorisations of S.

    With the current S this is the m of `natural_step`; with an older one m still converges to the same optimum. α* is
    the maximum of these rows' quadratic along S ∂bound/∂m, which ρ would overshoot if S had become too large.
    """
    assert q.whole is not None
    n_own, A = len(q.whole), slopes.A
    scale = jnp.exp(gp.log_scale)[:, None]
    uphill = scale * total(slopes.by_mean @ A.T) - q.m
    along = jnp.matmul(q.whole, uphill[:n_own, :, None])[:, :, 0]
    if q.shared is not None:
        U, shrink = q.shared
        along = jnp.concatenate([along, ((uphill[n_own:] @ U) * shrink) @ U.T])
    beta = jnp.maximum(-2 * slopes.by_var, 0)
    curvature = (along**2).sum(1) + total((beta * (scale * (along @ A)) ** 2).sum(1))
    top = (uphill * along).sum(1) / jnp.maximum(curvature, jnp.finfo(A.dtype).tiny)
    return q._replace(m=q.m + jnp.minimum(step, top)[:, None] * along)
