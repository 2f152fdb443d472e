"""`plurigp table-one`: every format, and what it refuses."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp import table_one
from plurigp.cli.app import app


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def patients(tmp_path, rng):
    frame = pd.DataFrame({"arm": ["a", "b"] * 30, "age": rng.normal(60, 9, 60).round(2), "ill": rng.integers(0, 2, 60)})
    frame["age"] = frame["age"].mask(rng.random(60) < 0.1)
    frame.to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path, frame


def test_the_verb_writes_what_the_library_makes(patients):
    folder, frame = patients
    files = [folder / f"t.{suffix}" for suffix in ("csv", "html", "md", "docx")]
    options = [part for file in files for part in ("--out", file)]
    result = run("table-one", folder / "patients.csv", "--by", "arm", *options, "--title", "Trial")
    assert result.exit_code == 0, result.output
    assert "2 columns, 2 groups, 60 rows" in result.output
    made = table_one(frame, by="arm", title="Trial")
    assert files[0].read_text() == made.to_csv()
    assert files[1].read_text() == made.to_html()
    assert files[2].read_text() == made.to_markdown()
    assert files[3].read_bytes().startswith(b"PK")


def test_columns_and_their_descriptions_can_be_chosen(patients):
    folder, _ = patients
    options = ("--by", "arm", "--column", "age", "--median", "age", "--out", folder / "t.csv")
    assert run("table-one", folder / "patients.csv", *options).exit_code == 0
    assert pd.read_csv(folder / "t.csv")["Characteristic"].tolist() == ["age, median [Q1, Q3]"]


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        (("--by", "arm", "--out", "t.xls"), "unknown format"),
        (("--by", "arm", "--study", "run", "--out", "t.csv"), "give one of the two"),
        (("--by", "arms", "--out", "t.csv"), "Did you mean 'arm'"),
    ],
)
def test_what_it_cannot_do_is_said_in_one_line(patients, monkeypatch, options, finding):
    folder, _ = patients
    monkeypatch.chdir(folder)
    result = run("table-one", folder / "patients.csv", *options)
    assert result.exit_code == 1
    assert finding in result.output
    assert not list(folder.glob("t.*"))


def test_files_are_not_overwritten(patients):
    folder, _ = patients
    (folder / "t.csv").write_text("mine")
    assert (
        "already exists" in run("table-one", folder / "patients.csv", "--by", "arm", "--out", folder / "t.csv").output
    )
    assert (folder / "t.csv").read_text() == "mine"
