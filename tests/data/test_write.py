"""Bounds written as cells: reading them gives the same bounds, in the forms and dtypes of the table."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.data import Column
from plurigp.data.kinds import cells_in, read_column
from plurigp.data.limits import bounds_of_text, text_of_bounds
from plurigp.data.write import write_bounds

INF, GAP = np.inf, np.nan
NUMBERS = st.floats(-1e90, 1e90, allow_nan=False).map(lambda v: v + 0.0)


@given(NUMBERS, NUMBERS)
def test_a_text_spells_the_bounds_it_was_made_of(a, b):
    low, high = sorted((a, b))
    for bounds in ((low, low), (low, high), (-INF, high), (low, INF)):
        assert bounds_of_text(text_of_bounds(*bounds)) == bounds


def test_texts_as_people_write_them():
    texts = [text_of_bounds(*b) for b in ((-INF, 0.5), (200.0, INF), (1.0, 3.0), (-3.0, -1.0), (1e-5, 1e-5))]
    assert texts == ["<0.5", ">200", "1-3", "-3--1", "1e-05"]


def again(column, bounds, frame):
    """The bounds that are read from what was written, and the frame with it."""
    written = frame.assign(**write_bounds(column, np.array(bounds), frame))
    return read_column(column, cells_in(written, column.name), written), written


PLAIN = [(-2.0, -2.0), (-INF, 1.0), (3.0, INF), (0.0, 4.0), (GAP, GAP)]
POSITIVE = [(2.0, 2.0), (0.0, 1.0), (3.0, INF), (2.0, 4.0), (GAP, GAP)]


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [("censored_gaussian", PLAIN), ("censored_lognormal", POSITIVE), ("censored_gamma", POSITIVE)],
)
@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_text(kind, bounds, dtype):
    frame = pd.DataFrame({"a": pd.Series(["<1", ">2", "3", "1-2", None], dtype=dtype)}).set_axis(list("vwxyz"))
    found, written = again(Column("a", kind), bounds, frame)
    np.testing.assert_array_equal(found, bounds)
    assert written["a"].dtype == dtype
    assert written.index.equals(frame.index)


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [("censored_gaussian", PLAIN), ("censored_lognormal", [*POSITIVE[:4], (0.0, INF)]), ("censored_gamma", POSITIVE)],
)
@pytest.mark.parametrize("dtype", ["float64", "Int64", "str", "float32"])
def test_two_columns(kind, bounds, dtype):
    frame = pd.DataFrame({"a": [1, None, 2, 3, None], "b": [1, 2, None, 5, None]}).astype("Int64").astype(dtype)
    found, written = again(Column("a", kind, upper="b"), bounds, frame)
    np.testing.assert_array_equal(found, bounds)
    assert set(written.dtypes) == set(frame.dtypes)


@pytest.mark.parametrize(
    "events",
    [
        pd.Series([True, False, True, False, None], dtype="boolean"),
        pd.Series([1, 0, 1, 0, 0]),
        pd.Series(["Died", "no", "died", "censored", None], dtype="str"),
        pd.Series(["yes", "no", "yes", "no", "yes"], dtype="category"),
    ],
)
@pytest.mark.parametrize("times", [[1.0, 2.0, 3.0, 4.0, None], ["1", "2", "<3", "4", None]])
def test_times_and_events(events, times):
    frame = pd.DataFrame({"t": times, "e": events})
    bounds = [(5.0, INF), (6.0, 6.0), (7.0, INF), (8.0, 8.0), (GAP, GAP)]
    found, written = again(Column("t", "weibull", event="e"), bounds, frame)
    np.testing.assert_array_equal(found, bounds)
    assert written.dtypes.equals(frame.dtypes)
    assert written["e"].isna().equals(frame["e"].isna())


def test_times_as_text_alone():
    frame = pd.DataFrame({"t": ["1", ">2", None]})
    bounds = [(5.0, INF), (6.0, 6.0), (GAP, GAP)]
    found, written = again(Column("t", "weibull"), bounds, frame)
    np.testing.assert_array_equal(found, bounds)
    assert written["t"].tolist()[:2] == [">5", "6"]
