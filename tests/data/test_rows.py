"""A few rows are coded as they are among many."""

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError
from plurigp.data import Coder, Schema, infer_schema, to_rows
from plurigp.data.cells import cells_of
from plurigp.data.rows import MAX_STACKED_ROWS

N = 3 * MAX_STACKED_ROWS


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Every dtype a column may come in, two columns of most kinds, gaps everywhere."""
    rng = np.random.default_rng(0)
    amounts = np.exp(rng.normal(size=(2, N)))
    columns = {
        "whole": rng.integers(30, 90, N),
        "real": rng.normal(size=N),
        "narrow": rng.normal(3, 2, N).astype("float32"),
        "count": pd.array(rng.integers(0, 9, N), dtype="Int64"),
        "other_count": pd.array(rng.integers(0, 9, N), dtype="Int64"),
        "lab": amounts[0],
        "other_lab": 100 * amounts[1],
        "spent": amounts[0] * (rng.random(N) < 0.6),
        "share": np.append(rng.random(N - 1), 1.0),  # squeezed, the other is not
        "other_share": rng.uniform(0.1, 0.9, N),
        "percent": 100 * rng.random(N),
        "flag": rng.random(N) < 0.5,
        "maybe": pd.array(rng.random(N) < 0.5, dtype="boolean"),
        "answer": pd.array(rng.choice(["no", "yes"], N), dtype="str"),
        "coded_answer": rng.choice([0, 1], N),
        "word": rng.choice(["a", "b", "c"], N).astype(object),
        "mixture": np.array([[1, "1", 2.0, "x"][i] for i in rng.integers(0, 4, N)], dtype=object),
        "stage": pd.Categorical(rng.choice(["I", "II", "III"], N), ["I", "II", "III"], ordered=True),
        "right": rng.integers(0, 5, N),
        "asked": rng.integers(5, 9, N),
        "limit": rng.choice(["<0.5", "0.7", "1.2"], N),
        "when": pd.date_range("2020-01-01", periods=N),
    }
    hidden = rng.random((N, len(columns))) < 0.15
    return pd.DataFrame(columns).mask(pd.DataFrame(hidden, columns=list(columns)))


@pytest.fixture(scope="module")
def coder(frame) -> Coder:
    """All kinds that stack, and some that cannot."""
    declared = {
        "count": "poisson", "other_count": "poisson", "lab": "lognormal", "other_lab": "lognormal",
        "spent": "zero_lognormal", "share": "beta", "other_share": "beta",
        "percent": {"kind": "beta", "bounds": [0, 100]}, "mixture": "categorical",
        "right": {"kind": "binomial", "trials": "asked"}, "limit": "censored_lognormal", "when": "aside",
    }  # fmt: skip
    whole = frame.assign(asked=frame["asked"].fillna(8))
    return Coder.fit(whole, infer_schema(whole, declared))


@pytest.mark.parametrize("rows", [slice(0, 1), slice(7, 8), slice(3, 20), slice(40, 40 + MAX_STACKED_ROWS)])
def test_a_few_rows_are_coded_as_among_many(frame, coder, rows):
    frame = frame.assign(asked=frame["asked"].fillna(8))
    many, few = coder.table(frame), coder.table(frame.iloc[rows])
    np.testing.assert_array_equal(few.values, many.values[rows])
    np.testing.assert_array_equal(few.seen, many.seen[rows])
    assert few.index.equals(frame.index[rows])


def test_what_is_alike_is_stacked(frame, coder, monkeypatch):
    parsed = []
    monkeypatch.setattr("plurigp.data.rows.cells_of", lambda cells, name: parsed.append(name) or cells_of(cells, name))
    rows = to_rows(frame.iloc[:4].assign(asked=8))
    rows.read_stacked(coder.schema.used)
    stacked = len(parsed)
    parsed.clear()
    for column in coder.schema.used:
        rows.numbers(column)
    assert stacked < len(coder.schema.used) - 4
    assert {*parsed} == {"flag", "mixture", "stage", "right", "asked"}  # objects, a category, one and its companion


@pytest.mark.parametrize(
    ("column", "value", "finding"),
    [
        ("other_lab", -1.0, "not above zero"),
        ("other_share", 1.5, "outside"),
        ("coded_answer", 7, "was not seen in fit"),
        ("answer", "perhaps", "was not seen in fit"),
        ("narrow", 1e30, "standard deviations"),
    ],
)
def test_an_error_names_the_cell_though_its_column_was_stacked(frame, coder, column, value, finding):
    few = frame.iloc[:3].assign(asked=8)
    few[column] = [few[column].dropna().iloc[0] if column == "answer" else np.nan, value, np.nan]
    if column == "answer":
        few[column] = few[column].astype("str")
    with pytest.raises(DataError, match=rf"{column}.*row 1.*{finding}"):
        coder.table(few)


def test_a_missing_column_is_an_error_with_few_rows_too(frame, coder):
    with pytest.raises(DataError, match=r"real.* is missing from the table"):
        coder.table(frame.iloc[:2].drop(columns="real"))


def test_one_row_of_objects(frame, coder):
    """A row given as a dict of Python values reads as the frame's own."""
    row = frame.assign(asked=frame["asked"].fillna(8)).iloc[[5]]
    given = pd.DataFrame([{name: None if pd.isna(value) else value for name, value in row.iloc[0].items()}])
    np.testing.assert_array_equal(coder.table(given).values, coder.table(row).values)


def test_a_schema_of_one_column():
    coder = Coder.fit(pd.DataFrame({"a": [1.5, 2.5, np.nan]}), Schema((infer_schema({"a": [1.5, 2.5, 9.0]})["a"],)))
    assert coder.table(pd.DataFrame({"a": [np.nan]})).seen.tolist() == [[False]]
