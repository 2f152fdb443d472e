"""A mixture as the prior of x: its KL against the integral, its learning against scikit-learn's, its draws."""

from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from plurigp.inference.encoder import LatentNormal, independent, kl_x
from plurigp.inference.prior import (
    MEAN_ROWS,
    WEIGHT_ROWS,
    GroupStatistics,
    MixturePrior,
    _kl_by_group,
    by_weight,
    draw_positions,
    group_moments,
    group_statistics,
    kl_to_prior,
    mixture_of,
    one_group,
    standard_mixture,
    start_prior,
    update_prior,
)

Q, K, B = 3, 4, 7
kl_by_group, statistics_of = jax.jit(_kl_by_group), jax.jit(group_statistics)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def make_prior(n_groups: int = K, n_components: int = Q, seed: int = 0) -> MixturePrior:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_groups, n_components, n_components))
    covariances = A @ A.swapaxes(1, 2) / n_components + 0.1 * np.eye(n_components)
    means = rng.normal(size=(n_groups, n_components))
    return mixture_of(rng.dirichlet(np.ones(n_groups)), means, covariances, np.float64)


def make_q(n_rows: int = B, n_components: int = Q, seed: int = 1) -> LatentNormal:
    rng = np.random.default_rng(seed)
    base = np.triu(0.3 * rng.normal(size=(n_rows, n_components, n_components)), 1) + 0.6 * np.eye(n_components)
    mean, stretch = rng.normal(size=(n_rows, n_components)), rng.uniform(0.5, 1.5, (n_rows, n_components))
    return LatentNormal(jnp.asarray(mean), jnp.asarray(stretch), jnp.asarray(base))


def covariances_of(q: LatentNormal) -> np.ndarray:
    root = np.asarray(q.stretch)[:, :, None] * np.asarray(q.base)
    return root @ root.swapaxes(1, 2)


def log_density(prior: MixturePrior, x: np.ndarray) -> np.ndarray:
    """log π_k N_k(x) by SciPy, [n K]."""
    parts = zip(*group_moments(prior, prior.means.shape[1]), strict=True)
    return np.stack([np.log(w) + stats.multivariate_normal(m, C).logpdf(x) for w, m, C in parts], axis=-1)


# --- densities and the KL ---


def test_densities_are_scipys():
    prior, x = make_prior(), np.random.default_rng(2).normal(size=(5, B, Q))
    ours = prior.log_weights + prior.log_densities(jnp.asarray(x)) - 0.5 * Q * np.log(2 * np.pi)
    np.testing.assert_allclose(ours, log_density(prior, x), rtol=1e-10)


def test_the_kl_of_a_group_is_the_gaussian_one():
    prior, q = make_prior(), make_q()
    _, means, covariances = group_moments(prior, Q)
    ours = np.asarray(_kl_by_group(prior, q))
    for k in range(K):
        precision = np.linalg.inv(covariances[k])
        for n, S in enumerate(covariances_of(q)):
            away = np.asarray(q.mean[n]) - means[k]
            ratio = np.linalg.slogdet(covariances[k])[1] - np.linalg.slogdet(S)[1]
            expected = 0.5 * (np.trace(precision @ S) + away @ precision @ away - Q + ratio)
            assert ours[k, n] == pytest.approx(expected, rel=1e-10)


def test_the_kl_is_never_below_the_true_one():
    """By a sum over a grid in one dimension, and by draws in three; and never above that of the likeliest group."""
    grid = np.linspace(-12, 12, 4001)
    prior, q = make_prior(3, 1), make_q(20, 1)
    ours = np.asarray(kl_to_prior(prior, q))
    log_q = stats.norm.logpdf(grid, np.asarray(q.mean), np.asarray(q.sd))
    exact = (np.exp(log_q) * (log_q - logsumexp(log_density(prior, grid[:, None]), axis=1))).sum(1) * 0.006
    assert (ours > exact - 1e-9).all()
    assert (ours - exact).max() > 1e-3  # a bound, not the KL itself
    assert (ours <= (_kl_by_group(prior, q) - prior.log_weights[:, None]).min(0) + 1e-12).all()

    prior, q = make_prior(), make_q()
    x = np.asarray(q.at(jnp.asarray(np.random.default_rng(3).normal(size=(20_000, B, Q)))))
    ratio = np.asarray(q.log_density(jnp.asarray(x))) - 0.5 * Q * np.log(2 * np.pi)
    ratio -= logsumexp(log_density(prior, x), axis=2)
    assert (np.asarray(kl_to_prior(prior, q)) > ratio.mean(0) - 4 * ratio.std(0) / np.sqrt(len(x))).all()


