"""Means of cells known up to limits and hazards of times, against SciPy and likelihoods written out."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from plurigp import PluriGP
from plurigp.data import Coder, infer_schema
from plurigp.data.rows import CellBounds
from plurigp.study.findings import characterise, contrasts
from plurigp.study.findings.censored import Group, fit_normals, likelihood_ratio
from plurigp.study.findings.characterise import (
    association_frame,
    characteristic_frame,
    missingness_frame,
    read_values,
    split_groups,
)
from plurigp.study.findings.contrasts import (
    censored_association,
    censored_geometric_means,
    censored_means,
    hazard_association,
    log_hazard_ratio,
    welch,
    welch_of_logs,
)
from plurigp.study.findings.mixture import Mixture
from plurigp.study.findings.survival import log_rank

INF = np.inf


def limited(values, rng, below=-0.7, above=1.5, inside=0.2):
    """Values with a lower and an upper limit, and a share of them known to the nearest half."""
    low, high = values.copy(), values.copy()
    coarse = rng.random(len(values)) < inside
    low[coarse], high[coarse] = np.floor(2 * values[coarse]) / 2, np.floor(2 * values[coarse]) / 2 + 0.5
    low[values < below], high[values < below] = -INF, below
    low[values > above], high[values > above] = above, INF
    return CellBounds(low, high)


def times(values, ends):
    return CellBounds(np.minimum(values, ends), np.where(values > ends, INF, values))


def log_likelihood(mean, sd, cells):
    """In the plainest way."""
    with np.errstate(divide="ignore"):
        between = np.log(stats.norm.cdf(cells.high, mean, sd) - stats.norm.cdf(cells.low, mean, sd))
    return np.where(cells.exact, stats.norm.logpdf(cells.low, mean, sd), between).sum()


def best(cells, means=None):
    """Mean, sd and log likelihood; of two groups whose means differ by a given number where one is given."""
    groups = [cells] if means is None else cells

    def loss(free):
        shifts = [0.0] if means is None else [means, 0.0]
        parts = zip(shifts, free[1:], groups, strict=True)
        return -sum(log_likelihood(free[0] + shift, np.exp(log_sd), own) for shift, log_sd, own in parts)

    options = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000, "maxfev": 4000}
    found = optimize.minimize(loss, np.zeros(1 + len(groups)), method="Nelder-Mead", options=options)
    return found.x[0], np.exp(found.x[1]), -found.fun


def variance_of_mean(mean, sd, cells, e=1e-3):
    """By the inverse of a numerical Hessian."""

    def loss(m, log_sd):
        return -log_likelihood(m, np.exp(log_sd), cells)

    s = np.log(sd)
    mm = (loss(mean + e, s) - 2 * loss(mean, s) + loss(mean - e, s)) / e**2
    ss = (loss(mean, s + e) - 2 * loss(mean, s) + loss(mean, s - e)) / e**2
    ms = (loss(mean + e, s + e) - loss(mean + e, s - e) - loss(mean - e, s + e) + loss(mean - e, s - e)) / (4 * e**2)
    return ss / (mm * ss - ms**2)


def test_one_normal_is_scipys(rng):
    values = rng.normal(0.2, 1, 300)
    cells = limited(values, rng)
    left, right, exact = np.isinf(cells.low), np.isinf(cells.high), cells.exact
    between = ~(left | right | exact)
    data = stats.CensoredData(
        uncensored=cells.low[exact],
        left=cells.high[left],
        right=cells.low[right],
        interval=np.stack([cells.low[between], cells.high[between]], axis=1),
    )
    fit = fit_normals(cells.low, cells.high, np.zeros(300, int))
    assert fit.found
    assert (fit.mean[0], fit.sd) == pytest.approx(stats.norm.fit(data), abs=1e-3)
    assert fit.log_likelihood == pytest.approx(log_likelihood(fit.mean[0], fit.sd, cells))


def test_units_do_not_matter(rng):
    cells = limited(rng.normal(size=80), rng)
    fit = fit_normals(cells.low, cells.high, np.arange(80) % 2)
    far = fit_normals(1e6 + 1e-3 * cells.low, 1e6 + 1e-3 * cells.high, np.arange(80) % 2)
    np.testing.assert_allclose((far.mean - 1e6) * 1e3, fit.mean, atol=1e-5)
    np.testing.assert_allclose(far.covariance * 1e6, fit.covariance, rtol=1e-4)


@pytest.mark.parametrize("below", [-0.7, 0.5])
def test_two_groups_by_brute_force(below, rng):
    a, b = limited(rng.normal(0.8, 1.2, 60), rng, below), limited(rng.normal(0, 0.8, 90), rng, below)
    found = censored_means(a, b)
    (mean_a, sd_a, fit_a), (mean_b, sd_b, fit_b) = best(a), best(b)
    n = np.array([60, 90])
    parts = np.array([variance_of_mean(mean_a, sd_a, a), variance_of_mean(mean_b, sd_b, b)]) * n / (n - 1)
    degrees = parts.sum() ** 2 / (parts**2 / (n - 1)).sum()

    def t_of(difference):
        chi2 = 2 * (fit_a + fit_b - best((a, b), difference)[2])
        return np.sqrt(degrees * np.expm1(chi2 / (degrees + 2)))

    assert (found.inside, found.outside, found.estimate) == pytest.approx((mean_a, mean_b, mean_a - mean_b), abs=1e-5)
    assert found.statistic == pytest.approx(t_of(0.0), rel=1e-4)
    assert found.p == pytest.approx(2 * stats.t.sf(t_of(0.0), degrees), rel=1e-3)
    for end in (found.low, found.high):
        assert t_of(end) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-3)
    assert found.low < found.estimate < found.high
    sd = np.sqrt((sd_a**2 * 60 / 59 + sd_b**2 * 90 / 89) / 2)
    assert found.effect == pytest.approx((mean_a - mean_b) / sd, rel=1e-4)
    assert (found.n_inside, found.n_outside) == (60, 90)


def test_a_common_mean_is_the_best_of_all(rng):
    """With two sds the likelihood of a common mean may have two maxima; a dense grid of means finds the higher one."""

    def profile(cells, means):
        """Without limits, in closed form up to a constant."""
        return -len(cells) / 2 * np.log1p(((means - cells.mean()) / cells.std()) ** 2)

    for _ in range(150):
        a, b = (rng.normal(place, rng.exponential(), rng.integers(5, 30)) for place in (0, rng.uniform(1, 12)))
        ends = sorted((a.mean(), b.mean()))
        means = ends[0] + np.ptp(ends) * stats.beta.cdf(np.linspace(0, 1, 20001), 3, 3)  # dense at both ends
        expected = -2 * (profile(a, means) + profile(b, means)).max()
        sides = [Group.of(y, y, fit_normals(y, y, np.zeros(len(y), int))) for y in (a, b)]
        assert likelihood_ratio(*sides, 0.0) == pytest.approx(expected, abs=1e-3)


def test_without_limits_it_is_welch(rng):
    a, b = rng.lognormal(1, 1, 30), rng.lognormal(0, 2, 50)
    assert censored_means(CellBounds(a, a), CellBounds(b, b)) == welch(a, b)
    assert censored_geometric_means(CellBounds(a, a), CellBounds(b, b)) == welch_of_logs(a, b)


def test_a_single_limit_changes_little(rng):
    a, b = rng.normal(1, 1, 80), rng.normal(0, 1, 120)
    one = CellBounds(np.where(a == a.max(), np.sort(a)[-2], a), np.where(a == a.max(), INF, a))
    found, plain = censored_means(one, CellBounds(b, b)), welch(a, b)
    assert (found.estimate, found.statistic, found.effect) == pytest.approx(
        (plain.estimate, plain.statistic, plain.effect), rel=0.05
    )


def test_logarithms_have_an_open_end_at_zero(rng):
    a, b = rng.normal(1, 1, 70), rng.normal(0, 1, 90)
    plain = censored_means(limited(a, rng, inside=0), limited(b, rng, inside=0))
    logs = [limited(x, rng, inside=0) for x in (a, b)]
    found = censored_geometric_means(*(CellBounds(np.exp(c.low), np.exp(c.high)) for c in logs))
    assert found.measure == "log ratio"
    assert (found.estimate, found.p, found.inside) == pytest.approx((plain.estimate, plain.p, np.exp(plain.inside)))


def test_intervals_cover(rng):
    hits = 0
    for _ in range(60):
        a, b = limited(rng.normal(0, 2, 30), rng, 0.5, 9, 0), limited(rng.normal(0, 1, 60), rng, 0.5, 9, 0)
        found = censored_means(a, b)
        hits += found.low <= 0 <= found.high
        assert (found.p >= 0.05) == (found.low <= 0 <= found.high)
    assert hits / 60 >= 0.88


def below_limit(n, limit):
    return CellBounds(np.full(n, -INF), np.full(n, limit))


def with_limit(values, limit):
    return CellBounds(np.where(values < limit, -INF, values), np.where(values < limit, limit, values))


def together(a, b):
    return CellBounds(np.concatenate([a.low, b.low]), np.concatenate([a.high, b.high]))


def association_p(a, b):
    return censored_association(together(a, b), np.repeat([1, 2], [len(a), len(b)])).p


def spread(n, share=1.0):
    """Quantiles of a standard normal, of its upper share only."""
    return stats.norm.isf(share * (np.arange(n) + 0.5) / n)


def test_a_group_below_the_limit_throughout_is_lower(rng):
    found = censored_means(below_limit(30, -1.0), limited(rng.normal(1, 1, 60), rng))
    assert np.isfinite([found.estimate, found.high, found.effect]).all()
    assert np.isnan(found.inside)
    assert found.low == -INF
    assert found.effect < -1
    assert found.p < 1e-6
    turned = censored_means(limited(rng.normal(1, 1, 60), rng), CellBounds(np.full(30, 4.0), np.full(30, INF)))
    assert turned.p < 1e-6
    assert turned.effect < 0
    assert turned.low == -INF


def test_a_group_below_the_limit_is_tested_with_full_power(rng):
    """Wald's test of an ever larger difference loses its power (Hauck and Donner 1977)."""
    a, b = below_limit(100, 0.5), with_limit(spread(100), 0.5)
    found = censored_means(a, b)
    assert b.exact.sum() > 25
    assert found.p == pytest.approx(association_p(a, b), rel=0.5)
    assert found.p < 1e-10
    hits = sum(censored_means(below_limit(40, 1.0), with_limit(rng.normal(0, 1, 40), 1.0)).p < 0.05 for _ in range(40))
    assert hits / 40 > 0.8


