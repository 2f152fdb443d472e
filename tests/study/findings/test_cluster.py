import numpy as np
import pytest

from plurigp.study.findings.cluster import _by_size, fixed_mixture, half_labels, paper_mixture
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.robustness import Choice, agreement, fewest_references, matched


@pytest.fixture
def cloud(rng):
    """Three clusters of 200, 100 and 60 rows, and 4 rows far away."""
    centres = np.repeat([[0, 0], [8, 0], [0, 8], [30, 30]], [200, 100, 60, 4], axis=0)
    return centres + rng.normal(size=centres.shape)


def test_subtypes_by_size_and_outliers(cloud):
    mixture = fixed_mixture(cloud, 4, "full", 5, 0.05, seed=0)
    subtype, probability = memberships(mixture, cloud)
    np.testing.assert_array_equal(subtype, np.repeat([1, 2, 3, 0], [200, 100, 60, 4]))
    assert probability.shape == (364, 3)
    assert (probability[:200, 0] > 0.9).mean() > 0.98
    assert probability[-1].sum() < 0.5


def test_shared_covariance_is_shared(cloud):
    mixture = fixed_mixture(cloud, 3, "tied", 3, 0.05, seed=0)
    np.testing.assert_array_equal(mixture.covariances[0], mixture.covariances[2])


def test_one_cluster_is_everybody(cloud):
    subtype, probability = memberships(fixed_mixture(cloud, 1, "tied", 1, 0.05, 0), cloud)
    assert (subtype == 1).all()
    np.testing.assert_allclose(probability, 1)


def test_the_papers_rule_finds_separate_clusters(cloud):
    mixture = paper_mixture(cloud, 20, 2, 0.05, seed=0)
    assert len(mixture.weights) == 20
    assert mixture.subtype.max() == 3


def test_half_labels_follow_the_map(cloud):
    rows = np.arange(0, len(cloud) - 4, 2)
    labels = half_labels(cloud, np.zeros_like(cloud), rows, 3, "tied", 0)
    assert len(labels) == len(cloud)
    assert all(len(np.unique(part)) == 1 for part in (labels[:200], labels[200:300], labels[300:360]))


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


def test_matched_undoes_a_renaming(rng):
    labels = rng.integers(5, size=200)
    names = rng.permutation(5)
    np.testing.assert_array_equal(matched(labels, names[labels], 5), names)


def choice(stability, reference, level=0.05):
    stability = np.asarray(stability, float)
    return Choice(np.arange(2, 2 + len(stability)), stability, np.asarray(reference, float), level, stability)


def test_the_number_of_clusters_with_the_largest_gain_is_chosen():
    reference = np.tile([0.6, 0.4, 0.3], (19, 1)) + np.linspace(-0.05, 0.05, 19)[:, None]
    found = choice([0.7, 0.95, 0.5], reference)
    assert found.structured
    assert found.p == pytest.approx(1 / 20)
    assert found.described == 3
    frame = found.frame(found.described)
    assert frame.loc[frame["chosen"], "n_clusters"].tolist() == [3]
    np.testing.assert_allclose(frame["p"], 1 / 20)


def test_a_clear_gain_is_found_beside_a_larger_but_unclear_one(rng):
    """Two clusters vary much from table to table, so a gain there is no news; five vary little."""
    reference = np.stack([rng.normal(0.6, 0.15, 39), rng.normal(0.36, 0.03, 39)], axis=1)
    found = choice([0.85, 0.54], reference)
    assert found.p_by_number[0] > 0.05
    assert found.structured
    assert found.described == 3  # the second of the numbers tried
    assert found.p == found.p_by_number[1] == pytest.approx(1 / 40)


def test_adjusted_p_values_by_hand():
    reference = np.array([[0.1, 0.5], [0.3, 0.1], [0.2, 0.3]])
    found = choice([0.4, 0.2], reference)
    pooled = np.array([[0.1, 0.5], [0.3, 0.1], [0.2, 0.3], [0.4, 0.2]])
    z = (pooled - pooled.mean(0)) / pooled.std(0, ddof=1)
    expected = [(1 + sum(max(row) >= z[3, k] for row in z[:3])) / 4 for k in range(2)]
    np.testing.assert_allclose(found.p_by_number, expected)


