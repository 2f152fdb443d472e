"""A simulation is a draw from the model, whole in itself, reproducible and informative about x."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, log_softmax, ndtr

from plurigp.core.types import DataError
from plurigp.data.table import Coder
from plurigp.datasets import simulate
from plurigp.datasets.simulate import COLUMNS


def column_log_prob(simulation, name, f):
    """log p(y_n | f_g) of a column's true cells at candidate values f [G P], as [N G], by SciPy."""
    column, theta = simulation.schema[name], simulation.theta[name]
    part = f[:, simulation.function_slices[name]]
    if column.kind == "categorical":
        return log_softmax(part, axis=1).T[[column.levels.index(level) for level in simulation.truth[name]]]
    y, a = simulation.truth[name].to_numpy(float)[:, None], part[:, 0]
    laws = {
        "gaussian": lambda: stats.norm.logpdf(y, a, theta["sd"]),
        "gaussian_hetero": lambda: stats.norm.logpdf(y, a, np.exp(part[:, 1])),
        "bernoulli": lambda: stats.bernoulli.logpmf(y, expit(a)),
        "binomial": lambda: stats.binom.logpmf(y, column.trials, expit(a)),
        "beta": lambda: stats.beta.logpdf(y, theta["nu"] * ndtr(a), theta["nu"] * ndtr(-a)),
        "poisson": lambda: stats.poisson.logpmf(y, np.exp(a)),
    }
    return laws[column.kind]()


def posterior_mean(simulation, names):
    """E[x | seen cells of these columns] on a grid, the true functions being known."""
    axis = np.linspace(-3.5, 3.5, 29)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    f, total = simulation.functions(grid), -0.5 * (grid**2).sum(1)[None]
    for j, name in enumerate(simulation.truth):
        if name in names:
            total = total + np.where(simulation.hidden[:, [j]], 0.0, column_log_prob(simulation, name, f))
    weight = np.exp(total - total.max(axis=1, keepdims=True))
    return weight @ grid / weight.sum(axis=1, keepdims=True)


def r2(x, guess):
    return 1 - ((x - guess) ** 2).sum() / ((x - x.mean(0)) ** 2).sum()


def test_parts_fit_together():
    s = simulate(300, 3, random_state=4)
    assert s.table.shape == s.truth.shape == s.hidden.shape == (300, sum(COLUMNS.values()))
    assert s.x.shape == (300, 3)
    assert s.lengthscale.tolist() == [2.0] * 3
    np.testing.assert_array_equal(s.f, s.functions(s.x))
    np.testing.assert_array_equal(s.table.isna(), s.hidden)
    assert not s.truth.isna().any(axis=None)
    pd.testing.assert_frame_equal(s.truth.mask(s.hidden), s.table)
    assert [c.name for c in s.schema.columns] == list(s.table) == list(s.theta) == list(s.function_slices)
    assert [c.dtype for c in s.schema.columns] == [str(d) for d in s.table.dtypes] == [str(d) for d in s.truth.dtypes]
    assert list(s.function_slices.values())[-1].stop == s.f.shape[1]


def test_data_layer_takes_it():
    s = simulate(300)
    coded = Coder.fit(s.table, s.schema).table(s.table)
    np.testing.assert_array_equal(coded.seen, ~s.hidden)


def test_x_is_standard_normal_and_gaps_have_their_share():
    s = simulate(4000, columns={"bernoulli": 5}, missing=0.35, random_state=0)
    assert all(stats.kstest(s.x[:, q], "norm").pvalue > 0.01 for q in range(2))
    assert s.hidden.mean() == pytest.approx(0.35, abs=0.02)


def test_order_names_and_native_values():
    s = simulate(
        400, columns={"categorical": 2, "poisson": 1, "bernoulli": 1, "binomial": 1}, n_levels=[2, 6], trials=3
    )
    assert list(s.table) == ["categorical_1", "categorical_2", "poisson_1", "bernoulli_1", "binomial_1"]
    assert [len(s.schema[name].levels) for name in list(s.table)[:2]] == [2, 6]
    assert set(s.truth["categorical_1"]) <= {"a", "b"}
    assert [str(d) for d in s.table.dtypes[2:]] == ["Int64", "boolean", "Int64"]
    assert s.schema["binomial_1"].trials == 3
    assert s.truth["binomial_1"].between(0, 3).all()


def test_cells_follow_their_functions():
    """Residuals of gaussian cells have the noise sd; success rates follow the logit function."""
    s = simulate(6000, columns={"gaussian": 2, "bernoulli": 2, "poisson": 2}, missing=0.0, random_state=7)
    for name in ("gaussian_1", "gaussian_2"):
        residual = s.truth[name] - s.f[:, s.function_slices[name]][:, 0]
        assert stats.kstest(residual / s.theta[name]["sd"], "norm").pvalue > 0.01
    for name in ("bernoulli_1", "bernoulli_2"):
        p = expit(s.f[:, s.function_slices[name]][:, 0])
        z = (s.truth[name].to_numpy(float) - p).sum() / np.sqrt((p * (1 - p)).sum())
        assert abs(z) < 4
    for name in ("poisson_1", "poisson_2"):
        rate = np.exp(s.f[:, s.function_slices[name]][:, 0])
        chi2 = ((s.truth[name].to_numpy(float) - rate) ** 2 / rate).mean()
        assert chi2 == pytest.approx(1.0, abs=0.15)


def test_seed_gives_the_same_draw_and_gaps_do_not_change_the_truth():
    first, again, other = simulate(200), simulate(200), simulate(200, random_state=1)
    pd.testing.assert_frame_equal(first.table, again.table)
    np.testing.assert_array_equal(first.f, again.f)
    assert not np.array_equal(first.x, other.x)
    for change in ({"missing": 0.6}, {"mechanism": "self"}, {"mechanism": "observed"}):
        changed = simulate(200, **change)
        pd.testing.assert_frame_equal(changed.truth, first.truth)
        assert not np.array_equal(changed.hidden, first.hidden)


@pytest.mark.parametrize("seed", [0, 1])
def test_default_table_is_informative_about_x(seed):
    s = simulate(150, random_state=seed)
    assert r2(s.x, posterior_mean(s, set(s.truth))) > 0.95


def test_every_kind_alone_says_something_about_x():
    for kind in COLUMNS:
        s = simulate(80, columns={kind: 12}, random_state=3)
        assert r2(s.x, posterior_mean(s, set(s.truth))) > 0.25, kind


def test_lengthscales_per_dimension():
    s = simulate(50, 2, lengthscale=(1.0, 1e6), columns={"gaussian": 3})
    moved = s.x + np.array([0.0, 3.0])
    np.testing.assert_allclose(s.functions(moved), s.f, atol=1e-3)
    assert np.abs(s.functions(s.x + np.array([3.0, 0.0])) - s.f).max() > 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": {"gausian": 2}}, "kind 'gausian' is not known"),
        ({"columns": {}}, "asks for no column"),
        ({"lengthscale": (1.0, 2.0, 3.0)}, "lengthscale"),
        ({"lengthscale": 0.0}, "lengthscale"),
    ],
)
def test_bad_requests(change, message):
    with pytest.raises(DataError, match=message):
        simulate(10, **change)
