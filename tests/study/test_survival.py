import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp.study.survival import kaplan_meier, log_rank, read_outcome, survival_by_subtype
from plurigp.types import DataError


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
    with pytest.raises(DataError, match="column 'e', row 1: an event is"):
        read_outcome(frame, "t", "e")
    with pytest.raises(DataError, match="column 't', row 1: a time must"):
        read_outcome(frame.assign(e=1), "t", "e")
    with pytest.raises(DataError, match="column 'w', row 0: a time must"):
        read_outcome(frame.assign(e=1), "w", "e")
