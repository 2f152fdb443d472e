"""Structureless tables of columns with limits: no cell of the real table, as many limits, no trace of its groups."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp import PluriGP
from plurigp.data import to_rows
from plurigp.study.findings.null import structureless_table

N = 400


def with_limits(value, rng, decimals=4):
    """Bounds of cells, of which some lie below a limit, some above one, and some in an interval."""
    value = value.round(decimals)
    low, high = value.copy(), value.copy()
    below, above = np.quantile(value, [0.2, 0.85])
    inside = (rng.random(N) < 0.2) & (value > below) & (value < above)
    low[inside], high[inside] = np.floor(value[inside] * 2) / 2, np.floor(value[inside] * 2) / 2 + 0.5
    low[value < below], high[value < below] = -np.inf, below.round(2)
    low[value > above], high[value > above] = above.round(2), np.inf
    return low, high


def as_text(low, high):
    return [
        repr(a) if a == b else f"<{b}" if np.isinf(a) else f">{a}" if np.isinf(b) else f"{a}-{b}"
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]


def in_two(low, high):
    return np.where(np.isinf(low), np.nan, low), np.where(np.isinf(high), np.nan, high)


def make():
    """Every censored kind and weibull in every form; two groups far apart in all columns."""
    rng = np.random.default_rng(3)
    group = rng.random(N) < 0.5
    columns, schema = {"other": 3.0 * group + rng.normal(size=N)}, {}
    for kind in ("censored_gaussian", "censored_lognormal", "censored_gamma"):
        for form in ("text", "two"):
            value = 2.0 * group + rng.normal(2, 0.7, N)
            low, high = with_limits(value if kind == "censored_gaussian" else np.exp(value / 2), rng)
            name = f"{kind}_{form}"
            if form == "text":
                columns[name], schema[name] = as_text(low, high), kind
            else:
                columns[name], columns[f"{name}_upper"] = in_two(low, high)
                schema[name] = {"kind": kind, "upper": f"{name}_upper"}
    for form in ("text", "event", "words"):
        time, end = 40 * np.exp(1.5 * group) * rng.weibull(2, N), rng.exponential(250, N)
        seen, happened = np.minimum(time, end), time <= end
        name, event = f"weibull_{form}", f"weibull_{form}_event"
        if form == "text":
            columns[name] = [repr(t) if e else f">{t}" for t, e in zip(seen.tolist(), happened, strict=True)]
            schema[name] = "weibull"
        else:
            columns[name] = seen if form == "event" else np.maximum(seen.round(), 1).astype(int)
            columns[event] = happened if form == "event" else np.where(happened, "died", "no")
            schema[name] = {"kind": "weibull", "event": event}
    frame = pd.DataFrame(columns)
    for name in ("censored_gaussian_text", "censored_lognormal_text", "weibull_text", "weibull_event"):
        frame.loc[rng.random(N) < 0.1, name] = None
    return frame, schema, group


FRAME, SCHEMA, GROUP = make()


@pytest.fixture(scope="module")
def model():
    return PluriGP(1, schema=SCHEMA, n_inducing=8, max_epochs=30, random_state=0, calibrate=False).fit(FRAME)


@pytest.fixture(scope="module")
def drawn(model):
    return structureless_table(model, FRAME, 1)


def bounds_of(model, frame, name):
    return to_rows(frame).numbers(model.schema_[name])


def by_chance(real, new):
    """How many pairs of cells would be equal if rows were shuffled, and four standard errors more."""
    names = np.unique(np.concatenate([real, new]), axis=0, return_inverse=True)[1].ravel()
    shares = [
        np.bincount(part, minlength=names.max() + 1) / len(real) for part in (names[: len(real)], names[len(real) :])
    ]
    p = float(shares[0] @ shares[1])
    return len(real) * p + 4 * np.sqrt(len(real) * p * (1 - p))


@pytest.mark.parametrize("name", SCHEMA)
def test_no_cell_is_the_real_one_beyond_chance(model, drawn, name):
    real, new = bounds_of(model, FRAME, name), bounds_of(model, drawn, name)
    seen = ~np.isnan(real[:, 0])
    np.testing.assert_array_equal(seen, ~np.isnan(new[:, 0]))
    same = (real[seen] == new[seen]).all(axis=1).sum()
    assert same <= by_chance(real[seen], new[seen])


@pytest.fixture(scope="module")
def several(model):
    """The rows of one table share its functions: a share of one table says little."""
    return [structureless_table(model, FRAME, seed) for seed in range(1, 6)]


@pytest.mark.parametrize("name", SCHEMA)
def test_as_many_cells_are_known_up_to_a_limit(model, several, name):
    real, new = bounds_of(model, FRAME, name), [bounds_of(model, table, name) for table in several]
    seen = ~np.isnan(real[:, 0])
    for part in (lambda b: np.isinf(b[:, 1]), lambda b: (b[:, 0] < b[:, 1]) & np.isfinite(b[:, 1])):
        found = np.mean([part(bounds[seen]).mean() for bounds in new])
        assert found == pytest.approx(part(real[seen]).mean(), abs=0.12)


@pytest.mark.parametrize("name", SCHEMA)
def test_groups_leave_no_trace(model, drawn, name):
    real, new = bounds_of(model, FRAME, name), bounds_of(model, drawn, name)

    def place(bounds):
        ends = np.where(np.isfinite(bounds), bounds, np.nan)
        return np.where(np.isnan(ends[:, 0]), ends[:, 1], ends[:, 0])

    seen = ~np.isnan(real[:, 0])
    assert stats.mannwhitneyu(place(real)[seen & GROUP], place(real)[seen & ~GROUP]).pvalue < 1e-9
    assert stats.mannwhitneyu(place(new)[seen & GROUP], place(new)[seen & ~GROUP]).pvalue > 1e-3


@pytest.fixture(scope="module")
def shared():
    """Two time columns with one event column, gaps in one of them and in all; a model of it."""
    rng = np.random.default_rng(0)
    n = 200
    time, end = 50 * rng.weibull(1.5, n), rng.uniform(0, 100, n)
    frame = pd.DataFrame({"other": rng.normal(size=n), "t1": np.minimum(time, end), "ev": (time <= end).astype(float)})
    frame["t2"] = np.ceil(frame["t1"] + rng.uniform(0, 20, n))
    frame.loc[:29, "t2"] = None
    frame.loc[40:50, ["t1", "t2", "ev"]] = None
    schema = {name: {"kind": "weibull", "event": "ev"} for name in ("t1", "t2")}
    model = PluriGP(1, schema=schema, n_inducing=8, max_epochs=5, random_state=0, calibrate=False).fit(frame)
    return model, frame


def test_times_that_share_an_event_column_share_the_drawn_status(shared):
    model, frame = shared
    for seed in range(5):
        drawn = structureless_table(model, frame, seed)
        np.testing.assert_array_equal(model.coder_.table(drawn).seen, model.coder_.table(frame).seen)
        for name in ("t1", "t2"):
            bounds = bounds_of(model, drawn, name)
            seen = ~np.isnan(bounds[:, 0])
            np.testing.assert_array_equal(drawn.loc[seen, "ev"] == 0, np.isinf(bounds[seen, 1]))
            real = bounds_of(model, frame, name)
            share = np.isinf(bounds[seen, 1]).mean()
            assert share == pytest.approx(np.isinf(real[seen, 1]).mean(), abs=0.15)
        assert abs(np.corrcoef(drawn.loc[seen, "ev"], frame.loc[seen, "ev"])[0, 1]) < 0.25
        assert drawn["ev"].isna().equals(frame["ev"].isna())


def test_coded_again_with_the_same_gaps(model, drawn):
    table, real = model.coder_.table(drawn), model.coder_.table(FRAME)
    np.testing.assert_array_equal(table.seen, real.seen)
    assert list(drawn.columns) == list(FRAME.columns)
    for event in ("weibull_event_event", "weibull_words_event"):
        assert abs(np.corrcoef(drawn[event] == 1, FRAME[event].isin([True, "died"]))[0, 1]) < 0.2
    pd.testing.assert_frame_equal(drawn, structureless_table(model, FRAME, 1))
    assert not drawn.equals(structureless_table(model, FRAME, 2))
