"""Cells known up to a limit: as text, as two columns, as times with events; coded, inferred, filled, refused."""

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import Coder, Column, Schema, infer_schema
from plurigp.data.limits import bounds_of_text

INF = np.inf


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("<0.5", (-INF, 0.5)),
        ("<= 0.5", (-INF, 0.5)),
        ("≤.5", (-INF, 0.5)),
        (">200", (200, INF)),
        (" >= 1e3 ", (1000, INF)),
        ("≥-2", (-2, INF)),
        ("1-3", (1, 3)),
        ("1 – 3", (1, 3)),
        ("1 to 3", (1, 3)),
        ("-3--1", (-3, -1)),
        ("-5", (-5, -5)),
        ("1e-3", (1e-3, 1e-3)),
        ("1e-3-2e-3", (1e-3, 2e-3)),
    ],
)
def test_what_a_text_spells(text, bounds):
    assert bounds_of_text(text) == bounds


@pytest.mark.parametrize(
    "text",
    ["3-1", "2020-01", "2020-01-05", "01-05", "1/3", "<", ">x", "1-2-3", "<5 mg", "five", "1,5-2,5", "=5", "<>3"],
)
def test_what_is_no_limit(text):
    assert np.isnan(bounds_of_text(text)).all()


def lab(rng, n=100):
    """Half-way realistic: a lognormal assay with a lower and an upper limit, and gaps."""
    y = np.exp(rng.normal(1, 1, n)).round(3)
    text = np.where(y < 1, "<1", np.where(y > 20, ">20", y.astype(str))).astype(object)
    text[rng.random(n) < 0.1] = None
    return y, pd.DataFrame({"assay": pd.Series(text, dtype="str"), "z": rng.normal(size=n)})


def test_inferred_with_a_reason_that_quotes_no_cell(rng):
    _, frame = lab(rng)
    column = infer_schema(frame)["assay"]
    assert column.kind == "censored_lognormal"
    assert "up to a limit" in column.reason
    assert "below" in column.reason
    assert "20" not in column.reason.replace(str((frame["assay"] == "<1").sum()), "")
    plain = pd.DataFrame({"t": np.append(rng.normal(size=50).round(4).astype(str), ["<-3", ">=3", "1-2"])})
    assert infer_schema(plain)["t"].kind == "censored_gaussian"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["<18", "18-65", ">65", "18-65", "<18"] * 5, "categorical"),  # bands
        (["2020-01-05", "2021-03-04", "2020-02-05"] * 5, "aside"),
        (["1.5", "2.5", "3.5", "4.5", "n/a?"] * 5, "categorical"),
    ],
)
def test_not_every_dash_is_a_limit(cells, kind):
    assert infer_schema(pd.DataFrame({"a": cells, "b": np.arange(len(cells)) ** 2 / 7}))["a"].kind == kind


def test_coded_as_bounds_with_the_log_unit_of_a_density(rng):
    _, frame = lab(rng)
    coder = Coder.fit(frame, infer_schema(frame))
    table = coder.table(frame)
    low, high, unit = table.values[:, :3].T
    assay, scale = frame["assay"], coder.scale[0]
    exact = assay.notna() & ~assay.str.startswith(("<", ">"), na=False)
    np.testing.assert_allclose(low[exact] * scale, assay[exact].astype(float))
    np.testing.assert_array_equal(low[exact], high[exact])
    np.testing.assert_allclose(unit[exact], np.log(scale))
    below, above = (assay == "<1").to_numpy(), (assay == ">20").to_numpy()
    np.testing.assert_allclose(high[below] * scale, 1)
    np.testing.assert_array_equal(low[below], 1e-30)
    np.testing.assert_allclose(low[above] * scale, 20)
    np.testing.assert_array_equal(high[above], 1e30)
    np.testing.assert_array_equal(unit[below | above], 0)
    np.testing.assert_array_equal(table.seen[:, 0], assay.notna())
    np.testing.assert_array_equal(low[assay.isna()], 1e-30)
    assert coder.log_units[0] == 0.0


def test_a_filled_table_keeps_limits_as_they_were_written(rng):
    _, frame = lab(rng)
    coder = Coder.fit(frame, infer_schema(frame))
    coded = np.full((len(frame), 2), 0.3)
    filled = coder.fill(frame, coded)
    seen = frame["assay"].notna()
    assert filled["assay"][seen].tolist() == frame["assay"][seen].tolist()
    assert filled["assay"].notna().all()
    numbers = coder.fill(frame, coded, fill_limits=True)["assay"]
    assert numbers.dtype == np.float64
    exact = seen & ~frame["assay"].str.startswith(("<", ">"), na=False)
    np.testing.assert_array_equal(numbers[exact], frame["assay"][exact].astype(float))
    np.testing.assert_allclose(numbers[~exact], 0.3 * coder.scale[0])


