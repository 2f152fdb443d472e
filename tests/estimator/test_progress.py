"""Progress of a fit: all parts on a terminal of 80 columns, not a byte anywhere else."""

import io
import re
import sys
import time

import numpy as np
import pytest

from plurigp.estimator.progress import FitProgress
from plurigp.inference.bound import Bound
from plurigp.inference.steps import EpochMetrics


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(shown: bool, n_runs: int = 1, times: float = 1.0) -> None:
    """Ten rows; a bound of −46 in coded units, of −56 in the columns' own."""
    parts = Bound((np.float64(-30.0 * times), np.float64(-10.0)), np.float64(4.0 * times), np.float64(2.0))
    record = EpochMetrics(parts, np.ones(2), np.float64(1e-6))
    progress = FitProgress(shown, n_runs, 600, 10, 10.0)
    with progress.lines:
        progress.phase("compiling")
        progress.lines.refresh()
        progress(1, record)
        for epoch in range(117, 121):
            time.sleep(0.02)  # rich estimates the rate from the time between updates
            progress(epoch, record)
        progress.lines.refresh()
        progress.phase("calibrating")


@pytest.mark.parametrize(("n_runs", "label"), [(1, "epoch"), (2, "run 1/2")])
def test_shows_the_bound_its_parts_rate_and_time_left_within_80_columns(monkeypatch, n_runs, label):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    run(shown=True, n_runs=n_runs)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stderr.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert text.index("compiling") < text.index(f"{label} 120/600") < text.index("calibrating")
    assert re.search(r"120/600 bound/row -5\.60 \(fit -5\.00, kl_x 0\.40, kl_u 0\.20\) +[\d.]+/s +\d\d:\d\d", text)


@pytest.mark.parametrize("columns", [80, 60])
def test_a_long_line_leaves_out_the_parts_and_does_not_wrap(monkeypatch, columns):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", str(columns))
    run(shown=True, n_runs=20, times=1e7)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stderr.getvalue()).replace("\r", "\n")
    assert max(map(len, text.splitlines())) <= columns
    assert re.search(r"run 1/20 120/600 bound/row -34000002 +[\d.]+/s +\d\d:\d\d", text)


@pytest.mark.parametrize("force_color", ["", "1"])
def test_is_silent_when_not_on_a_terminal(monkeypatch, capsys, force_color):
    monkeypatch.setenv("FORCE_COLOR", force_color)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    run(shown=True)
    assert sys.stderr.getvalue() == ""
    assert capsys.readouterr().out == ""


def test_is_silent_when_not_asked_for(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(shown=False)
    assert sys.stderr.getvalue() == ""


def test_survives_a_process_without_stderr(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    run(shown=True)
