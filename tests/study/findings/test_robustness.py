"""Half maps side by side: which rows each has seen, what they gain on the others, how well they agree."""

import numpy as np
import pytest

from plurigp.study.findings.robustness import Halves, agreement, dissolved, matched, pair_agreement
from plurigp.study.findings.valley import HISTOGRAM, Counts, combine_counts

N, K = 40, 3


def counts_of(middle, flank, widths=1.0, histogram=0.0, n=K) -> Counts:
    """Counts between n clusters, the same between all pairs unless matrices are given."""
    parts = [np.broadcast_to(np.asarray(part, float), (n, n)).copy() for part in (middle, flank, widths, 3.0)]
    return Counts(*parts, np.full((n, n, len(HISTOGRAM) - 1), float(histogram)))


def renamed(counts: Counts, names: np.ndarray) -> Counts:
    """What a half map that calls cluster k names[k] counts."""
    back = np.argsort(names)
    return Counts(*(part[back][:, back] for part in counts))


@pytest.fixture
def reference(rng):
    return rng.integers(K, size=N)


@pytest.fixture
def halves(rng, reference):
    """Two pairs of complementary halves, each with names of its own for the same clusters."""
    rows = []
    for _ in range(2):
        order = rng.permutation(N)
        rows += [np.sort(order[: N // 2]), np.sort(order[N // 2 :])]
    own = np.triu(rng.integers(5, 60, (K, K)), 1).astype(float)
    between = counts_of(own + own.T, np.array([[0, 50, 60], [70, 0, 80], [20, 30, 0]]))
    names = [rng.permutation(K) for _ in rows]
    labels = np.stack([name[reference] for name in names])
    counts = tuple(renamed(between, name) for name in names)
    return Halves(K, labels, rng.normal(size=(4, N)), tuple(rows), counts), between


def test_seen_and_drawn(halves):
    found, _ = halves
    for r, rows in enumerate(found.rows):
        np.testing.assert_array_equal(np.flatnonzero(found.seen[r]), rows)
        np.testing.assert_array_equal(found.drawn[r][rows], found.labels[r][rows])
        assert (np.delete(found.drawn[r], rows) == -1).all()
    np.testing.assert_array_equal(found.seen[0], ~found.seen[1])


def test_the_gain_is_that_of_maps_which_have_not_seen_the_row(halves):
    found, _ = halves
    expected = [np.mean([found.gains[r, n] for r in range(4) if n not in found.rows[r]]) for n in range(N)]
    np.testing.assert_allclose(found.unseen_gain(), expected)


def test_a_row_that_every_map_has_seen_gains_nothing():
    both = (np.arange(4), np.arange(4))
    found = Halves(1, np.zeros((2, 4), int), np.ones((2, 4)), both, (counts_of(0, 0, n=1),) * 2)
    np.testing.assert_array_equal(found.unseen_gain(), 0)


def test_valleys_are_those_of_matched_clusters(halves, reference):
    """Each half map has names of its own; in the reference's names all of them count the same."""
    found, between = halves
    expected = combine_counts([between] * 4)
    for part, value in vars(found.valleys(reference)).items():
        np.testing.assert_allclose(value, getattr(expected, part), err_msg=part)
    assert len(np.unique(expected.p)) == 1 + 3  # of three different pairs: a wrong match would show


def test_valleys_follow_the_names_of_the_reference(halves, reference):
    found, _ = halves
    names = np.array([2, 0, 1])
    before, after = found.valleys(reference), found.valleys(names[reference])
    np.testing.assert_allclose(after.p[np.ix_(names, names)], before.p)


def test_a_stratum_that_a_half_map_has_not_shows_no_valley():
    """Of four strata in a chain, the second is dissolved between its neighbours and the last one is cut in two.

    What is left to match the second with is a piece of the last, and rows are missing between that and the first.
    """
    reference = np.repeat([0, 1, 2, 3], 40)
    dissolved = np.repeat([0, 2, 3, 1], [60, 60, 20, 20])
    np.testing.assert_array_equal(matched(reference, dissolved, 4), range(4))
    rows, clear = (np.arange(80), np.arange(80, 160)), (counts_of(0, 50, n=4),) * 2

    def valleys(labels):
        return Halves(4, np.stack([labels] * 2), np.zeros((2, 160)), rows, clear).valleys(reference)

    assert (valleys(reference).p[1, [0, 2, 3]] < 1e-6).all()
    assert valleys(dissolved).p[0, 2] < 1e-6
    assert (valleys(dissolved).p[1, [0, 2, 3]] > 0.5).all()
    assert np.isnan(valleys(dissolved).separation[1, [0, 2, 3]]).all()
    assert valleys(dissolved).separation[0, 2] == 3


def test_a_half_map_without_a_stratum_does_not_bring_the_centres_closer():
    rows = (np.arange(20), np.arange(20, 40))
    reference = np.repeat([0, 1], 20)
    near, none = counts_of(0, 50, n=2), counts_of(0, 50, n=2)._replace(separation=np.zeros((2, 2)))
    found = Halves(2, np.stack([reference] * 2), np.zeros((2, 40)), rows, (near, none)).valleys(reference)
    np.testing.assert_array_equal(found.separation, [[0, 3], [3, 0]])


def test_agreement_by_hand():
    first, second = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(agreement(first, second, 2, 0.0), [[3 / 6, 1], [1, 1 / 3]])


def test_agreement_counts_pairs(rng):
    first, second = rng.integers(4, size=60), rng.integers(4, size=60)
    found = agreement(first, second, 4, 0.0)
    for k in range(4):
        own = np.flatnonzero(first == k)
        kept = [second[i] == second[j] for i in own for j in own if i < j]
        assert found[0, k] == pytest.approx(np.mean(kept))
    np.testing.assert_allclose(agreement(second, first, 4, 0.0), found[::-1])
    assert agreement(first, first, 4, 0.0).min() == 1
    np.testing.assert_array_equal(agreement(np.zeros(9, int), np.zeros(9, int), 2, 0.1), [[1, 0], [1, 0]])


def test_pairs_of_complementary_halves_are_compared(rng):
    labels = rng.integers(K, size=(6, N))
    halves = Halves(K, labels, np.zeros((6, N)), (np.arange(N // 2),) * 6, ())
    found = pair_agreement(halves, 0.1)
    assert found.shape == (3, 2, K)
    for pair in range(3):
        np.testing.assert_array_equal(found[pair], agreement(labels[2 * pair], labels[2 * pair + 1], K, 0.1))


def test_matched_undoes_a_renaming(rng):
    labels = rng.integers(5, size=200)
    names = rng.permutation(5)
    np.testing.assert_array_equal(matched(labels, names[labels], 5), names)


def test_dissolved_by_hand():
    """Half of the rows in either is the same cluster still."""
    reference, other = np.repeat([0, 1, 2], [4, 4, 4]), np.array([0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2])
    np.testing.assert_array_equal(dissolved(reference, other, np.arange(3)), [False, False, False])
    np.testing.assert_array_equal(dissolved(reference, other, np.array([1, 0, 2])), [True, True, False])
    other[0] = 2
    np.testing.assert_array_equal(dissolved(reference, other, np.arange(3)), [True, False, False])


def test_matched_is_one_to_one_where_a_cluster_is_missing():
    """Two clusters of the reference are one of the other, which has an empty one."""
    found = matched(np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 1, 1, 1, 0]), 3)
    np.testing.assert_array_equal(np.sort(found), range(3))
    assert found[0] == 1
    assert found[2] == 0


def test_a_cluster_is_found_again_in_half_of_the_half_maps():
    """Of three clusters the last is cut up in three of four half maps, the second in two."""
    reference = np.repeat([0, 1, 2], 40)
    cut_up = np.tile([0, 1, 2, 1], 10)
    no_third, neither = np.r_[reference[:80], cut_up], np.r_[reference[:40], np.tile([0, 1, 2, 0], 20)]
    labels = np.stack([reference, no_third, neither, neither])
    found = Halves(3, labels, np.zeros((4, 120)), (np.arange(60),) * 4, ())
    np.testing.assert_array_equal(found.found_again(reference), [True, True, False])
