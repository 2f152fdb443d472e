"""How rows were sampled: weights, and clusters of rows that belong together, such as the visits of a patient.

Estimates weigh every row. Their variances are those of sums over clusters (Taylor linearisation, Binder 1983), or of a
jackknife that leaves out one part of the clusters at a time where an estimate is no mean: normals with limits, hazards.
With one row per cluster and equal weights, means of two groups are compared as Welch does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from plurigp.data import Rows
from plurigp.data.groups import row_groups
from plurigp.data.weights import row_weights

MAX_PARTS = 50  # of the clusters, each left out once by the jackknife
SEED = 20310405  # of the parts: the same rows have the same answer


@dataclass(frozen=True, eq=False)
class Design:
    """Weights [N], above zero for rows that count, and the cluster of every row [N]."""

    weights: np.ndarray
    clusters: np.ndarray

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, rows: np.ndarray) -> "Design":
        """Some of the rows, by number or by a mask."""
        return Design(self.weights[rows], self.clusters[rows])

    @property
    def equal(self) -> bool:
        """Whether all rows that count do so alike."""
        return bool(np.ptp(self.weights) == 0)


def make_design(rows: Rows, weights: Any = None, groups: Any = None) -> Design | None:
    """From a column's name or one value per row each; None where rows are independent and count alike."""
    if weights is None and groups is None:
        return None
    counted = row_weights(weights, rows, warn=False)
    clusters = np.arange(len(rows)) if groups is None else row_groups(groups, rows.frame)[0]
    return Design(np.ones(len(rows)) if counted is None else counted / counted.mean(), clusters)


# --- means ---


class GroupMeans(NamedTuple):
    """Weighted means of k scores in G groups, their covariance, and how many clusters of each group count."""

    mean: Float[np.ndarray, "G k"]
    covariance: Float[np.ndarray, "G k G k"]
    n_clusters: Int[np.ndarray, " G"]


def group_means(scores: Float[np.ndarray, "n k"], group: Int[np.ndarray, " n"], design: Design) -> GroupMeans:
    """Σ w z / Σ w in the groups 0 … G−1; a cluster adds Σ w (z − mean) / Σ w to the error of its group's mean."""
    w, k, G = design.weights, scores.shape[1], int(group.max()) + 1
    total = np.bincount(group, w, G)
    mean = np.stack([np.bincount(group, w * z, G) for z in scores.T], 1) / total[:, None]
    names, cluster = np.unique(design.clusters, return_inverse=True)
    in_group = np.zeros((len(names), G), bool)
    in_group[cluster[w > 0], group[w > 0]] = True
    n_clusters = in_group.sum(0)
    sums = np.zeros((len(names), G, k))
    unbiased = np.sqrt(n_clusters / np.maximum(n_clusters - 1, 1))
    np.add.at(sums, (cluster, group), (unbiased / total)[group, None] * w[:, None] * (scores - mean[group]))
    flat = sums.reshape(len(names), -1)
    return GroupMeans(mean, (flat.T @ flat).reshape(G, k, G, k), n_clusters)


def weighted_var(z: Float[np.ndarray, " n"], w: Float[np.ndarray, " n"]) -> float:
    """Of the population, from n rows with a weight; NaN with fewer than two."""
    n = int((w > 0).sum())
    if n < 2:
        return float("nan")
    return float((w * (z - np.average(z, weights=w)) ** 2).sum() / w.sum() * n / (n - 1))


def effective_rows(w: Float[np.ndarray, " n"]) -> float:
    """(Σ w)² / Σ w²: independent rows of equal weight that tell as much (Kish 1965)."""
    return float(w.sum() ** 2 / (w**2).sum())


def mid_ranks(z: Float[np.ndarray, " n"], w: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Share of the population below a value and half of the share that has it (Lumley and Scott 2013)."""
    values, place = np.unique(z, return_inverse=True)
    mass = np.bincount(place, w, len(values)) / w.sum()
    return (np.cumsum(mass) - mass / 2)[place]


def quantiles(z: Float[np.ndarray, " n"], w: Float[np.ndarray, " n"], at: tuple[float, ...]) -> list[float]:
    """The smallest values up to which lies that share of the weight."""
    order = np.argsort(z, kind="stable")
    order = order[w[order] > 0]
    ends = np.cumsum(w[order])
    places = np.searchsorted(ends, np.asarray(at) * ends[-1] * (1 - 1e-12))
    return z[order][np.minimum(places, len(order) - 1)].tolist()


# --- tests ---


class Wald(NamedTuple):
    """F on q and d − q + 1 degrees of freedom, for q differences whose covariance has d (Korn and Graubard 1990)."""

    statistic: float
    p: float


UNTESTED = Wald(float("nan"), float("nan"))


def wald_test(difference: Float[np.ndarray, " q"], covariance: Float[np.ndarray, "q q"], d: float) -> Wald:
    """Whether all differences are zero; directions in which nothing varies do not count."""
    values, axes = np.linalg.eigh(covariance)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    q = int(kept.sum())
    if not np.isfinite(difference).all() or values[-1] <= 0 or d - q + 1 <= 0:
        return UNTESTED
    squared = float((((axes[:, kept].T @ difference) ** 2) / values[kept]).sum())
    F = squared * (d - q + 1) / (d * q)
    return Wald(F, float(stats.f.sf(F, q, d - q + 1)))


def equal_means(scores: Float[np.ndarray, "n k"], group: Int[np.ndarray, " n"], design: Design) -> Wald:
    """Whether all groups have the same means."""
    found = group_means(scores, group, design)
    G, k = found.mean.shape
    if min(found.n_clusters) < 2:
        return UNTESTED
    against = np.kron(np.hstack([np.eye(G - 1), -np.ones((G - 1, 1))]), np.eye(k))
    covariance = against @ found.covariance.reshape(G * k, G * k) @ against.T
    n_clusters = len(np.unique(design.clusters[design.weights > 0]))
    return wald_test(against @ found.mean.ravel(), covariance, float(n_clusters - G))


class Jackknifed(NamedTuple):
    """An estimate [q], its covariance and degrees of freedom."""

    estimate: Float[np.ndarray, " q"]
    covariance: Float[np.ndarray, "q q"]
    degrees: float


def jackknife(estimate: Callable[[np.ndarray], np.ndarray], design: Design) -> Jackknifed:
    """Of an estimate from weights [n]: the clusters in up to MAX_PARTS random parts, each left out once.

    A part whose leaving out makes the estimate unknown is left out of the variance.
    """
    own = np.atleast_1d(np.asarray(estimate(design.weights), float))
    _, cluster = np.unique(design.clusters, return_inverse=True)
    n = int(cluster.max()) + 1
    part = (np.random.default_rng(SEED).permutation(n) % MAX_PARTS)[cluster]
    left = [np.atleast_1d(estimate(np.where(part == r, 0.0, design.weights))) for r in range(min(n, MAX_PARTS))]
    apart = np.array([one for one in left if np.isfinite(one).all()]).reshape(-1, len(own)) - own
    R = len(apart)
    covariance = (R - 1) / R * apart.T @ apart if R > 1 else np.full((len(own), len(own)), np.nan)
    return Jackknifed(own, covariance, R - 1.0)


def jackknife_test(estimate: Callable[[np.ndarray], np.ndarray], design: Design) -> Wald:
    """Whether the estimates, which are differences, are all zero."""
    found = jackknife(estimate, design)
    if not (np.isfinite(found.estimate).all() and np.isfinite(found.covariance).all()):
        return UNTESTED
    return wald_test(found.estimate, found.covariance, found.degrees)
