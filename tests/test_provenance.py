"""Figures of benchmarks know their version, and whether the code behind them has changed."""

import importlib.util
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "provenance.py"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The module, looking at a repository with one module of the model and one result."""
    spec = importlib.util.spec_from_file_location("provenance", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "somebody")
        monkeypatch.setenv(f"{name}_EMAIL", "somebody@example.org")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    commit(tmp_path, "src/plurigp/inference/bound.py", '"""The bound."""\n\nETA = 1\n')
    commit(tmp_path, "speed.json", "{}")
    return module


def commit(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    subprocess.run(["git", "add", "--all"], cwd=root, check=True)
    subprocess.run(["git", "commit", "--quiet", "--message", name], cwd=root, check=True)
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def line(module, versions=None):
    module.fingerprints.cache_clear()
    return module.provenance("speed", module.ROOT / "speed.json", {"versions": versions} if versions else {})


def test_prose_does_not_age_a_figure_and_code_does(repository):
    assert "Older" not in line(repository)
    commit(repository.ROOT, "src/plurigp/inference/bound.py", '"""The evidence lower bound."""\n\nETA = 1  # one\n')
    assert "Older" not in line(repository)
    commit(repository.ROOT, "src/plurigp/cli/app.py", "VERBS = ()\n")  # not behind this figure
    assert "Older" not in line(repository)
    commit(repository.ROOT, "src/plurigp/inference/bound.py", "ETA = 2\n")
    assert line(repository).endswith("**Older than what it measures**: `inference/bound.py` changed since.")


def test_a_result_that_names_its_commit_is_as_old_as_that(repository):
    measured = commit(repository.ROOT, "src/plurigp/data/read.py", "A = 1\n")
    found = line(repository, {"plurigp": "0.2.0", "commit": measured})
    assert found.startswith(f"*Measured with plurigp 0.2.0, commit {measured[:7]} of ")
    assert "Older" not in found
    assert "`data/read.py`" in line(repository)  # the file came before
    assert repository.current_commit() == measured


def test_without_a_repository_only_the_versions_are_named(repository, monkeypatch, tmp_path_factory):
    monkeypatch.setattr(repository, "ROOT", tmp_path_factory.mktemp("elsewhere"))
    assert line(repository, {"plurigp": "0.2.0"}) == "*Measured with plurigp 0.2.0.*"
