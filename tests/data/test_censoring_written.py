"""Bounds written as cells: reading them gives the same bounds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.data import Column, to_rows
from plurigp.data.censoring import write_bounds, write_times
from plurigp.data.limits import bounds_of_text, text_of_bounds

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


def again(column, bounds):
    """The bounds that are read from what was written, and the frame with it."""
    own = np.array(bounds)
    written = write_bounds(column, own) if column.event is None else write_times([column], [own])
    frame = pd.DataFrame(written)
    return to_rows(frame).numbers(column), frame


PLAIN = [(-2.0, -2.0), (-INF, 1.0), (3.0, INF), (0.0, 4.0), (GAP, GAP)]
POSITIVE = [(2.0, 2.0), (0.0, 1.0), (3.0, INF), (2.0, 4.0), (GAP, GAP)]
CLOSE = [(0.7, 0.7), (0.1, 0.1 + 1e-12), (1e90, 2e90)]


@pytest.mark.parametrize("upper", [None, "b"], ids=["text", "two columns"])
@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("censored_gaussian", PLAIN),
        ("censored_gaussian", CLOSE),
        ("censored_lognormal", POSITIVE),
        ("censored_lognormal", [*POSITIVE[:4], (0.0, INF)]),
        ("censored_gamma", POSITIVE),
    ],
)
def test_limits(kind, bounds, upper):
    found, _ = again(Column("a", kind, upper=upper), bounds)
    np.testing.assert_array_equal(found, bounds)


def test_values_without_a_limit_are_numbers():
    _, written = again(Column("a", "censored_gaussian"), [(1.5, 1.5), (GAP, GAP)])
    assert written["a"].dtype == np.float64


def test_times_and_events():
    bounds = [(5.0, INF), (6.0, 6.0), (7.0, INF), (0.0, 8.0), (GAP, GAP)]
    found, written = again(Column("t", "weibull", event="e"), bounds)
    np.testing.assert_array_equal(found, bounds)
    assert written["t"].tolist()[:4] == ["5", "6", "7", "<8"]
    np.testing.assert_array_equal(written["e"], [0, 1, 0, 1, GAP])


def test_times_that_share_their_events():
    columns = [Column("s", "weibull", event="e"), Column("t", "weibull", event="e")]
    bounds = [
        np.array([(4.0, INF), (5.0, 5.0), (GAP, GAP), (GAP, GAP)]),
        np.array([(GAP, GAP), (6.0, 6.0), (7.0, INF), (GAP, GAP)]),
    ]
    written = pd.DataFrame(write_times(columns, bounds))
    for column, own in zip(columns, bounds, strict=True):
        np.testing.assert_array_equal(to_rows(written).numbers(column), own)
    np.testing.assert_array_equal(written["e"], [0, 1, 0, GAP])


def test_times_as_text_alone():
    found, written = again(Column("t", "weibull"), [(5.0, INF), (6.0, 6.0), (GAP, GAP)])
    np.testing.assert_array_equal(found, [(5.0, INF), (6.0, 6.0), (GAP, GAP)])
    assert written["t"].tolist()[:2] == [">5", "6"]
