"""The whitened sparse GP against textbook formulas that know nothing of whitening or packing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp.inference.gp import kernels, sparse
from plurigp.inference.gp.kernels import make_kernel
from plurigp.inference.gp.linalg import JITTER, pack, pack_doubled, unpack
from plurigp.inference.gp.sparse import (
    MomentGradients,
    Natural,
    Posterior,
    SharedBasis,
    SparseGP,
    prior,
    shared_basis_prior,
)

# Compiled whole: op by op, each test would compile dozens of small programs.
(
    project,
    moments,
    kl_u,
    natural_step,
    posterior_of,
    posterior_of_log_cholesky,
    shared_basis_step,
    append_shared_basis,
    expand_shared_basis,
    update_mean_with_stale_covariance,
) = (
    jax.jit(function)
    for function in (
        sparse.project,
        sparse.moments,
        sparse.kl_u,
        sparse.natural_step,
        sparse.posterior_of,
        sparse.posterior_of_log_cholesky,
        sparse.shared_basis_step,
        sparse.append_shared_basis,
        sparse.expand_shared_basis,
        sparse.update_mean_with_stale_covariance,
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
    return Natural(jnp.asarray(rng.normal(size=(P, M))), pack(jnp.asarray(np.eye(M) + A @ A.swapaxes(1, 2))))


def precision(natural: Natural) -> np.ndarray:
    return np.asarray(unpack(natural.Lam, natural.lam.shape[1]))


def dense(natural: Natural) -> tuple[np.ndarray, np.ndarray]:
    S = np.linalg.inv(precision(natural))
    return np.einsum("pij,pj->pi", S, natural.lam), S


def inducing_covariance(gp: SparseGP) -> np.ndarray:
    K = np.asarray(gram(gp.kernel, gp.Z, gp.Z))
    return K + JITTER * np.mean(np.diag(K)) * np.eye(len(K))


@pytest.mark.parametrize("kernel", ["rbf", "matern52", "linear+rbf"])
def test_moments_are_the_unwhitened_conditional(kernel, rng):
    """q(u) = N(s Lz m, s² Lz S Lzᵀ): mean Kxz Kzz⁻¹ μ, variance kxx − Kxz Kzz⁻¹ (Kzz − Σ) Kzz⁻¹ Kzx."""
    gp, natural, x = make_gp(rng, kernel), random_natural(rng), jnp.asarray(rng.normal(size=(B, Q)))
    f_mean, f_var = moments(gp, posterior_of(natural), project(gp, x))
    m, S = dense(natural)
    Kzz, Kxz = inducing_covariance(gp), np.asarray(gram(gp.kernel, x, gp.Z))
    Lz, kxx = np.linalg.cholesky(Kzz), np.asarray(diagonal(gp.kernel, x))
    for p in range(P):
        s = float(np.exp(gp.log_scale[p]))
        mu, Sigma = s * Lz @ m[p], s**2 * Lz @ S[p] @ Lz.T
        W = Kxz @ np.linalg.inv(Kzz)
        np.testing.assert_allclose(f_mean[p], gp.bias[p] + W @ mu, rtol=1e-6, atol=1e-8)
        expected = s**2 * kxx - np.diag(W @ (s**2 * Kzz - Sigma) @ W.T)
        np.testing.assert_allclose(f_var[p], expected, rtol=1e-6, atol=1e-8)


def test_at_the_prior_the_moments_are_the_priors(rng):
    gp, x = make_gp(rng), jnp.asarray(3 * rng.normal(size=(B, Q)))
    f_mean, f_var = moments(gp, posterior_of(prior(P, M, FLOAT64)), project(gp, x))
    np.testing.assert_allclose(f_mean, np.broadcast_to(gp.bias[:, None], (P, B)), atol=1e-12)
    np.testing.assert_allclose(f_var, np.broadcast_to(np.exp(2 * gp.log_scale)[:, None], (P, B)), rtol=1e-9)


def test_moments_in_float32_are_those_in_float64(rng):
    gp, natural, x = make_gp(rng), random_natural(rng), jnp.asarray(rng.normal(size=(B, Q)))
    narrow = lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)  # noqa: E731
    wide = moments(gp, posterior_of(natural), project(gp, x))
    ours = moments(narrow(gp), posterior_of(narrow(natural)), project(narrow(gp), narrow(x)))
    for a, b in zip(ours, wide, strict=True):
        assert a.dtype == jnp.float32
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_natural_parameters_round_trip(rng):
    natural = random_natural(rng)
    m, S = dense(natural)
    q = posterior_of(natural)
    np.testing.assert_allclose(q.m, m, rtol=1e-8)
    np.testing.assert_allclose(q.S, pack_doubled(jnp.asarray(S)), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(q.trace, np.trace(S, axis1=1, axis2=2), rtol=1e-10)
    np.testing.assert_allclose(q.logdet, np.linalg.slogdet(S)[1], rtol=1e-9)


def test_the_root_form_is_the_same_posterior(rng):
    """S = R Rᵀ with e^{diagonal}; what lies above the diagonal does not matter."""
    root = rng.normal(size=(P, M, M)) * 0.3
    m = jnp.asarray(rng.normal(size=(P, M)))
    q = posterior_of_log_cholesky(m, jnp.asarray(root))
    L = np.tril(root, -1) + np.stack([np.diag(np.exp(np.diag(r))) for r in root])
    S = L @ L.swapaxes(1, 2)
    np.testing.assert_allclose(q.S, pack_doubled(jnp.asarray(S)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(q.trace, np.trace(S, axis1=1, axis2=2), rtol=1e-12)
    np.testing.assert_allclose(q.logdet, np.linalg.slogdet(S)[1], rtol=1e-10)
    other = posterior_of_log_cholesky(m, jnp.asarray(root + np.triu(np.ones((M, M)), 1)))
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
    y = rng.normal(size=(P, 20))
    q = prior(P, M, FLOAT64) if start == "prior" else random_natural(rng)
    rows = project(gp, x)
    f_mean, f_var = moments(gp, posterior_of(q), rows)
    stepped = natural_step(
        gp, q, MomentGradients(rows.A, f_mean, *gaussian_slopes(y, f_mean, f_var, noise_var)), *EXACT
    )
    m, S = dense(stepped)
    Lz = np.linalg.cholesky(inducing_covariance(gp))
    for p in range(P):
        s = float(np.exp(gp.log_scale[p]))
        mu, Sigma = titsias(gp, x, y[p], noise_var, p)
        np.testing.assert_allclose(s * Lz @ m[p], mu, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(s**2 * Lz @ S[p] @ Lz.T, Sigma, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weight", [0.4, 0.1])
def test_a_cold_q_has_the_mean_of_the_full_one_and_its_covariance_can_be_restored(weight, rng):
    """Steps with τ < 1 end at the optimum's own m, with Λ − I in its 1/τ-fold; `with_full_kl` undoes that."""
    gp, x, noise_var = make_gp(rng), jnp.asarray(rng.normal(size=(20, Q))), 0.3
    y, rows, q = rng.normal(size=(P, 20)), project(gp, x), prior(P, M, FLOAT64)

    def slopes(q: Natural) -> MomentGradients:
        f_mean, f_var = moments(gp, posterior_of(q), rows)
        return MomentGradients(rows.A, f_mean, *gaussian_slopes(y, f_mean, f_var, noise_var))

    m, S = dense(natural_step(gp, q, slopes(q), *EXACT))
    for _ in range(400):
        q = natural_step(gp, q, slopes(q), *EXACT, weight)
    ours = dense(q)
    np.testing.assert_allclose(ours[0], m, rtol=1e-5, atol=1e-6)
    added, ours_added = (np.linalg.inv(cov) - np.eye(M) for cov in (S, ours[1]))
    np.testing.assert_allclose(ours_added, added / weight, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dense(sparse.with_full_kl(q, weight))[1], S, rtol=1e-6, atol=1e-8)


