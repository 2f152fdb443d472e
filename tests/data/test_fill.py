"""Filling: gaps get values, observed cells and dtypes stay."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.data import Coder, Column, Schema, infer_schema

NUMBERS = ["float16", "float32", "float64", "Float32", "Float64", "Int8", "Int64", "UInt8", "int64[pyarrow]"]
NUMBERS += ["double[pyarrow]"]


def filled(frame, schema=None, value=0.0):
    coder = Coder.fit(frame, schema or infer_schema(frame))
    coded = np.full((len(frame), len(coder.schema.used)), value)
    return coder, coder.fill(frame, coded)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("value", [0.0, 0.3, -40.0, 40.0])
def test_numbers_keep_their_dtype_and_cells(dtype, value):
    frame = pd.DataFrame({"a": pd.Series([20, None, 64, 100], dtype=dtype)})
    _, out = filled(frame, Schema((Column("a", "gaussian"),)), value)
    assert out["a"].dtype == frame["a"].dtype
    assert out["a"].notna().all()
    assert out["a"].drop(1).tolist() == frame["a"].drop(1).tolist()
    assert np.isfinite(float(out["a"][1]))


def test_integers_are_rounded_and_kept_in_range():
    frame = pd.DataFrame({"a": pd.Series([20, None, 65], dtype="UInt8")})
    schema = Schema((Column("a", "gaussian"),))
    assert filled(frame, schema, 0.01)[1]["a"][1] == 43
    assert filled(frame, schema, -99.0)[1]["a"][1] == 0
    assert filled(frame, schema, 99.0)[1]["a"][1] == 255


@pytest.mark.parametrize("dtype", ["str", "string", "object", "category", "string[pyarrow]"])
def test_levels_keep_their_dtype(dtype):
    frame = pd.DataFrame({"a": pd.Series(["x", None, "y", "z", "x", "y", "z"], dtype=dtype)})
    _, out = filled(frame, value=1.0)
    assert out["a"].dtype == frame["a"].dtype
    assert out["a"].tolist() == ["x", "y", "y", "z", "x", "y", "z"]


@pytest.mark.parametrize("dtype", ["boolean", "object", "bool[pyarrow]"])
def test_truth_values_keep_their_dtype(dtype):
    frame = pd.DataFrame({"a": pd.Series([True, None, False], dtype=dtype)})
    _, out = filled(frame, value=1.0)
    assert out["a"].dtype == frame["a"].dtype
    assert out["a"].tolist() == [True, True, False]


def test_ordered_categories_intervals_and_unused_levels_stay():
    levels = pd.CategoricalDtype(["low", "mid", "high", "never"], ordered=True)
    frame = pd.DataFrame({"a": pd.Series(["low", None, "high", "mid", "low", "high"], dtype=levels)})
    frame["b"] = pd.cut([1, 15, np.nan, 25, 2, 16], [0, 10, 20, 30])
    _, out = filled(frame, value=1.0)
    assert out.dtypes.tolist() == frame.dtypes.tolist()
    assert out["a"][1] == "mid"
    assert out["b"][2] == pd.Interval(10, 20)


def test_a_category_of_numbers_declared_gaussian_becomes_plain_numbers():
    frame = pd.DataFrame({"a": pd.Categorical([1, None, 4, 9])})
    _, out = filled(frame, Schema((Column("a", "gaussian"),)), 0.1)
    assert out["a"].drop(1).tolist() == [1, 4, 9]
    assert 4 < out["a"][1] < 6


def test_numbers_stored_as_text_are_filled_with_text():
    frame = pd.DataFrame({"a": ["20", None, "65", "31"], "b": ["2.5", "1.25", None, "9.0"]})
    _, out = filled(frame, Schema((Column("a", "gaussian"), Column("b", "gaussian"))), 0.1)
    assert out["a"][1] == "41"
    assert out["b"][2] == "4.58973"
    assert out.dtypes.tolist() == frame.dtypes.tolist()


def test_object_columns_keep_their_habits():
    frame = pd.DataFrame({"whole": [1, None, 4, 9], "made": [Decimal("1.5"), None, 2.5, 8]}, dtype=object)
    _, out = filled(frame, Schema((Column("whole", "gaussian"), Column("made", "gaussian"))), 0.1)
    assert isinstance(out["whole"][1], int)
    assert out["made"].tolist()[0] == Decimal("1.5")
    assert out["made"].notna().all()


def test_successes_never_exceed_their_trials():
    frame = pd.DataFrame({"hits": [1.0, np.nan, np.nan, 3.0], "shots": [4.0, 2.0, np.nan, 3.0]})
    schema = Schema((Column("hits", "binomial", trials="shots"), Column("shots", "aside")))
    _, out = filled(frame, schema, 9.0)
    assert out["hits"].tolist() == [1.0, 2.0, 9.0, 3.0]
    assert out["shots"].isna().tolist() == [False, False, True, False]


def test_columns_set_aside_and_row_labels_come_back_untouched():
    frame = pd.DataFrame({"note": ["one two", None, "three"], "a": [1.5, np.nan, 4.5]}, index=["r", "r", "s"])
    _, out = filled(frame, infer_schema(frame, {"note": "aside"}))
    assert out.index.tolist() == ["r", "r", "s"]
    assert out["note"].isna().tolist() == [False, True, False]
    assert out["a"].tolist() == [1.5, 3.0, 4.5]


def test_labels_that_are_not_text_come_back_as_they_were():
    frame = pd.DataFrame({0: [1.5, np.nan, 4.5], 1: [1.0, 2.5, 9.0]})
    assert filled(frame)[1].columns.tolist() == [0, 1]


def test_the_input_is_not_changed_and_a_nan_leaves_the_gap():
    frame = pd.DataFrame({"a": [1.5, np.nan, 4.5]})
    before = frame.copy()
    _, out = filled(frame, value=np.nan)
    pd.testing.assert_frame_equal(frame, before)
    assert out["a"].isna().tolist() == [False, True, False]


def test_blank_text_is_a_gap_that_gets_filled():
    frame = pd.DataFrame({"a": ["x", " ", "y", "x"]})
    assert filled(frame, value=1.0)[1]["a"].tolist() == ["x", "y", "y", "x"]


def test_a_filled_table_can_be_read_again(mixed_frame):
    coder, out = filled(mixed_frame, value=0.7)
    assert coder.table(out).seen.all()
    pd.testing.assert_series_equal(out.dtypes, mixed_frame.dtypes)


def test_polars_and_arrays_come_back_as_frames():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"a": [1, None, 9], "b": ["x", "y", None]})
    _, out = filled(table, Schema((Column("a", "gaussian"), Column("b", "bernoulli"))), 1.0)
    assert out["a"].dtype == "Int64"
    assert out["b"].tolist() == ["x", "y", "y"]
    _, out = filled(np.array([[1.5, np.nan], [2.5, 3.0], [9.0, 4.5]]))
    assert out.columns.tolist() == ["x0", "x1"]
    assert out["x1"][0] == 3.75


@given(
    st.lists(st.none() | st.floats(-1e50, 1e50), min_size=3, max_size=30),
    st.sampled_from(["float64", "float32", "Float64", "object"]),
)
def test_observed_cells_stay_bit_for_bit(values, dtype):
    with np.errstate(over="ignore"):
        frame = pd.DataFrame({"a": pd.Series([None if v is None else v * 1e-20 for v in values], dtype=dtype)})
    if frame["a"].notna().sum() == 0:
        return
    seen = frame["a"].notna().to_numpy()
    _, out = filled(frame, Schema((Column("a", "gaussian"),)), 0.5)
    assert out["a"].dtype == frame["a"].dtype
    assert out["a"].notna().all()
    before = frame["a"][seen].to_numpy(dtype=np.float64)
    assert out["a"][seen].to_numpy(dtype=np.float64).tobytes() == before.tobytes()


# -- whole frames ------------------------------------------------------------------------------------------------------


def test_frame_gives_the_dtypes_of_the_fit():
    fit = pd.DataFrame(
        {
            "age": pd.array([40, 50, 61], dtype="Int64"),
            "small": np.array([1.5, 2.5, 9], dtype=np.float32),
            "whole": np.array([10, 25, 90]),
            "flag": [True, False, True],
            "group": pd.Categorical(["x", "y", "z"]),
            "word": ["x", "y", "x"],
            "number": ["1.5", "2.25", "7"],
        }
    )
    kinds = ("gaussian", "gaussian", "gaussian", "bernoulli", "categorical", "bernoulli", "gaussian")
    schema = Schema(tuple(Column(name, kind) for name, kind in zip(fit.columns, kinds, strict=True)))
    coder = Coder.fit(fit, schema)
    out = coder.frame(np.full((2, 7), 0.6), index=pd.Index(["p", "q"]))
    assert out.index.tolist() == ["p", "q"]
    assert out.dtypes.astype(str).tolist() == ["Int64", "float32", "int64", "bool", "category", "str", "str"]
    assert out["word"].tolist() == ["y", "y"]
    assert out["group"].cat.categories.tolist() == ["x", "y", "z"]
    assert float(out["number"].iloc[0]) == pytest.approx(5.0, abs=0.2)
    coder.table(out)


def test_frame_leaves_gaps_where_the_coded_value_is_one():
    fit = pd.DataFrame({"a": [10, 25, 90], "b": ["x", "y", "x"]})
    out = Coder.fit(fit, Schema((Column("a", "gaussian"), Column("b", "bernoulli")))).frame(np.full((2, 2), np.nan))
    assert out.isna().all(axis=None)
