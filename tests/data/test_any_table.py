"""Whatever the table or file holds: a clean answer or a DataError of one line, never anything else."""

import csv
import datetime
import io

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plurigp.core.types import DataError
from plurigp.data import KINDS, Coder, infer_schema, read_table
from plurigp.data.read import GAP_WORDS

NUMBER = st.floats() | st.integers(-5, 20) | st.integers() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
WORD = st.sampled_from(["yes", "no", "a", "b", "c", "", " ", "1", "2.5", "007", "<0.5", "2020-01-05", "1,5", "5%"])
ODD = st.sampled_from([None, True, False, [1], {}, b"x", 1j, datetime.date(2020, 1, 5), pd.NaT, pd.NA, np.float32(0.5)])
COLUMN = st.one_of(*(st.lists(cell | st.none(), min_size=6, max_size=6) for cell in (NUMBER, WORD, NUMBER | WORD, ODD)))
PLAIN = st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=6, max_size=6)
DTYPES = ["object", "float64", "str", "category", "Int64", "boolean"]


def check_message(error, file=""):
    assert str(error).isprintable()
    assert file in str(error)


def frame_of(columns, dtype):
    frame = pd.DataFrame({f"c{i}": pd.Series(column, dtype=object) for i, column in enumerate(columns)})
    try:
        return frame.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return frame


@settings(max_examples=150)
@given(st.lists(COLUMN, min_size=1, max_size=4), st.sampled_from(DTYPES), st.none() | st.sampled_from(sorted(KINDS)))
def test_any_table_is_coded_and_filled_or_refused_in_one_line(columns, dtype, kind):
    frame = frame_of(columns, dtype)
    overrides = None if kind is None else {"c0": {"kind": kind, "trials": 9} if kind == "binomial" else kind}
    try:
        coder = Coder.fit(frame, infer_schema(frame, overrides))
        table = coder.table(frame)
    except DataError as error:
        check_message(error)
        return
    assert np.isfinite(table.values).all()
    filled = coder.fill(frame, np.full(table.seen.shape, 0.4))
    again = coder.table(filled)
    assert again.seen.all()
    slots = np.concatenate([[0], np.cumsum([KINDS[c.kind].n_slots for c in coder.schema.used])])[:-1]
    np.testing.assert_array_equal(again.values[:, slots][table.seen], table.values[:, slots][table.seen])


@settings(max_examples=60)
@given(PLAIN, PLAIN)
def test_what_stands_under_a_gap_never_matters(values, hidden):
    gaps = np.array([value is None for value in values])
    if gaps.all():
        return

    def coded(under):
        data = np.array([u or 0.0 if v is None else v for v, u in zip(values, under, strict=True)])
        frame = pd.DataFrame({"a": pd.arrays.FloatingArray(data, gaps.copy()), "b": np.arange(6) ** 2 / 7})
        coder = Coder.fit(frame, infer_schema(frame))
        return coder.table(frame)

    one, other = coded([0.0] * 6), coded(hidden)
    assert one.values.tobytes() == other.values.tobytes()
    assert one.seen.tobytes() == other.seen.tobytes()


def is_text(cell):
    """Text that a file gives back as it is: no number, no truth value, no gap word, no space around it."""
    try:
        float(cell)
    except ValueError:
        return cell.strip() == cell and cell not in GAP_WORDS and cell.lower() not in ("true", "false")
    return False


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=12).filter(is_text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6), st.sampled_from([",", "\t"]))
def test_text_goes_through_a_file_unharmed(tmp_path, rows, sep):
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=sep, lineterminator="\n").writerows([("first", "second"), *rows])
    path = tmp_path / ("t.csv" if sep == "," else "t.tsv")
    path.write_bytes(written.getvalue().encode())
    frame = read_table(path)
    assert list(zip(frame["first"], frame["second"], strict=True)) == rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.binary(max_size=80) | st.text(',;\t\n\r" ab10.-', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_line(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    try:
        frame = read_table(path)
    except DataError as error:
        check_message(error, "t.csv")
        return
    assert len(frame) > 0
    assert all(isinstance(name, str) and name.strip() for name in frame.columns)


def test_wide_tables_are_no_trouble(rng):
    frame = pd.DataFrame(rng.normal(size=(20, 500)))
    coder = Coder.fit(frame, infer_schema(frame))
    table = coder.table(frame)
    assert table.values.shape == (20, 500)
    np.testing.assert_allclose(table.values.mean(axis=0), 0.0, atol=1e-9)