def test_with_an_inducing_point_at_every_row_it_is_gp_regression(rng):
    """Mean and variance at new positions are those of the exact GP posterior."""
    gp = make_gp(rng, n_inducing=12, lengthscale=0.7)
    x, noise_var, y = gp.Z, 0.2, rng.normal(size=(P, 12))
    q, rows = prior(P, 12, FLOAT64), project(gp, x)
    f_mean, f_var = moments(gp, posterior_of(q), rows)
    q = natural_step(gp, q, MomentGradients(rows.A, f_mean, *gaussian_slopes(y, f_mean, f_var, noise_var)), *EXACT)
    new = jnp.asarray(rng.normal(size=(5, Q)))
    ours = moments(gp, posterior_of(q), project(gp, new))
    Kxx, Knx = np.asarray(gram(gp.kernel, x, x)), np.asarray(gram(gp.kernel, new, x))
    for p in range(P):
        s2 = float(np.exp(2 * gp.log_scale[p]))
        G = np.linalg.inv(s2 * Kxx + noise_var * np.eye(12))
        mean = gp.bias[p] + s2 * Knx @ G @ (y[p] - gp.bias[p])
        var = s2 - s2**2 * np.einsum("ni,ij,nj->n", Knx, G, Knx)
        np.testing.assert_allclose(ours[0][p], mean, atol=2e-4)
        np.testing.assert_allclose(ours[1][p], var, atol=2e-4)


