"""A folder of files trains the model of the table it stands for, from the rows each process has and a sample."""

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.core.types import DataError
from plurigp.data import Coder, infer_schema, to_rows
from plurigp.data.dataset import ParquetFolder
from plurigp.estimator import tables
from plurigp.estimator.tables import folder_table, sample_folder, training_table

pytest.importorskip("pyarrow")
N = 90
GIVEN = {"n_shards": 2, "device": None, "dtype": "float32", "encoder": "factors"}
SHAPE = {"n_inducing": 6, "max_epochs": 3, "batch_size": 32, "calibrate": False, "random_state": 0}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    ward = np.where(np.arange(N) == N - 1, "rare", np.where(x + rng.normal(size=N) > 0, "a", "b"))
    return pd.DataFrame({"sodium": x + rng.normal(size=N), "urea": x - rng.normal(size=N), "ward": ward})


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory) -> ParquetFolder:
    path = tmp_path_factory.mktemp("registry")
    for n, rows in enumerate(np.array_split(np.arange(N), 3)):
        frame.iloc[rows].to_parquet(path / f"{n}.parquet", row_group_size=10, index=False)
    return ParquetFolder(path)


def test_a_folder_is_coded_as_its_table(folder, frame):
    coder = Coder.fit(frame, infer_schema(frame))
    ours = folder_table(folder, sample_folder(folder), coder, GIVEN)
    theirs = training_table(to_rows(frame), coder, GIVEN)
    for one, other in ((ours, theirs), (ours.sample, theirs.sample)):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.seen, other.seen)
    assert (ours.sample.rows == theirs.sample.rows).all()
    assert (ours.count_seen() == N).all()


def test_the_same_model_from_the_folder_and_the_table(folder, frame):
    one, other = (PluriGP(2, n_shards=2, **SHAPE).fit(X) for X in (folder.path, frame))
    assert one.history_.equals(other.history_)
    assert one.elbo_ == other.elbo_
    assert list(one.feature_names_in_) == list(frame.columns)


def test_a_level_outside_the_sample_is_named(folder, frame, monkeypatch):
    monkeypatch.setattr(tables, "SAMPLE_ROWS", 20)
    sampled = sample_folder(folder)
    coder = Coder.fit(sampled.frame, infer_schema(sampled.frame, {"ward": "categorical"}))
    with pytest.raises(DataError, match=r"rows counted from row 0: column 'ward', row 89"):
        folder_table(folder, sampled, coder, GIVEN)


def test_free_rows_need_all_rows_at_hand(folder, frame, monkeypatch):
    monkeypatch.setattr(tables, "SAMPLE_ROWS", 20)
    coder = Coder.fit(frame, infer_schema(frame))
    with pytest.raises(ValueError, match="encoder='free' keeps a position per row"):
        folder_table(folder, sample_folder(folder), coder, {**GIVEN, "encoder": "free"})
