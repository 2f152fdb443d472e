"""The whitened sparse GP against textbook formulas that know nothing of whitening or packing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp.gp import kernels, sparse
from plurigp.gp.kernels import make_kernel
from plurigp.gp.linalg import JITTER, pack
from plurigp.gp.sparse import Natural, Posterior, SparseGP, prior

# Compiled whole: op by op, each test would compile dozens of small programs.
features, moments, kl_u, natural_step, posterior_of, posterior_of_root = (
    jax.jit(function)
    for function in (
        sparse.features,
        sparse.moments,
        sparse.kl_u,
        sparse.natural_step,
        sparse.posterior_of,
        sparse.posterior_of_root,
    )
)
diagonal, gram = jax.jit(kernels.diagonal), jax.jit(kernels.gram)
P, M, Q, B = 3, 6, 2, 8
FLOAT64 = np.dtype(float)
NO_CAUTION = np.zeros(())
EXACT = (np.ones(()), NO_CAUTION)  # step size 1


def make_gp(rng: np.random.Generator, kernel: str = "rbf", n_inducing: int = M, lengthscale: float = 1.5) -> SparseGP:
    return SparseGP(
        make_kernel(kernel, Q, lengthscale),
        jnp.asarray(rng.normal(size=(n_inducing, Q))),
        jnp.asarray(rng.normal(size=P)),
        jnp.asarray(rng.uniform(-0.5, 0.5, P)),
    )


def random_natural(rng: np.random.Generator) -> Natural:
    A = rng.normal(size=(P, M, M))
    return Natural(jnp.asarray(rng.normal(size=(P, M))), jnp.asarray(np.eye(M) + A @ A.swapaxes(1, 2)))


def dense(natural: Natural) -> tuple[np.ndarray, np.ndarray]:
    S = np.linalg.inv(np.asarray(natural.Lam))
    return np.einsum("pij,pj->pi", S, natural.lam), S


def inducing_covariance(gp: SparseGP) -> np.ndarray:
    K = np.asarray(gram(gp.kernel, gp.Z, gp.Z))
    return K + JITTER * np.mean(np.diag(K)) * np.eye(len(K))


@pytest.mark.parametrize("kernel", ["rbf", "matern52", "linear+rbf"])
def test_moments_are_the_unwhitened_conditional(kernel, rng):
    """q(u) = N(s Lz m, s² Lz S Lzᵀ): mean Kxz Kzz⁻¹ μ, variance kxx − Kxz Kzz⁻¹ (Kzz − Σ) Kzz⁻¹ Kzx."""
    gp, natural, x = make_gp(rng, kernel), random_natural(rng), jnp.asarray(rng.normal(size=(B, Q)))
    f_mean, f_var = moments(gp, posterior_of(natural), features(gp, x))
    m, S = dense(natural)
    Kzz, Kxz = inducing_covariance(gp), np.asarray(gram(gp.kernel, x, gp.Z))
    Lz, kxx = np.linalg.cholesky(Kzz), np.asarray(diagonal(gp.kernel, x))
    for p in range(P):
        s = float(np.exp(gp.log_scale[p]))
        mu, Sigma = s * Lz @ m[p], s**2 * Lz @ S[p] @ Lz.T
        W = Kxz @ np.linalg.inv(Kzz)
        np.testing.assert_allclose(f_mean[:, p], gp.bias[p] + W @ mu, rtol=1e-6, atol=1e-8)
        expected = s**2 * kxx - np.diag(W @ (s**2 * Kzz - Sigma) @ W.T)
        np.testing.assert_allclose(f_var[:, p], expected, rtol=1e-6, atol=1e-8)


def test_at_the_prior_the_moments_are_the_priors(rng):
    gp, x = make_gp(rng), jnp.asarray(3 * rng.normal(size=(B, Q)))
    f_mean, f_var = moments(gp, posterior_of(prior(P, M, FLOAT64)), features(gp, x))
    np.testing.assert_allclose(f_mean, np.broadcast_to(gp.bias, (B, P)), atol=1e-12)
    np.testing.assert_allclose(f_var, np.broadcast_to(np.exp(2 * gp.log_scale), (B, P)), rtol=1e-9)


def test_moments_in_float32_are_those_in_float64(rng):
    gp, natural, x = make_gp(rng), random_natural(rng), jnp.asarray(rng.normal(size=(B, Q)))
    narrow = lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)  # noqa: E731
    wide = moments(gp, posterior_of(natural), features(gp, x))
    ours = moments(narrow(gp), posterior_of(narrow(natural)), features(narrow(gp), narrow(x)))
    for a, b in zip(ours, wide, strict=True):
        assert a.dtype == jnp.float32
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_natural_parameters_round_trip(rng):
    natural = random_natural(rng)
    m, S = dense(natural)
    q = posterior_of(natural)
    np.testing.assert_allclose(q.m, m, rtol=1e-8)
    np.testing.assert_allclose(q.S, pack(jnp.asarray(S)), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(q.trace, np.trace(S, axis1=1, axis2=2), rtol=1e-10)
    np.testing.assert_allclose(q.logdet, np.linalg.slogdet(S)[1], rtol=1e-9)


def test_the_root_form_is_the_same_posterior(rng):
    """S = R Rᵀ with e^{diagonal}; what lies above the diagonal does not matter."""
    root = rng.normal(size=(P, M, M)) * 0.3
    m = jnp.asarray(rng.normal(size=(P, M)))
    q = posterior_of_root(m, jnp.asarray(root))
    L = np.tril(root, -1) + np.stack([np.diag(np.exp(np.diag(r))) for r in root])
    S = L @ L.swapaxes(1, 2)
    np.testing.assert_allclose(q.S, pack(jnp.asarray(S)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(q.trace, np.trace(S, axis1=1, axis2=2), rtol=1e-12)
    np.testing.assert_allclose(q.logdet, np.linalg.slogdet(S)[1], rtol=1e-10)
    other = posterior_of_root(m, jnp.asarray(root + np.triu(np.ones((M, M)), 1)))
    jax.tree.map(np.testing.assert_array_equal, q, other)


def kl_normal(m: np.ndarray, S: np.ndarray) -> float:
    """KL(N(m, S) ‖ N(0, I)) by its eigenvalues."""
    eigenvalues = np.linalg.eigvalsh(S)
    return 0.5 * float((eigenvalues - 1 - np.log(eigenvalues)).sum() + m @ m)


def test_kl_u_is_the_normal_kl(rng):
    natural = random_natural(rng)
    m, S = dense(natural)
    expected = sum(kl_normal(m[p], S[p]) for p in range(P))
    assert float(kl_u(posterior_of(natural))) == pytest.approx(expected, rel=1e-9)
    assert float(kl_u(posterior_of(prior(P, M, FLOAT64)))) == pytest.approx(0, abs=1e-9)


def test_kl_u_by_monte_carlo(rng):
    """E_q[log q − log p] over draws of v."""
    natural = random_natural(rng)
    m, S = dense(natural)
    total, variance, n = 0.0, 0.0, 100_000
    for p in range(P):
        L = np.linalg.cholesky(S[p])
        e = rng.normal(size=(n, M))
        v = m[p] + e @ L.T
        ratio = -0.5 * (e**2).sum(1) - np.log(np.diag(L)).sum() + 0.5 * (v**2).sum(1)
        total, variance = total + ratio.mean(), variance + ratio.var() / n
    assert abs(float(kl_u(posterior_of(natural))) - total) < 4 * np.sqrt(variance)


# --- the natural-gradient step ---


def gaussian_slopes(y, f_mean, f_var, noise_var):
    """∂E[log N(y; f, σ²)] by mean and variance of f."""
    return (y - f_mean) / noise_var, jnp.full_like(f_var, -0.5 / noise_var)


def titsias(gp: SparseGP, x: np.ndarray, y: np.ndarray, noise_var: float, p: int) -> tuple[np.ndarray, np.ndarray]:
    """The optimal q(u) of sparse GP regression, unwhitened (Titsias 2009, eq. 10)."""
    s2 = float(np.exp(2 * gp.log_scale[p]))
    Kzz, Kzx = s2 * inducing_covariance(gp), s2 * np.asarray(gram(gp.kernel, gp.Z, x))
    Sigma = np.linalg.inv(Kzz + Kzx @ Kzx.T / noise_var)
    return Kzz @ Sigma @ Kzx @ (y - float(gp.bias[p])) / noise_var, Kzz @ Sigma @ Kzz


@pytest.mark.parametrize("start", ["prior", "elsewhere"])
def test_one_full_step_is_exact_sparse_regression(start, rng):
    """Gaussian columns, step 1: the closed-form optimum wherever q stood before."""
    gp, x, noise_var = make_gp(rng), jnp.asarray(rng.normal(size=(20, Q))), 0.3
    y = rng.normal(size=(20, P))
    q = prior(P, M, FLOAT64) if start == "prior" else random_natural(rng)
    rows = features(gp, x)
    f_mean, f_var = moments(gp, posterior_of(q), rows)
    stepped = natural_step(gp, q, rows.A, f_mean, *gaussian_slopes(y, f_mean, f_var, noise_var), *EXACT)
    m, S = dense(stepped)
    Lz = np.linalg.cholesky(inducing_covariance(gp))
    for p in range(P):
        s = float(np.exp(gp.log_scale[p]))
        mu, Sigma = titsias(gp, x, y[:, p], noise_var, p)
        np.testing.assert_allclose(s * Lz @ m[p], mu, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(s**2 * Lz @ S[p] @ Lz.T, Sigma, rtol=1e-5, atol=1e-6)


def test_with_an_inducing_point_at_every_row_it_is_gp_regression(rng):
    """Mean and variance at new positions are those of the exact GP posterior."""
    gp = make_gp(rng, n_inducing=12, lengthscale=0.7)
    x, noise_var, y = gp.Z, 0.2, rng.normal(size=(12, P))
    q, rows = prior(P, 12, FLOAT64), features(gp, x)
    f_mean, f_var = moments(gp, posterior_of(q), rows)
    q = natural_step(gp, q, rows.A, f_mean, *gaussian_slopes(y, f_mean, f_var, noise_var), *EXACT)
    new = jnp.asarray(rng.normal(size=(5, Q)))
    ours = moments(gp, posterior_of(q), features(gp, new))
    Kxx, Knx = np.asarray(gram(gp.kernel, x, x)), np.asarray(gram(gp.kernel, new, x))
    for p in range(P):
        s2 = float(np.exp(2 * gp.log_scale[p]))
        G = np.linalg.inv(s2 * Kxx + noise_var * np.eye(12))
        mean = gp.bias[p] + s2 * Knx @ G @ (y[:, p] - gp.bias[p])
        var = s2 - s2**2 * np.einsum("ni,ij,nj->n", Knx, G, Knx)
        np.testing.assert_allclose(ours[0][:, p], mean, atol=2e-4)
        np.testing.assert_allclose(ours[1][:, p], var, atol=2e-4)


def objective(gp, rows, log_prob, m, root):
    """Σ E[log p] − kl_u by the root form, expectations by forty nodes."""
    q = posterior_of_root(m, root)
    f_mean, f_var = moments(gp, q, rows)
    t, w = np.polynomial.hermite_e.hermegauss(40)
    cells = log_prob(f_mean[..., None] + jnp.sqrt(f_var)[..., None] * t) @ (w / w.sum())
    return cells.sum() - kl_u(q)


def root_of(natural: Natural) -> tuple[jax.Array, jax.Array]:
    m, S = dense(natural)
    L = np.linalg.cholesky(S)
    diagonal_part = np.log(np.diagonal(L, axis1=1, axis2=2))
    root = np.tril(L, -1) + np.stack([np.diag(d) for d in diagonal_part])
    return jnp.asarray(m), jnp.asarray(root)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli"])
def test_the_fixed_point_has_no_slope_left(family, rng):
    """Steps until q stands still; there the bound's gradient by mean and root of every q(v) is zero."""
    gp, x = make_gp(rng), jnp.asarray(rng.normal(size=(20, Q)))
    y = {
        "gaussian": rng.normal(size=(20, P)),
        "poisson": rng.poisson(2, (20, P)).astype(float),
        "bernoulli": rng.integers(0, 2, (20, P)).astype(float),
    }[family][..., None]
    log_prob = {
        "gaussian": lambda f: -0.5 * (y - f) ** 2 / 0.3,
        "poisson": lambda f: y * f - jnp.exp(f),
        "bernoulli": lambda f: y * f - jnp.logaddexp(0, f),
    }[family]
    rows, q = features(gp, x), prior(P, M, FLOAT64)
    t, w = np.polynomial.hermite_e.hermegauss(40)

    def cells(f_mean, f_var):
        return (log_prob(f_mean[..., None] + jnp.sqrt(f_var)[..., None] * t) @ (w / w.sum())).sum()

    @jax.jit
    def step(q):
        f_mean, f_var = moments(gp, posterior_of(q), rows)
        slopes = jax.grad(cells, argnums=(0, 1))(f_mean, f_var)
        return natural_step(gp, q, rows.A, f_mean, *slopes, jnp.asarray(0.5), NO_CAUTION)

    for _ in range(80):
        q = step(q)
    slopes_at = jax.jit(lambda m, root: jax.grad(objective, argnums=(3, 4))(gp, rows, log_prob, m, root))
    slopes = slopes_at(*root_of(q))
    for leaf in slopes:
        np.testing.assert_allclose(leaf, 0, atol=1e-6)
    away = slopes_at(*root_of(prior(P, M, FLOAT64)))
    assert max(float(jnp.abs(leaf).max()) for leaf in away) > 0.1  # the test can fail


