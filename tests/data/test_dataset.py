"""A folder of Parquet files: any range of its rows is that of the one table it stands for."""

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import Coder, Rows, infer_schema
from plurigp.data import dataset as module
from plurigp.data.dataset import ParquetFolder, ParquetRange, is_parquet_folder

pytest.importorskip("pyarrow")
N = 100


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ward = np.where(rng.random(N) > 0.2, rng.choice(["a", "b", "c"], N).astype(object), None)
    return pd.DataFrame({"sodium": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)), "ward": ward})


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory) -> ParquetFolder:
    """Three files, in the order of their names, of several row groups each."""
    path = tmp_path_factory.mktemp("registry")
    for name, rows in (("c", slice(70, N)), ("a", slice(0, 33)), ("b", slice(33, 70))):
        frame.iloc[rows].to_parquet(path / f"{name}.parquet", row_group_size=10, index=False)
    (path / "_SUCCESS").touch()
    return ParquetFolder(path)


def test_it_is_the_table(folder, frame):
    assert len(folder) == N
    assert list(folder.columns) == list(frame.columns)
    pd.testing.assert_frame_equal(folder.read(range(N)), frame)


@pytest.mark.parametrize("rows", [range(1), range(5, 75), range(33, 70), range(99, 100)])
def test_a_range_is_read_by_the_row_groups_that_hold_it(folder, frame, rows, monkeypatch):
    touched, read = [], module.read_group
    monkeypatch.setattr(module, "read_group", lambda group, *rest: touched.append(group) or read(group, *rest))
    pd.testing.assert_frame_equal(folder.read(rows), frame.iloc[rows].reset_index(drop=True))
    assert all(group.first < rows.stop and group.first + group.n_rows > rows.start for group in touched)


def test_a_range_is_coded_column_by_column_as_its_frame(folder, frame):
    coder = Coder.fit(frame, infer_schema(frame))
    rows = range(20, 80)
    part = Rows(ParquetRange(folder, rows))
    assert not part.in_memory
    whole = coder.table(frame.iloc[rows])
    for d, column in enumerate(coder.coded_columns(part)):
        np.testing.assert_array_equal(column.seen, whole.seen[:, d])
        np.testing.assert_array_equal(column.values[:, 0], whole.values[:, d])


def test_a_sample_is_everything_or_spread_evenly(folder, frame, monkeypatch):
    assert (folder.sample(N).rows == np.arange(N)).all()
    monkeypatch.setattr(module, "SAMPLE_GROUPS", 4)
    sampled = folder.sample(20)
    assert len(sampled.rows) == 20
    assert (np.diff(sampled.rows) > 0).all()
    assert len({row // 10 for row in sampled.rows}) < 8  # of twelve row groups
    assert sampled.rows.max() > 70
    pd.testing.assert_frame_equal(sampled.frame, frame.iloc[sampled.rows].reset_index(drop=True))
    assert (folder.sample(20).rows == sampled.rows).all()


def test_folders_that_hold_no_table_are_named(tmp_path, frame):
    assert is_parquet_folder(str(tmp_path))
    assert not is_parquet_folder(tmp_path / "none")
    with pytest.raises(DataError, match="holds no Parquet file; give a folder"):
        ParquetFolder(tmp_path)
    frame.iloc[:0].to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(DataError, match="column names but no rows"):
        ParquetFolder(tmp_path)
    frame[["ward", "sodium"]].to_parquet(tmp_path / "b.parquet", index=False)
    with pytest.raises(DataError, match=r"b.parquet: has other columns than 'a.parquet', or in another order"):
        ParquetFolder(tmp_path)
    (tmp_path / "b.parquet").write_text("not a table")
    with pytest.raises(DataError, match=r"b.parquet: not a readable Parquet file"):
        ParquetFolder(tmp_path)


def test_a_file_that_breaks_later_is_named(tmp_path, frame):
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    folder = ParquetFolder(tmp_path)
    (tmp_path / "a.parquet").write_text("cut short")
    with pytest.raises(DataError, match=r"a.parquet: row group 0 is not readable; write it again"):
        folder.read(range(3))
