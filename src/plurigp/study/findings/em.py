"""Expectation maximisation of Gaussian mixtures on moments, of positions taken as exact or with their uncertainty."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from plurigp.study.findings.mixture import Mixture, measured

RIDGE = 1e-3  # added to the variances, where the prior's are 1: no cluster collapses to a point
WEIGHT_ROWS = 1.0  # rows that every cluster has before the first is seen (Dirichlet)
MOST_STEPS, TOLERANCE = 150, 2e-5  # of expectation maximisation; nats per row
NOISY_STEPS, NOISY_TOLERANCE = 60, 1e-4  # the same, with the uncertainty of positions, which converges slowly
NOISE_CLASSES = 8  # of rows whose positions are about equally uncertain
LEAST_NOISE = 1e-6  # where its logarithm is taken


@lru_cache
def _upper(Q: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the upper triangle, which every step asks for."""
    return np.triu_indices(Q)


class Maximum(NamedTuple):
    """What expectation maximisation reached."""

    mixture: Mixture
    log_density: float  # Σ_n log p(x_n)
    sizes: np.ndarray  # [K] rows of each cluster


def maximise(moments: np.ndarray, shares: np.ndarray, shrinkage: float, most_steps: int) -> tuple[Maximum, np.ndarray]:
    """From each row's shares [N K] until a step gains hardly anything; and the last shares."""
    before = -np.inf
    for _ in range(most_steps):
        n, mixture = _maximisation(shares.T @ moments, shrinkage)
        shares, log_density = _expectation(moments, mixture)
        if log_density - before < TOLERANCE * len(shares):
            break
        before = log_density
    return Maximum(mixture, log_density, n), shares


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """What the cells of rows say of their positions, in classes of like uncertainty [G].

    Within a class all rows have its mean uncertainty, so that sums over rows are matrix products as they are without.
    """

    moments: tuple[np.ndarray, ...]  # of each class's places [n M]
    noise: np.ndarray  # [G Q] variances

    @classmethod
    def of(cls, mean: np.ndarray, sd: np.ndarray) -> "NoisyRows":
        place, noise = measured(mean, sd)
        logs = np.log(noise + LEAST_NOISE)
        n_classes = min(NOISE_CLASSES, len(np.unique(logs.round(6), axis=0)))
        label = KMeans(n_classes, n_init=1, random_state=0).fit_predict(logs)
        rows = [np.flatnonzero(label == g) for g in np.unique(label)]
        return cls(tuple(moments_of(place[own]) for own in rows), np.stack([noise[own].mean(0) for own in rows]))


def maximise_noisy(rows: NoisyRows, mixture: Mixture, shrinkage: float) -> Maximum:
    """From a mixture on to the one that, widened by each row's uncertainty, explains best what its cells say of it.

    Known as extreme deconvolution (Bovy et al. 2011). A mixture of the means takes rows with many gaps, which lie near
    the middle because little is known of them, for a group of their own.
    """
    before, N = -np.inf, sum(len(own) for own in rows.moments)
    for _ in range(NOISY_STEPS):
        sums, log_density = np.zeros((len(mixture.weights), rows.moments[0].shape[1])), 0.0
        for own, noise in zip(rows.moments, rows.noise, strict=True):
            wide = replace(mixture, covariances=mixture.covariances + np.diag(noise))
            shares, own_density = _expectation(own, wide)
            sums += _sums_of_x(shares.T @ own, mixture, wide.covariances)
            log_density += own_density
        if log_density - before < NOISY_TOLERANCE * N:
            break
        before, reached = log_density, Maximum(mixture, log_density, sums[:, 0])
        mixture = _maximisation(sums, shrinkage)[1]
    return reached


