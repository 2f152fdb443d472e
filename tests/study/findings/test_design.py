"""Weighted and clustered rows: as Welch, repeated rows and statsmodels where they must be, and calibrated."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from plurigp import DataError
from plurigp.data import Column, to_rows
from plurigp.data.rows import CellBounds
from plurigp.study.findings import contrasts, design, weighted
from plurigp.study.findings.design import Design
from plurigp.study.findings.survival import excess_events, kaplan_meier, survival_curve, weighted_survival


@pytest.fixture
def two_groups(rng) -> tuple[np.ndarray, np.ndarray]:
    inside = rng.random(90) < 0.4
    return rng.normal(size=90) * np.where(inside, 2.0, 0.7) + inside, inside


def plain(n: int) -> Design:
    return Design(np.ones(n), np.arange(n))


def whole(rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights 1 to 3, and the row numbers that they repeat."""
    w = rng.integers(1, 4, n).astype(float)
    return w, np.repeat(np.arange(n), w.astype(int))


def test_equal_weights_and_no_clusters_are_welchs_t(two_groups):
    z, inside = two_groups
    ours = weighted.contrast_of_means(contrasts.MEAN_DIFFERENCE, z, inside, plain(90))
    theirs = contrasts.welch(z[inside], z[~inside])
    for name in ("inside", "outside", "estimate", "low", "high", "statistic", "p", "effect"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-9), name


