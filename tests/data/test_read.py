"""Files: what is in them comes through, and what is wrong with them is named."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import infer_schema, read_table
from plurigp.data.read import GAP_WORDS


@pytest.fixture
def put(tmp_path):
    """Writes a file and hands back its path."""

    def write(text, name="t.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


def test_numbers_text_truth_values_and_gaps(put):
    frame = read_table(put("age,name,ok,x\n40,Ann,True,0.1\n,Bob,,1e-3\n61,,False,-\n"))
    assert frame.columns.tolist() == ["age", "name", "ok", "x"]
    assert frame["age"].tolist()[::2] == [40.0, 61.0]
    assert frame["name"].tolist()[:2] == ["Ann", "Bob"]
    assert frame["ok"].dtype == "boolean"
    np.testing.assert_array_equal(frame["x"], [0.1, 0.001, np.nan])
    assert frame.isna().sum().tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("word", GAP_WORDS)
def test_every_gap_word_in_numbers_and_in_text(put, word):
    frame = read_table(put(f"a,b,c\n1.5,x,1\n{word},{word},2\n {word} , {word} ,3\n2.5,y,4\n"))
    assert frame["a"].isna().tolist() == [False, True, True, False]
    assert frame["b"].isna().tolist() == [False, True, True, False]
    assert frame["a"].dtype == np.float64


@pytest.mark.parametrize("word", ["n/a", "NONE", "#N/A", "-nan", "nil", "<NA>", "1.#IND"])
def test_other_words_stay_text(put, word):
    assert read_table(put(f"a\nx\n{word}\n"))["a"].tolist() == ["x", word]


def test_spaces_around_cells_are_dropped(put):
    frame = read_table(put("a , b\n x , 1 \ny,2 \n"))
    assert frame.columns.tolist() == ["a", "b"]
    assert frame["a"].tolist() == ["x", "y"]
    assert frame["b"].tolist() == [1, 2]


def test_codes_with_leading_zeros_stay_text(put):
    frame = read_table(put("zip,n,p,when\n02134,10,0.5,2020-01-05\n10001,20,0,2020-02-05\n,0,0.25,\n"))
    assert frame["zip"].tolist()[:2] == ["02134", "10001"]
    assert frame["zip"].isna().tolist() == [False, False, True]
    assert frame["n"].tolist() == [10, 20, 0]
    assert frame["p"].tolist() == [0.5, 0.0, 0.25]


def test_floats_come_back_to_the_bit(put, rng):
    values = rng.normal(size=500) * 10.0 ** rng.integers(-30, 30, 500)
    frame = read_table(put("a\n" + "\n".join(map(repr, values.tolist()))))
    assert frame["a"].to_numpy().tobytes() == values.tobytes()


def test_quotes_commas_and_line_breaks_in_cells(put):
    text = 'id,"long, name",note\n1,"a, b","two\nlines"\n2,"say ""hi""",plain\n\n3,,"5"" tube"\n'
    frame = read_table(put(text))
    assert frame.columns.tolist() == ["id", "long, name", "note"]
    assert frame["long, name"].tolist()[:2] == ["a, b", 'say "hi"']
    assert frame["note"].tolist() == ["two\nlines", "plain", '5" tube']


def test_stray_quotes_inside_cells_are_plain_text(put):
    frame = read_table(put('a,b\n1,5" tube\n2,6" tube\n3,none" here\n'))
    assert frame["b"].tolist() == ['5" tube', '6" tube', 'none" here']


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end(put, end):
    frame = read_table(put(end.join(["a,b", "1,x", "", "2,y", ""])))
    assert frame["a"].tolist() == [1, 2]
    assert frame["b"].tolist() == ["x", "y"]


def test_suffixes_compression_and_byte_order_mark(put):
    assert read_table(put("a\tb\n1,5\tx\n", "t.tsv"))["a"].tolist() == ["1,5"]
    assert read_table(put(gzip.compress(b"a,b\n1,2\n"), "t.csv.gz"))["b"].tolist() == [2]
    assert read_table(put(gzip.compress(b"a\tb\n1\t2\n"), "T.TSV.GZ"))["b"].tolist() == [2]
    assert read_table(put("a,b\n1,2\n", "T.CSV"))["a"].tolist() == [1]
    assert read_table(put("\ufeffa,b\n1,2\n"))["a"].tolist() == [1]
    assert read_table(str(put("é,b\nü,2\n")))["é"].tolist() == ["ü"]


