"""Tables of every make become one pandas frame."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from plurigp.core.types import DataError
from plurigp.data import to_frame


def test_a_good_frame_is_handed_through_without_a_copy():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert to_frame(frame) is frame


def test_labels_that_are_not_text_become_text_and_the_input_stays():
    frame = pd.DataFrame([[1, 2]], columns=[0, 1])
    assert to_frame(frame).columns.tolist() == ["0", "1"]
    assert frame.columns.tolist() == [0, 1]


def test_arrays_get_names():
    array = np.arange(6.0).reshape(2, 3)
    assert to_frame(array).columns.tolist() == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(to_frame(array).to_numpy(), array)


def test_object_arrays_and_lists_keep_each_columns_own_type():
    rows = [[1, "a", True, None], [2, "b", False, 0.5]]
    for table in (rows, np.array(rows, dtype=object), [tuple(row) for row in rows]):
        frame = to_frame(table)
        assert frame["x0"].tolist() == [1, 2]
        assert frame["x1"].tolist() == ["a", "b"]
        assert frame["x2"].dtype == bool
        assert frame["x3"].isna().tolist() == [True, False]


def test_objects_that_turn_into_arrays_are_taken():
    class NotAnArray:
        def __array__(self, dtype=None, copy=None):
            return np.eye(2, dtype=dtype)

    assert to_frame(NotAnArray()).shape == (2, 2)


def test_masked_arrays_keep_their_gaps():
    masked = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    assert to_frame(masked)["x1"].isna().tolist() == [True, False]


def test_dicts_of_columns_and_lists_of_records():
    assert to_frame({"a": [1, 2], "b": ["x", None]}).shape == (2, 2)
    assert to_frame([{"a": 1}, {"a": 2, "b": 3}])["b"].isna().tolist() == [True, False]


def test_read_only_arrays_are_not_written_to():
    array = np.arange(4.0).reshape(2, 2)
    array.flags.writeable = False
    assert to_frame(array).shape == (2, 2)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_sparse_matrices_are_refused_by_type(make):
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        to_frame(make(np.eye(3)))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones(3), r"Expected 2D array, got 1D array instead.*Reshape your data"),
        (np.float64(1), "Expected 2D array, got scalar array instead"),
        ([1, 2, 3], "Expected 2D array, got 1D array instead"),
        (pd.Series([1, 2]), "Expected 2D array, got 1D array instead"),
        (np.ones((2, 2, 2)), "Found array with dim 3"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        (np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\."),
        (np.empty((5, 0)), r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is required\."),
        (pd.DataFrame({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        ([], r"0 sample\(s\)"),
        ([[1, 2], [3]], "row 1 has 1 cells where row 0 has 2"),
        ({"a": [1, 2], "b": [1]}, "column 'b': 1 cells where the first column has 2"),
        ({"a": 1}, "column 'a': expected a list of cells"),
        ("table.csv", "read_table"),
        (None, "expected a table"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column 'a' occurs more than once"),
        (pd.DataFrame([[1, 2]], columns=["1", 1]), "column '1' occurs more than once"),
        (pd.DataFrame([[1, 2]], columns=["a", " "]), "column 2 has no name"),
        (pd.DataFrame([[1, 2]], columns=["a", None]), "column 2 has no name"),
        (np.zeros(2, dtype=[("a", float)]), "structured"),
    ],
)
def test_what_is_no_table_is_an_error(table, message):
    with pytest.raises(DataError, match=message):
        to_frame(table)


def test_polars_frames_without_going_through_pyarrow(monkeypatch):
    pl = pytest.importorskip("polars")
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = pl.DataFrame(
        {
            "int": [1, None, 3],
            "whole": [1, 2, 3],
            "float": [0.5, None, float("nan")],
            "flag": [True, None, False],
            "text": ["a", None, "b"],
            "cat": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "enum": pl.Series(["low", None, "high"], dtype=pl.Enum(["low", "mid", "high"])),
            "day": pl.Series([None, 1, 2], dtype=pl.Int32).cast(pl.Date),
            "nothing": [None, None, None],
        }
    )
    frame = to_frame(table)
    assert frame["int"].dtype == "Int64"
    assert frame["whole"].dtype == "int64"
    assert frame["float"].isna().tolist() == [False, True, True]
    assert frame["flag"].dtype == "boolean"
    assert frame["text"].isna().tolist() == [False, True, False]
    assert frame["cat"].tolist()[::2] == ["x", "y"]
    assert frame["enum"].cat.categories.tolist() == ["low", "mid", "high"]
    assert frame["enum"].cat.ordered
    assert frame["day"].dtype.kind == "M"
    assert frame["nothing"].isna().all()
    assert (frame.drop(columns=["whole", "nothing", "day"]).isna().iloc[1]).all()


def test_polars_wide_types_and_lazy_frames():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame(
        {"big": pl.Series([1, None], dtype=pl.Int128), "small": pl.Series([1.5, None], dtype=pl.Float32)}
    )
    frame = to_frame(table)
    assert frame["big"].tolist()[0] == 1
    assert frame["big"].isna().tolist() == [False, True]
    with pytest.raises(DataError, match="collect"):
        to_frame(table.lazy())
    with pytest.raises(DataError, match="1D array"):
        to_frame(table["small"])


def test_arrow_tables_are_taken():
    pa = pytest.importorskip("pyarrow")
    assert to_frame(pa.table({"a": [1, None]}))["a"].isna().tolist() == [False, True]
