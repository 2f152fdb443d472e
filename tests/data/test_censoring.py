"""Censoring drawn from a column's own: shares kept where the values follow the truth, and nothing of the rows."""

import numpy as np
import pytest

from plurigp.data.censoring import censor_like, draw_limits, with_one_status

INF = np.inf
N = 20_000


def shares(bounds):
    """Of exact, left, right and interval cells among those that are not gaps."""
    low, high = bounds[~np.isnan(bounds[:, 0])].T
    left = (low <= 0) & np.isfinite(high) & (low < high)
    right = (low > 0) & np.isinf(high)
    return np.array([(low == high).mean(), left.mean(), right.mean(), (~left & ~right & (low < high)).mean()])


def below_and_above(t, rng):
    """Two laboratories: one with a lower limit, one with an upper limit."""
    first = rng.random(len(t)) < 0.5
    low, high = np.where(~first & (t > 4), 4, t), np.where(first & (t < 0.8), 0.8, t)
    return np.stack([np.where(first & (t < 0.8), 0, low), np.where(~first & (t > 4), INF, high)], axis=1)


def at_random_times(t, rng):
    end = rng.exponential(3, len(t))
    return np.stack([np.minimum(t, end), np.where(t > end, INF, t)], axis=1)


def in_whole_months(t, rng):
    """Events and ends of follow-up often in the same month; what happened in it is known to have happened."""
    t, end = np.ceil(t), np.ceil(rng.uniform(0, 6, len(t)))
    return np.stack([np.minimum(t, end), np.where(t > end, INF, t)], axis=1)


def rounded_in_part(t, rng):
    whole = rng.random(len(t)) < 0.3
    floor = np.floor(t)
    bounds = np.stack([np.where(whole, floor, t), np.where(whole, floor + 1, t)], axis=1)
    return bounds


@pytest.mark.parametrize("censor", [below_and_above, at_random_times, in_whole_months, rounded_in_part])
def test_shares_are_kept_where_the_values_follow_the_truth(censor, rng):
    truth, again = rng.lognormal(0.5, 1, N), rng.lognormal(0.5, 1, N)
    bounds = censor(truth, rng)
    drawn = censor_like(bounds, again, True, rng)
    np.testing.assert_allclose(shares(drawn), shares(bounds), atol=0.015)
    assert ((drawn[:, 0] <= again) & (again <= drawn[:, 1])).all()
    limits = np.unique(bounds[np.isinf(bounds[:, 1]), 0])
    assert np.isin(drawn[np.isinf(drawn[:, 1]), 0], limits).all()


def test_nothing_of_the_rows_is_left(rng):
    truth, again = rng.lognormal(0.5, 1, N), rng.lognormal(0.5, 1, N)
    bounds = at_random_times(truth, rng)
    drawn = censor_like(bounds, again, True, rng)
    was, now = np.isinf(bounds[:, 1]), np.isinf(drawn[:, 1])
    assert abs(np.corrcoef(was, now)[0, 1]) < 0.03
    assert abs(np.corrcoef(bounds[:, 0], drawn[:, 0])[0, 1]) < 0.03
    assert not np.isin(drawn[~now, 0], bounds[:, 0]).any()


def test_one_limit_for_all_is_everybodys_limit(rng):
    t = rng.normal(size=N)
    bounds = np.stack([np.where(t < -1, -INF, t), np.maximum(t, -1)], axis=1)
    drawn = censor_like(bounds, rng.normal(size=N), False, rng)
    np.testing.assert_array_equal(drawn[:, 0] == -INF, drawn[:, 1] == -1)
    assert drawn[:, 1].min() == -1


def test_limits_are_the_reverse_kaplan_meier(rng):
    """By hand: of 4 at risk one is censored at 1, of 2 at risk one at 3; half of the rest never."""
    low, high = np.array([1.0, 2.0, 3.0, 4.0]), np.array([INF, 2.0, INF, 4.0])
    drawn = draw_limits(low, high, N, rng)
    for limit, share in ((1, 1 / 4), (3, 3 / 8), (INF, 3 / 8)):
        assert (drawn == limit).mean() == pytest.approx(share, abs=0.015)