def test_a_group_that_falls_below_the_limit_comes_about_every_other_time():
    found = censored_means(below_limit(50, 0.5), with_limit(spread(100), 0.5))
    sd = found.estimate / found.effect / np.sqrt(150 / 148)
    assert stats.norm.cdf(0.5, found.outside + found.estimate, sd) ** 50 == pytest.approx(0.5)


def test_a_high_limit_says_little():
    b = with_limit(spread(100), 0.5)
    plain = censored_means(below_limit(50, 0.5), b)
    found = censored_means(together(below_limit(50, 0.5), below_limit(1, 100.0)), b)
    assert (found.estimate, found.high) == pytest.approx((plain.estimate, plain.high), abs=1e-3)


@pytest.mark.parametrize("n_above", [0, 1, 2, 3, 5])
def test_few_values_do_not_tell_a_variance(n_above):
    """Otherwise one or two values far above the limit would take the difference away that the many below it show."""
    limit = stats.norm.isf(0.02)
    b = together(below_limit(980, limit), with_limit(spread(20, 0.02), limit))
    values = spread(n_above, 0.002)
    a = together(below_limit(1000 - n_above, limit), CellBounds(values, values))
    found = censored_means(a, b)
    assert found.p == pytest.approx(association_p(a, b), rel=0.05)
    assert found.estimate < 0
    assert np.isnan([found.inside, found.outside]).all()