def objective(gp, rows, log_prob, m, root):
    """Σ E[log p] − kl_u by the root form, expectations by forty nodes."""
    q = posterior_of_log_cholesky(m, root)
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
        "gaussian": rng.normal(size=(P, 20)),
        "poisson": rng.poisson(2, (P, 20)).astype(float),
        "bernoulli": rng.integers(0, 2, (P, 20)).astype(float),
    }[family][..., None]
    log_prob = {
        "gaussian": lambda f: -0.5 * (y - f) ** 2 / 0.3,
        "poisson": lambda f: y * f - jnp.exp(f),
        "bernoulli": lambda f: y * f - jnp.logaddexp(0, f),
    }[family]
    rows, q = project(gp, x), prior(P, M, FLOAT64)
    t, w = np.polynomial.hermite_e.hermegauss(40)

    def cells(f_mean, f_var):
        return (log_prob(f_mean[..., None] + jnp.sqrt(f_var)[..., None] * t) @ (w / w.sum())).sum()

    @jax.jit
    def step(q):
        f_mean, f_var = moments(gp, posterior_of(q), rows)
        slopes = jax.grad(cells, argnums=(0, 1))(f_mean, f_var)
        return natural_step(gp, q, MomentGradients(rows.A, f_mean, *slopes), jnp.asarray(0.5), NO_CAUTION)

    for _ in range(80):
        q = step(q)
    slopes_at = jax.jit(lambda m, root: jax.grad(objective, argnums=(3, 4))(gp, rows, log_prob, m, root))
    slopes = slopes_at(*root_of(q))
    for leaf in slopes:
        np.testing.assert_allclose(leaf, 0, atol=1e-6)
    away = slopes_at(*root_of(prior(P, M, FLOAT64)))
    assert max(float(jnp.abs(leaf).max()) for leaf in away) > 0.1  # the test can fail


def test_a_step_is_a_mixture_of_old_and_new(rng):
    gp, q, A = make_gp(rng), random_natural(rng), jnp.asarray(rng.normal(size=(M, B)))
    f_mean, by_mean = (jnp.asarray(rng.normal(size=(P, B))) for _ in range(2))
    slopes = MomentGradients(A, f_mean, by_mean, -jnp.asarray(rng.uniform(size=(P, B))))
    step = lambda rho: natural_step(gp, q, slopes, jnp.asarray(rho), NO_CAUTION)  # noqa: E731
    for part, old, new in zip(step(0.25), q, step(1.0), strict=True):
        np.testing.assert_allclose(part, 0.75 * old + 0.25 * new, rtol=1e-12, atol=1e-12)
    jax.tree.map(np.testing.assert_array_equal, step(0.0), q)


