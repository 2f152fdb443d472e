"""From half maps to subtypes: strata, groups, what each stratum is; on maps made by hand, without a model."""

import numpy as np
import pandas as pd
import pytest

from plurigp.study.findings.cluster import Clusters, Starts, by_size, fit_mixture, paper_mixture
from plurigp.study.findings.mixture import Mixture, memberships, responsibilities
from plurigp.study.findings.valley import HISTOGRAM, Valleys
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.learn import Maps, _halves_of, cut_map, in_background, reference_tasks, refit_tasks
from plurigp.study.fits.tasks import Finished, Task, _half_map
from plurigp.study.subtypes import (
    GROUP,
    PART,
    REST,
    _by_rows,
    _goes_with,
    _groups_of,
    components_of,
    find_subtypes,
    kinds_of,
    valley_frame,
)


def maps_of(x: np.ndarray, config: StudyConfig) -> Maps:
    """All maps of a table show the rows at the same positions x."""
    N, sd = len(x), np.full(x.shape, 0.1)
    paper = in_background(lambda: paper_mixture(x, config.max_clusters, 1, config.outlier_share, 0))
    ladder, cut = cut_map(x, sd, config, paper)
    tasks = refit_tasks(config, 2, cut, (x, sd)), reference_tasks(N, config, 2, cut)
    halves = [[Finished(_half_map(task, x, sd, 1), {}) for task in own] for own in tasks]
    whole = Task("map-0", 2, np.arange(N))
    latent = Finished({"mean": x, "sd": sd}, {})
    references = [_halves_of(cut.n_clusters, halves[1][r : r + 2]) for r in range(0, len(halves[1]), 2)]
    found = paper.result(), ladder, cut, _halves_of(cut.n_clusters, halves[0]), references
    return Maps(pd.DataFrame(), whole, whole, latent, *found, pd.DataFrame(), [])


def settings(**more) -> StudyConfig:
    return StudyConfig(**{"n_refits": 6, "max_subtypes": 4, "n_permutations": 50, "max_clusters": 6} | more)


def clouds(rng, centres, sizes):
    return np.repeat(np.asarray(centres, float), sizes, axis=0) + rng.normal(size=(sum(sizes), 2))


@pytest.fixture(scope="module")
def three():
    """Groups of 60, 160 and 90 rows at 0, 6 and 15, and 4 rows far away; the study cuts the map into four."""
    x = clouds(np.random.default_rng(0), [[0, 0], [6, 0], [15, 0], [5, 40]], [60, 160, 90, 4])
    config = settings(n_subtypes=4, n_references=2)
    maps = maps_of(x, config)
    return maps, config, find_subtypes(maps, config)


def test_separate_groups_are_found(three):
    maps, _, found = three
    np.testing.assert_array_equal(found.clusters.subtype, np.repeat([3, 1, 2, 0], [60, 160, 90, 4]))
    assert maps.cut.n_clusters == 4
    assert found.structured
    assert found.p < 1e-3
    assert found.group.tolist() == [1, 2, 3]
    assert found.pac < 0.05
    frame = found.frame
    assert frame["size"].tolist() == [160, 90, 60]
    np.testing.assert_allclose(frame["share"], frame["size"] / 314)
    assert frame["kind"].tolist() == [GROUP] * 3
    assert frame["robust"].all()
    for name in ("agreement", "index", "certainty"):
        assert (frame[name] > 0.9).all()
    assert (frame["unseen_gain"] > 0.2).all()
    assert (frame["permutation_p"] == 1 / 51).all()


def test_valleys_are_in_the_order_of_the_strata(three):
    """Stratum 1 lies at 6, 2 at 15, 3 at 0: the valleys of half maps, whatever they call their clusters, say so."""
    _, _, found = three
    at = np.array([6, 15, 0])
    distances = np.abs(at[:, None] - at)
    np.testing.assert_allclose(found.valleys.separation, distances, rtol=0.2)
    assert found.frame["nearest"].tolist()[1:] == [1, 1]
    line = found.frame.iloc[2]
    assert line["separation"] == found.valleys.separation[2, 0]
    assert line["depth"] == found.valleys.depth[2, 0] < 0.3
    assert line["valley_p"] == found.valleys.p[2].max(where=np.arange(3) != 2, initial=0)


def test_every_reference_gets_its_p_value(three):
    """Here the structureless tables have the groups of the real one, and half maps of each find them again.

    The four rows far away are outliers there too: there is no valley between so few and a group, and if they counted
    they would join all groups.
    """
    maps, _, found = three
    assert found.nulls.reference.shape == (2,)
    assert (found.nulls.reference < 0.05).all()
    assert len(maps.references[0].labels) == 2