def test_an_average_over_pairs_is_not_held_against_single_pairs():
    """Nine pairs in ten agree by nothing: their average lies above most single ones without any structure."""
    reference = np.zeros((19, 1))
    found = Choice(np.array([2]), np.array([0.06]), reference, 0.05, np.array([0.0]))
    assert found.p == 1
    assert found.structured is False


def test_a_continuum_is_described_by_the_number_with_the_clearest_gain():
    """In units of its spread: here that of two clusters, beside a larger one of three that vary ten times as much."""
    spread = np.linspace(-1, 1, 19)[:, None] * [0.02, 0.2, 0.05]
    found = choice([0.615, 0.5, 0.3], np.array([0.6, 0.4, 0.3]) + spread)
    assert found.structured is False
    assert found.p_by_number.argmin() == 0
    np.testing.assert_allclose(found.gain, np.array([0.015, 0.1, 0.0]) * 19 / 20, atol=1e-12)
    assert found.described == 2
    assert found.frame(found.described).query("chosen")["n_clusters"].tolist() == [2]


def test_too_few_structureless_tables_cannot_tell():
    """With four of them no p-value is below 1/5, so that no table could pass: no verdict is better than a wrong one."""
    reference = np.tile([0.6, 0.4], (4, 1)) + np.linspace(-0.05, 0.05, 4)[:, None]
    found = choice([0.62, 0.95], reference)
    assert found.p == pytest.approx(1 / 5)
    assert found.structured is None
    assert found.described == 3
    assert choice([0.62, 0.95], reference, level=0.2).structured is True
    assert choice([0.62, 0.42], reference, level=0.2).structured is False


@pytest.mark.parametrize("level", [0.01, 0.05, 0.1, 0.3, 0.4, 0.5])
def test_the_fewest_structureless_tables(level):
    n = fewest_references(level)
    assert 1 / (1 + n) <= level + 1e-12
    assert 1 / n > level


def test_without_a_reference_nothing_is_claimed():
    found = choice([0.6, 0.9], np.zeros((0, 2)))
    assert found.structured is None
    assert np.isnan(found.p)
    assert found.described == 3
    assert found.frame(3)["p"].isna().all()


def test_the_test_has_its_level_for_exchangeable_tables(rng):
    """The p-value of one table among twenty alike is uniform on 1/20, 2/20, …"""
    draws = rng.normal(size=(2000, 20, 5)) * [0.1, 0.05, 0.02, 0.02, 0.01]
    p = [choice(d[0], d[1:]).p for d in draws]
    assert abs(np.mean(np.array(p) <= 0.05 + 1e-9) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_numbers_follow_the_sizes_of_the_final_labels(rng):
    """Rows beside a narrow cluster belong to the wide one by their means, and to the narrow one if they are vague."""
    x = np.concatenate([rng.normal(0, 0.2, 60), np.full(15, 1.2), rng.normal(4, 1.5, 50)])[:, None]
    sd = np.repeat([0.05, 1.0, 0.05], [60, 15, 50])[:, None]
    fitted = Mixture(np.full(2, 0.5), np.array([[0.0], [4.0]]), np.array([[[0.04]], [[2.25]]]), np.array([1, 2]))
    mixture = _by_size(fitted, x, sd, 0.05)
    by_mean, final = (np.bincount(memberships(mixture, x, spread)[0])[1:] for spread in (None, sd))
    assert by_mean[0] < by_mean[1]
    assert final[0] > final[1]


@pytest.mark.parametrize("seed", range(5))
def test_no_subtype_is_smaller_than_an_outlier_may_be(seed):
    rng = np.random.default_rng(seed)
    x, sd = rng.normal(size=(300, 2)), rng.uniform(0.1, 1.0, (300, 2))
    mixture = paper_mixture(x, 20, 1, 0.08, seed, sd)
    sizes = np.bincount(memberships(mixture, x, sd)[0], minlength=mixture.subtype.max() + 1)[1:]
    assert (sizes[1:] >= 0.08 * 300).all()
    assert (np.diff(sizes) <= 0).all()
