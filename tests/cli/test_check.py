import json
import tomllib

import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.core.text import printable
from plurigp.estimator.compare import Comparison


@pytest.fixture
def table(tmp_path, mixed_frame):
    path = tmp_path / "patients.csv"
    mixed_frame.to_csv(path, index=False)
    return path


def run(*args):
    return CliRunner().invoke(app, ["check", *map(str, args)])


def test_every_column_with_kind_gaps_and_reason(table):
    result = run(table)
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    kinds = {"patient": "aside", "albumin": "gaussian", "diabetes": "bernoulli", "visits": "poisson"}
    for name, kind in kinds.items():
        assert lines[name].split()[1] == kind
    assert "'no', 'yes'" in lines["diabetes"]
    assert "%" in lines["albumin"]
    assert "120 rows; 5 columns used, 1 set aside" in result.stdout


def test_json_is_all_there_is(table, mixed_frame):
    result = run(table, "--json")
    answer = json.loads(result.stdout)
    assert answer["rows"] == 120
    assert [column["name"] for column in answer["columns"]] == list(mixed_frame.columns)
    for column in answer["columns"]:
        assert column["gaps"] == pytest.approx(mixed_frame[column["name"]].isna().mean())
        assert column["reason"]


@pytest.mark.filterwarnings("ignore::plurigp.data.sentinels.SentinelWarning")
def test_likely_sentinels_are_a_hint_in_the_written_schema(tmp_path):
    """Uncommented, it makes them gaps: the kind is that of the rest, and the share of gaps counts them."""
    path, schema = tmp_path / "t.csv", tmp_path / "schema.toml"
    visits = [k % 6 for k in range(100)] + [999, 999]
    pd.DataFrame({"visits": visits, "lab": [k / 7 for k in range(102)]}).to_csv(path, index=False)
    run(path, "--write", schema)
    hint = "# missing = [999]  # remove the first # if these numbers stand for gaps"
    text = schema.read_text()
    assert text.count("missing") == text.count(hint.split("  ")[0]) == 1
    assert hint in text
    schema.write_text(text.replace("# missing", "missing").replace('"gaussian"', '"poisson"', 1))
    shown = run(path, "--schema", schema)
    line = next(line for line in shown.stdout.splitlines() if line.lstrip().startswith("visits"))
    assert ("poisson" in line, "missing 999" in line, "2.0%" in line) == (True, True, True)
    facts = json.loads(run(path, "--schema", schema, "--json", "--write", schema, "--force").stdout)
    assert facts["columns"][0]["missing"] == [999]
    assert facts["columns"][0]["gaps"] == pytest.approx(2 / 102)
    assert tomllib.loads(schema.read_text())["column"][0]["missing"] == [999]


def test_written_schema_can_be_edited_and_handed_back(table, tmp_path):
    schema = tmp_path / "schema.toml"
    assert f"wrote {schema}" in run(table, "--write", schema).stdout
    text = schema.read_text()
    assert {c["name"] for c in tomllib.loads(text)["column"]} >= {"albumin", "visits"}
    schema.write_text(text.replace('kind = "poisson"', 'kind = "gaussian"'))
    answer = json.loads(run(table, "--schema", schema, "--json").stdout)
    kinds = {column["name"]: column["kind"] for column in answer["columns"]}
    assert kinds["visits"] == "gaussian"
    refused = run(table, "--write", schema)
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert run(table, "--write", schema, "--force").exit_code == 0


def test_a_schema_that_the_cells_contradict(table, tmp_path):
    schema = tmp_path / "schema.toml"
    schema.write_text('[[column]]\nname = "albumin"\nkind = "poisson"\n')
    result = run(table, "--schema", schema)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {table}: column 'albumin', row ")
    assert result.stderr.count("\n") == 1


HOSTILE = ["\x1b[2Jgone", "[bold]x[/bold]", "[/]", "a\u202eb", "=cmd|' /C calc'!A0", "</script>", "x" * 500]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_levels(tmp_path, name):
    path = tmp_path / "t.parquet"
    pd.DataFrame({name: [1.5, 2.5, 3.7, 0.1] * 5, "level": [name, "b", "c", name] * 5}).to_parquet(path)
    result = run(path)
    assert result.exit_code == 0, result.stderr
    assert all(line.isprintable() for line in result.stdout.splitlines())
    assert printable(name)[:30] in result.stdout
    assert {c["name"] for c in json.loads(run(path, "--json").stdout)["columns"]} == {name, "level"}
    assert run(path, "--write", tmp_path / "s.toml").exit_code == 0
    again = run(path, "--schema", tmp_path / "s.toml", "--json")
    assert again.exit_code == 0, again.stderr


def test_compare_names_the_better_kind(table, monkeypatch):
    """The fits themselves are tested in test_compare."""
    scores, zero = {"poisson": -2.0, "negative_binomial": -1.9}, {"negative_binomial": 0.0}
    found = Comparison(
        "visits", "poisson", "negative_binomial", scores, {"poisson": 0.1} | zero, {"poisson": 0.01} | zero
    )
    monkeypatch.setattr("plurigp.estimator.compare.compare_kinds", lambda frame, schema: {"visits": found})
    result = run(table, "--compare")
    assert result.exit_code == 0
    assert "poisson −0.100 ± 0.010" in result.stdout
    assert "1 columns compared; another kind predicts better for 1" in result.stdout
    answer = json.loads(run(table, "--compare", "--json").stdout)
    assert answer["compared"]["visits"]["recommended"] == "negative_binomial"


@pytest.mark.filterwarnings("default::UserWarning")
def test_likely_sentinels_are_named_and_can_be_declared(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("visits,age\n" + "".join(f"{999 if i in (5, 9) else i % 7},{40 + i % 13}.5\n" for i in range(100)))
    result = run(path)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: column 'visits', row 5: 2 cells hold 999")
    assert "gaussian" in result.stdout
    for option in ("999", "visits=999"):
        cured = run(path, "--missing", option)
        assert cured.exit_code == 0
        assert cured.stderr == ""
        assert "poisson" in cured.stdout
    assert "column 'visit' is missing from the table" in run(path, "--missing", "visit=999").stderr
