"""Mixtures of positions with their uncertainty: the fast sums against row by row, and what they are for."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from plurigp.study.findings.cluster import Starts, fit_mixture
from plurigp.study.findings.em import (
    NOISE_CLASSES,
    RIDGE,
    WEIGHT_ROWS,
    NoisyRows,
    maximise_noisy,
)
from plurigp.study.findings.mixture import MOST_VARIANCE, Mixture, log_densities, measured, responsibilities


@pytest.fixture
def mixture(rng):
    roots = rng.normal(size=(3, 2, 2)) + 1.5 * np.eye(2)
    means = 2 * rng.normal(size=(3, 2))
    return Mixture(np.array([0.5, 0.3, 0.2]), means, roots @ np.swapaxes(roots, 1, 2), np.arange(1, 4))


def obvious_step(mixture, place, noise, shrinkage):
    """One step of extreme deconvolution, row by row (Bovy et al. 2011), and the log density before it."""
    K, Q = mixture.means.shape
    shares, means, seconds = np.zeros((len(place), K)), np.zeros((len(place), K, Q)), np.zeros((len(place), K, Q, Q))
    for n, (m, v) in enumerate(zip(place, noise, strict=True)):
        for k in range(K):
            wide = mixture.covariances[k] + np.diag(v)
            A = mixture.covariances[k] @ np.linalg.inv(wide)
            shares[n, k] = mixture.weights[k] * multivariate_normal.pdf(m, mixture.means[k], wide)
            means[n, k] = mixture.means[k] + A @ (m - mixture.means[k])
            seconds[n, k] = np.outer(means[n, k], means[n, k]) + mixture.covariances[k] - A @ mixture.covariances[k]
    density = np.log(shares.sum(1)).sum()
    shares /= shares.sum(1, keepdims=True)
    sizes = shares.sum(0)
    centres = np.einsum("nk,nki->ki", shares, means) / sizes[:, None]
    scatter = np.einsum("nk,nkij->kij", shares, seconds) - sizes[:, None, None] * centres[:, :, None] * centres[:, None]
    pooled = shrinkage * (Q + 2)
    own = (scatter + pooled * scatter.sum(0) / sizes.sum()) / (sizes + pooled)[:, None, None] + RIDGE * np.eye(Q)
    weights = (sizes + WEIGHT_ROWS) / (sizes + WEIGHT_ROWS).sum()
    return Mixture(weights, centres, own, mixture.subtype), density


def test_steps_are_those_of_row_by_row(mixture, rng, monkeypatch):
    """With as many classes as there are kinds of rows, nothing is rounded."""
    sd = np.array([[0.1, 0.2], [0.7, 0.3], [0.5, 0.9]])[np.arange(90) % 3]
    mean = rng.normal(size=(90, 2))
    place, noise = measured(mean, sd)
    slow, _ = obvious_step(mixture, place, noise, 8.0)
    slower, density = obvious_step(slow, place, noise, 8.0)
    _, last_density = obvious_step(slower, place, noise, 8.0)
    monkeypatch.setattr("plurigp.study.findings.em.NOISY_STEPS", 2)
    fast = maximise_noisy(NoisyRows.of(mean, sd), mixture, 8.0)
    np.testing.assert_allclose(fast.mixture.means, slow.means, rtol=1e-8)
    np.testing.assert_allclose(fast.mixture.covariances, slow.covariances, rtol=1e-8)
    np.testing.assert_allclose(fast.mixture.weights, slow.weights, rtol=1e-8)
    assert fast.log_density == pytest.approx(density)
    assert last_density > density


def test_measurements_and_the_prior_make_up_the_position(rng):
    mean, sd = rng.normal(size=(20, 3)), rng.uniform(0.05, 0.95, (20, 3))
    place, noise = measured(mean, sd)
    np.testing.assert_allclose(1 / (1 + 1 / noise), sd**2)
    np.testing.assert_allclose(place / noise * sd**2, mean)
    assert measured(np.ones((1, 1)), np.full((1, 1), 3.0))[1] == pytest.approx(MOST_VARIANCE / (1 - MOST_VARIANCE))


def test_memberships_put_the_mixture_in_the_place_of_the_prior(mixture, rng):
    """p(k | row) ∝ π_k ∫ q(x) N_k(x) / N(x; 0, I) dx, by a sum over a fine grid."""
    mean, sd = np.array([[0.4, -0.3]]), np.array([[0.5, 0.6]])
    axis = np.linspace(-12, 12, 801)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    q = multivariate_normal.pdf(x, mean[0], np.diag(sd[0] ** 2)) / multivariate_normal.pdf(x, np.zeros(2))
    logs = log_densities(mixture, x)
    shares = (q[:, None] * np.exp(logs)).sum(0)
    np.testing.assert_allclose(responsibilities(mixture, mean, sd)[0], shares / shares.sum(), rtol=1e-6)


def test_equally_certain_rows_are_one_class_and_many_kinds_a_few(rng):
    x = rng.normal(size=(100, 2))
    assert len(NoisyRows.of(x, np.full(x.shape, 0.3)).noise) == 1
    rows = NoisyRows.of(x, rng.uniform(0.1, 0.9, x.shape))
    assert len(rows.noise) == NOISE_CLASSES
    assert sum(map(len, rows.moments)) == 100


def test_rows_of_which_little_is_known_are_no_group_of_their_own(rng):
    """Two groups; half of the rows are hardly known, and their means lie near zero."""
    group = rng.integers(2, size=600)
    truth = np.where(group[:, None] == 1, [1.6, 0.0], [-1.6, 0.0]) + 0.3 * rng.normal(size=(600, 2))
    noise = np.where(rng.random(600) < 0.5, 0.01, 3.0)[:, None] * np.ones(2)
    place = truth + np.sqrt(noise) * rng.normal(size=truth.shape)
    variance = noise / (1 + noise)
    mean, sd = place * (1 - variance), np.sqrt(variance)
    plain = fit_mixture(mean, 2, Starts(mean, 0)).mixture
    known = fit_mixture(mean, 2, Starts(mean, 0), rows=NoisyRows.of(mean, sd)).mixture
    before, after = (
        adjusted_rand_score(group, responsibilities(own, mean, own_sd).argmax(1))
        for own, own_sd in ((plain, None), (known, sd))
    )
    assert after > before + 0.1
    np.testing.assert_allclose(np.sort(known.means[:, 0]), [-1.6, 1.6], atol=0.15)
