"""Excel, Stata and SPSS files give the table that they hold, or one line that says what to do."""

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import infer_schema, read_table

TABLE = pd.DataFrame(
    {
        "albumin": [3.5, np.nan, 4.1, 3.9, 2.8, 3.3],
        "stage": ["early", "late", None, "late", "early", "middle"],
        "visits": [1, 2, 3, 1, 0, 5],
    }
)


def test_a_workbook(tmp_path):
    TABLE.to_excel(tmp_path / "t.xlsx", index=False)
    found = read_table(tmp_path / "t.xlsx", missing={"visits": [5]})
    np.testing.assert_array_equal(found["albumin"], TABLE["albumin"])
    assert found["stage"].isna().tolist() == TABLE["stage"].isna().tolist()
    assert found["visits"].isna().sum() == 1
    assert infer_schema(found)["stage"].kind == "categorical"


def test_a_workbook_must_hold_one_table(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        TABLE.to_excel(book, sheet_name="a", index=False)
        TABLE.to_excel(book, sheet_name="b", index=False)
    with pytest.raises(DataError, match=r"t\.xlsx: 2 sheets with cells \('a', 'b'\); leave the one"):
        read_table(tmp_path / "t.xlsx")
    pd.DataFrame().to_excel(tmp_path / "e.xlsx", index=False)
    with pytest.raises(DataError, match=r"e\.xlsx: no cells"):
        read_table(tmp_path / "e.xlsx")
    TABLE.rename(columns={"stage": ""}).to_excel(tmp_path / "u.xlsx", index=False)
    with pytest.raises(DataError, match=r"u\.xlsx: column 2 has no name"):
        read_table(tmp_path / "u.xlsx")


def test_a_workbook_that_unpacks_without_end_is_not_unpacked(tmp_path, monkeypatch):
    TABLE.to_excel(tmp_path / "t.xlsx", index=False)
    monkeypatch.setattr("plurigp.data.statistics_files.MAX_UNZIPPED", 1000)
    with pytest.raises(DataError, match=r"t\.xlsx: unpacks to more than"):
        read_table(tmp_path / "t.xlsx")


def test_a_stata_file_keeps_labels_as_levels(tmp_path):
    TABLE.assign(stage=pd.Categorical(TABLE["stage"])).to_stata(tmp_path / "t.dta", write_index=False)
    found = read_table(tmp_path / "t.dta")
    assert set(found["stage"].dropna()) == {"early", "late", "middle"}
    assert found["albumin"].isna().tolist() == TABLE["albumin"].isna().tolist()


def test_an_spss_file_keeps_labels_as_levels(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    codes = TABLE.assign(stage=[1.0, 2.0, np.nan, 2.0, 1.0, 3.0])
    labels = {"stage": {1.0: "early", 2.0: "late", 3.0: "middle"}}
    pyreadstat.write_sav(codes, str(tmp_path / "t.sav"), variable_value_labels=labels)
    found = read_table(tmp_path / "t.sav")
    assert found["stage"].astype(object).dropna().tolist() == TABLE["stage"].dropna().tolist()


@pytest.mark.parametrize("name", ["t.xlsx", "t.dta", "t.sav"])
def test_what_is_no_such_file_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"junk, not a table")
    with pytest.raises(DataError, match=rf"{name}: not a readable \w+ file") as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "extra"), [("t.xlsx", "excel"), ("t.sav", "spss")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, name, extra):
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr("plurigp.data.statistics_files.find_spec", lambda _: None)
    with pytest.raises(DataError, match=rf"{name}: \w+ files need \w+; install it with pip install plurigp\[{extra}\]"):
        read_table(tmp_path / name)