def test_one_group_or_equal_groups_have_the_kl_itself():
    q = make_q()
    for n_groups in (1, 5):
        np.testing.assert_allclose(kl_to_prior(standard_mixture(n_groups, Q), q), kl_x(q), rtol=1e-12)
    one = make_prior(1)
    many = jax.tree.map(lambda part: np.repeat(part, 3, axis=0), one)
    weighted = replace(many, log_weights=np.log([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(kl_to_prior(weighted, q), kl_to_prior(one, q), rtol=1e-12)
    np.testing.assert_array_equal(kl_to_prior(None, q), kl_x(q))


def test_gradients_by_q_are_those_of_finite_differences_and_the_mixture_has_none():
    prior, q = make_prior(), make_q()
    rng = np.random.default_rng(4)
    total = jax.jit(lambda q: kl_to_prior(prior, q).sum())
    slopes = jax.grad(total)(q)
    way = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), q)._replace(
        base=np.triu(rng.normal(size=q.base.shape))
    )
    up, down = (total(jax.tree.map(lambda leaf, d, s=sign: leaf + s * 1e-6 * d, q, way)) for sign in (1, -1))
    expected = sum(float((s * d).sum()) for s, d in zip(slopes, way, strict=True))
    assert expected == pytest.approx(float(up - down) / 2e-6, rel=1e-6)
    by_prior = jax.grad(lambda prior: kl_to_prior(prior, q).sum())(jax.tree.map(jnp.asarray, prior))
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(by_prior))


# --- learning ---


def test_statistics_are_sums_over_rows_by_their_shares():
    prior, q = make_prior(), make_q()
    weights = np.array([1.0, 0, 2, 1, 1, 1, 3])
    logs = np.asarray(prior.log_weights)[:, None] - np.asarray(_kl_by_group(prior, q))
    shares = np.exp(logs - logsumexp(logs, axis=0)) * weights
    n, sums, squares = group_statistics(prior, q, jnp.asarray(weights))
    mean = np.asarray(q.mean)
    np.testing.assert_allclose(n, shares.sum(1))
    np.testing.assert_allclose(sums, shares @ mean)
    second = mean[:, :, None] * mean[:, None, :] + covariances_of(q)
    np.testing.assert_allclose(squares, np.einsum("kn,nij->kij", shares, second))


def test_with_many_certain_rows_a_step_is_scikit_learns():
    """Narrow q(x) and a weight of 10⁹ per row, so that the mixture's own prior has no say."""
    x = np.random.default_rng(5).normal(size=(60, Q)) * [1, 2, 0.5]
    prior, q = make_prior(), independent(jnp.asarray(x), jnp.full(x.shape, 1e-6))
    ours = group_moments(update_prior(group_statistics(prior, q, jnp.full(60, 1e9)), np.float64), Q)
    weights, means, covariances = group_moments(prior, Q)
    precisions = np.linalg.inv(covariances)
    start = {"weights_init": weights, "means_init": means, "precisions_init": precisions}
    theirs = GaussianMixture(K, max_iter=1, reg_covar=0, **start)
    with pytest.warns(ConvergenceWarning):  # after a single step
        theirs.fit(x)
    np.testing.assert_allclose(ours.weights, theirs.weights_, rtol=1e-6)
    np.testing.assert_allclose(ours.means, theirs.means_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ours.covariances, theirs.covariances_, rtol=1e-4, atol=1e-6)


def log_prior_of(prior: MixturePrior) -> float:
    """What `update_prior` adds to the rows' bound, up to a constant."""
    weights, means, covariances = group_moments(prior, prior.means.shape[1])
    n_groups, n_components = means.shape
    scale = n_groups ** (-2 / n_components)
    total = WEIGHT_ROWS * np.log(weights).sum()
    for mean, C in zip(means, covariances, strict=True):
        precision = np.linalg.inv(C)
        total -= 0.5 * (n_components + 2) * (np.linalg.slogdet(C)[1] + scale * np.trace(precision))
        total -= 0.5 * MEAN_ROWS * mean @ precision @ mean
    return float(total)


def test_a_step_is_the_best_mixture_for_the_shares_it_was_given():
    """Any other one has a lower expected log density plus log prior."""
    q, rng = make_q(40), np.random.default_rng(6)
    logs = rng.normal(size=(K, 40))
    shares = np.exp(logs - logsumexp(logs, axis=0))
    second = np.asarray(q.mean)[:, :, None] * np.asarray(q.mean)[:, None, :] + covariances_of(q)
    rows = GroupStatistics(shares.sum(1), shares @ np.asarray(q.mean), np.einsum("kn,nij->kij", shares, second))

    def objective(prior: MixturePrior) -> float:
        kls = np.asarray(kl_by_group(prior, q))
        return float((shares * (np.asarray(prior.log_weights)[:, None] - kls)).sum()) + log_prior_of(prior)

    best = update_prior(rows, np.float64)
    weights, means, covariances = group_moments(best, Q)
    for size in (1e-3, 0.1):
        for _ in range(20):
            other = weights * np.exp(size * rng.normal(size=K))
            bend = np.eye(Q) + size * rng.normal(size=(K, Q, Q))
            moved = (other / other.sum(), means + size * rng.normal(size=(K, Q)), bend @ covariances @ bend.mT)
            assert objective(mixture_of(*moved, np.float64)) < objective(best)