def test_precision_stays_positive_definite_whatever_the_slopes(rng):
    """Positive ∂/∂v (a likelihood that is not log-concave) counts as zero: Λ ⪰ (1−ρ)Λ + ρ I."""
    gp, q = make_gp(rng), random_natural(rng)
    for rho in (0.3, 1.0):
        for _ in range(20):
            A = jnp.asarray(rng.normal(size=(M, B)))
            by_mean, by_var = (jnp.asarray(50 * rng.normal(size=(P, B))) for _ in range(2))
            stepped = natural_step(
                gp, q, MomentGradients(A, jnp.zeros((P, B)), by_mean, by_var), jnp.asarray(rho), NO_CAUTION
            )
            floor = (1 - rho) * np.linalg.eigvalsh(precision(q)).min(1) + rho
            assert (np.linalg.eigvalsh(precision(stepped)).min(1) > floor * (1 - 1e-9)).all()
            q = stepped if rho < 1 else q


def test_caution_limits_what_one_cell_can_ask_for(rng):
    """β is raised to κ|g|: alone, a cell then moves its function by no more than 1/κ; at κ = 0 nothing changes."""
    gp = make_gp(rng)
    gp = eqx.tree_at(lambda g: g.log_scale, gp, jnp.zeros(P))
    q, x = prior(P, M, FLOAT64), jnp.asarray(rng.normal(size=(1, Q)))
    rows = project(gp, x)
    f_mean, _ = moments(gp, posterior_of(q), rows)
    slopes = MomentGradients(rows.A, f_mean, jnp.array([[1e3], [-1e5], [2.0]]), jnp.full((P, 1), -1e-3))
    moved = {}
    for caution in (0.0, 1.0, 4.0):
        step = natural_step(gp, q, slopes, jnp.asarray(1.0), jnp.asarray(caution))
        moved[caution] = np.abs(moments(gp, posterior_of(step), rows)[0] - f_mean)[:, 0]
    assert (moved[1.0] <= 1 + 1e-9).all()
    assert (moved[4.0] <= 0.25 + 1e-9).all()
    assert (moved[0.0][:2] > 100).all()


def test_the_prior_as_mean_and_covariance():
    q = expand_shared_basis(posterior_of(prior(P, M, FLOAT64)))
    eye = pack_doubled(jnp.broadcast_to(jnp.eye(M), (P, M, M)))
    expected = Posterior(jnp.zeros((P, M)), eye, jnp.full(P, float(M)), jnp.zeros(P))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), q, expected)


def test_rows_without_slope_do_nothing(rng):
    """A padded or empty row: zero slopes, whatever its A."""
    gp, q, A = make_gp(rng), random_natural(rng), rng.normal(size=(M, B))
    by_mean, by_var, f_mean = (rng.normal(size=(P, B)) for _ in range(3))
    by_mean[:, -2:], by_var[:, -2:] = 0, 0
    slopes = MomentGradients(*(jnp.asarray(a) for a in (A, f_mean, by_mean, by_var)))
    kept = natural_step(gp, q, slopes, jnp.asarray(0.5), NO_CAUTION)
    A[:, -2:], f_mean[:, -2:] = 1e3, -7.0
    slopes = slopes._replace(A=jnp.asarray(A), f_mean=jnp.asarray(f_mean))
    other = natural_step(gp, q, slopes, jnp.asarray(0.5), NO_CAUTION)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), kept, other)


def test_a_step_is_for_the_first_functions_alone(rng):
    """MomentGradients hold all functions, q perhaps only the first of them: they move as they would together."""
    gp, q, A = make_gp(rng), random_natural(rng), jnp.asarray(rng.normal(size=(M, B)))
    slopes = MomentGradients(A, *(jnp.asarray(rng.normal(size=(P, B))) for _ in range(3)))
    together = natural_step(gp, q, slopes, jnp.asarray(0.5), NO_CAUTION)
    first = natural_step(gp, jax.tree.map(lambda part: part[:2], q), slopes, jnp.asarray(0.5), NO_CAUTION)
    for ours, theirs in zip(first, together, strict=True):
        np.testing.assert_allclose(ours, theirs[:2], rtol=1e-12)


