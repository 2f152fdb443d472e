"""Monti's consensus: how often two rows are put together by maps that both were drawn for."""

from dataclasses import dataclass

import numpy as np

AMBIGUOUS = (0.1, 0.9)  # the proportion of ambiguous clustering counts pairs strictly between these


@dataclass(frozen=True, eq=False)
class Consensus:
    """How often rows are put together by refits on random halves (Monti et al. 2003).

    `matrix` holds the rows numbered in `rows`, ordered by subtype: all of them, or a sample of a large table.
    """

    rows: np.ndarray  # [n] row numbers
    matrix: np.ndarray  # [n n] in [0, 1]; NaN where two rows were never drawn together
    item: np.ndarray  # [N] mean consensus of a row with its own subtype; NaN for outliers
    between: np.ndarray  # [K K] mean consensus of pairs across (diagonal: within) subtypes
    between_se: np.ndarray  # [K K] standard error from sampling pairs; zero where all pairs were used
    cdf_at: np.ndarray  # [G] consensus values
    cdf: np.ndarray  # [G] share of pairs with at most that consensus


def consensus_matrix(labels: np.ndarray) -> np.ndarray:
    """[n n] (times together) / (times both drawn) from labels [R n], −1 = not drawn; NaN where never both drawn."""
    n = labels.shape[1]
    together, both = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    for row in labels:
        drawn = (row >= 0).astype(np.float32)
        one_hot = (row[:, None] == np.arange(row.max() + 1)).astype(np.float32)
        together += one_hot @ one_hot.T
        both += np.outer(drawn, drawn)
    with np.errstate(invalid="ignore"):
        return together / both


def pair_consensus(labels: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The same for the pairs (i, j) only."""
    together, both = np.zeros(len(i)), np.zeros(len(i))
    for row in labels:
        drawn = (row[i] >= 0) & (row[j] >= 0)
        both += drawn
        together += drawn & (row[i] == row[j])
    with np.errstate(invalid="ignore"):
        return together / both


def known_pairs(matrix: np.ndarray, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """The matrix with 0 where a pair is not known or no pair, and 1 where it is known [n n]."""
    known = np.isfinite(matrix) & ~np.eye(len(matrix), dtype=bool)
    return np.where(known, matrix, 0).astype(dtype), known.astype(dtype)


def matrix_indices(matrix: np.ndarray, cluster: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean consensus between and (diagonal) within clusters 1 … K [K K], and its standard error, 0 from all pairs.

    Outliers (0) and pairs that were never drawn together are left out.
    """
    one_hot, (values, known) = _one_hot(cluster, K), known_pairs(matrix)
    total, n = one_hot.T @ values @ one_hot, one_hot.T @ known @ one_hot
    return total / np.maximum(n, 1), np.zeros((K, K))


def sampled_indices(
    labels: np.ndarray, cluster: np.ndarray, K: int, n_pairs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The same from n_pairs random pairs for every two clusters."""
    mean, se = np.zeros((K, K)), np.zeros((K, K))
    members = [np.flatnonzero(cluster == k + 1) for k in range(K)]
    for a in range(K):
        for b in range(a, K):
            i, j = rng.choice(members[a], n_pairs), rng.choice(members[b], n_pairs)
            values = pair_consensus(labels, i[i != j], j[i != j])
            values = values[np.isfinite(values)]
            mean[a, b] = mean[b, a] = values.mean()
            se[a, b] = se[b, a] = values.std(ddof=1) / np.sqrt(len(values))
    return mean, se


def item_consensus(matrix: np.ndarray, cluster: np.ndarray, K: int) -> np.ndarray:
    """Mean consensus of each row with the others of its own cluster [n]; NaN for outliers."""
    one_hot, (values, known) = _one_hot(cluster, K), known_pairs(matrix)
    total, n = values @ one_hot, known @ one_hot
    own = np.maximum(cluster - 1, 0)[:, None]
    mean = np.take_along_axis(total / np.maximum(n, 1), own, axis=1)[:, 0]
    return np.where(cluster > 0, mean, np.nan)


def item_consensus_by_map(labels: np.ndarray, cluster: np.ndarray, K: int) -> np.ndarray:
    """For tables too large for the matrix: averaged map by map instead of pair by pair."""
    total, n = np.zeros(len(cluster)), np.zeros(len(cluster))
    for row in labels:
        drawn = (row >= 0) & (cluster > 0)
        counts = np.zeros((K + 1, row.max() + 1))
        np.add.at(counts, (cluster[drawn], row[drawn]), 1.0)
        others = counts.sum(1)[cluster[drawn]] - 1
        total[drawn] += (counts[cluster[drawn], row[drawn]] - 1) / np.maximum(others, 1)
        n[drawn] += 1
    return np.where((cluster > 0) & (n > 0), total / np.maximum(n, 1), np.nan)


def cdf(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The share of pairs with a consensus of at most `at`."""
    known = np.sort(values[np.isfinite(values)])
    return np.searchsorted(known, at + 1e-9, side="right") / max(len(known), 1)


def pac(values: np.ndarray) -> float:
    """The proportion of ambiguous clustering: pairs neither mostly together nor mostly apart."""
    known = values[np.isfinite(values)]
    return float(((known > AMBIGUOUS[0]) & (known < AMBIGUOUS[1])).mean()) if len(known) else float("nan")


def random_pairs(n: int, n_pairs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different rows."""
    i = rng.integers(n, size=n_pairs)
    return i, (i + rng.integers(1, n, size=n_pairs)) % n


def _one_hot(cluster: np.ndarray, K: int) -> np.ndarray:
    return (cluster[:, None] == np.arange(1, K + 1)).astype(np.float64)
