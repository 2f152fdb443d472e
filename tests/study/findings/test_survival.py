"""Kaplan–Meier and log-rank against SciPy, and against what lifelines says of its own tables (lifelines.json, made by
tools/reference_survival.py)."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp.core.types import DataError
from plurigp.study.findings.survival import kaplan_meier, log_rank, read_outcome, survival_by_subtype

LIFELINES = json.loads((Path(__file__).parent / "lifelines.json").read_text())["tables"]


@pytest.fixture
def patients(rng):
    """Times with ties, events and groups of different risk."""
    group = rng.integers(1, 4, size=150)
    time = np.ceil(rng.exponential(20.0 / group))
    return time, (rng.random(150) < 0.7).astype(float), group


def test_kaplan_meier_by_hand():
    time, event = np.array([1.0, 2, 2, 3, 4, 5]), np.array([1.0, 1, 0, 1, 0, 1])
    found = kaplan_meier(time, event, np.array([0.0, 1, 2.5, 3, 5]))
    np.testing.assert_allclose(found["survival"], [1, 5 / 6, 5 / 6 * 4 / 5, 5 / 6 * 4 / 5 * 2 / 3, 0])
    assert found["at_risk"].tolist() == [6, 6, 3, 3, 1]


def test_kaplan_meier_is_scipys(patients):
    time, event, _ = patients
    curve = stats.ecdf(stats.CensoredData(time[event == 1], right=time[event == 0])).sf
    interval = curve.confidence_interval(0.95, method="log-log")
    at = curve.quantiles[:-1]
    found = kaplan_meier(time, event, at)
    np.testing.assert_allclose(found["survival"], curve.probabilities[:-1], atol=1e-12)
    within = event[np.isin(time, at)].any()
    assert within
    inner = (found["survival"] < 1) & (found["survival"] > 0)
    np.testing.assert_allclose(found["low"][inner], interval.low.probabilities[:-1][inner], atol=1e-9)
    np.testing.assert_allclose(found["high"][inner], interval.high.probabilities[:-1][inner], atol=1e-9)


@pytest.mark.parametrize("name", LIFELINES)
def test_curves_are_those_of_lifelines(name):
    """Everywhere but where nobody is left, for which lifelines gives an interval of no width."""
    table = {key: np.array(LIFELINES[name][key]) for key in ("time", "event", "group")}
    for group, expected in LIFELINES[name]["curves"].items():
        own = table["group"] == group
        found = kaplan_meier(table["time"][own], table["event"][own], np.array(expected["time"]))
        np.testing.assert_allclose(found["survival"], expected["survival"], atol=1e-6)
        left = found["survival"] > 0
        for side in ("low", "high"):
            np.testing.assert_allclose(found[side][left], np.array(expected[side])[left], atol=1e-6)


@pytest.mark.parametrize("name", LIFELINES)
def test_log_rank_is_that_of_lifelines(name):
    table = {key: np.array(LIFELINES[name][key]) for key in ("time", "event", "group")}
    chi2, degrees, p = log_rank(table["time"], table["event"], table["group"])
    assert degrees == len(LIFELINES[name]["curves"]) - 1
    assert (chi2, p) == pytest.approx(LIFELINES[name]["log_rank"], abs=1e-6)


def test_where_nobody_is_left_the_interval_keeps_its_upper_limit():
    found = kaplan_meier(np.array([1.0, 2, 3, 3]), np.ones(4), np.array([2.0, 3, 9]))
    assert found["survival"].tolist() == [0.5, 0.0, 0.0]
    assert found["low"].tolist()[1:] == [0.0, 0.0]
    assert found["high"].tolist()[1:] == [found["high"][0]] * 2
    assert 0.5 < found["high"][0] < 1
    at_once = kaplan_meier(np.ones(4), np.ones(4), np.array([0.5, 1.0]))
    assert at_once[["survival", "low", "high"]].to_numpy().tolist() == [[1, 1, 1], [0, 0, 1]]


def test_nothing_is_known_after_the_last_patient_was_followed():
    time, event = np.arange(1.0, 9), np.array([1.0, 0] * 4)
    found = kaplan_meier(time, event, np.array([8.0, 8.1]))
    assert found["at_risk"].tolist() == [1, 0]
    assert found["survival"][0] > 0
    assert found.loc[1, ["survival", "low", "high"]].isna().all()
    _, risks, _ = survival_by_subtype(time, event, np.ones(8, int), 1, (3.0, 30.0))
    late = risks[risks["time"] == 30]
    assert late["risk"].isna().all()
    assert (late["at_risk"] == 0).all()


def test_without_outcomes_the_frames_are_empty():
    curves, risks, tests = survival_by_subtype(np.full(9, np.nan), np.ones(9), np.ones(9, int), 1, (3.0,))
    assert curves.empty
    assert risks.empty
    assert tests.empty


def test_log_rank_of_two_groups_is_scipys(patients):
    time, event, group = patients
    own = group < 3
    samples = [
        stats.CensoredData(time[(group == g) & (event == 1)], right=time[(group == g) & (event == 0)]) for g in (1, 2)
    ]
    expected = stats.logrank(*samples)
    chi2, degrees, p = log_rank(time[own], event[own], group[own])
    assert (chi2, degrees) == pytest.approx((expected.statistic**2, 1))
    assert p == pytest.approx(expected.pvalue)


def test_log_rank_of_three_groups_moment_by_moment(patients):
    time, event, group = patients
    excess, covariance = np.zeros(3), np.zeros((3, 3))
    for t in np.unique(time[event == 1]):
        n_g = np.array([((time >= t) & (group == g)).sum() for g in (1, 2, 3)])
        d_g = np.array([((time == t) & (event == 1) & (group == g)).sum() for g in (1, 2, 3)])
        n, d = n_g.sum(), d_g.sum()
        excess += d_g - d * n_g / n
        if n > 1:
            covariance += d * (n - d) / (n - 1) * (np.diag(n_g / n) - np.outer(n_g, n_g) / n**2)
    expected = excess[:2] @ np.linalg.solve(covariance[:2, :2], excess[:2])
    chi2, degrees, p = log_rank(time, event, group)
    assert (chi2, degrees) == (pytest.approx(expected), 2)
    assert p == pytest.approx(stats.chi2.sf(expected, 2))


def test_by_subtype(patients):
    time, event, group = patients
    time[3], event[5] = np.nan, np.nan
    curves, risks, tests = survival_by_subtype(time, event, group, 3, (10.0, 20.0))
    assert set(curves["subtype"]) == {0, 1, 2, 3}
    assert len(risks) == 8
    assert (risks["low"] <= risks["risk"]).all()
    assert (risks["risk"] <= risks["high"]).all()
    assert tests["degrees"].tolist() == [2]
    assert (curves["at_risk"] >= 5).all()
    assert np.allclose(curves["time"] * 2, np.round(curves["time"] * 2))  # round times, not patients' own


@pytest.mark.parametrize("events", [[1, 0, None], ["yes", "No", None], [True, False, None], ["1", "0", None]])
def test_outcomes_in_many_spellings(events):
    frame = pd.DataFrame({"t": [1.0, 2.0, 3.0], "e": events})
    time, event = read_outcome(frame, "t", "e")
    np.testing.assert_array_equal(event, [1, 0, np.nan])
    np.testing.assert_array_equal(time, [1, 2, np.nan])


def test_bad_outcomes_are_named():
    frame = pd.DataFrame({"t": [1.0, -2.0], "e": ["yes", "perhaps"], "w": ["a", "1"]})
    with pytest.raises(DataError, match="column 'x' is to hold an outcome"):
        read_outcome(frame, "x", "e")
    with pytest.raises(DataError, match="column 'e', row 1: the cell does not say whether the event happened"):
        read_outcome(frame, "t", "e")
    with pytest.raises(DataError, match="column 't', row 1: a time must"):
        read_outcome(frame.assign(e=1), "t", "e")
    with pytest.raises(DataError, match="column 'w', row 0: a time must"):
        read_outcome(frame.assign(e=1), "w", "e")