# --- functions that share a basis ---

NOISE_VAR = np.array([0.3, 0.05, 1.2])
WEIGHT = np.full(20, 3.0)  # three batches


class Regression:
    """Gaussian columns without gaps; the first n_own functions keep a q(v) of their own, the rest share a basis."""

    def __init__(self, rng: np.random.Generator, n_own: int, weight: np.ndarray = WEIGHT):
        self.n_own, self.weight, self.noise_var = n_own, weight, NOISE_VAR
        self.gp = make_gp(rng)
        self.x, self.y = jnp.asarray(rng.normal(size=(20, Q))), jnp.asarray(rng.normal(size=(P, 20)))
        self.rows = project(self.gp, self.x)
        self.own = jax.tree.map(lambda part: part[:n_own], random_natural(rng))

    @property
    def scale(self) -> jax.Array:
        return jnp.exp(self.gp.log_scale[self.n_own :])

    def slopes(self, q: Posterior) -> MomentGradients:
        """∂/∂f of the weighted Σ E[log N(y; f, σ²)]."""
        f_mean, f_var = moments(self.gp, q, self.rows)
        by_mean, by_var = gaussian_slopes(self.y, f_mean, f_var, self.noise_var[:, None])
        return MomentGradients(self.rows.A, f_mean, by_mean * self.weight, by_var * self.weight)

    def posterior(self, shared: SharedBasis) -> Posterior:
        return append_shared_basis(posterior_of(self.own), shared, self.scale)

    def step(self, shared: SharedBasis, rho: float = 1.0) -> SharedBasis:
        return shared_basis_step(self.gp, shared, self.slopes(self.posterior(shared)), self.weight, jnp.asarray(rho))


def start(n: int) -> SharedBasis:
    return jax.tree.map(jnp.asarray, shared_basis_prior(n, M, FLOAT64))


def close(ours: object, theirs: object, within: float) -> None:
    """Two trees of arrays, leaf by leaf."""
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=within, atol=within), ours, theirs)


@pytest.mark.parametrize("n_own", [0, 1])
def test_before_any_step_the_shared_functions_are_at_the_prior(n_own, rng):
    case = Regression(rng, n_own)
    q = expand_shared_basis(case.posterior(start(P - n_own)))
    close(
        jax.tree.map(lambda part: part[n_own:], q),
        expand_shared_basis(posterior_of(prior(P - n_own, M, FLOAT64))),
        1e-12,
    )


