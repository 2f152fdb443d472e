"""What a study keeps of a fit: the evidence for groups, half maps; batches that all fits share; how long they train."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from plurigp.inference.schedule import enough_epochs
from plurigp.study.findings.cluster import Starts, fit_mixture
from plurigp.study.findings.valley import HISTOGRAM, Counts
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.learn import _halves_of, refit_tasks
from plurigp.study.fits.tasks import (
    GAIN_ROWS,
    PASSES,
    Finished,
    Task,
    _half_map,
    common_batch,
    fitting_batch,
    group_gain,
    most_clusters,
    training_rows,
)

CONFIG = StudyConfig()


@pytest.mark.parametrize("n_rows", [60, 61, 700, 1001, 1400, 3000, 9105, 9106, 123_457])
def test_halves_and_table_share_a_batch_that_they_fill(n_rows):
    batch = common_batch(n_rows, CONFIG)
    assert batch <= CONFIG.batch_size + 1
    for n in (n_rows, n_rows // 2):
        assert fitting_batch(n, batch) == batch
        n_batches = -(-n // batch)
        assert n > (n_batches - 1) * batch  # the last batch is there
        assert n_batches * batch - n <= max(2, n_batches)  # and lacks a row or so per batch at most


@pytest.mark.parametrize(("n", "batch", "expected"), [(10, 500, 10), (560, 350, 280), (2400, 300, 300), (7, 3, 3)])
def test_other_numbers_of_rows_are_cut_evenly(n, batch, expected):
    assert fitting_batch(n, batch) == expected


def test_selection_learns_from_whole_batches_of_a_large_table():
    batch = common_batch(9105, CONFIG)
    rows = training_rows(9105, CONFIG)
    assert len(rows) % batch == 0
    assert 0.9 * 0.8 * CONFIG.selection_rows < len(rows) <= 0.8 * CONFIG.selection_rows
    assert len(np.unique(rows)) == len(rows)
    assert len(training_rows(700, CONFIG)) == 560


def test_passes_are_fewer_where_each_has_many_steps():
    assert [enough_epochs(500 * n, 500, PASSES) for n in (1, 6, 10, 20, 200)] == [100, 100, 60, 50, 50]


# --- evidence for groups ---


def planted(rng, n=300, apart=6.0):
    """Three Gaussians of equal sizes, and which of them each row is from."""
    group = np.arange(n) % 3
    return apart * np.array([[0, 0], [1, 0], [0, 1.0]])[group] + rng.normal(size=(n, 2)), group


def test_groups_add_evidence_and_one_gaussian_has_none(rng):
    x, group = planted(rng)
    config = StudyConfig(max_subtypes=4)
    gain = group_gain(x, config, 0)
    separate = sum(multivariate_normal(x[group == k].mean(0), np.cov(x[group == k].T)).logpdf(x[group == k]).sum()
                   for k in range(3)) - 300 * np.log(3)  # fmt: skip
    one = multivariate_normal(x.mean(0), np.cov(x.T)).logpdf(x).sum()
    cheapest, dearest = (
        np.log(300) / 2 * n for n in (2 + 4, 2 + 4 + 6)
    )  # further parameters, common covariance or not
    assert separate - one - dearest - 5 < gain < separate - one - cheapest + 5
    assert gain > 200
    assert group_gain(rng.normal(size=(300, 2)), config, 0) < 5
    for seed in range(3):
        assert group_gain(rng.standard_t(2, (80, 2)), config, seed) >= 0


def test_the_gain_of_many_rows_is_scaled_from_some(rng):
    x, _ = planted(rng, GAIN_ROWS + 500)
    few = StudyConfig(max_subtypes=3)
    whole, part = group_gain(x, few, 0), group_gain(x[:GAIN_ROWS], few, 0)
    assert whole == pytest.approx(part * 1.5, rel=0.1)


def test_fewer_rows_than_clusters_asked_for(rng):
    """selection_rows and test_share may leave hardly any."""
    assert group_gain(rng.normal(size=(4, 2)), StudyConfig(n_subtypes=6), 0) >= 0


@pytest.mark.parametrize(
    ("n", "settings", "expected"),
    [
        (60, {}, 4),
        (149, {}, 9),
        (1000, {}, 10),
        (1000, {"max_subtypes": 3}, 3),
        (20, {}, 2),  # two are always tried
        (60, {"n_subtypes": 6}, 6),  # and the number asked for
        (1000, {"n_subtypes": 12, "max_subtypes": 5}, 12),
        (60, {"n_subtypes": "paper"}, 4),
    ],
)
def test_how_many_clusters_are_tried(n, settings, expected):
    assert most_clusters(n, StudyConfig(**settings)) == expected


# --- a half map ---


@pytest.fixture
def half(rng):
    """Positions of 300 rows in three groups, the half of them that a map was learned from, and what it keeps."""
    x, group = planted(rng)
    sd = rng.uniform(0.05, 0.2, x.shape)
    task = Task("refit-000", 2, np.sort(rng.permutation(300)[:150]), n_clusters=3, shrinkage=8.0)
    return x, sd, group, task, _half_map(task, x, sd, 1)


def test_a_half_map_labels_all_rows_by_its_own(half):
    x, sd, group, task, arrays = half
    assert arrays["labels"].dtype == np.int16
    assert set(arrays["labels"]) == {0, 1, 2}
    names = [np.bincount(arrays["labels"][group == k]).argmax() for k in range(3)]
    assert sorted(names) == [0, 1, 2]
    assert (np.array(names)[group] == arrays["labels"]).mean() > 0.97
    np.testing.assert_array_equal(arrays["rows"], task.rows)
    moved = x.copy()
    unseen = np.setdiff1d(np.arange(300), task.rows)
    moved[unseen] = 50.0  # whatever the others do
    again = _half_map(task, moved, sd, 1)
    np.testing.assert_array_equal(again["gains"][task.rows], arrays["gains"][task.rows])


def test_gains_are_log_densities_over_one_gaussian(half):
    x, _, group, task, arrays = half
    own = x[task.rows]
    one = multivariate_normal(own.mean(0), np.cov(own.T, bias=True)).logpdf(x)
    parts = [x[task.rows][group[task.rows] == k] for k in range(3)]
    three = np.log(sum(multivariate_normal(part.mean(0), np.cov(part.T)).pdf(x) * len(part) / 150 for part in parts))
    unseen = np.setdiff1d(np.arange(300), task.rows)
    assert arrays["gains"].dtype == np.float32
    assert arrays["gains"][unseen].mean() == pytest.approx((three - one)[unseen].mean(), abs=0.1)
    assert np.corrcoef(arrays["gains"], three - one)[0, 1] > 0.97
    assert arrays["gains"][unseen].mean() > 0.5


def test_counts_of_a_half_map_are_those_between_its_clusters(half):
    *_, task, arrays = half
    seen = np.isin(np.arange(300), task.rows)
    counts = Counts(**{name: arrays[f"between.{name}"] for name in Counts._fields})
    assert counts.histogram.shape == (3, 3, len(HISTOGRAM) - 1)
    assert counts.histogram[0, 1].sum() <= (~seen & np.isin(arrays["labels"], [0, 1])).sum()
    off = ~np.eye(3, dtype=bool)
    assert (counts.widths[off] > 0).all()
    assert (counts.separation[off] > 4).all()
    assert (counts.middle[off] < counts.flank[off] / 2).all()


def test_one_cluster_has_nothing_between(half):
    x, sd, _, task, _ = half
    arrays = _half_map(Task("refit-000", 2, task.rows, n_clusters=1, shrinkage=0.0), x, sd, 1)
    assert not arrays["labels"].any()
    np.testing.assert_allclose(arrays["gains"], 0, atol=1e-5)
    assert arrays["between.middle"].shape == (1, 1)


def test_clusters_of_a_half_map_are_those_it_starts_from(half):
    """Whatever their order."""
    x, sd, group, task, _ = half
    shares = np.eye(3)[[2, 0, 1]][group]
    arrays = _half_map(replace(task, shares=shares), x, sd, 1)
    assert (np.array([2, 0, 1])[group] == arrays["labels"]).mean() > 0.97


def test_rows_of_a_cluster_that_dissolves_are_counted_among_the_others(half):
    """The map has a fourth cluster, which is a part of two groups; here it is found nowhere, and its rows stay where
    they are."""
    x, sd, group, task, arrays = half
    strangers = np.isin(np.arange(300) % 10, (0, 1)) & (group < 2)
    shares = np.where(strangers[:, None], np.eye(4)[3], np.eye(4)[group])
    found = _half_map(replace(task, shares=shares), x, sd, 1)
    gone = found["between.widths"][3]
    np.testing.assert_array_equal(gone, 0)
    names = [np.bincount(arrays["labels"][group == k]).argmax() for k in range(3)]
    of_three = arrays["between.histogram"][np.ix_(names, names)].sum(2)
    np.testing.assert_allclose(found["between.histogram"][:3, :3].sum(2), of_three, atol=6)


def test_a_switched_off_dimension_does_not_count(half):
    """Its means are noise, here in two clumps: clusters and counts are those of the other dimensions."""
    x, sd, _, task, arrays = half
    noise = np.where(np.arange(300) % 2, 0.1, -0.1)[:, None]
    wider = _half_map(task, np.hstack([x, noise]), np.hstack([sd, np.full((300, 1), 0.98)]), 1)
    assert wider.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(wider[name], array)


def test_half_maps_of_planted_groups_find_them_again(rng):
    """From tasks to valleys: two pairs of halves, three groups, no map in between."""
    x, group = planted(rng)
    config = StudyConfig(n_refits=4)
    cut = fit_mixture(x, 3, Starts(x, 0), (8.0,))
    tasks = refit_tasks(config, 2, cut, (x, np.full(x.shape, 0.1)))
    assert [task.name for task in tasks] == [f"refit-00{r}" for r in range(4)]
    assert {(task.shrinkage, task.n_components, task.shares.shape) for task in tasks} == {(8.0, 2, (300, 3))}
    for first, second in (tasks[:2], tasks[2:]):
        np.testing.assert_array_equal(np.sort(np.concatenate([first.rows, second.rows])), np.arange(300))
    sd = np.full(x.shape, 0.1)
    halves = _halves_of(3, [Finished(_half_map(task, x, sd, seed), {}) for seed, task in enumerate(tasks)])
    assert halves.unseen_gain().mean() > 0.5
    valleys = halves.valleys(group)
    off = ~np.eye(3, dtype=bool)
    assert (valleys.p[off] < 1e-3).all()
    assert (valleys.depth[off] < 0.5).all()
