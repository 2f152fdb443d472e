"""The progress line: all parts on a terminal, not a byte anywhere else."""

import io
import sys

import numpy as np
import pytest

from plurigp.estimator.progress import ProgressLine
from plurigp.inference.bound import Bound
from plurigp.inference.training import Epoch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(shown: bool) -> None:
    parts = Bound((np.float64(-30.0), np.float64(-10.0)), np.float64(4.0), np.float64(2.0))
    with ProgressLine(20, 10, shown, "restart 1/2  ") as line:
        for epoch in range(1, 4):
            line(epoch, Epoch(parts, np.ones(2), np.float64(1e-6)))


def test_shows_the_bound_its_parts_rate_and_time_left(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    run(shown=True)
    text = sys.stderr.getvalue()
    for part in ("restart 1/2", "epoch 3/20", "bound -4.600 per row", "fit -4.000", "kl_x 0.400", "kl_u 0.200"):
        assert part in text
    assert "epochs/s" in text
    assert "left at most" in text


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