def test_parquet_keeps_dtypes_and_gaps(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {"a": [1.5, np.nan], "b": ["x", None], "c": pd.Categorical(["u", "v"]), "d": pd.array([1, None], dtype="Int64")}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    back = read_table(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(back, frame)


def test_parquet_written_by_polars(tmp_path):
    pl = pytest.importorskip("polars")
    pl.DataFrame({"a": [1, None], "b": ["x", None]}).write_parquet(tmp_path / "t.pq")
    assert read_table(tmp_path / "t.pq").isna().sum().tolist() == [1, 1]


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("plurigp.data.rows.find_spec", lambda name: None)
    (tmp_path / "t.parquet").write_bytes(b"x")
    with pytest.raises(DataError, match=r"pip install plurigp\[parquet\]"):
        read_table(tmp_path / "t.parquet")


def test_a_file_goes_straight_into_a_schema(put):
    rows = "\n".join(f"{i},{i % 3},{'yes' if i % 2 else 'no'},{0.1 * i:.2f}" for i in range(30))
    schema = infer_schema(read_table(put("id,n,flag,x\n" + rows)))
    assert [column.kind for column in schema] == ["aside", "poisson", "bernoulli", "gaussian"]


def test_a_column_of_one_cell_per_line(put):
    assert read_table(put("a\n1\n2\n"))["a"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,2,3\n1,2\n", r"t\.csv, line 3: 2 cells where there are 3 column names"),
        ("a,b,c\n1,2,3,4\n", r"t\.csv, line 2: 4 cells where there are 3"),
        ("a,b\n1,2\n\n1,2,3\n", r"t\.csv, line 4: 3 cells"),
        ('a,b\n"x\ny",2\n1\n', r"t\.csv, line 4: 1 cells"),
        ('a,b\n1,5" x\n2\n3,6" y\n', r"t\.csv, line 3: 1 cells"),
        ('a,b\n1,"open\n2,3\n', r"t\.csv, line 2: a quote is opened and never closed"),
    ],
)
def test_rows_too_short_or_too_long_are_named_by_line(put, text, message):
    with pytest.raises(DataError, match=message):
        read_table(put(text))


def test_a_short_row_deep_in_a_large_file_is_found(put):
    lines = ["a,b,c"] + ["1,2,3"] * 20000
    lines[15000] = "1,2"
    with pytest.raises(DataError, match=r"line 15001: 2 cells"):
        read_table(put("\n".join(lines)))


def test_parquet_with_lists_in_cells_is_refused_by_column_and_row(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1.5, 2.5], "b": [None, [1, 2]]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column 'b', row 1: a cell of type"):
        infer_schema(read_table(tmp_path / "t.parquet"))


def test_semicolons_and_decimal_commas_are_recognised(put):
    text = 'age;"crp; mg";ward\n40,5;<0,5;a, b\n 61,25 ;1,5;c\n;2,0;d\n'
    frame = read_table(put(text))
    assert frame.columns.tolist() == ["age", "crp; mg", "ward"]
    np.testing.assert_array_equal(frame["age"], [40.5, 61.25, np.nan])
    assert frame["crp; mg"].tolist() == ["<0.5", "1.5", "2.0"]
    assert frame["ward"].tolist() == ["a, b", "c", "d"]
    points = read_table(put("a;when\n1.5;01.02.2020\n2.5;03.02.2020\n"))
    assert points["a"].tolist() == [1.5, 2.5]
    assert points["when"].tolist() == ["01.02.2020", "03.02.2020"]


def test_separator_and_decimal_mark_can_be_declared(put):
    assert read_table(put("a;b\n1;2,5\n"), sep=";")["b"].tolist() == [2.5]
    assert read_table(put("a|b\n1|2,5\n"), sep="|", decimal=",")["b"].tolist() == [2.5]
    assert read_table(put("a\tb\n1\t2,5\n", "t.tsv"), decimal=",")["b"].tolist() == [2.5]
    assert read_table(put("a\tb\n1\t2\n"), sep="tab")["b"].tolist() == [2]


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("a;b\n1,5;2\n3;4.5\n", {}, r"lines 2 and 3: a decimal comma in one.*--decimal"),
        ("a;b\n1,5;2\n3,5;1.234,5\n", {}, r"column 'b', row 1: a point in a number"),
        ("a;b\n1,5;2\n3,5;1.200\n", {"decimal": ","}, r"column 'b', row 1: a point in a number.*thousands"),
        ("a;b\n1;2\n", {}, r"separated by ';'.*--sep"),
        ("a,b\n1,2\n", {"decimal": ","}, r"decimal ',' with sep ','"),
        ("a,b\n1,2\n", {"decimal": "x"}, r"decimal 'x'"),
        ("a,b\n1,2\n", {"sep": "ab"}, r"sep 'ab' cannot separate cells"),
    ],
)
def test_unclear_separators_and_decimal_marks_are_refused(put, text, options, match):
    with pytest.raises(DataError, match=match):
        read_table(put(text), **options)


@pytest.mark.parametrize("word", ["n/a", "#N/A", "na", "-nan", "<NA>", "1.#IND"])
def test_other_spellings_of_a_gap_are_gaps_among_numbers(put, word):
    frame = read_table(put(f"a,b\n1.5,x\n{word},y\n2.5,z\n"))
    np.testing.assert_array_equal(frame["a"], [1.5, np.nan, 2.5])


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a;b\n1,5;x\n2,5;y\n")))
    assert read_table("-")["a"].tolist() == [1.5, 2.5]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="standard input: the file is empty"):
        read_table("-")
