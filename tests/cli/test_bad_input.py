"""Bad files and bad schemas: one line that names the file and says what to do, and never a traceback."""

import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app

GOOD = "age,sex,visits\n" + "".join(f"{40 + i}.5,{'fm'[i % 2]},{i % 4}\n" for i in range(20))

FILES = {
    "empty file": ("t.csv", b"", "empty"),
    "blank lines only": ("t.csv", b"\n\n \n", "empty"),
    "header only": ("t.csv", b"a,b\n", "no rows"),
    "no header": ("t.csv", b"1,2.5\n3,4.5\n5,6.5\n", "header"),
    "one name twice": ("t.csv", b"a,b,a\n1,2,3\n", "line 1"),
    "a name missing": ("t.csv", b"a,,c\n1,2,3\n", "column 2 has no name"),
    "too many cells": ("t.csv", b"a,b\n1,2\n1,2,3\n", "line 3"),
    "too few cells": ("t.csv", b"a,b\n1,2\n1\n", "line 3"),
    "semicolons": ("t.csv", b"a;b\n1;2\n", "';'"),
    "UTF-16": ("t.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16"),
    "latin-1": ("t.csv", "a,b\nf\xe9,2\n".encode("latin-1"), "UTF-8"),
    "zero bytes": ("t.csv", b"a,b\n\x00,2\n", "not text"),
    "open quote": ("t.csv", b'a,b\n"1,2\n3,4\n', "line"),
    "unknown suffix": ("t.xlsx", b"PK", ".xlsx"),
    "no suffix": ("table", b"a,b\n1,2\n", "suffix"),
    "gzip that is none": ("t.csv.gz", b"a,b\n1,2\n", "cannot be read"),
    "gzip cut short": ("t.csv.gz", b"\x1f\x8b\x08\x00", "cannot be read"),
    "parquet that is none": ("t.parquet", b"PAR1 nonsense", "Parquet"),
    "nothing to learn": ("t.csv", b"a\n1\n1\n1\n", "set aside"),
    "all gaps": ("t.csv", b"a,b\nNA,?\n-,.\n", "set aside"),
    "infinity": ("t.csv", b"a\n1.5\ninf\n2.5\n3.5\n", "'a', row 1"),
    "1e308": ("t.csv", b"a\n1.5\n1e308\n2.5\n3.5\n", "'a', row 1"),
}

SCHEMAS = {
    "not TOML": ("kind = = 3", "schema.toml"),
    "not a schema": ("[tool]\nx = 1", "[[column]]"),
    "no name": ('[[column]]\nkind = "beta"', "name"),
    "no kind": ('[[column]]\nname = "age"', "kind"),
    "unknown kind": ('[[column]]\nname = "age"\nkind = "gausian"', "'gaussian'"),
    "unknown setting": ('[[column]]\nname = "age"\nkind = "gaussian"\nlevel = ["a"]', "'levels'"),
    "unknown column": ('[[column]]\nname = "agee"\nkind = "gaussian"', "'age'"),
    "one column twice": ('[[column]]\nname = "age"\nkind = "gaussian"\n' * 2, "twice"),
    "fractions as counts": ('[[column]]\nname = "age"\nkind = "poisson"', "'age', row 0"),
    "text as a number": ('[[column]]\nname = "sex"\nkind = "gaussian"', "'sex', row 0"),
    "ages as proportions": ('[[column]]\nname = "age"\nkind = "beta"', "'age', row 0"),
    "bounds the wrong way": ('[[column]]\nname = "age"\nkind = "beta"\nbounds = [100, 0]', "bounds"),
    "bounds too narrow": ('[[column]]\nname = "age"\nkind = "beta"\nbounds = [0, 50]', "'age', row "),
    "trials below successes": ('[[column]]\nname = "visits"\nkind = "binomial"\ntrials = 2', "'visits', row 3"),
    "binomial without trials": ('[[column]]\nname = "visits"\nkind = "binomial"', "trials"),
    "trials of no column": ('[[column]]\nname = "visits"\nkind = "binomial"\ntrials = "n"', "'n'"),
    "trials of zero": ('[[column]]\nname = "visits"\nkind = "binomial"\ntrials = 0', "trials"),
    "level left out": ('[[column]]\nname = "sex"\nkind = "categorical"\nlevels = ["f", "x"]', "'sex', row 1"),
    "level named twice": ('[[column]]\nname = "sex"\nkind = "categorical"\nlevels = ["f", "f", "m"]', "twice"),
    "levels of a number": ('[[column]]\nname = "age"\nkind = "gaussian"\nlevels = ["f", "m"]', "levels"),
    "yes/no with four values": ('[[column]]\nname = "visits"\nkind = "bernoulli"', "'visits'"),
    "everything aside": (
        "".join(f'[[column]]\nname = "{n}"\nkind = "aside"\n' for n in ("age", "sex", "visits")),
        "aside",
    ),
}


def failing(*args: object) -> str:
    """The one line on stderr of a command that must fail with code 1."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == 1, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize("case", FILES)
def test_bad_file(tmp_path, case):
    name, content, words = FILES[case]
    (tmp_path / name).write_bytes(content)
    line = failing("check", tmp_path / name)
    assert str(tmp_path / name) in line
    assert words in line


@pytest.mark.parametrize("case", SCHEMAS)
def test_bad_schema(tmp_path, case):
    text, words = SCHEMAS[case]
    (tmp_path / "t.csv").write_text(GOOD)
    (tmp_path / "schema.toml").write_text(text)
    line = failing("check", tmp_path / "t.csv", "--schema", tmp_path / "schema.toml")
    assert "t.csv" in line or "schema.toml" in line
    assert words in line


def test_missing_files(tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    assert "no such file" in failing("check", tmp_path / "none.csv")
    assert "folder" in failing("check", tmp_path)
    assert "none.toml" in failing("check", tmp_path / "t.csv", "--schema", tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kernel", "rbff"), "--kernel='rbff'"),
        (("--encoder", "transformer"), "--encoder 'transformer' is not one of factors"),
        (("--exclude", "agee"), "'age'"),
        (("--exclude", "age", "--exclude", "sex", "--exclude", "visits"), "aside"),
        (("--schema", "none.toml"), "none.toml"),
    ],
)
def test_bad_request_for_a_fit(tmp_path, options, words):
    (tmp_path / "t.csv").write_text(GOOD)
    assert words in failing("fit", tmp_path / "t.csv", "--out", tmp_path / "model", *options)
    assert not (tmp_path / "model").exists()


def test_a_fit_leaves_other_folders_alone(tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    assert "is not empty" in failing("fit", tmp_path / "t.csv", "--out", tmp_path / "home")
    assert "no model" in failing("fit", tmp_path / "t.csv", "--out", tmp_path / "home", "--force")


@pytest.mark.parametrize("verb", ["transform", "impute", "score", "sample"])
def test_no_model(tmp_path, verb):
    (tmp_path / "t.csv").write_text(GOOD)
    table = [] if verb == "sample" else [tmp_path / "t.csv"]
    rest = {"sample": ["--rows", 3], "score": []}.get(verb, [])
    out = [] if verb == "score" else ["--out", tmp_path / "o.csv"]
    assert str(tmp_path / "model") in failing(verb, tmp_path / "model", *table, *rest, *out)
    (tmp_path / "model").mkdir()
    assert "not a complete model" in failing(verb, tmp_path / "model", *table, *rest, *out)
    assert not (tmp_path / "o.csv").exists()
