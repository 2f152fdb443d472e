import gzip
import os

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.cli.errors import CommandError
from plurigp.cli.files import check_file, check_folder, check_table, write_table
from plurigp.core.files import whole_file, without_formulas

FRAME = pd.DataFrame({"age": [61.5, None], "stage": ["=1+1", "late"]})


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".CSV"])
def test_text_formats_by_suffix(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    write_table(FRAME, path)
    content = gzip.decompress(path.read_bytes()) if suffix.endswith(".gz") else path.read_bytes()
    sep = b"\t" if "tsv" in suffix else b","
    assert content == b"age,stage\n61.5,=1+1\n,late\n".replace(b",", sep)
    assert os.listdir(tmp_path) == [path.name]


def test_parquet_by_suffix(tmp_path):
    write_table(FRAME, tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), FRAME)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setattr("plurigp.cli.files.find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"Parquet needs pyarrow; pip install 'plurigp\[parquet\]'"):
        check_table(tmp_path / "table.parquet", force=False)


@pytest.mark.parametrize("name", ["table", "table.xlsx", "table.csv.zip", "csv"])
def test_unknown_format(tmp_path, name):
    with pytest.raises(CommandError, match="unknown format"):
        check_table(tmp_path / name, force=True)


def test_gzip_is_repeatable(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(FRAME, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_nothing_is_overwritten_unasked(tmp_path):
    path = tmp_path / "table.csv"
    path.touch()
    check_table(path, force=False)  # an empty file is no loss
    path.write_text("precious")
    with pytest.raises(CommandError, match="already exists; pass --force to overwrite it"):
        check_table(path, force=False)
    check_table(path, force=True)
    assert path.read_text() == "precious"


def test_folder_with_something_in_it(tmp_path):
    check_folder(tmp_path, force=False)
    (tmp_path / "x").touch()
    with pytest.raises(CommandError, match="is not empty"):
        check_folder(tmp_path, force=False)
    check_folder(tmp_path, force=True)
    with pytest.raises(CommandError, match="is a file"):
        check_folder(tmp_path / "x", force=True)


def test_target_that_is_no_file(tmp_path):
    (tmp_path / "a.csv").mkdir()
    for path in (tmp_path / "a.csv", "/dev/null"):
        with pytest.raises(CommandError, match="not a regular file"):
            check_file(tmp_path / path, force=True)


def test_parent_is_made(tmp_path):
    path = tmp_path / "a" / "b" / "table.csv"
    check_table(path, force=False)
    write_table(FRAME, path)
    assert path.is_file()


def test_parent_that_is_a_file(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(CommandError, match="cannot be written"):
        check_table(tmp_path / "a" / "table.csv", force=False)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), whole_file(path) as part:
        part.write_text("half \udc80", encoding="utf-8")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_table(FRAME, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").stat().st_size


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=\n1", "-1e5x", "--1"])
def test_formulas_are_quoted(cell):
    frame, written = pd.DataFrame({cell: [cell, "x", None]}), cell.replace("\r", "\n")
    safe = without_formulas(frame)
    assert safe.columns[0] == f"'{written}"
    assert safe.iloc[:2, 0].tolist() == [f"'{written}", "x"]
    assert frame.iloc[0, 0] == cell


def test_numbers_stay_numbers():
    frame = pd.DataFrame({"real": [-1.5, None], "text": ["-1.5e3", "+4"], "flag": [True, False], "lone": ["-", "="]})
    frame["whole"] = pd.array([-1, None], dtype="Int64")
    frame["level"] = pd.Categorical(["a", "b"])
    safe = without_formulas(frame)
    pd.testing.assert_frame_equal(safe.astype(frame.dtypes), frame)
    assert safe.dtypes["real"] == frame.dtypes["real"]


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_safe_text_never_starts_a_formula(cells):
    for cell in without_formulas(pd.DataFrame({"a": cells}, dtype=object))["a"]:
        harmless = cell[:1] not in {"=", "+", "-", "@", "\t", "\r"} or len(cell) == 1
        assert harmless or float(cell.rstrip("%")) is not None


def test_two_columns_of_one_name_are_kept():
    frame = pd.DataFrame([["=a", "b"]], columns=["x", "x"])
    assert without_formulas(frame).iloc[0].tolist() == ["'=a", "b"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_no_space_left_names_the_file(tmp_path):
    def write():
        with whole_file(tmp_path / "t.csv") as part:
            part.symlink_to("/dev/full")
            part.write_bytes(b"x" * 100)

    with pytest.raises(OSError, match="No space left") as caught:
        write()
    assert caught.value.filename == str(tmp_path / "t.csv")
    assert os.listdir(tmp_path) == []
