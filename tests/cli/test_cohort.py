"""`plurigp cohort`: what it writes and says, and that it writes all or nothing."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.data import Schema, infer_schema

SPEC = """
[source]
form = "long"
path = "events.csv"

[index]
codes = ["G20*"]

[[feature]]
name = "dx"
codes = ["E*", "I*"]
group = 3
window = ["ever", "ever"]

[[feature]]
name = "crp"
codes = ["crp"]
value = "median"
window = ["-1 month", "1 month"]
unit = "mg/L"
"""


@pytest.fixture
def folder(tmp_path):
    rows = [(n, "2020-01-01", "G20", None, None) for n in range(12)]
    rows += [(n, "2020-01-05", "E11.9" if n % 2 else "I10", None, None) for n in range(12)]
    rows += [(n, "2020-01-05", "crp", "<2" if n < 4 else n, "mg/L" if n < 10 else "g") for n in range(12)]
    pd.DataFrame(rows, columns=["patient", "time", "code", "value", "unit"]).to_csv(
        tmp_path / "events.csv", index=False
    )
    (tmp_path / "pd.toml").write_text(SPEC)
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, ["cohort", *map(str, args)])


def test_all_that_is_written(folder):
    done = run(folder / "pd.toml", "--out", folder / "out" / "table.parquet")
    assert done.exit_code == 0, done.stderr
    assert "with an index event" in done.stdout
    assert "note: crp: of 12 values are left out 2 of a unit that is not converted" in done.stdout
    names = {path.name for path in (folder / "out").iterdir()}
    assert names == {f"table.{end}" for end in ("parquet", "schema.toml", "attrition.csv", "quality.html", "sql")}
    table = pd.read_parquet(folder / "out" / "table.parquet")
    assert table.shape == (12, 4)
    schema = Schema.from_toml((folder / "out" / "table.schema.toml").read_text())
    assert infer_schema(table, schema)["crp"].kind == "censored_gaussian"
    page = (folder / "out" / "table.quality.html").read_text()
    assert "<script" not in page
    assert "mg/L" in page
    script = (folder / "out" / "table.sql").read_text()
    assert "CREATE TEMP TABLE plurigp_cohort" in script
    assert str(folder) in script
    check = CliRunner().invoke(
        app, ["check", str(folder / "out" / "table.parquet"), "--schema", str(folder / "out" / "table.schema.toml")]
    )
    assert check.exit_code == 0, check.stderr


def test_json_and_force(folder):
    done = run(folder / "pd.toml", "--out", folder / "t.csv", "--json")
    answer = json.loads(done.stdout)
    assert answer["attrition"][-1]["patients left"] == "12"
    assert [column["name"] for column in answer["columns"]] == ["patient", "dx_E11", "dx_I10", "crp"]
    refused = run(folder / "pd.toml", "--out", folder / "t.csv")
    assert refused.exit_code == 1
    assert "already exists; pass --force" in refused.stderr
    assert run(folder / "pd.toml", "--out", folder / "t.csv", "--force").exit_code == 0
    assert pd.read_csv(folder / "t.csv")["crp"].tolist()[:5] == ["<2"] * 4 + ["4"]


def test_side_files_are_not_overwritten_either(folder):
    (folder / "t.sql").write_text("mine")
    assert run(folder / "pd.toml", "--out", folder / "t.csv").exit_code == 1
    assert (folder / "t.sql").read_text() == "mine"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("codes = [", "cods = [", "line 7: index, cods: there is no such key"),
        ("events.csv", "none.csv", "no such file or folder"),
        ('"G20*"', '"G99"', "the source has no code that fits G99"),
    ],
)
def test_an_error_is_one_line_and_leaves_nothing(folder, old, new, said):
    (folder / "pd.toml").write_text(SPEC.replace(old, new, 1))
    done = run(folder / "pd.toml", "--out", folder / "out" / "t.parquet")
    assert done.exit_code == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not any((folder / "out").iterdir())


def test_wrong_memory(folder):
    done = run(folder / "pd.toml", "--out", folder / "t.csv", "--memory", "a lot")
    assert "--memory 4GB" in done.stderr


def test_the_help_teaches():
    done = run("--help")
    for word in ("[source]", "[index]", "[[feature]]", "convert", "plurigp study", "connect_env"):
        assert word in done.stdout
