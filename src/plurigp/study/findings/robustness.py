"""From half maps to the number of subtypes, the consensus, and each subtype's robustness against both nulls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.study.findings.cluster import TOO_SMALL, Choice, agreement, fewest_references, matched
from plurigp.study.findings.consensus import (
    Indices,
    cdf,
    consensus_matrix,
    item_consensus,
    item_consensus_by_map,
    matrix_indices,
    pac,
    pair_consensus,
    random_pairs,
    sampled_indices,
)
from plurigp.study.findings.mixture import Mixture, memberships, responsibilities
from plurigp.study.findings.null import p_values, permuted_by_matrix, permuted_by_pairs, threshold
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.tasks import Finished, seed_of
from plurigp.study.result import Clusters, Consensus, Nulls

SHOWN_ROWS = 1500  # rows of the consensus matrix that a result keeps, at most
GRID = np.linspace(0, 1, 101)


@dataclass(frozen=True, eq=False)
class HalfLabels:
    """Labels of all rows by R half maps, for each number of clusters [R k N]; the rows each was learned from."""

    n_clusters: tuple[int, ...]
    labels: np.ndarray
    rows: tuple[np.ndarray, ...]

    @staticmethod
    def of(n_clusters: tuple[int, ...], finished: Sequence[Finished]) -> "HalfLabels":
        """Put together what the tasks left."""
        labels = np.stack([f.arrays["labels"] for f in finished])
        return HalfLabels(n_clusters, labels, tuple(f.arrays["rows"] for f in finished))

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


def choose(halves: HalfLabels, references: HalfLabels | None, config: StudyConfig) -> Choice:
    """Stability by number of clusters, of the data and of every structureless table."""
    least = TOO_SMALL * config.outlier_share
    tried = [K for K in halves.n_clusters if config.max_subtypes >= K]
    by_pair = np.stack([pair_agreement(halves, K, least).min((1, 2)) for K in tried], axis=1)  # [pairs k]
    reference = np.zeros((0, len(tried)))
    if references is not None:
        reference = np.stack([pair_agreement(references, K, least).min((1, 2)) for K in tried], axis=1)
    return Choice(np.array(tried), by_pair.mean(0), reference, config.level, by_pair[0])


@dataclass(frozen=True, eq=False)
class Robustness:
    """What stands behind the subtypes."""

    consensus: Consensus
    nulls: Nulls
    subtypes: pd.DataFrame
    pac: float
    sampled_pairs: int


def robustness(
    x: np.ndarray,
    clusters: Clusters,
    K: int,
    halves: HalfLabels,
    references: HalfLabels | None,
    choice: Choice,
    config: StudyConfig,
) -> Robustness:
    """Consensus of the K-cluster half maps within each subtype, and both nulls."""
    rng = np.random.default_rng(seed_of(config.random_state, "consensus"))
    cluster, n_strata, drawn = clusters.subtype, clusters.n_strata, halves.drawn(K)
    if len(cluster) <= config.consensus_rows:
        matrix = consensus_matrix(drawn)
        indices = matrix_indices(matrix, cluster, n_strata)
        item = item_consensus(matrix, cluster, n_strata)
        values = matrix[np.triu_indices(len(matrix), 1)]
        permuted = permuted_by_matrix(matrix, cluster, n_strata, config.n_permutations, rng)
        n_pairs = 0
    else:
        n_pairs = config.sampled_pairs
        indices = sampled_indices(drawn, cluster, n_strata, n_pairs // n_strata, rng)
        item = item_consensus_by_map(drawn, cluster, n_strata)
        values = pair_consensus(drawn, *random_pairs(len(cluster), n_pairs, rng))
        permuted = permuted_by_pairs(drawn, cluster, n_strata, config.n_permutations, n_pairs, rng)
    rows = _shown_rows(cluster, item, rng)
    consensus = Consensus(
        rows, consensus_matrix(drawn[:, rows]), item, indices.mean, indices.se, GRID, cdf(values, GRID)
    )
    nulls = Nulls(permuted, choice.reference, _reference_mean(references, K, config))
    table = _subtypes(clusters, indices, _own_agreement(x, clusters, K, halves, config), nulls, choice, config)
    return Robustness(consensus, nulls, table, pac(values), n_pairs)


def _shown_rows(cluster: np.ndarray, item: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All rows or an even sample, ordered by subtype and by how firmly they belong to it; outliers last."""
    rows = np.sort(rng.choice(len(cluster), min(len(cluster), SHOWN_ROWS), replace=False))
    rank = np.where(cluster[rows] > 0, cluster[rows], np.iinfo(int).max)
    return rows[np.lexsort((-np.nan_to_num(item[rows]), rank))]