def test_a_step_is_a_mixture_of_old_and_new(rng):
    gp, q, A = make_gp(rng), random_natural(rng), jnp.asarray(rng.normal(size=(B, M)))
    slopes = [jnp.asarray(rng.normal(size=(B, P))), -jnp.asarray(rng.uniform(size=(B, P)))]
    f_mean = jnp.asarray(rng.normal(size=(B, P)))
    step = lambda rho: natural_step(gp, q, A, f_mean, *slopes, jnp.asarray(rho), NO_CAUTION)  # noqa: E731
    for part, old, new in zip(step(0.25), q, step(1.0), strict=True):
        np.testing.assert_allclose(part, 0.75 * old + 0.25 * new, rtol=1e-12, atol=1e-12)
    jax.tree.map(np.testing.assert_array_equal, step(0.0), q)


def test_precision_stays_positive_definite_whatever_the_slopes(rng):
    """Positive ∂/∂v (a likelihood that is not log-concave) counts as zero: Λ ⪰ (1−ρ)Λ + ρ I."""
    gp, q = make_gp(rng), random_natural(rng)
    for rho in (0.3, 1.0):
        for _ in range(20):
            A = jnp.asarray(rng.normal(size=(B, M)))
            slopes = [jnp.asarray(50 * rng.normal(size=(B, P))) for _ in range(2)]
            stepped = natural_step(gp, q, A, jnp.zeros((B, P)), *slopes, jnp.asarray(rho), NO_CAUTION)
            floor = (1 - rho) * np.linalg.eigvalsh(q.Lam).min(1) + rho
            assert (np.linalg.eigvalsh(stepped.Lam).min(1) > floor * (1 - 1e-9)).all()
            q = stepped if rho < 1 else q


