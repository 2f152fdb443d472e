import numpy as np
import pytest
from scipy import stats
from scipy.stats.contingency import association

from plurigp.study.findings.contrasts import (
    benjamini_hochberg,
    cramers_v,
    kruskal_wallis,
    log_odds_ratio,
    log_rate_ratio,
    standardised_difference,
    welch,
    welch_of_logs,
)


def yes(n, of):
    return np.array([1.0] * n + [0.0] * (of - n))


def test_log_odds_by_hand():
    found = log_odds_ratio(yes(8, 10), yes(5, 20))
    estimate = np.log((8.5 / 2.5) / (5.5 / 15.5))
    se = np.sqrt(1 / 8.5 + 1 / 2.5 + 1 / 5.5 + 1 / 15.5)
    assert found.estimate == pytest.approx(estimate)
    assert (found.low, found.high) == pytest.approx((estimate - 1.959964 * se, estimate + 1.959964 * se))
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(estimate / se)))
    assert (found.inside, found.outside) == (0.8, 0.25)


def test_log_odds_are_finite_where_a_count_is_zero():
    found = log_odds_ratio(yes(10, 10), yes(0, 10))
    assert found.estimate == pytest.approx(2 * np.log(21))
    assert np.isfinite([found.low, found.high, found.p]).all()


def test_welch_is_scipys(rng):
    a, b = rng.normal(1, 2, 30), rng.normal(0, 1, 50)
    found, expected = welch(a, b), stats.ttest_ind(a, b, equal_var=False)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_welch_of_logs(rng):
    a, b = rng.lognormal(1, 1, 30), rng.lognormal(0, 1, 50)
    found = welch_of_logs(a, b)
    assert found.statistic == pytest.approx(stats.ttest_ind(np.log(a), np.log(b), equal_var=False).statistic)
    assert found.inside == pytest.approx(stats.gmean(a))
    assert found.measure == "log ratio"


def test_constant_cells_give_no_test():
    found = welch(np.ones(5), np.ones(6))
    assert np.isnan([found.statistic, found.p, found.effect]).all()


def test_rates_by_hand():
    a, b = np.array([3.0, 5.0, 4.0, 6.0]), np.array([1.0, 2.0, 1.0, 0.0, 2.0])
    found = log_rate_ratio(a, b)
    means = 18.5 / 4, 6.5 / 5
    variance = max(a.var(ddof=1), means[0]) / 4 / means[0] ** 2 + max(b.var(ddof=1), means[1]) / 5 / means[1] ** 2
    assert found.estimate == pytest.approx(np.log(means[0] / means[1]))
    assert found.high - found.estimate == pytest.approx(1.959964 * np.sqrt(variance))


def test_rate_intervals_cover(rng):
    hits = 0
    for _ in range(400):
        found = log_rate_ratio(
            rng.negative_binomial(2, 0.3, 80).astype(float), rng.negative_binomial(2, 0.3, 120).astype(float)
        )
        hits += found.low <= 0 <= found.high
    assert abs(hits / 400 - 0.95) < 0.04


def test_standardised_difference_by_hand():
    assert standardised_difference(np.array([1.0, 3.0]), np.array([0.0, 2.0])) == pytest.approx(1 / np.sqrt(2))


def test_cramers_v_is_scipys(rng):
    level, group = rng.integers(3, size=200), rng.integers(1, 5, size=200)
    counts = np.array([[((level == a) & (group == b)).sum() for b in range(1, 5)] for a in range(3)])
    expected = stats.chi2_contingency(counts, correction=False)
    found = cramers_v(level, group)
    assert found.effect == pytest.approx(association(counts, method="cramer"))
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert np.isnan(cramers_v(np.ones(5), np.ones(5)).p)


def test_kruskal_wallis_is_scipys(rng):
    values, group = rng.integers(6, size=90).astype(float), rng.integers(1, 4, size=90)
    expected = stats.kruskal(*(values[group == k] for k in (1, 2, 3)))
    found = kruskal_wallis(values, group)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert np.isnan(kruskal_wallis(np.ones(5), np.arange(5)).p)


def test_benjamini_hochberg_is_scipys(rng):
    p = rng.random(40) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p))
    with_gap = np.insert(p, 7, np.nan)
    q = benjamini_hochberg(with_gap)
    assert np.isnan(q[7])
    np.testing.assert_allclose(np.delete(q, 7), stats.false_discovery_control(p))


@pytest.mark.parametrize("unit", [1e-120, 1e100])
def test_units_do_not_matter_to_welch(unit, rng):
    a, b = rng.normal(1, 1, 20), rng.normal(0, 3, 30)
    found, plain = welch(unit * a, unit * b), welch(a, b)
    assert (found.statistic, found.p, found.high / unit) == pytest.approx((plain.statistic, plain.p, plain.high))
