"""Each sampler against SciPy's distribution, at fixed functions."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, ndtr, softmax

from plurigp.core.types import DataError
from plurigp.data import KINDS, Coder, infer_schema
from plurigp.datasets import simulate
from plurigp.datasets.samplers import SAMPLERS, ColumnPlan, draw_cells, function_slices, plan_column

N = 20000


def draws(kind, f, theta=None, levels=(), trials=None, seed=0):
    plan = ColumnPlan("column", kind, [0.0] * len(f), [1.0] * len(f), theta or {}, levels, trials)
    return SAMPLERS[kind].cells(np.random.default_rng(seed), np.tile(f, (N, 1)), plan)


@pytest.mark.parametrize(
    ("kind", "f", "theta", "law"),
    [
        ("gaussian", [1.5], {"sd": 0.3}, stats.norm(1.5, 0.3)),
        ("gaussian_hetero", [-2.0, 0.7], {}, stats.norm(-2.0, np.exp(0.7))),
        ("beta", [0.6], {"nu": 12.0}, stats.beta(12 * ndtr(0.6), 12 * ndtr(-0.6))),
        ("beta", [-1.5], {"nu": 30.0}, stats.beta(30 * ndtr(-1.5), 30 * ndtr(1.5))),
        ("student_t", [1.0], {"scale": 0.4, "df": 3.0}, stats.t(3.0, 1.0, 0.4)),
        ("lognormal", [1.0], {"sd": 0.4}, stats.lognorm(0.4, scale=np.e)),
        ("gamma", [1.0], {"shape": 2.5}, stats.gamma(2.5, scale=np.e / 2.5)),
    ],
)
def test_continuous_samplers(kind, f, theta, law):
    assert stats.kstest(draws(kind, f, theta), law.cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("kind", "f", "trials", "law"),
    [
        ("bernoulli", [-0.8], None, stats.bernoulli(expit(-0.8))),
        ("binomial", [0.4], 9, stats.binom(9, expit(0.4))),
        ("poisson", [1.2], None, stats.poisson(np.exp(1.2))),
        ("negative_binomial", [1.2], None, stats.nbinom(2.0, 2 / (2 + np.exp(1.2)))),
    ],
)
def test_discrete_samplers(kind, f, trials, law):
    y = draws(kind, f, {"r": 2.0}, trials=trials).astype(int)
    values = np.arange(int(law.ppf(0.999)) + 1)
    expected = N * np.append(law.pmf(values), law.sf(values[-1]))
    found = np.bincount(np.minimum(y, len(values)), minlength=len(values) + 1)
    common = expected > 5
    assert stats.chisquare(found[common], expected[common] * found[common].sum() / expected[common].sum()).pvalue > 0.01


def test_categorical_sampler():
    f, levels = np.array([0.5, -1.0, 2.0, 0.0]), ("a", "b", "c", "d")
    y = draws("categorical", f, levels=levels)
    found = [np.sum(y == level) for level in levels]
    assert stats.chisquare(found, N * softmax(f)).pvalue > 0.01


def test_beta_stays_inside_where_the_distribution_underflows():
    y = draws("beta", [-6.0], {"nu": 5.0})
    assert y.min() > 0
    assert y.max() < 1
    assert draws("beta", [6.0], {"nu": 5.0}).max() < 1


def test_functions_are_laid_out_column_after_column():
    rng = np.random.default_rng(0)
    plans = [plan_column(rng, kind, kind, 4, 7) for kind in ("categorical", "gaussian", "gaussian_hetero")]
    assert function_slices(plans) == {
        "categorical": slice(0, 4),
        "gaussian": slice(4, 5),
        "gaussian_hetero": slice(5, 7),
    }
    f = np.zeros((50, 7))
    f[:, 2], f[:, 4], f[:, 6] = 60.0, 1000.0, -20.0
    frame, _ = draw_cells(rng, plans, f)
    assert (frame["categorical"] == "c").all()
    assert frame["gaussian"].between(990, 1010).all()
    assert frame["gaussian_hetero"].abs().max() < 1e-6


def test_too_many_levels():
    with pytest.raises(DataError, match="from 2 to 26 levels"):
        plan_column(np.random.default_rng(0), "c", "categorical", 27, 1)


def test_zeros_levels_and_ends_have_their_shares():
    y = draws("zero_inflated_poisson", [1.0], {"zero": 0.3})
    assert (y == 0).mean() == pytest.approx(0.3 + 0.7 * np.exp(-np.e), abs=0.015)
    y = draws("ordinal", [0.4], {"first_cut": -1.0, "gaps": np.array([1.0, 0.5])})
    shares = np.diff(ndtr(np.array([-np.inf, -1.0, 0.0, 0.5, np.inf]) - 0.4))
    np.testing.assert_allclose(np.bincount(y.astype(int), minlength=5)[1:] / N, shares, atol=0.015)
    y = draws("zero_lognormal", [0.8, 1.0], {"sd": 0.4})
    assert (y == 0).mean() == pytest.approx(1 / (1 + np.exp(0.8)), abs=0.015)
    assert stats.kstest(y[y > 0], stats.lognorm(0.4, scale=np.e).cdf).pvalue > 0.01
    y = draws("zero_one_beta", [0.2], {"nu": 20.0, "low_cut": -1.0, "gap": 2.5})
    np.testing.assert_allclose([(y == 0).mean(), (y == 1).mean()], [ndtr(-1.2), ndtr(-1.3)], atol=0.015)


@pytest.mark.parametrize("kind", ["censored_gaussian", "censored_lognormal", "censored_gamma", "weibull"])
def test_limits_are_text_that_the_data_layer_reads(kind):
    s = simulate(300, columns={kind: 2, "gaussian": 1}, missing=0.1)
    for name in (f"{kind}_1", f"{kind}_2"):
        share = s.truth[name].str.startswith(("<", ">")).mean()
        assert 0.1 < share < 0.6
        assert infer_schema(s.table)[name].kind.startswith("censored")
    assert Coder.fit(s.table, s.schema).table(s.table).seen.shape == (300, 3)


def test_every_kind_can_be_simulated():
    assert set(SAMPLERS) == set(KINDS)