def test_values_that_equal_a_limit_do_not_make_it_smaller(rng):
    """Of 4 + 2 cells at or above 1, four say that the limit is 1; the value 1 itself says nothing, the 2 says no."""
    low, high = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0]), np.array([INF, INF, INF, INF, 1.0, 2.0])
    assert (draw_limits(low, high, N, rng) == 1).mean() == pytest.approx(4 / 5, abs=0.015)


def test_rounded_values_at_the_detection_limit(rng):
    x = rng.lognormal(size=N).round(1)
    bounds = np.stack([np.where(x < 0.5, 0, x), np.maximum(x, 0.5)], axis=1)
    assert (x == 0.5).any()
    drawn = censor_like(bounds, rng.lognormal(size=N), True, rng)
    exact = drawn[:, 0] == drawn[:, 1]
    assert drawn[exact].min() >= 0.5
    assert set(drawn[~exact, 1]) == {0.5}


def test_nothing_is_known_beyond_the_longest_follow_up(rng):
    """Some die on the last day."""
    t = np.ceil(rng.exponential(400, N))
    bounds = np.stack([np.minimum(t, 365), np.where(t > 365, INF, t)], axis=1)
    assert (bounds[:, 1] == 365).any()
    drawn = censor_like(bounds, rng.exponential(400, N), True, rng)
    assert drawn[:, 0].max() == 365
    assert set(drawn[np.isinf(drawn[:, 1]), 0]) == {365}


def test_one_status_for_all_times_of_a_row():
    """The first known time decides; a time cut off at a limit ends there, a known one is a lower bound."""
    first = np.array([[5, 5], [5, INF], [np.nan, np.nan], [5, 5], [5, INF], [np.nan, np.nan]])
    second = np.array([[6, INF], [6, 6], [6, INF], [0, INF], [2, 3], [np.nan, np.nan]])
    one, two = with_one_status([first, second], [np.full(6, 7.0)] * 2)
    np.testing.assert_array_equal(one, first)
    np.testing.assert_array_equal(two, [[6, 6], [6, INF], [6, INF], [7, 7], [2, INF], [np.nan, np.nan]])


def test_a_column_of_gaps_stays_one(rng):
    """Without warnings, which are errors here."""
    assert np.isnan(censor_like(np.full((3, 2), np.nan), np.ones(3), True, rng)).all()


def test_intervals_of_the_column_or_as_wide(rng):
    bounds = np.array([[1.0, 2.0], [2.0, 4.0], [10.0, 20.0]] * 10)
    values = rng.uniform(1, 40, 30)
    drawn = censor_like(bounds, values, True, rng)
    known = ((values >= 1) & (values <= 4)) | ((values >= 10) & (values <= 20))
    assert {tuple(b) for b in drawn[known]} <= {tuple(b) for b in bounds}
    np.testing.assert_allclose(drawn[~known, 1] / drawn[~known, 0], 2)
    plain = censor_like(bounds - 30, values - 30, False, rng)
    assert np.isin((plain[:, 1] - plain[:, 0]).round(9), [1, 2, 10]).all()
    assert ((plain[:, 0] <= values - 30) & (values - 30 <= plain[:, 1])).all()


def test_gaps_stay_and_cells_that_say_nothing_are_as_many(rng):
    bounds = np.stack([rng.lognormal(size=N)] * 2, axis=1)
    bounds[: N // 4] = np.nan
    bounds[N // 2 : N // 2 + N // 4] = 0, INF
    drawn = censor_like(bounds, rng.lognormal(size=N), True, rng)
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(bounds))
    empty = (drawn[:, 0] == 0) & np.isinf(drawn[:, 1])
    assert empty.sum() / (~np.isnan(drawn[:, 0])).sum() == pytest.approx(1 / 3, abs=0.015)
