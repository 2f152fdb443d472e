import numpy as np
import pytest

from plurigp.study.findings.consensus import (
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
from plurigp.study.findings.null import p_values, permuted_by_matrix, permuted_by_pairs, threshold

HAND = np.array([[0, 0, 1, -1], [0, 0, -1, 1], [0, 1, 1, 1]])  # three maps of four rows, −1 = not drawn


@pytest.fixture
def labels(rng):
    """Twelve maps of 30 rows in three clusters, a tenth of the rows misplaced, half of them drawn."""
    truth = np.repeat([0, 1, 2], 10)
    noisy = np.where(rng.random((12, 30)) < 0.1, rng.integers(3, size=(12, 30)), truth)
    return np.where(rng.random((12, 30)) < 0.5, noisy, -1)


def slow_consensus(labels):
    """Monti's definition, pair by pair."""
    n = labels.shape[1]
    matrix = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(n):
            both = [row for row in labels if row[i] >= 0 and row[j] >= 0]
            if both:
                matrix[i, j] = np.mean([row[i] == row[j] for row in both])
    return matrix


def test_by_hand():
    expected = [[1, 2 / 3, 0, 0], [2 / 3, 1, 0.5, 0.5], [0, 0.5, 1, 1], [0, 0.5, 1, 1]]
    np.testing.assert_allclose(consensus_matrix(HAND), expected, rtol=1e-6)


def test_matrix_and_pairs_are_montis(labels):
    slow = slow_consensus(labels)
    np.testing.assert_allclose(consensus_matrix(labels), slow, rtol=1e-6)
    i, j = random_pairs(30, 500, np.random.default_rng(0))
    assert (i != j).all()
    np.testing.assert_allclose(pair_consensus(labels, i, j), slow[i, j])


def test_never_drawn_together_is_not_a_number():
    matrix = consensus_matrix(np.array([[0, -1], [-1, 0]]))
    assert np.isnan(matrix[0, 1])
    assert matrix[0, 0] == 1


def test_indices_are_means_over_pairs(labels):
    matrix, cluster = slow_consensus(labels), np.repeat([1, 2, 0], 10)
    index, _ = matrix_indices(matrix, cluster, 2)
    for k in (1, 2):
        own = np.flatnonzero(cluster == k)
        pairs = [matrix[i, j] for i in own for j in own if i < j]
        assert index[k - 1, k - 1] == pytest.approx(np.nanmean(pairs))
    across = [matrix[i, j] for i in range(10) for j in range(10, 20)]
    assert index[0, 1] == pytest.approx(np.nanmean(across))


def test_sampled_indices_are_near_the_full_ones(labels):
    cluster = np.repeat([1, 2, 3], 10)
    full, _ = matrix_indices(consensus_matrix(labels), cluster, 3)
    sampled, se = sampled_indices(labels, cluster, 3, 4000, np.random.default_rng(1))
    assert (np.abs(sampled - full) < 4 * se).all()
    assert (se > 0).all()


def test_item_consensus(labels):
    matrix, cluster = slow_consensus(labels), np.repeat([1, 2, 0], 10)
    items = item_consensus(matrix, cluster, 2)
    expected = np.nanmean([matrix[4, j] for j in range(10) if j != 4])
    assert items[4] == pytest.approx(expected)
    assert np.isnan(items[20:]).all()
    by_map = item_consensus_by_map(labels, cluster, 2)
    assert np.abs(by_map[:20] - items[:20]).max() < 0.2
    assert np.isnan(by_map[20:]).all()


def test_cdf_and_pac_by_hand():
    values = np.array([0.0, 0.05, 0.1, 0.5, 0.9, 1.0, np.nan])
    np.testing.assert_allclose(cdf(values, np.array([0.0, 0.1, 0.9, 1.0])), [1 / 6, 3 / 6, 5 / 6, 1])
    assert pac(values) == pytest.approx(1 / 6)
    assert np.isnan(pac(np.array([np.nan])))


@pytest.mark.parametrize("complete", [True, False])
def test_permutations_are_indices_of_shuffled_labels(labels, complete):
    matrix = consensus_matrix(np.where(labels < 0, 0, labels) if complete else labels[:3])
    cluster = np.repeat([1, 2, 3], [15, 10, 5])
    draws = permuted_by_matrix(matrix, cluster, 3, 20, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    expected = [np.diag(matrix_indices(matrix, rng.permutation(cluster), 3)[0]) for _ in range(20)]
    np.testing.assert_allclose(draws, expected, rtol=1e-5)


def test_permutations_by_pairs_agree_on_average(labels):
    cluster = np.repeat([1, 2, 3], [15, 10, 5])
    by_matrix = permuted_by_matrix(consensus_matrix(labels), cluster, 3, 300, np.random.default_rng(0))
    by_pairs = permuted_by_pairs(labels, cluster, 3, 300, 20_000, np.random.default_rng(1))
    np.testing.assert_allclose(by_pairs.mean(0), by_matrix.mean(0), atol=0.02)


def test_threshold_is_bonferronis_quantile():
    draws = np.arange(1000.0).reshape(-1, 1) / 1000 * np.ones((1, 4))
    np.testing.assert_allclose(threshold(draws, 0.05), np.quantile(draws[:, 0], 1 - 0.05 / 4))
    np.testing.assert_allclose(p_values(draws, np.array([2.0, 0.0, 0.9985, 0.5])), np.array([1, 1001, 2, 501]) / 1001)
    assert np.isnan(p_values(np.zeros((0, 2)), np.ones(2))).all()
    assert np.isnan(threshold(np.zeros((0, 2)), 0.05)).all()