def test_one_variance_by_brute_force(rng):
    a, b = with_limit(rng.normal(0.5, 1, 60), 1.2), with_limit(rng.normal(0, 1, 80), 1.2)
    found = censored_means(a, b)

    def loss(free, difference=None):
        shift = free[2] if difference is None else difference
        sd = np.exp(free[1])
        return -log_likelihood(free[0] + shift, sd, a) - log_likelihood(free[0], sd, b)

    options = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000, "maxfev": 4000}
    free = optimize.minimize(loss, np.zeros(3), method="Nelder-Mead", options=options)

    def t_of(difference):
        tied = optimize.minimize(loss, np.zeros(2), args=(difference,), method="Nelder-Mead", options=options).fun
        return np.sqrt(138 * np.expm1(2 * (tied - free.fun) / 140))

    assert found.estimate == pytest.approx(free.x[2], abs=1e-5)
    assert found.effect == pytest.approx(free.x[2] / np.exp(free.x[1]) / np.sqrt(140 / 138), abs=1e-4)
    assert found.statistic == pytest.approx(t_of(0.0), rel=1e-4)
    assert found.p == pytest.approx(2 * stats.t.sf(t_of(0.0), 138), rel=1e-3)
    for end in (found.low, found.high):
        assert t_of(end) == pytest.approx(stats.t.ppf(0.975, 138), rel=1e-3)


