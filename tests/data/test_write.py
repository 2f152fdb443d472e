"""Bounds written as cells: reading them gives the same bounds, in the forms and dtypes of the table."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.data import Column, to_rows
from plurigp.data.limits import bounds_of_text, text_of_bounds
from plurigp.data.write import write_bounds, write_times

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
    return to_rows(written).numbers(column), written


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


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize(
    "events",
    [
        lambda status: pd.Series([bool(status)] * 3),
        lambda status: pd.Series([status] * 3, dtype="int8"),
        lambda status: pd.Series([status] * 3, dtype="Int64"),
        lambda status: pd.Series([float(status)] * 3),
        lambda status: pd.Series([bool(status)] * 3, dtype=object),
        lambda status: pd.Series([str(status)] * 3, dtype="str"),
        lambda status: pd.Series(["alive", "dead"][status : status + 1] * 3, dtype="str"),
        lambda status: pd.Series(["alive", "dead"][status : status + 1] * 3, dtype="category"),
        lambda status: pd.Series([status] * 3, dtype="category"),
        lambda status: pd.Series(pd.arrays.SparseArray([status] * 3)),
    ],
)
def test_a_status_that_the_column_never_says(events, status):
    frame = pd.DataFrame({"t": [1.0, 2.0, 3.0], "e": events(status)})
    bounds = [(5.0, INF), (6.0, 6.0), (7.0, INF)]
    found, written = again(Column("t", "weibull", event="e"), bounds, frame)
    np.testing.assert_array_equal(found, bounds)
    if not isinstance(frame["e"].dtype, pd.CategoricalDtype | pd.SparseDtype):
        assert written["e"].dtype == frame["e"].dtype


def test_events_of_rows_without_a_time_stay():
    frame = pd.DataFrame({"t": [1.0, 2.0, None, None, None], "e": ["died", "no", "died", "?", None]})
    _, written = again(Column("t", "weibull", event="e"), [(5.0, INF), (6.0, 6.0), *[(GAP, GAP)] * 3], frame)
    assert written["e"].tolist()[:4] == ["no", "died", "died", "?"]
    assert written["e"].isna().tolist() == [False] * 4 + [True]


@pytest.mark.parametrize(
    "dtypes", [("int64", "float64"), ("float32", "float64"), ("Int64", "float32"), ("int8", "int64")]
)
def test_numbers_that_the_dtype_cannot_hold_are_not_rounded(dtypes):
    """Rounded, a lower bound may exceed the upper one."""
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 4]}).astype(dict(zip("ab", dtypes, strict=True)))
    bounds = [(0.7, 0.7), (0.1, 0.1 + 1e-12), (1e90, 2e90)]
    found, written = again(Column("a", "censored_gaussian", upper="b"), bounds, frame)
    np.testing.assert_array_equal(found, bounds)
    assert set(written.dtypes) == {np.dtype("float64")}
    _, written = again(Column("a", "censored_gaussian", upper="b"), [(1.0, 1.0), (2.0, 3.0), (3.0, 3.0)], frame)
    assert written.dtypes.equals(frame.dtypes)


def test_times_that_share_their_events():
    frame = pd.DataFrame({"s": [1.0, 2.0, None, None], "t": [None, 2.0, 3.0, None], "e": ["died", "no", "died", None]})
    columns = [Column("s", "weibull", event="e"), Column("t", "weibull", event="e")]
    bounds = [
        np.array([(4.0, INF), (5.0, 5.0), (GAP, GAP), (GAP, GAP)]),
        np.array([(GAP, GAP), (6.0, 6.0), (7.0, INF), (GAP, GAP)]),
    ]
    written = frame.assign(**write_times(columns, bounds, frame))
    for column, own in zip(columns, bounds, strict=True):
        np.testing.assert_array_equal(to_rows(written).numbers(column), own)
    assert written["e"].tolist()[:3] == ["no", "died", "no"]


def test_times_as_text_alone():
    frame = pd.DataFrame({"t": ["1", ">2", None]})
    bounds = [(5.0, INF), (6.0, 6.0), (GAP, GAP)]
    found, written = again(Column("t", "weibull"), bounds, frame)
    np.testing.assert_array_equal(found, bounds)
    assert written["t"].tolist()[:2] == [">5", "6"]