def test_caution_limits_what_one_cell_can_ask_for(rng):
    """β is raised to κ|g|: alone, a cell then moves its function by no more than 1/κ; at κ = 0 nothing changes."""
    gp = make_gp(rng)
    gp = eqx.tree_at(lambda g: g.log_scale, gp, jnp.zeros(P))
    q, x = prior(P, M, FLOAT64), jnp.asarray(rng.normal(size=(1, Q)))
    rows = features(gp, x)
    f_mean, _ = moments(gp, posterior_of(q), rows)
    by_mean, by_var = jnp.array([[1e3, -1e5, 2.0]]), jnp.full((1, P), -1e-3)
    moved = {}
    for caution in (0.0, 1.0, 4.0):
        step = natural_step(gp, q, rows.A, f_mean, by_mean, by_var, jnp.asarray(1.0), jnp.asarray(caution))
        moved[caution] = np.abs(moments(gp, posterior_of(step), rows)[0] - f_mean)[0]
    assert (moved[1.0] <= 1 + 1e-9).all()
    assert (moved[4.0] <= 0.25 + 1e-9).all()
    assert (moved[0.0][:2] > 100).all()


def test_the_prior_as_mean_and_covariance():
    q = prior(P, M, FLOAT64)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), sparse.prior_posterior(q), posterior_of(q)
    )