def test_every_step_raises_the_bound():
    q, prior = make_q(60), make_prior()
    path = []
    for _ in range(30):
        path.append(-float(kl_to_prior(prior, q).sum()) + log_prior_of(prior))
        prior = update_prior(statistics_of(prior, q, jnp.ones(60)), np.float64)
    assert (np.diff(path) > -1e-9).all()
    assert path[-1] > path[0] + 1


def test_a_group_without_rows_keeps_its_prior():
    rows = GroupStatistics(np.array([50.0, 0]), np.zeros((2, Q)), np.stack([50 * np.eye(Q), np.zeros((Q, Q))]))
    weights, means, covariances = group_moments(update_prior(rows, np.float64), Q)
    assert weights[1] == pytest.approx(1 / 52)
    np.testing.assert_array_equal(means[1], 0)
    np.testing.assert_allclose(covariances[1], 2 ** (-2 / Q) * np.eye(Q))


def test_groups_of_equal_rows_do_not_collapse():
    rows = GroupStatistics(np.full(2, 1e4), np.full((2, Q), 2e4), np.full((2, Q, Q), 4e4))
    _, _, covariances = group_moments(update_prior(rows, np.float32), Q)
    assert np.linalg.eigvalsh(covariances).min() > 1e-4


@pytest.mark.filterwarnings("error")
def test_the_start_finds_planted_groups_and_survives_equal_rows():
    rng = np.random.default_rng(7)
    truth = rng.choice(3, 300, p=[0.5, 0.3, 0.2])
    centres = np.array([[0, 0, 0], [3, 0, 0], [0, 3, 1.0]])
    x = centres[truth] + 0.4 * rng.normal(size=(300, Q))
    found = by_weight(start_prior(independent(jnp.asarray(x), jnp.full(x.shape, 0.1)), 3, 0, np.float32))
    assert found.means.dtype == np.float32
    weights, means, covariances = group_moments(found, Q)
    np.testing.assert_allclose(weights, np.bincount(truth) / 300, atol=0.02)
    np.testing.assert_allclose(means, centres, atol=0.15)
    np.testing.assert_allclose(np.diagonal(covariances, axis1=1, axis2=2), 0.4**2 + 0.1**2, rtol=0.5)
    equal = start_prior(independent(jnp.ones((4, Q)), jnp.full((4, Q), 0.1)), 3, 0, np.float32)
    assert all(np.isfinite(part).all() for part in jax.tree.leaves(equal))


# --- moments and draws ---


def test_mixture_of_and_moments_are_inverse():
    rng = np.random.default_rng(8)
    A = rng.normal(size=(2, Q, Q))
    given = (np.array([0.4, 0.6]), rng.normal(size=(2, Q)), A @ A.mT + np.eye(Q))
    prior = mixture_of(*given, np.float64)
    np.testing.assert_array_equal(np.tril(prior.roots, -1), 0)
    for ours, theirs in zip(group_moments(prior, Q), given, strict=True):
        np.testing.assert_allclose(ours, theirs)
    weights, means, covariances = group_moments(None, Q)
    assert (weights.tolist(), means.tolist()) == ([1.0], [[0.0] * Q])
    np.testing.assert_array_equal(covariances[0], np.eye(Q))


def test_groups_are_ordered_by_weight():
    prior = replace(make_prior(3), log_weights=np.log([0.2, 0.5, 0.3]))
    ordered = by_weight(prior)
    np.testing.assert_allclose(np.exp(ordered.log_weights), [0.5, 0.3, 0.2])
    np.testing.assert_array_equal(ordered.means, prior.means[[1, 2, 0]])
    np.testing.assert_array_equal(ordered.roots, prior.roots[[1, 2, 0]])


def test_draws_have_the_moments_of_the_mixture_and_one_group_has_them_too():
    prior = make_prior()
    x = draw_positions(prior, np.random.default_rng(9), 200_000, Q)
    np.testing.assert_array_equal(x[:100], draw_positions(prior, np.random.default_rng(9), 200_000, Q)[:100])
    weights, means, covariances = group_moments(one_group(prior), Q)
    assert weights.tolist() == [1.0]
    np.testing.assert_allclose(x.mean(0), means[0], atol=0.02)
    np.testing.assert_allclose(np.cov(x.T), covariances[0], atol=0.04)
    assert one_group(None) is None
    normal = draw_positions(None, np.random.default_rng(9), 5, Q)
    np.testing.assert_array_equal(normal, np.random.default_rng(9).normal(size=(5, Q)))
