"""Two small studies by the command line: compared, and with the range of conclusions over deltas in a report."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.datasets import load_support

COLUMNS = ["age", "sex", "heart_rate", "temperature", "albumin", "bilirubin", "creatinine", "sodium"]
CHEAP = "n_components = [2]\nn_restarts = 1\nn_refits = 4\nn_permutations = 20\nmax_epochs = 20\nn_subtypes = 2\n"

pytestmark = pytest.mark.slow


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two halves of 400 patients and a study of each."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "cheap.toml").write_text(CHEAP)
    table = load_support().table[COLUMNS].iloc[:400]
    for name, half in {"a": table.iloc[::2], "b": table.iloc[1::2]}.items():
        half.to_csv(folder / f"{name}.csv", index=False)
        done = run(
            "study", folder / f"{name}.csv", "--config", folder / "cheap.toml", "--jobs", 0, "--out", folder / name
        )
        assert done.exit_code == 0, done.stderr
    return folder


def test_both_ways(home):
    asked = ("compare-studies", home / "a", home / "b", home / "b.csv", "--first-table", home / "a.csv")
    said = run(*asked)
    assert said.exit_code == 0, said.stderr
    assert "patients of the second study in groups of the first" in said.stdout
    assert "patients of the first study in groups of the second" in said.stdout
    facts = json.loads(run(*asked, "--json").stdout)
    assert set(facts) == {"second by first", "first by second"}
    for one in facts.values():
        assert one["rows"] == 200
        assert sum(line["size"] for line in one["groups"]) + one["outliers_first"] == 200
        assert one["low"] <= one["rand"] <= one["high"]
    continua = [json.loads((home / name / "result.json").read_text())["facts"]["structured"] for name in "ab"]
    assert said.stdout.count("found a continuum") == 2 - sum(continua)


def test_a_study_compared_with_itself_transfers(home):
    facts = json.loads(run("compare-studies", home / "a", home / "a", home / "a.csv", "--json").stdout)
    assert facts["second by first"]["rand"] == pytest.approx(1.0)
    assert {line["verdict"] for line in facts["second by first"]["groups"]} == {"transfers"}


def test_the_wrong_table_and_other_columns_are_refused(home, tmp_path):
    wrong = run("compare-studies", home / "a", home / "b", home / "a.csv")
    assert wrong.exit_code == 1
    assert "not the table that was studied" in wrong.stderr
    settings = ("--config", home / "cheap.toml", "--jobs", 0, "--exclude", "sodium")
    assert run("study", home / "b.csv", *settings, "--out", tmp_path / "c").exit_code == 0
    other = run("compare-studies", home / "a", tmp_path / "c", home / "b.csv")
    assert other.exit_code == 1
    assert other.stderr.startswith("error: only one of the studies uses 'sodium'")


def test_the_report_shows_the_range_over_deltas(home, tmp_path):
    asked = ("report", home / "a", "--out", tmp_path / "r.html", "--delta", "albumin=-0.5", "--delta", "albumin=0.5")
    assert "--delta and --table go together" in run(*asked).stderr
    done = run(*asked, "--table", home / "a.csv")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "r.html").read_text()
    assert "Deltas tried: albumin −0.5, 0, 0.5." in page
    assert np.char.count(page, "1 against others</td>") == 1