def test_rows_without_slope_do_nothing(rng):
    """A padded or empty row: zero slopes, whatever its A."""
    gp, q, A = make_gp(rng), random_natural(rng), rng.normal(size=(B, M))
    by_mean, by_var, f_mean = (rng.normal(size=(B, P)) for _ in range(3))
    by_mean[-2:], by_var[-2:] = 0, 0
    arrays = [jnp.asarray(a) for a in (A, f_mean, by_mean, by_var)]
    kept = natural_step(gp, q, *arrays, jnp.asarray(0.5), NO_CAUTION)
    A[-2:], f_mean[-2:] = 1e3, -7.0
    other = natural_step(gp, q, jnp.asarray(A), jnp.asarray(f_mean), *arrays[2:], jnp.asarray(0.5), NO_CAUTION)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), kept, other)


def test_the_variance_left_by_the_inducing_points_is_never_negative(rng):
    gp = make_gp(rng)
    rows = features(gp, jnp.concatenate([gp.Z, 100 + gp.Z]))
    assert (np.asarray(rows.rest) >= 0).all()
    np.testing.assert_allclose(rows.rest[:M], 0, atol=2 * M * JITTER)  # at Z nothing is left
    np.testing.assert_allclose(rows.rest[M:], 1, atol=1e-9)  # far away everything
    assert float(rows.jitter) == pytest.approx(JITTER)


def test_equal_inducing_points_cost_jitter_and_no_more(rng):
    gp = eqx.tree_at(lambda g: g.Z, make_gp(rng), jnp.zeros((M, Q)))
    rows = features(gp, jnp.asarray(rng.normal(size=(B, Q))))
    for leaf in rows:
        assert np.isfinite(leaf).all()


def test_posterior_is_a_tuple_of_arrays(rng):
    """It passes through jit and back unchanged."""
    q = posterior_of(random_natural(rng))
    assert isinstance(jax.jit(lambda q: q)(q), Posterior)
