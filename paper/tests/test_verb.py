"""`plurigp reproduce` where this program is installed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

import plurigp_paper.run
from plurigp.cli.app import app


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_reproduce_passes_on_what_was_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = []

    def run(*given: object) -> SimpleNamespace:
        calls.append(given)
        return SimpleNamespace(claims=[], page=tmp_path / "paper.md", directions={})

    monkeypatch.setattr(plurigp_paper.run, "reproduce", run)
    assert _run("reproduce", "simulated", "--quick", "--out", tmp_path).exit_code == 0
    assert _run("reproduce", "runtime", "--out", tmp_path).exit_code == 0
    assert calls == [("simulated", tmp_path, True), ("runtime", tmp_path, False)]


def test_an_unknown_experiment_is_named(tmp_path: Path) -> None:
    refused = _run("reproduce", "figure-9", "--out", tmp_path)
    assert refused.exit_code == 1
    assert "'figure-9'" in refused.stderr
    assert "simulated" in refused.stderr
