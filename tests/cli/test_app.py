import shlex
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app

VERBS = (
    "check",
    "fit",
    "transform",
    "impute",
    "gaps",
    "counterfactual",
    "score",
    "sample",
    "study",
    "report",
    "explore",
    "demo",
    "pool",
    "table-one",
    "explain",
    "patients",
    "compare-studies",
    "reproduce",
)
LAZY = """
import sys
import plurigp.cli
sys.argv = ["plurigp", "--help"]
try:
    plurigp.cli.main()
except SystemExit as done:
    assert not done.code
heavy = {"jax", "numpy", "pandas", "scipy", "sklearn", "equinox", "optax", "jaxtyping", "rich"} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.fixture
def run():
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args])


def test_help_imports_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Typical use" in done.stdout


def test_help_names_every_verb(run):
    result = run("--help")
    assert result.exit_code == 0
    assert all(verb in result.stdout for verb in VERBS)
    assert "..." not in result.stdout.split("Commands:")[1]


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_teaches(run, verb):
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert "Example:" in result.stdout
    assert f"plurigp {verb} " in result.stdout.split("Example:")[1]


def test_version_is_the_installed_one(run):
    assert run("--version").stdout == f"plurigp {version('plurigp')}\n"


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("nonsense",),
        ("fit", "table.csv"),
        ("fit", "table.csv", "--out", "m", "--components", "0"),
        ("fit", "table.csv", "--out", "m", "--seed", "-1"),
        ("sample", "model", "--out", "x.csv", "--rows", "many"),
        ("check",),
        ("check", "a.csv", "b.csv"),
    ],
)
def test_wrong_usage_is_code_2(run, args):
    assert run(*args).exit_code == 2


def test_wrong_usage_names_the_option(run):
    assert "--components" in run("fit", "table.csv", "--out", "m", "--components", "0").stderr


def test_python_dash_m():
    done = subprocess.run(
        [sys.executable, "-m", "plurigp.cli", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("plurigp ")


@pytest.mark.parametrize("verb", ["demo", "study"])
def test_out_may_not_be_a_file(run, tmp_path, verb):
    (tmp_path / "f").touch()
    refused = run(verb, *(["t.csv"] if verb == "study" else []), "--out", tmp_path / "f")
    assert refused.exit_code == 1
    assert "is a file; --out must name a folder" in refused.stderr


@pytest.mark.parametrize("end", [">&-", "| head -1 >/dev/null", "2>&- >/dev/null"])
def test_a_closed_output_is_no_error(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n" + "".join(f"{40 + i % 17}.5,{'fm'[i % 2]}\n" for i in range(200)))
    command = f"{shlex.quote(sys.executable)} -m plurigp.cli check {shlex.quote(str(path))} {end}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