PAIR = pd.DataFrame({"low": [1.0, None, 2.0, 3.0, None], "high": [1.0, 2.0, None, 5.0, None], "z": [0.1, 2, 3, 5, 1]})


def test_two_columns_of_bounds():
    schema = infer_schema(PAIR, {"low": {"kind": "censored_gaussian", "upper": "high"}})
    assert schema["high"].kind == "aside"
    assert schema["high"].reason == "holds the upper bounds of 'low'"
    assert Schema.from_toml(schema.to_toml())["low"].upper == "high"
    coder = Coder.fit(PAIR, schema)
    table = coder.table(PAIR)
    np.testing.assert_array_equal(table.seen[:, 0], [True, True, True, True, False])
    raw = coder.shift[0] + coder.scale[0] * table.values[:, :2]
    np.testing.assert_allclose(raw[[0, 3]], [[1, 1], [3, 5]])
    assert raw[1, 0] < -1e6
    assert raw[2, 1] > 1e6
    filled = coder.fill(PAIR, np.zeros((5, 2)))
    assert filled["low"].isna().tolist() == [False, True, False, False, False]  # an open end is not a gap
    assert filled.loc[4, "low"] == filled.loc[4, "high"] == pytest.approx(coder.shift[0])


def test_times_with_events():
    frame = pd.DataFrame({"t": [1.0, 2.0, 3.0, None], "died": ["yes", "no", "yes", None], "z": [1.5, 2, 4, 3]})
    schema = infer_schema(frame, {"t": {"kind": "weibull", "event": "died"}})
    table = Coder.fit(frame, schema).table(frame)
    assert (table.values[:3, 0] == table.values[:3, 1]).tolist() == [True, False, True]
    assert table.values[1, 1] == 1e30
    assert table.seen[:, 0].tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("frame", "declared", "message"),
    [
        ({"a": ["1", "2", "x"]}, "censored_gaussian", "row 2: text that is neither a number nor a limit"),
        (
            {"a": ["1", "2", "<0"]},
            "censored_gamma",
            "row 2: the value is not above zero, which censored_gamma does not allow",
        ),
        ({"a": ["1", "2", "<5"]}, "gaussian", "row 2: a limit in a column of numbers.*censored_gaussian"),
        (
            {"a": [1.0, 9.0], "b": [2.0, 3.0]},
            {"kind": "censored_gaussian", "upper": "b"},
            "row 1: the lower bound exceeds",
        ),
        (
            {"a": [1.0, 9.0]},
            {"kind": "weibull", "event": "b"},
            "its events are in column 'b', which is not in the table",
        ),
        (
            {"a": [1.0, 9.0], "b": [2, 1]},
            {"kind": "weibull", "event": "b"},
            "'b', row 0: the cell does not say whether",
        ),
        ({"a": [1.0, 9.0], "b": [None, 1]}, {"kind": "weibull", "event": "b"}, "'b', row 0: a time without its event"),
        ({"a": [1.0, 9.0]}, {"kind": "censored_gaussian", "upper": "a"}, "upper bounds are in itself"),
        ({"a": [1.0, 9.0]}, {"kind": "gaussian", "event": "a"}, "event does not belong to kind 'gaussian'"),
    ],
)
def test_refused_with_column_row_and_remedy(frame, declared, message):
    with pytest.raises(DataError, match=message) as caught:
        infer_schema(pd.DataFrame(frame), {"a": declared})
    assert "\n" not in str(caught.value)


def test_units_of_cells_that_say_nothing():
    frame = pd.DataFrame({"a": [">0", ">0", "<2"], "b": [1.0, 2.5, 4.0]})
    coder = Coder.fit(frame, Schema((Column("a", "censored_lognormal"), Column("b", "gaussian"))))
    assert coder.scale[0] == pytest.approx(2.0)
    assert np.isfinite(coder.table(frame).values).all()


def test_over_dispersed_counts_are_negative_binomial(rng):
    frame = pd.DataFrame({"a": rng.negative_binomial(1, 0.1, 300), "b": rng.poisson(9, 300)})
    schema = infer_schema(frame)
    assert [c.kind for c in schema] == ["negative_binomial", "poisson"]
    assert "times the variance of a Poisson" in schema["a"].reason