def test_shares_of_equal_rows_have_the_odds_ratio_of_counts(rng):
    inside = np.arange(80) < 30
    yes = (rng.random(80) < np.where(inside, 0.7, 0.3)).astype(float)
    ours = weighted.contrast_of_means(contrasts.LOG_ODDS_RATIO, yes, inside, plain(80))
    theirs = contrasts.log_odds_ratio(yes[inside], yes[~inside])
    assert ours.estimate == pytest.approx(theirs.estimate, rel=1e-9)
    sides = yes[inside], yes[~inside]
    slopes = [(len(side) + 1) ** 2 / ((side.sum() + 0.5) * (len(side) - side.sum() + 0.5)) for side in sides]
    variance = sum(slope**2 * side.var(ddof=1) / len(side) for side, slope in zip(sides, slopes, strict=True))
    assert ours.statistic == pytest.approx(ours.estimate / np.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize("measure", [contrasts.MEAN_DIFFERENCE, contrasts.LOG_ODDS_RATIO, contrasts.LOG_RATE_RATIO])
def test_whole_weights_are_rows_repeated_within_their_cluster(rng, measure):
    inside = np.arange(60) < 25
    z = rng.poisson(np.where(inside, 2.0, 1.0)) * 1.0
    z = (z > 1).astype(float) if measure == contrasts.LOG_ODDS_RATIO else z
    w, row = whole(rng, 60)
    ours = design.group_means(z[:, None], (~inside).astype(int), Design(w, np.arange(60)))
    theirs = design.group_means(z[row, None], (~inside)[row].astype(int), Design(np.ones(len(row)), row))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_variances_are_those_of_statsmodels(rng):
    """The sandwich of a weighted regression on group dummies, with and without clusters that lie across groups."""
    group, w, z = rng.integers(0, 3, 120), rng.uniform(0.2, 3.0, 120), rng.normal(size=120)
    dummies = (group[:, None] == np.arange(3)).astype(float)
    for clusters in (np.arange(120), rng.integers(0, 25, 120)):
        found = design.group_means(z[:, None], group, Design(w, clusters))
        fit = sm.WLS(z, dummies, weights=w).fit(
            cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
        )
        unbiased = np.sqrt(found.n_clusters / (found.n_clusters - 1))
        np.testing.assert_allclose(found.mean[:, 0], fit.params, rtol=1e-9)
        due = fit.cov_params() * np.outer(unbiased, unbiased)
        np.testing.assert_allclose(found.covariance[:, 0, :, 0], due, rtol=1e-9, atol=1e-15)


def test_the_jackknife_of_a_mean_is_its_linearised_variance(rng):
    z = rng.normal(size=40)
    found = design.jackknife(lambda w: np.average(z, weights=w), plain(40))
    assert found.covariance[0, 0] == pytest.approx(z.var(ddof=1) / 40, rel=1e-9)
    assert found.degrees == 39


def test_quantiles_and_ranks_are_those_of_repeated_rows(rng):
    z = rng.integers(0, 12, 50).astype(float)
    w, row = whole(rng, 50)
    expected = np.quantile(z[row], (0.25, 0.5, 0.75), method="inverted_cdf")
    np.testing.assert_array_equal(design.quantiles(z, w, (0.25, 0.5, 0.75)), expected)
    ranks = design.mid_ranks(z[row], np.ones(len(row)))
    np.testing.assert_allclose(design.mid_ranks(z, w)[row], ranks, rtol=1e-12)


def test_weighted_times_are_those_of_repeated_rows(rng):
    time, event = rng.exponential(size=50).round(1), (rng.random(50) < 0.6).astype(float)
    group, at = rng.integers(0, 3, 50), np.array([0.0, 0.3, 1.0, 2.0])
    w, row = whole(rng, 50)
    repeated = kaplan_meier(time[row], event[row], at)["survival"].fillna(0.0)
    known = at <= time.max()
    np.testing.assert_allclose(weighted_survival(time, event, w, at)[known], repeated[known], rtol=1e-9)
    for ours, theirs in zip(
        excess_events(time, event, group, w), excess_events(time[row], event[row], group[row]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_weighted_curve_of_equal_rows_is_nearly_greenwoods(rng):
    time, event = rng.exponential(size=400), (rng.random(400) < 0.7).astype(float)
    at = np.array([0.2, 0.7, 1.2])
    ours, theirs = survival_curve(time, event, at, plain(400)), survival_curve(time, event, at, None)
    np.testing.assert_allclose(ours["survival"], theirs["survival"], rtol=1e-9)
    np.testing.assert_allclose(ours[["low", "high"]], theirs[["low", "high"]], atol=0.03)


def test_cells_with_limits_and_times_are_compared_with_weights(rng):
    """Whole weights give the estimates of repeated rows; the intervals of both exclude no difference."""
    inside = np.arange(80) < 35
    z = np.exp(rng.normal(size=80) + inside)
    low, high = np.where(z < 0.6, 0.0, z), np.where(z < 0.6, 0.6, z)
    w, row = whole(rng, 80)
    for kind, cells in (
        ("censored_lognormal", CellBounds(low, high)),
        ("weibull", CellBounds(z, np.where(rng.random(80) < 0.3, np.inf, z))),
    ):
        ((_, ours),) = weighted.weighted_contrasts(Column("y", kind), cells, inside, Design(w, np.arange(80)))
        repeated = Design(np.ones(len(row)), row)
        ((_, theirs),) = weighted.weighted_contrasts(Column("y", kind), cells[row], inside[row], repeated)
        for name in ("inside", "outside", "estimate", "low", "high", "effect"):
            assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-6), (kind, name)
        assert ours.low < ours.estimate < ours.high
        assert ours.p < 0.05


def test_tests_of_repeated_visits_keep_their_level(rng):
    """Patients of eight visits in two arms that do not differ: rows taken as independent reject far too often."""
    rejected = {"patients": 0, "rows": 0}
    for _ in range(300):
        patient = np.repeat(np.arange(40), 8)
        z = rng.normal(size=40)[patient] + 0.5 * rng.normal(size=320)
        arm = (patient % 2).astype(int)
        for name, clusters in (("patients", patient), ("rows", np.arange(320))):
            rejected[name] += design.equal_means(z[:, None], arm, Design(np.ones(320), clusters)).p < 0.05
    assert 5 <= rejected["patients"] <= 26  # of 300: 5 % within four standard errors
    assert rejected["rows"] > 120


def test_weighted_differences_cover_those_of_the_population(rng):
    """Rows with high values are sampled more often, in one group more than in the other."""
    covered = {"weighted": 0, "unweighted": 0}
    for _ in range(200):
        inside = rng.random(600) < 0.5
        z = rng.normal(size=600) + 0.3 * inside
        odds = np.where(z > 0, np.where(inside, 4.0, 2.0), 1.0)
        drawn = rng.random(600) < 0.2 * odds
        for name, w in (("weighted", 1 / odds[drawn]), ("unweighted", np.ones(drawn.sum()))):
            sampled = Design(w, np.arange(len(w)))
            found = weighted.contrast_of_means(contrasts.MEAN_DIFFERENCE, z[drawn], inside[drawn], sampled)
            covered[name] += found.low <= 0.3 <= found.high
    assert 180 <= covered["weighted"] <= 198
    assert covered["unweighted"] < 170


def test_a_group_in_one_cluster_is_not_tested():
    z, group = np.arange(6.0), np.array([0, 0, 0, 1, 1, 1])
    assert np.isnan(design.equal_means(z[:, None], group, Design(np.ones(6), group)).p)


def test_a_design_is_read_from_columns_and_refused_by_name(rng):
    frame = pd.DataFrame({"y": rng.normal(size=4), "w": [1.0, 2.0, 1.0, 0.0], "id": ["a", "a", "b", None]})
    assert design.make_design(to_rows(frame)) is None
    made = design.make_design(to_rows(frame), "w")
    np.testing.assert_allclose(made.weights, [1, 2, 1, 0])
    with pytest.raises(DataError, match="column 'id', row 3: a row without its group"):
        design.make_design(to_rows(frame), None, "id")
    with pytest.raises(DataError, match="column 'w', row 1: a weight must be finite"):
        design.make_design(to_rows(frame.assign(w=[1, -2, 1, 1])), "w")
    with pytest.raises(DataError, match="fewer than two rows have a weight above zero"):
        design.make_design(to_rows(frame), np.zeros(4))
    with pytest.raises(DataError, match="has shape"):
        design.make_design(to_rows(frame), np.ones(3))