def test_sampled_pairs_say_the_same(three):
    maps, _, found = three
    config = settings(n_subtypes=4, consensus_rows=100, sampled_pairs=20_000)
    sampled = find_subtypes(maps, config)
    assert (found.sampled_pairs, sampled.sampled_pairs) == (0, 20_000)
    np.testing.assert_allclose(sampled.frame["index"], found.frame["index"], atol=0.02)
    assert (sampled.frame["index_se"] >= 0).all()
    assert sampled.pac == pytest.approx(found.pac, abs=0.02)
    assert sampled.frame["robust"].all()
    assert sampled.p == found.p


def test_without_permutations_a_group_is_robust_by_its_valley(three):
    maps, _, _ = three
    frame = find_subtypes(maps, settings(n_subtypes=4, n_permutations=0)).frame
    assert frame["permutation_threshold"].isna().all()
    assert frame["robust"].all()


def test_a_group_no_more_coherent_than_shuffled_labels_is_not_robust(three, monkeypatch):
    maps, config, _ = three
    monkeypatch.setattr("plurigp.study.findings.null.threshold", lambda draws, level: np.array([2.0, 0.0, 0.0]))
    frame = find_subtypes(maps, config).frame
    assert frame["kind"].tolist() == [GROUP] * 3
    assert frame["robust"].tolist() == [False, True, True]


@pytest.mark.parametrize("seed", range(3))
def test_one_gaussian_is_a_continuum(seed):
    config = settings(random_state=seed)
    found = find_subtypes(maps_of(np.random.default_rng(seed).normal(size=(240, 2)), config), config)
    assert not found.structured
    assert found.p > 0.05
    assert set(found.group) == {1}
    assert set(found.frame["kind"]) == {PART}
    assert not found.frame["robust"].any()
    assert found.clusters.n_strata >= 1


def test_a_group_beside_a_continuum_of_two_strata(rng):
    line = np.column_stack([rng.uniform(-6, 6, 260), rng.normal(size=260)])
    config = settings(n_subtypes=3)
    found = find_subtypes(maps_of(np.concatenate([line, clouds(rng, [[0, 9]], [80])]), config), config)
    assert found.frame["kind"].tolist() == [PART, PART, GROUP]
    assert found.group.tolist() == [1, 1, 2]
    assert found.frame["robust"].tolist() == [False, False, True]
    assert found.structured
    frame = valley_frame(found.valleys, found.group)
    assert frame["apart"].tolist() == [False, True, True]


def test_what_is_left_beside_a_small_group_is_no_group_itself(rng):
    config = settings(n_subtypes=2)
    found = find_subtypes(maps_of(clouds(rng, [[0, 0], [7, 0]], [340, 60]), config), config)
    assert found.structured
    assert found.frame["kind"].tolist() == [REST, GROUP]
    assert found.frame["robust"].tolist() == [False, True]


def test_one_stratum_asked_for(rng):
    config = settings(n_subtypes=1)
    found = find_subtypes(maps_of(rng.normal(size=(100, 2)), config), config)
    assert (found.p, found.structured, found.group.tolist()) == (1.0, False, [1])
    assert found.frame["valley_p"].tolist() == [1.0]
    assert not found.frame["robust"].any()
    assert len(valley_frame(found.valleys, found.group)) == 0


def test_the_papers_mixture_is_taken_as_it_is(rng):
    config = settings(n_subtypes="paper")
    maps = maps_of(clouds(rng, [[0, 0], [8, 0]], [200, 100]), config)
    assert maps.n_paper == 2
    assert len(maps.paper.weights) == 6
    found = find_subtypes(maps, config)
    assert found.clusters.mixture is maps.paper
    assert found.frame["kind"].tolist() == [GROUP] * 2
    assert (found.frame["agreement"] > 0.95).all()


# --- parts ---


def test_components_of_strata_and_outliers(rng):
    """Half maps are cut into as many clusters as the map had, outliers' included: those must find their match too."""
    x = clouds(rng, [[0, 0], [9, 0], [0, 9], [40, 40]], [60, 160, 90, 5])
    cut = fit_mixture(x, 4, Starts(x, 0)).mixture
    mixture = by_size(cut, x, None, 0.05)
    clusters = Clusters(*memberships(mixture, x), mixture)
    component, strata = components_of(clusters, cut, x, np.zeros(x.shape))
    np.testing.assert_array_equal(component, responsibilities(mixture, x).argmax(1))
    assert set(component) == {0, 1, 2, 3}
    assert clusters.n_strata == len(strata) == 3
    for k, own in enumerate(strata):
        np.testing.assert_array_equal(component == own, clusters.subtype == k + 1)
    assert not np.isin(component[-5:], strata).any()