@pytest.mark.parametrize("n_own", [0, 1])
def test_one_full_shared_step_is_exact_sparse_regression(n_own, rng):
    case = Regression(rng, n_own)
    q = expand_shared_basis(case.posterior(case.step(start(P - n_own))))
    S = np.asarray(unpack(q.S, M))
    S = np.where(np.eye(M, dtype=bool), S, S / 2)  # packed with what lies off the diagonal doubled
    Lz = np.linalg.cholesky(inducing_covariance(case.gp))
    for p in range(n_own, P):
        s = float(np.exp(case.gp.log_scale[p]))
        mu, Sigma = titsias(case.gp, case.x, np.asarray(case.y[p]), float(NOISE_VAR[p]) / 3, p)  # rows count thrice
        np.testing.assert_allclose(s * Lz @ q.m[p], mu, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(s**2 * Lz @ S[p] @ Lz.T, Sigma, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_own", [0, 1])
def test_a_full_shared_step_is_everyones_own_step(n_own, rng):
    """natural_step and posterior_of for the same rows: m, S, trace, log det, kl_u and moments."""
    case, at_prior = Regression(rng, n_own), prior(P, M, FLOAT64)
    separate = natural_step(case.gp, at_prior, case.slopes(posterior_of(at_prior)), *EXACT)
    case.own = Natural(*(part[:n_own] for part in separate))
    q, theirs = case.posterior(case.step(start(P - n_own))), posterior_of(separate)
    close(expand_shared_basis(q), expand_shared_basis(theirs), 1e-6)
    close(kl_u(q), kl_u(theirs), 1e-6)
    new = project(case.gp, jnp.asarray(rng.normal(size=(B, Q))))
    close(moments(case.gp, q, new), moments(case.gp, theirs, new), 1e-6)


def test_shared_functions_are_cold_as_everyones_own(rng):
    """The S of a step with a smaller weight, and the m of a full one."""
    case, at_prior = Regression(rng, 0), prior(P, M, FLOAT64)
    slopes = case.slopes(posterior_of(at_prior))
    narrow, wide = (posterior_of(natural_step(case.gp, at_prior, slopes, *EXACT, tau)) for tau in (0.3, 1.0))
    ours = append_shared_basis(posterior_of(case.own), case.step(start(P)), case.scale, 0.3)
    close(expand_shared_basis(ours), expand_shared_basis(narrow._replace(m=wide.m)), 1e-6)


def test_shared_steps_forget_where_they_began(rng):
    """Averages over steps: part by part a mixture of old and new, and many half steps reach the full one."""
    case = Regression(rng, 1)
    old = case.step(start(2))
    case.y = case.y + 1
    new, quarter, still = (case.step(old, rho) for rho in (1.0, 0.25, 0.0))
    for part, a, b in zip(quarter[:2], old, new, strict=False):
        np.testing.assert_allclose(part, 0.75 * a + 0.25 * b, rtol=1e-9, atol=1e-9)
    close(still[:2], old[:2], 1e-12)
    shared = old
    for _ in range(40):
        shared = case.step(shared, 0.5)
    close(shared, new, 1e-9)


def test_shared_functions_follow_noise_and_scale_at_once(rng):
    """The averages are free of both: with another noise or scale, the same averages give that regression."""
    case = Regression(rng, 1)
    shared = case.step(start(2))
    case.gp, case.noise_var = eqx.tree_at(lambda g: g.log_scale, case.gp, case.gp.log_scale + 0.4), 2 * NOISE_VAR
    fresh = case.step(start(2))
    close(shared[:2], fresh[:2], 1e-9)
    np.testing.assert_allclose(shared.beta, 1 / NOISE_VAR[1:], rtol=1e-12)
    np.testing.assert_allclose(fresh.beta, 0.5 / NOISE_VAR[1:], rtol=1e-12)


def test_rows_without_weight_have_no_influence_on_shared_functions(rng):
    """Padding: whatever its position and value."""
    case = Regression(rng, 1, np.where(np.arange(20) < 17, WEIGHT, 0))
    shared = case.step(start(2))
    case.y = case.y.at[:, -3:].set(1e3)
    case.rows = project(case.gp, case.x.at[-3:].set(0.1))
    close(case.step(start(2)), shared, 1e-12)
    case.weight = WEIGHT
    assert np.abs(case.step(start(2)).targets - shared.targets).max() > 1  # the test can fail


@pytest.mark.parametrize("n_own", [0, 1])
def test_writing_out_every_function_changes_nothing(n_own, rng):
    case = Regression(rng, n_own)
    q = case.posterior(case.step(start(P - n_own), 0.7))
    written = expand_shared_basis(q)
    assert (q.S.shape[0], written.S.shape[0]) == (n_own, P)
    assert written.shared is None
    new = project(case.gp, jnp.asarray(rng.normal(size=(B, Q))))
    close(moments(case.gp, written, new), moments(case.gp, q, new), 1e-9)
    assert float(kl_u(written)) == float(kl_u(q))
    close(expand_shared_basis(written), written, 0)


def test_shared_functions_in_float32_are_those_in_float64(rng):
    """Four decades of precision, as many confident rows give."""
    case = Regression(rng, 1, np.full(20, 1e3))
    shared, own = case.step(start(2)), posterior_of(case.own)
    narrow = lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)  # noqa: E731
    wide, ours = case.posterior(shared), append_shared_basis(narrow(own), narrow(shared), narrow(case.scale))
    for a, b in zip(
        jax.tree.leaves(expand_shared_basis(ours)), jax.tree.leaves(expand_shared_basis(wide)), strict=True
    ):
        assert a.dtype == jnp.float32
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max())