@pytest.mark.parametrize("share", [0.6, 0.1])
def test_walds_ends_are_kept_where_they_agree(share, rng, monkeypatch):
    """Long columns with distinct limits; own variances, and one variance where few values are known."""
    values, limits = rng.normal(0, 1, 12000), rng.normal(stats.norm.isf(share), 0.2, 12000)
    cells, inside = with_limit(values, limits), np.arange(12000) < 5000
    by_wald = censored_means(cells[inside], cells[~inside])
    monkeypatch.setattr(contrasts, "MANY", INF)
    searched = censored_means(cells[inside], cells[~inside])
    se = (searched.high - searched.low) / (2 * 1.96)
    assert (by_wald.low, by_wald.high) == pytest.approx((searched.low, searched.high), abs=0.03 * se)
    assert (by_wald.low, by_wald.high) != (searched.low, searched.high)
    assert by_wald.p == searched.p


def test_cells_that_say_too_little_give_no_test():
    below = CellBounds(np.full(9, -INF), np.full(9, -1.0))
    nothing = CellBounds(np.full(9, -INF), np.full(9, INF))
    for found in (censored_means(below, below), censored_means(below, nothing)):
        assert np.isnan([found.estimate, found.p, found.effect]).all()
    single = [together(nothing, CellBounds(np.array([y]), np.array([y]))) for y in (1.0, 2.0)]
    assert np.isnan(censored_means(*single).p)
    same = CellBounds(np.ones(9), np.ones(9))
    assert np.isnan(censored_means(same, same).p)
    assert np.isnan(censored_association(CellBounds(np.ones(18), np.ones(18)), np.arange(18) % 2).p)


def test_association_is_the_likelihood_ratio(rng):
    group = rng.integers(1, 4, 150)
    cells = limited(rng.normal(0.4 * group, 1), rng)
    names = group - 1

    def loss(free, each):
        return -log_likelihood(free[:-1][names * each], np.exp(free[-1]), cells)

    options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000}
    each, one = (
        optimize.minimize(loss, np.zeros(k), args=(k > 2,), method="Nelder-Mead", options=options).fun for k in (4, 2)
    )
    found = censored_association(cells, group)
    assert found.statistic == pytest.approx(2 * (one - each), abs=1e-4)
    assert found.p == pytest.approx(stats.chi2.sf(2 * (one - each), 2), rel=1e-3)
    assert found.effect == pytest.approx(1 - np.exp(-2 * (one - each) / 150), abs=1e-5)


def test_hazards_are_scipys_and_petos(rng):
    a, b = times(rng.weibull(2, 60), rng.exponential(2, 60)), times(1.6 * rng.weibull(2, 90), rng.exponential(2, 90))
    a = CellBounds(a.low.round(1) + 0.1, np.where(np.isinf(a.high), INF, a.low.round(1) + 0.1))  # ties
    b = CellBounds(b.low.round(1) + 0.1, np.where(np.isinf(b.high), INF, b.low.round(1) + 0.1))
    found = log_hazard_ratio(a, b)
    data = [stats.CensoredData(uncensored=c.low[c.exact], right=c.low[~c.exact]) for c in (a, b)]
    expected = stats.logrank(*data)
    assert abs(found.statistic) == pytest.approx(abs(expected.statistic))
    assert found.p == pytest.approx(expected.pvalue)
    time, inside = np.concatenate([a.low, b.low]), np.arange(150) < 60
    event = np.concatenate([a.exact, b.exact])
    excess = variance = 0.0
    for t in np.unique(time[event]):
        n, own, d = (time >= t).sum(), ((time >= t) & inside).sum(), ((time == t) & event).sum()
        excess += ((time == t) & event & inside).sum() - d * own / n
        variance += d * own / n * (1 - own / n) * (n - d) / max(n - 1, 1)
    assert found.estimate == pytest.approx(excess / variance)
    assert found.high - found.low == pytest.approx(2 * 1.959964 / np.sqrt(variance))
    assert found.effect == pytest.approx(-found.estimate * np.sqrt(6) / np.pi)
    assert found.estimate > 0
    for side, median in zip(data, (found.inside, found.outside), strict=True):
        sf = stats.ecdf(side).sf
        assert median == pytest.approx(sf.quantiles[sf.probabilities <= 0.5][0])
    both = CellBounds(np.concatenate([a.low, b.low]), np.concatenate([a.high, b.high]))
    over_all = hazard_association(both, inside + 1)
    assert (over_all.statistic, over_all.p) == pytest.approx((expected.statistic**2, expected.pvalue))


def test_a_median_that_is_not_reached(rng):
    a, b = times(rng.weibull(2, 40), np.full(40, 0.4)), times(rng.weibull(2, 40), np.full(40, 5.0))
    found = log_hazard_ratio(a, b)
    assert np.isnan(found.inside)
    assert np.isfinite([found.outside, found.estimate, found.p]).all()
    never = CellBounds(np.full(6, 2.0), np.full(6, INF))
    assert np.isnan(log_hazard_ratio(never, never).p)