def test_components_of_the_papers_mixture(rng):
    """Its small components are nobody's match: their rows go to the likeliest stratum."""
    means = np.array([[30.0, 0], [0, 0], [9, 0], [0, 30]])
    mixture = Mixture(np.array([0.01, 0.4, 0.58, 0.01]), means, np.stack([np.eye(2)] * 4), np.array([0, 2, 1, 0]))
    x = clouds(rng, [[9, 0], [0, 0], [30, 0], [0, 30]], [50, 40, 2, 2])
    clusters = Clusters(*memberships(mixture, x), mixture)
    component, strata = components_of(clusters, mixture, x, None)
    np.testing.assert_array_equal(strata, [0, 1])
    np.testing.assert_array_equal(component[:90], np.repeat([0, 1], [50, 40]))
    np.testing.assert_array_equal(component[90:], [0, 0, 1, 1])
    assert (clusters.subtype[90:] == 0).all()


@pytest.mark.parametrize(
    ("group", "sizes", "expected"),
    [
        ([0, 1, 1], [50, 40, 30], [2, 1, 1]),  # together they are the largest
        ([0, 1, 2], [50, 40, 30], [1, 2, 3]),
        ([2, 0, 1, 0], [50, 20, 30, 20], [1, 2, 3, 2]),
        ([0, 1], [30, 30], [1, 2]),  # of equals the first
        ([0, 0], [3, 1], [1, 1]),
    ],
)
def test_groups_are_numbered_by_their_rows(group, sizes, expected):
    np.testing.assert_array_equal(_by_rows(np.array(group), np.array(sizes)), expected)


@pytest.mark.parametrize(
    ("group", "shares", "expected"),
    [
        ([1, 2], [0.8, 0.2], [REST, GROUP]),
        ([1, 2], [0.75, 0.25], [GROUP, GROUP]),  # above three quarters, not from there on
        ([1, 1, 2], [0.5, 0.3, 0.2], [PART, PART, GROUP]),
        ([1, 1, 2], [0.8, 0.1, 0.1], [PART, PART, GROUP]),
        ([1, 2, 3], [0.4, 0.3, 0.3], [GROUP] * 3),
        ([1, 1], [0.9, 0.1], [PART, PART]),
        ([1], [1.0], [PART]),
    ],
)
def test_what_a_stratum_is(group, shares, expected):
    assert kinds_of(np.array(group), np.array(shares)).tolist() == expected


def test_one_line_for_every_two_strata(rng):
    p, depth, separation = rng.random((3, 3, 3))
    frame = valley_frame(Valleys(p, depth, separation, np.zeros((3, 3, len(HISTOGRAM) - 1))), np.array([1, 2, 1]))
    assert frame[["subtype", "other"]].to_numpy().tolist() == [[1, 2], [1, 3], [2, 3]]
    for name, part in (("p", p), ("depth", depth), ("separation", separation)):
        assert frame[name].tolist() == [part[0, 1], part[0, 2], part[1, 2]]
    assert frame["apart"].tolist() == [True, False, True]


def test_a_stratum_that_is_not_found_again_joins_no_others():
    """Of three strata the last lies between the others in the map, and half maps have no such stratum."""
    p = np.array([[1, 1e-6, 0.8], [1e-6, 1, 0.8], [0.8, 0.8, 1]])
    subtype = np.repeat([1, 2, 3], 4)
    probability = np.repeat([[0.9, 0.0, 0.1], [0.0, 0.9, 0.1], [0.1, 0.2, 0.7]], 4, axis=0)
    mixture = Mixture(np.ones(3) / 3, np.zeros((3, 2)), np.stack([np.eye(2)] * 3), np.arange(1, 4))
    clusters = Clusters(subtype, probability, mixture)
    np.testing.assert_array_equal(_goes_with(np.array([True, True, True]), clusters), [0, 1, 2])
    owner = _goes_with(np.array([True, True, False]), clusters)
    np.testing.assert_array_equal(owner, [0, 1, 1])  # its rows are likelier to be in the second
    assert _groups_of(p, np.arange(3), 0.05)[0].max() == 0
    group, found = _groups_of(p, owner, 0.05)
    assert group[0] != group[1] == group[2]
    assert found == pytest.approx(1e-6)
    np.testing.assert_array_equal(_goes_with(np.array([False, False, False]), clusters), [0, 0, 0])
    assert _groups_of(p, np.zeros(3, int), 0.05)[1] == 1