@pytest.mark.parametrize("rho", [0.3, 1.0])
def test_the_mean_follows_as_the_natural_step_would_move_it(rho, rng):
    """m + ρ S ∂bound/∂m with the S of after the step is S λ of after the step, for any likelihood."""
    gp, q, A = make_gp(rng), random_natural(rng), jnp.asarray(rng.normal(size=(M, B)))
    before = posterior_of(q)
    f_mean = gp.bias[:, None] + jnp.exp(gp.log_scale)[:, None] * (before.m @ A)
    slopes = MomentGradients(A, f_mean, jnp.asarray(rng.normal(size=(P, B))), -jnp.asarray(rng.uniform(size=(P, B))))
    after = posterior_of(natural_step(gp, q, slopes, jnp.asarray(rho), NO_CAUTION))
    ours = update_mean_with_stale_covariance(gp, before._replace(whole=after.whole), slopes, jnp.asarray(rho))
    close(ours.m, after.m, 1e-10)
    close(ours._replace(m=before.m, whole=before.whole), before, 0)  # nothing else moves


@pytest.mark.parametrize("n_own", [1, 3])
def test_following_with_an_old_covariance_ends_at_the_same_mean(n_own, rng):
    """Exact regression has one optimum; a covariance from other rows only changes how fast it is reached."""
    case = Regression(rng, n_own)
    own = natural_step(case.gp, prior(P, M, FLOAT64), case.slopes(posterior_of(prior(P, M, FLOAT64))), *EXACT)
    case.own = Natural(*(part[:n_own] for part in own))
    shared = case.step(start(P - n_own)) if n_own < P else None
    exact = posterior_of(own) if shared is None else case.posterior(shared)
    q = exact._replace(m=jnp.asarray(rng.normal(size=(P, M))), whole=0.6 * exact.whole)
    for _ in range(60):
        q = update_mean_with_stale_covariance(case.gp, q, case.slopes(q), jnp.asarray(0.5))
    close(q.m, exact.m, 1e-6)


def test_following_never_climbs_over_the_top(rng):
    """With S at the prior and thousands of rows' worth of slopes a whole step would overshoot a thousandfold."""
    case = Regression(rng, P, weight=np.full(20, 1000.0))
    exact = posterior_of(
        natural_step(case.gp, prior(P, M, FLOAT64), case.slopes(posterior_of(prior(P, M, FLOAT64))), *EXACT)
    )
    q = posterior_of(prior(P, M, FLOAT64))
    far = [np.abs(q.m - exact.m).max()]
    for _ in range(30):
        q = update_mean_with_stale_covariance(case.gp, q, case.slopes(q), jnp.asarray(1.0))
        far.append(np.abs(q.m - exact.m).max())
    assert far[-1] < far[0]
    assert max(far) < 2 * far[0]


def test_the_variance_left_by_the_inducing_points_is_never_negative(rng):
    gp = make_gp(rng)
    rows = project(gp, jnp.concatenate([gp.Z, 100 + gp.Z]))
    assert (np.asarray(rows.rest) >= 0).all()
    np.testing.assert_allclose(rows.rest[:M], 0, atol=2 * M * JITTER)  # at Z nothing is left
    np.testing.assert_allclose(rows.rest[M:], 1, atol=1e-9)  # far away everything
    assert float(rows.jitter) == pytest.approx(JITTER)


def test_equal_inducing_points_cost_jitter_and_no_more(rng):
    gp = eqx.tree_at(lambda g: g.Z, make_gp(rng), jnp.zeros((M, Q)))
    rows = project(gp, jnp.asarray(rng.normal(size=(B, Q))))
    for leaf in rows:
        assert np.isfinite(leaf).all()


def test_posterior_is_a_tuple_of_arrays(rng):
    """It passes through jit and back unchanged."""
    q = posterior_of(random_natural(rng))
    assert isinstance(jax.jit(lambda q: q)(q), Posterior)