def _sums_of_x(sums: np.ndarray, mixture: Mixture, wide: np.ndarray) -> np.ndarray:
    """Moments [K M] that x is expected to have, from those of its measurements: given one, x ~ N(μ + A(m − μ), Σ − AΣ)
    with A = Σ(Σ + noise)⁻¹."""
    Q = mixture.means.shape[1]
    n, first, second = _unpacked(sums, Q)
    A = np.swapaxes(np.linalg.solve(wide, mixture.covariances), 1, 2)
    offset = mixture.means - np.einsum("kij,kj->ki", A, mixture.means)
    moved = np.einsum("kij,kj->ki", A, first)
    crossed = offset[:, :, None] * moved[:, None, :]
    spread = mixture.covariances - A @ mixture.covariances + offset[:, :, None] * offset[:, None, :]
    second = A @ second @ np.swapaxes(A, 1, 2) + crossed + np.swapaxes(crossed, 1, 2) + n[:, None, None] * spread
    i, j = _upper(Q)
    return np.hstack([n[:, None], moved + n[:, None] * offset, second[:, i, j]])


def _unpacked(sums: np.ndarray, Q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ 1 [K], Σ x [K Q] and Σ x xᵀ [K Q Q]."""
    i, j = _upper(Q)
    second = np.zeros((len(sums), Q, Q))
    second[:, i, j] = second[:, j, i] = sums[:, 1 + Q :]
    return sums[:, 0], sums[:, 1 : 1 + Q], second


def _expectation(moments: np.ndarray, mixture: Mixture) -> tuple[np.ndarray, float]:
    """Shares [N K] and the log density of all rows."""
    logs = moments @ _coefficients(mixture)
    highest = logs.max(1, keepdims=True)
    weights = np.exp(logs - highest)
    total = weights.sum(1, keepdims=True)
    return weights / total, float((highest + np.log(total)).sum())


def n_parameters(sizes: np.ndarray, Q: int, shrinkage: float) -> float:
    """Of a mixture whose clusters have these sizes [K]; covariances count as one if common, as K if all are free."""
    K = len(sizes)
    free = 1 + (sizes / (sizes + _pooled_rows(shrinkage, Q))).sum() * (K - 1) / K
    return K - 1 + K * Q + free * Q * (Q + 1) / 2


def moments_of(x: np.ndarray) -> np.ndarray:
    """Each row's 1, x and products x_i x_j (i ≤ j): densities and sums over rows are then single matrix products."""
    i, j = _upper(x.shape[1])
    return np.hstack([np.ones((len(x), 1)), x, x[:, i] * x[:, j]])


def _pooled_rows(shrinkage: float, Q: int) -> float:
    return shrinkage * (Q + 2)


def _maximisation(sums: np.ndarray, shrinkage: float) -> tuple[np.ndarray, Mixture]:
    """Rows of each cluster [K] and the mixture, from the moments summed by shares."""
    K, Q = len(sums), int((np.sqrt(8 * sums.shape[1] + 1) - 3) / 2)
    n, first, scatter = _unpacked(sums, Q)
    n = n + 1e-9
    means = first / n[:, None]
    scatter -= n[:, None, None] * means[:, :, None] * means[:, None, :]
    pooled_rows = _pooled_rows(shrinkage, Q)
    covariances = (scatter + pooled_rows * scatter.sum(0) / n.sum()) / (n + pooled_rows)[:, None, None]
    covariances += RIDGE * np.eye(Q)
    return n, Mixture((n + WEIGHT_ROWS) / (n + WEIGHT_ROWS).sum(), means, covariances, np.arange(1, K + 1))


def _coefficients(mixture: Mixture) -> np.ndarray:
    """Of the moments, in log π_k N(x; μ_k, Σ_k) [moments K]."""
    Q = mixture.means.shape[1]
    precisions = np.linalg.inv(mixture.covariances)
    pulls = np.einsum("kij,kj->ki", precisions, mixture.means)
    log_det = np.linalg.slogdet(mixture.covariances)[1] + Q * np.log(2 * np.pi)
    constant = np.log(mixture.weights) - 0.5 * (np.einsum("ki,ki->k", pulls, mixture.means) + log_det)
    i, j = _upper(Q)
    squares = -precisions[:, i, j] * np.where(i == j, 0.5, 1.0)
    return np.hstack([constant[:, None], pulls, squares]).T
