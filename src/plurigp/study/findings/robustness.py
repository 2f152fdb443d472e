"""Robustness of clusters: how well maps of complementary halves of the rows agree."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats.contingency import crosstab

from plurigp.study.findings.valley import Counts, Valleys, combine_counts, reorder, without

SAME = 0.5  # of the rows of two clusters taken together, the least share that is in both if they are to be the same
FOUND_AGAIN = 0.5  # of the half maps, the least share that has a cluster, if it is to be judged
TOO_SMALL = 0.5  # part of the outlier share: a smaller cluster of a half map agrees with nothing


@dataclass(frozen=True, eq=False)
class Halves:
    """What R half maps, each followed by that of the other half, make of all rows, cut into K clusters."""

    n_clusters: int
    labels: np.ndarray  # [R N] clusters 0 … K−1
    gains: np.ndarray  # [R N] log density by the half map's mixture over that by one Gaussian; of unseen rows
    rows: tuple[np.ndarray, ...]  # those each was learned from
    counts: tuple[Counts, ...]  # of unseen rows between clusters

    @property
    def seen(self) -> np.ndarray:
        """[R N] whether a map was learned from a row."""
        seen = np.zeros(self.labels.shape, dtype=bool)
        for r, rows in enumerate(self.rows):
            seen[r, rows] = True
        return seen

    @property
    def drawn(self) -> np.ndarray:
        """[R N] labels with −1 for the rows that a map was not learned from."""
        return np.where(self.seen, self.labels, -1)

    def valleys(self, reference: np.ndarray) -> Valleys:
        """Between the clusters of a labelling [N], 0 … K−1, to which those of the half maps are matched.

        A half map that has no such cluster says nothing of it: what is left to match it with may lie anywhere.
        """
        found = zip(self.counts, *self._matches(reference), strict=True)
        return combine_counts([without(reorder(counts, order), gone) for counts, order, gone in found])

    def found_again(self, reference: np.ndarray) -> np.ndarray:
        """Whether each cluster of a labelling [K] is found again in at least half of the half maps."""
        return self._matches(reference)[1].mean(0) <= 1 - FOUND_AGAIN

    def _matches(self, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each half map the cluster that is each of the reference's [R K], and whether it is dissolved there."""
        orders = [matched(reference, labels, self.n_clusters) for labels in self.labels]
        gone = [dissolved(reference, labels, order) for labels, order in zip(self.labels, orders, strict=True)]
        return np.stack(orders), np.stack(gone)

    def unseen_gain(self) -> np.ndarray:
        """[N] nats that the mixture gains on each row over one Gaussian, by the maps that have not seen it."""
        unseen = ~self.seen
        return np.where(unseen, self.gains, 0).sum(0) / np.maximum(unseen.sum(0), 1)


def pair_agreement(halves: Halves, least: float) -> np.ndarray:
    """Agreement [pairs 2 K] of each half map with the map of the other half."""
    pairs = zip(halves.labels[0::2], halves.labels[1::2], strict=True)
    return np.stack([agreement(first, second, halves.n_clusters, least) for first, second in pairs])


def agreement(first: np.ndarray, second: np.ndarray, K: int, least: float) -> np.ndarray:
    """For each cluster of two labellings [2 K], the share of its pairs that the other keeps together.

    1 is perfect; a cut at random gives 1/K. A cluster with less than the share `least` of the rows gets 0.
    """
    counts = _contingency(first, second, K)
    both = []
    for table in (counts, counts.T):
        n = table.sum(1)
        kept = (table * (table - 1)).sum(1) / np.maximum(n * (n - 1), 1)
        both.append(np.where(n >= max(2, least * len(first)), kept, 0.0))
    return np.stack(both)


def matched(reference: np.ndarray, other: np.ndarray, K: int) -> np.ndarray:
    """For each cluster of `reference` [K] the cluster of `other` that shares most rows with it, one to one."""
    return linear_sum_assignment(-_contingency(reference, other, K))[1]


def dissolved(reference: np.ndarray, other: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Clusters of `reference` [K] that share less than half of all their rows with their match (Hennig 2007)."""
    table = _contingency(reference, other, len(order))
    both = table[np.arange(len(order)), order]
    return both < SAME * (table.sum(1) + table.sum(0)[order] - both)


def _contingency(first: np.ndarray, second: np.ndarray, K: int) -> np.ndarray:
    """How many rows [K K] are in cluster k of the first and l of the second labelling."""
    return crosstab(first, second, levels=(np.arange(K), np.arange(K))).count
