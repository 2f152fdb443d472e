"""Robustness of clusters: how well maps of complementary halves of the rows agree, against structureless tables."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats.contingency import crosstab

LEAST_SPREAD = 0.01  # sd of agreement between tables: a smaller one counts as this
TOO_SMALL = 0.5  # part of the outlier share: a smaller cluster of a half map agrees with nothing


@dataclass(frozen=True, eq=False)
class HalfLabels:
    """Labels of all rows by R half maps, for each number of clusters [R k N]; the rows each was learned from."""

    n_clusters: tuple[int, ...]
    labels: np.ndarray
    rows: tuple[np.ndarray, ...]

    def at(self, K: int) -> np.ndarray:
        """[R N]; one cluster is everybody."""
        if K == 1:
            return np.zeros((len(self.labels), self.labels.shape[2]), int)
        return self.labels[:, self.n_clusters.index(K)].astype(int)

    def drawn(self, K: int) -> np.ndarray:
        """[R N] with −1 for the rows that a map was not learned from."""
        labels, drawn = self.at(K), np.zeros((len(self.labels), self.labels.shape[2]), dtype=bool)
        for r, rows in enumerate(self.rows):
            drawn[r, rows] = True
        return np.where(drawn, labels, -1)


def pair_agreement(halves: HalfLabels, K: int, least: float) -> np.ndarray:
    """Agreement [pairs 2 K] of each half map with the map of the other half."""
    labels = halves.at(K)
    return np.stack([agreement(labels[r], labels[r + 1], K, least) for r in range(0, len(labels), 2)])


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


def _contingency(first: np.ndarray, second: np.ndarray, K: int) -> np.ndarray:
    """How many rows [K K] are in cluster k of the first and l of the second labelling."""
    return crosstab(first, second, levels=(np.arange(K), np.arange(K))).count


def fewest_references(level: float) -> int:
    """Structureless tables from which on a p-value, (1 + as large) / (1 + tables), can be as small as the level."""
    return math.ceil(1 / level - 1e-9) - 1


@dataclass(frozen=True, eq=False)
class Choice:
    """Agreement of half maps by number of clusters 2, 3, …, against structureless tables (the reference)."""

    n_clusters: np.ndarray  # [k]
    stability: np.ndarray  # [k] smallest agreement of a cluster, averaged over pairs of half maps
    reference: np.ndarray  # [R k] the same of each structureless table, from one pair
    level: float
    one_pair: np.ndarray  # [k] the table's own from its first pair alone, to be compared with the reference

    @property
    def null(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and sd [k] over the structureless tables and this one; without any, those of a cut at random and 1."""
        if not len(self.reference):
            return 1.0 / self.n_clusters, np.ones(len(self.n_clusters))
        tables = np.vstack([self.reference, self.one_pair])
        return tables.mean(0), np.maximum(tables.std(0, ddof=1), LEAST_SPREAD)

    @property
    def gain(self) -> np.ndarray:
        """[k] stability beyond what is expected without structure."""
        return self.stability - self.null[0]

    @property
    def p_by_number(self) -> np.ndarray:
        """[k] Monte Carlo p-values, adjusted for having tried all numbers of clusters (Westfall and Young's maxT).

        Gains are divided by their spread, which is larger for few clusters: these would otherwise decide the maximum.
        One pair of half maps is compared with one pair: an average over pairs varies less, and agreement is skewed.
        """
        if not len(self.reference):
            return np.full(len(self.n_clusters), np.nan)
        expected, spread = self.null
        largest = ((self.reference - expected) / spread).max(1)
        return (1 + (largest[:, None] >= (self.one_pair - expected) / spread).sum(0)) / (1 + len(largest))

    @property
    def p(self) -> float:
        """The smallest of the adjusted p-values; NaN without a reference."""
        return float(self.p_by_number.min())

    @property
    def structured(self) -> bool | None:
        """Whether any number of clusters agrees better than structureless tables do.

        None where that cannot be said: without a reference, or with so few tables that no p-value reaches the level.
        """
        if len(self.reference) < fewest_references(self.level):
            return None
        return bool(self.p <= self.level + 1e-12)

    @property
    def described(self) -> int:
        """How many strata describe the map: of the numbers with a significant gain, the one with the largest gain.

        Where there is none, that with the largest gain over its spread, as in the test: two clusters vary most, so that
        by the gain alone every continuum would be cut in two or three.
        """
        score = self.gain / self.null[1]
        if self.structured:
            score = np.where(self.p_by_number <= self.level + 1e-12, self.gain, -np.inf)
        return int(self.n_clusters[np.argmax(score)])

    def frame(self, chosen: int) -> pd.DataFrame:
        """One line per number of clusters; `chosen` is the one into which the map is cut."""
        R = len(self.reference)
        none = np.full(len(self.n_clusters), np.nan)
        return pd.DataFrame(
            {
                "n_clusters": self.n_clusters,
                "stability": self.stability,
                "reference_mean": self.reference.mean(0) if R else none,
                "reference_sd": self.reference.std(0, ddof=1) if R > 1 else none,
                "threshold": np.quantile(self.reference, 1 - self.level, axis=0) if R else none,
                "gain": self.gain,
                "p": self.p_by_number,
                "chosen": self.n_clusters == chosen,
            }
        )


def untested(facts: Mapping[str, Any]) -> str:
    """The setting that robustness needs to be tested, where it was not; empty where it was.

    Without enough structureless tables, or without label permutations, `robust` is False because nothing was tested.
    """
    if facts["structured"] is None:
        return f"n_references = {fewest_references(facts['level'])}"
    return "n_permutations = 1000" if facts["structured"] and not facts["n_permutations"] else ""
