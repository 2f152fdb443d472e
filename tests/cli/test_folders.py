"""Verbs on a folder of Parquet files: the answers of its table, file by file, and only those that are not there."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.data import shards

pytest.importorskip("pyarrow")
N = 90


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A table in one file and in a folder of three, and a model of the folder."""
    home = tmp_path_factory.mktemp("folders")
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    visits = pd.array(rng.poisson(np.exp(1 + x / 2)), dtype="Int64")
    ward = np.where(x + rng.normal(size=N) > 0, "a", "b").astype(object)
    frame = pd.DataFrame({"sodium": 140 + x + rng.normal(size=N), "visits": visits, "ward": ward, "site": "x"})
    for name in ("sodium", "visits", "ward"):
        frame.loc[rng.random(N) < 0.15, name] = None
    frame.to_parquet(home / "whole.parquet", index=False)
    (home / "parts").mkdir()
    for n, rows in enumerate(np.array_split(np.arange(N), 3)):
        frame.iloc[rows].to_parquet(home / "parts" / f"{n}.parquet", row_group_size=11, index=False)
    small = ("--epochs", 3, "--inducing", 6, "--batch-size", 60, "--exclude", "site")
    result = run("fit", home / "parts", "--shards", 2, "--out", home / "model", *small, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == N
    return home


def together(folder) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(file) for file in sorted(folder.glob("*.parquet"))], ignore_index=True)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(shards, "PIECE_ROWS", 20)


@pytest.mark.parametrize("verb", ["transform", "impute"])
def test_the_answers_of_the_whole_table(home, tmp_path, verb):
    for table, out in (("parts", tmp_path / "out"), ("whole.parquet", tmp_path / "whole.parquet")):
        result = run(verb, home / "model", home / table, "--out", out)
        assert result.exit_code == 0, result.stderr
    ours, theirs = together(tmp_path / "out"), pd.read_parquet(tmp_path / "whole.parquet")
    assert not ours[ours.columns[:3]].isna().any().any()
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)
    assert len({str(pd.read_parquet(file).dtypes.to_dict()) for file in (tmp_path / "out").glob("*.parquet")}) == 1


def test_score_is_that_of_the_whole_table(home):
    answers = [json.loads(run("score", home / "model", home / t, "--json").stdout) for t in ("parts", "whole.parquet")]
    for name in ("rows", "cells", "per_row", "per_cell"):
        assert answers[0][name] == pytest.approx(answers[1][name])


def test_a_stopped_command_goes_on_with_what_is_not_there(home, tmp_path):
    asked = ("transform", home / "model", home / "parts", "--out", tmp_path / "out")
    assert run(*asked).exit_code == 0
    before = together(tmp_path / "out")
    kept, lost = tmp_path / "out" / "0.parquet", tmp_path / "out" / "1.parquet"
    lost.unlink()
    (tmp_path / "out" / ".1.parquet.77.part").touch()
    written = kept.stat().st_mtime_ns
    result = run(*asked)
    assert "wrote 30 rows in 1 of 3 files" in result.stdout + result.stderr
    assert kept.stat().st_mtime_ns == written
    assert together(tmp_path / "out").equals(before)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "0.parquet", "1.parquet", "2.parquet", "answers.json"
    ]  # fmt: skip


def test_other_answers_are_refused_unless_forced(home, tmp_path):
    asked = ("transform", home / "model", home / "parts", "--out", tmp_path / "out")
    assert run(*asked).exit_code == 0
    refused = run(*asked, "--std")
    assert refused.exit_code == 1
    assert "holds answers to another options; name a new folder" in refused.stderr
    assert run(*asked, "--std", "--force").exit_code == 0
    assert "plurigp0_sd" in together(tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        (("--draws", 2), "--draws is for single files"),
        (("--missing", 999), "--missing is for single files"),
        (("--out", "FILE"), "is a file; for a folder of tables --out names a folder"),
        (("--out", "FULL"), "holds other files and no answers"),
    ],
)
def test_what_a_folder_cannot_do_is_said(home, tmp_path, options, finding):
    (tmp_path / "FILE").touch()
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "thesis.txt").touch()
    options = [tmp_path / option if option in ("FILE", "FULL") else option for option in options]
    out = () if "--out" in options else ("--out", tmp_path / "out")
    result = run("impute", home / "model", home / "parts", *out, *options)
    assert result.exit_code == 1
    assert finding in result.stderr
    assert (tmp_path / "FULL" / "thesis.txt").exists()


def test_a_file_of_other_cells_is_named(home, tmp_path):
    (tmp_path / "parts").mkdir()
    for name in ("0", "1"):
        rows = pd.read_parquet(home / "parts" / f"{name}.parquet")
        rows.assign(ward="c" if name == "1" else rows["ward"]).to_parquet(tmp_path / "parts" / f"{name}.parquet")
    result = run("transform", home / "model", tmp_path / "parts", "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "1.parquet, rows counted from row 30: column 'ward', row 0" in result.stderr
    assert not (tmp_path / "out" / "1.parquet").exists()
    assert (tmp_path / "out" / "0.parquet").exists()
