"""One plain form for every dtype a column can come in."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data.cells import as_numbers, cells_of, distinct_levels, level_codes, plain_level, spell, spells_numbers

NAN = np.nan


def cells(values, dtype=None):
    return cells_of(pd.Series(values, dtype=dtype, name="c"))


@pytest.mark.parametrize(
    "dtype",
    [
        "Int8",
        "Int64",
        "UInt16",
        "Float32",
        "Float64",
        "float16",
        "float32",
        "object",
        "int64[pyarrow]",
        "double[pyarrow]",
    ],
)
def test_numbers_of_every_dtype_with_a_gap(dtype):
    found = cells([1, None, 3], dtype)
    assert found.form == "number"
    assert found.seen.tolist() == [True, False, True]
    np.testing.assert_array_equal(as_numbers(found, "c"), [1.0, NAN, 3.0])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_of_every_width(dtype):
    np.testing.assert_array_equal(as_numbers(cells([0, 7, 100], dtype), "c"), [0.0, 7.0, 100.0])


@pytest.mark.parametrize("dtype", ["boolean", "object", "bool[pyarrow]"])
def test_truth_values_with_a_gap(dtype):
    found = cells([True, None, False], dtype)
    assert found.form == "bool"
    assert distinct_levels(found) == [False, True]
    np.testing.assert_array_equal(level_codes(found, (False, True)), [1.0, NAN, 0.0])


@pytest.mark.parametrize("dtype", ["str", "string", "object", "string[pyarrow]", "category", "string[python]"])
def test_text_with_gaps_and_blanks(dtype):
    found = cells(["b", None, "a", "  ", "", "b"], dtype)
    assert found.form == "text"
    assert found.seen.tolist() == [True, False, True, False, False, True]
    assert sorted(found.distinct) == ["a", "b"]
    np.testing.assert_array_equal(level_codes(found, ("a", "b")), [1.0, NAN, 0.0, NAN, NAN, 1.0])


def test_arrow_text_dtype_and_dictionary():
    pa = pytest.importorskip("pyarrow")
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        values = pa.array(["x", None, "y"], type=kind) if kind != pa.dictionary(pa.int32(), pa.string()) else None
        array = values if values is not None else pa.array(["x", None, "y"]).dictionary_encode()
        found = cells_of(pd.Series(pd.arrays.ArrowExtensionArray(array), name="c"))
        assert found.form == "text"
        assert found.seen.tolist() == [True, False, True]


def test_arrow_decimals_dates_and_times():
    pa = pytest.importorskip("pyarrow")
    decimals = pd.Series(pd.arrays.ArrowExtensionArray(pa.array([Decimal("1.50"), None])), name="c")
    np.testing.assert_array_equal(as_numbers(cells_of(decimals), "c"), [1.5, NAN])
    day = datetime.date(2020, 1, 5)
    for values in ([day, None], [datetime.datetime(2020, 1, 5, 8), None], [datetime.time(8, 30), None]):
        found = cells_of(pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values)), name="c"))
        assert found.form == "date"
        assert found.seen.tolist() == [True, False]


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(pd.to_datetime(["2020-01-05", None])),
        pd.Series(pd.to_datetime(["2020-01-05", None], utc=True)),
        pd.Series(pd.to_timedelta(["3 days", None])),
        pd.Series(pd.PeriodIndex(["2020-01", None], freq="M")),
        pd.Series([datetime.date(2020, 1, 5), None], dtype=object),
        pd.Series(pd.to_datetime(["2020-01-05", None])).astype("category"),
    ],
)
def test_dates_are_known_as_dates(series):
    found = cells_of(series, "c")
    assert found.form == "date"
    assert found.seen.tolist() == [True, False]


@pytest.mark.parametrize("series", [pd.Series([None, None]), pd.Series([NAN]), pd.Series([], dtype="str")])
def test_nothing_observed_is_empty(series):
    assert cells_of(series, "c").form == "empty"


def test_objects_may_mix_numbers_of_all_makes():
    found = cells([1, 2.5, Decimal("3.5"), True, np.float32(4), None, pd.NA, NAN], object)
    assert found.form == "number"
    np.testing.assert_array_equal(as_numbers(found, "c"), [1, 2.5, 3.5, 1, 4, NAN, NAN, NAN])


def test_text_among_numbers_makes_all_text_spelled_as_in_a_file():
    found = cells([250, 250.0, 2.5, "V27", True, None], object)
    assert found.form == "text"
    assert set(found.distinct) == {"250", "2.5", "V27", "True"}


def test_a_cell_that_is_no_value_is_named_by_row():
    with pytest.raises(DataError, match=r"column 'c', row 2: a cell of type list"):
        cells([1, None, [2]], object)
    with pytest.raises(DataError, match=r"row 0: a cell of type bytes"):
        cells([b"x", b"y"], object)
    with pytest.raises(DataError, match="Complex data not supported"):
        cells([1 + 2j, 3], complex)


def test_sparse_dtype_is_read_like_the_dense_one():
    sparse = pd.Series(pd.arrays.SparseArray([0.0, 2.0, NAN]), name="c")
    np.testing.assert_array_equal(as_numbers(cells_of(sparse), "c"), [0.0, 2.0, NAN])


def test_category_keeps_only_levels_that_occur_and_their_order_if_ordered():
    values = pd.Categorical(["mid", "low", None], categories=["low", "mid", "high"], ordered=True)
    assert distinct_levels(cells(values)) == ["low", "mid"]
    unordered = pd.Categorical(["z", "b", "z"], categories=["z", "b", "a"])
    assert distinct_levels(cells(unordered)) == ["b", "z"]


def test_category_of_numbers_truth_values_and_intervals():
    numbers = cells(pd.Categorical([10, 9, None]))
    assert numbers.form == "number"
    assert distinct_levels(numbers) == [9, 10]
    np.testing.assert_array_equal(as_numbers(numbers, "c"), [10.0, 9.0, NAN])
    assert cells(pd.Categorical([True, False])).form == "bool"
    assert distinct_levels(cells(pd.cut([1, 15], [0, 10, 20]))) == ["(0, 10]", "(10, 20]"]


def test_levels_are_found_whatever_spelling_the_value_comes_in():
    for values in ([0, 1], [0.0, 1.0], [False, True], ["0", "1"], ["0.0", "1.0"]):
        np.testing.assert_array_equal(level_codes(cells(values), (0, 1)), [0.0, 1.0])
        np.testing.assert_array_equal(level_codes(cells(values), ("0", "1")), [0.0, 1.0])
        np.testing.assert_array_equal(level_codes(cells(values), (False, True)), [0.0, 1.0])
    np.testing.assert_array_equal(level_codes(cells(["FALSE", "true"]), (False, True)), [0.0, 1.0])


def test_levels_that_differ_only_in_spelling_stay_apart():
    levels = ("1", "01", "1.0")
    np.testing.assert_array_equal(level_codes(cells(["01", "1.0", "1"]), levels), [1.0, 2.0, 0.0])
    assert level_codes(cells([1]), levels).tolist() == [-1.0]


def test_unknown_values_are_marked():
    assert level_codes(cells(["a", "x", None]), ("a", "b")).tolist()[:2] == [0.0, -1.0]


def test_numbers_stored_as_text_but_not_codes_with_leading_zeros():
    assert spells_numbers(cells(["1", " 2.5", "-3e2", ".5"]))
    assert not spells_numbers(cells(["01", "02"]))
    assert not spells_numbers(cells(["1", "1_000"]))
    assert not spells_numbers(cells(["1", "nan"]))
    np.testing.assert_array_equal(as_numbers(cells(["1", None, "-3e2"]), "c"), [1.0, NAN, -300.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.inf], r"column 'c', row 1: the value is infinite"),
        ([-np.inf, 1.0], r"column 'c', row 0: the value is infinite"),
        ([1.0, 1e308], r"row 1: the value is beyond 1e\+100"),
        ([1, 10**400], r"row 1: the value is infinite"),
        (["1", "x", "2"], r"column 'c', row 1: text in a column of numbers"),
    ],
)
def test_bad_numbers_are_named(values, message):
    with pytest.raises(DataError, match=message):
        as_numbers(cells(values), "c")


def test_what_lies_under_a_gap_does_not_come_through():
    for hidden in (0, 99):
        masked = pd.arrays.IntegerArray(np.array([1, hidden, 3]), np.array([False, True, False]))
        np.testing.assert_array_equal(as_numbers(cells_of(pd.Series(masked), "c"), "c"), [1.0, NAN, 3.0])
        flags = pd.arrays.BooleanArray(np.array([True, bool(hidden)]), np.array([False, True]))
        np.testing.assert_array_equal(cells_of(pd.Series(flags), "c").numbers, [1.0, NAN])


def test_plain_levels_and_their_spelling():
    assert plain_level(np.int64(3)) == 3
    assert isinstance(plain_level(2.0), int)
    assert plain_level(np.float32(0.5)) == 0.5
    assert plain_level(Decimal("2.50")) == 2.5
    assert [spell(value) for value in (2.0, 0.1, "a b", True)] == ["2", "0.1", "a b", "True"]
