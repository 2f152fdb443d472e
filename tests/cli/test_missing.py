"""A schema file that declares values missing: the verbs fill them, count them as gaps and model that they are gaps."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp import load
from plurigp.cli.app import app

N = 60
SMALL = ("--epochs", 2, "--inducing", 6, "--batch-size", 60)
GONE = [2, 7, 30, 31]


def run(*args):
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A table in a file and in a folder of two, in which 999 stands for a gap, and the schema file that says so."""
    folder = tmp_path_factory.mktemp("missing")
    rng = np.random.default_rng(0)
    factor = rng.normal(size=N)
    visits = rng.poisson(np.exp(1 + factor / 2))
    visits[GONE] = 999
    frame = pd.DataFrame({"visits": visits, "lab": (factor + rng.normal(size=N)).round(2)})
    frame.to_csv(folder / "t.csv", index=False)
    declared = '[[column]]\nname = "visits"\nkind = "poisson"\nmissing = [999]\n'
    (folder / "schema.toml").write_text(declared)
    run("fit", folder / "t.csv", "--schema", folder / "schema.toml", "--out", folder / "model", *SMALL)
    return folder


def test_impute_fills_what_is_declared_missing(home, tmp_path):
    said = run("impute", home / "model", home / "t.csv", "--out", tmp_path / "filled.csv").output
    was, now = pd.read_csv(home / "t.csv"), pd.read_csv(tmp_path / "filled.csv")
    assert f"filled {len(GONE)} gaps" in said
    assert (now["visits"] < 999).all()
    pd.testing.assert_frame_equal(now.drop(GONE), was.drop(GONE))


def test_impute_fills_it_in_a_folder(home, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "parts").mkdir()
    frame = pd.read_csv(home / "t.csv")
    for n, rows in enumerate(np.array_split(np.arange(N), 2)):
        frame.iloc[rows].to_parquet(tmp_path / "parts" / f"{n}.parquet", index=False)
    run("impute", home / "model", tmp_path / "parts", "--out", tmp_path / "filled")
    parts = pd.concat([pd.read_parquet(file) for file in sorted((tmp_path / "filled").glob("*.parquet"))])
    assert (parts["visits"].to_numpy() < 999).all()
    run("fit", tmp_path / "parts", "--schema", home / "schema.toml", "--out", tmp_path / "model", *SMALL)
    assert load(tmp_path / "model").schema_["visits"].missing == (999,)


def test_a_column_that_says_what_is_missing_counts_it(home, tmp_path):
    out = tmp_path / "model"
    run("fit", home / "t.csv", "--schema", home / "schema.toml", "--missingness", "visits", "--out", out, *SMALL)
    model, frame = load(out), pd.read_csv(home / "t.csv")
    made = model.schema_.matching(frame)
    assert np.flatnonzero(made["visits (missing)"] == "yes").tolist() == GONE
    held = json.loads((out / "model.json").read_text())["coder"]["schema"]["columns"]
    assert [column.get("missing") for column in held] == [[999], None, None]