def _own_agreement(x: np.ndarray, clusters: Clusters, K: int, halves: HalfLabels, config: StudyConfig) -> np.ndarray:
    """Agreement of the half maps' clusters that are nearest to each subtype [n_strata]."""
    component, names = base_labels(clusters, x, K)
    pairs = pair_agreement(halves, K, TOO_SMALL * config.outlier_share)  # [pairs 2 K]
    labels = halves.at(K)
    own = np.zeros(K)
    for r, label in enumerate(labels):
        own += pairs[r // 2, r % 2][matched(component, label, K)] / len(labels)
    return own[np.argsort(names, kind="stable")][-clusters.n_strata :]


def base_labels(clusters: Clusters, x: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """What half maps cut into K are matched with: a cluster 0 … K−1 for every row [N], and its subtype [K].

    By the means of the positions alone: it says which clusters correspond and labels no row.
    Where the mixture has further, small components (the paper's), their rows go to the nearest subtype.
    """
    if len(clusters.mixture.weights) == K:
        return component_of(clusters.mixture, x), clusters.mixture.subtype
    return memberships(clusters.mixture, x)[1].argmax(1), np.arange(1, K + 1)


def component_of(mixture: Mixture, x: np.ndarray) -> np.ndarray:
    """The likeliest component of every row's mean [N], outliers' components too; for matching alone."""
    return responsibilities(mixture, x).argmax(1)


def _reference_mean(references: HalfLabels | None, K: int, config: StudyConfig) -> np.ndarray:
    """The mean agreement of the clusters of each structureless table [R]."""
    if references is None:
        return np.zeros(0)
    if K == 1:
        return np.ones(len(references.labels) // 2)
    return pair_agreement(references, K, TOO_SMALL * config.outlier_share).mean((1, 2))


def untested(facts: Mapping[str, Any]) -> str:
    """The setting with which robustness would have been tested, where it was not; empty where it was.

    Without enough structureless tables, or without shuffled labels, `robust` is False for want of a test.
    """
    if facts["structured"] is None:
        return f"n_references = {fewest_references(facts['level'])}"
    return "n_permutations = 1000" if facts["structured"] and not facts["n_permutations"] else ""


def _subtypes(
    clusters: Clusters, indices: Indices, own: np.ndarray, nulls: Nulls, choice: Choice, config: StudyConfig
) -> pd.DataFrame:
    K, reference = clusters.n_strata, nulls.reference_mean
    sizes = np.bincount(clusters.subtype, minlength=K + 1)[1:]
    certainty = [clusters.probability[clusters.subtype == k + 1, k].mean() for k in range(K)]
    limit = threshold(nulls.permutation, config.level)
    reference_p = p_values(np.repeat(reference[:, None], K, axis=1), own)
    robust = (indices.within > limit) & (K > 1) & (choice.structured is True)
    return pd.DataFrame(
        {
            "subtype": np.arange(1, K + 1),
            "size": sizes,
            "share": sizes / len(clusters.subtype),
            "certainty": certainty,
            "index": indices.within,
            "index_se": np.diag(indices.se),
            "permutation_threshold": limit,
            "permutation_p": p_values(nulls.permutation, indices.within),
            "agreement": own,
            "reference_threshold": np.quantile(reference, 1 - config.level) if len(reference) else np.nan,
            "reference_p": reference_p,
            "robust": robust & (reference_p <= config.level + 1e-12),
        }
    )