def test_without_events_there_is_no_test():
    """A p of 1 would count among the tests that Benjamini and Hochberg correct for."""
    never, group = CellBounds(np.full(12, 2.0), np.full(12, INF)), np.arange(12) % 2 + 1
    found = hazard_association(never, group)
    assert np.isnan([found.effect, found.statistic, found.p]).all()
    assert np.isnan(log_rank(np.ones(4), np.ones(4), np.ones(4))[2])


def test_the_effect_is_the_difference_of_log_times(rng):
    a, b = rng.weibull(1.7, 4000), 1.4 * rng.weibull(1.7, 4000)
    found = log_hazard_ratio(CellBounds(b, b), CellBounds(a, a))
    assert found.effect == pytest.approx(welch_of_logs(b, a).effect, abs=0.06)


# --- in a table ---


@pytest.fixture
def assays(rng):
    """A group of which most cells lie below a limit, as text, in two columns, and as times that did not end."""
    n = 160
    group = 1 + (np.arange(n) % 2)
    value = rng.normal(np.where(group == 1, -0.8, 0.8), 1)
    low, high = np.where(value < 0, np.nan, value), np.where(value < 0, 0.0, value)
    time, end = rng.weibull(2, n) * np.where(group == 1, 1, 2), rng.uniform(0.5, 2, n)
    frame = pd.DataFrame(
        {
            "assay": [f"<{1.0}" if v < 0 else repr(float(np.exp(v))) for v in value],
            "low": low,
            "high": high,
            "time": np.minimum(time, end),
            "died": time <= end,
            "z": rng.normal(size=n),
        }
    )
    frame.loc[:9, ["assay", "low", "high", "time"]] = None
    declared = {
        "assay": "censored_lognormal",
        "low": {"kind": "censored_gaussian", "upper": "high"},
        "time": {"kind": "weibull", "event": "died"},
    }
    schema = Coder.fit(frame, infer_schema(frame, declared)).schema
    return frame, schema, read_values(frame, schema), group


def test_limits_count_as_what_they_say(assays):
    _, schema, values, group = assays
    found = characteristic_frame(schema, values, lambda name: group, 2, "all").set_index(["column", "subtype"])
    for name in ("assay", "low", "time"):
        assert found.loc[(name, 1), "n_inside"] + found.loc[(name, 1), "n_outside"] == 150
    assert found.loc[("assay", 1), "estimate"] == pytest.approx(-1.6, abs=0.5)
    assert found.loc[("low", 1), "estimate"] == pytest.approx(found.loc[("assay", 1), "estimate"], abs=1e-6)
    assert found.loc[("low", 1), "inside"] == pytest.approx(-0.8, abs=0.4)
    assert found.loc[("time", 1), "measure"] == "log hazard ratio"
    assert found.loc[("time", 1), "estimate"] == pytest.approx(2 * np.log(2), abs=0.5)
    over_all = association_frame(schema, values, lambda name: group, "all").set_index("column")
    assert (over_all.loc[["assay", "low", "time"], "p"] < 1e-3).all()
    assert over_all.loc["low", "statistic"] == pytest.approx(over_all.loc["assay", "statistic"], abs=1e-5)


def test_an_open_end_is_no_gap(assays):
    _, schema, values, group = assays
    gaps = missingness_frame(schema, values, group, 2).set_index(["column", "subtype"])
    assert gaps.loc[("low", 1), "inside"] == pytest.approx(5 / 80)
    assert values["low"].seen.sum() == 150


def test_an_upper_bound_does_not_place_the_rows_it_tests(assays, monkeypatch):
    frame, schema, _, _ = assays
    shown = []

    def record(predictor, table):
        shown.append(table)
        return np.zeros((len(frame), 1)), np.ones((len(frame), 1))

    monkeypatch.setattr(characterise, "positions", record)
    monkeypatch.setattr(PluriGP, "predictor_", None)
    model = PluriGP()
    model.coder_ = Coder.fit(frame, schema)
    mixture = Mixture(np.ones(2) / 2, np.array([[-0.5], [0.5]]), np.ones((2, 1, 1)) * 0.1, np.array([1, 2]))
    split_groups(model, frame, mixture)("low")
    table, names = shown[0], [column.name for column in shown[0].schema]
    assert not table.seen[:, names.index("low")].any()
    assert table.seen[:, names.index("assay")].sum() == 150
    assert "high" not in names
