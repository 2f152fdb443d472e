"""A Parquet file read column by column is the table read at once."""

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import Coder, infer_schema, read_table, to_rows
from plurigp.data.rows import ParquetTable, is_parquet
from plurigp.likelihoods.layout import arrange, arrange_columns, make_layout

pytest.importorskip("pyarrow")


@pytest.fixture
def path(mixed_frame, tmp_path):
    mixed_frame.assign(successes=3, tried=5).to_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


SCHEMA = {"successes": {"kind": "binomial", "trials": "tried"}}


def test_the_same_schema_and_coder(path):
    frame = read_table(path)
    ours, theirs = infer_schema(str(path), SCHEMA), infer_schema(frame, SCHEMA)
    assert ours == theirs
    rows = to_rows(path)
    assert isinstance(rows.source, ParquetTable)
    assert (len(rows), len(rows.columns)) == frame.shape
    assert Coder.fit(rows, ours).to_dict() == Coder.fit(frame, theirs).to_dict()


@pytest.mark.parametrize("limit", [2**30, 100], ids=["in memory", "in a file"])
def test_the_same_coded_cells_in_block_order(path, limit, monkeypatch):
    monkeypatch.setattr("plurigp.likelihoods.layout.IN_MEMORY", limit)
    frame = read_table(path)
    coder = Coder.fit(frame, infer_schema(frame, SCHEMA))
    layout = make_layout(coder.schema)
    values, seen = arrange_columns(layout, coder.coded_columns(to_rows(path)), len(frame), "float64")
    assert isinstance(values, np.memmap) == (limit == 100)
    for ours, theirs in zip((values, seen), arrange(layout, coder.table(frame)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_one_column_is_read_at_a_time(path, monkeypatch):
    asked = []
    read = pd.read_parquet
    monkeypatch.setattr(pd, "read_parquet", lambda *a, **k: asked.append(k["columns"]) or read(*a, **k))
    rows = to_rows(path)
    list(Coder.fit(rows, infer_schema(rows)).coded_columns(rows))
    assert asked
    assert all(len(names) == 1 for names in asked)


def test_what_is_not_a_parquet_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none.parquet: no such file"):
        ParquetTable(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("not a table")
    with pytest.raises(DataError, match=r"text.parquet: not a readable Parquet file"):
        ParquetTable(tmp_path / "text.parquet")


def test_only_paths_count_as_paths():
    assert is_parquet("a/b.parquet")
    assert is_parquet("B.PQ")
    assert not is_parquet("a.csv")
    assert not is_parquet(3)


def test_an_empty_file_is_an_error(tmp_path):
    pd.DataFrame({"a": []}).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(DataError, match="0 sample"):
        to_rows(tmp_path / "empty.parquet")
