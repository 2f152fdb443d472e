"""SIGKILL at random moments of a fit: it goes on, and the model has the bytes of a fit that nobody disturbed."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "killed_fits.py"


def killed(*options: str, timeout: float) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_three_kills():
    said = killed("--kills", "3", "--fits", "natural", timeout=280)
    assert said.startswith("3 kills in ")
    assert said.endswith(", 0 did not end with the same bytes")


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.timeout(7200)
def test_three_hundred_kills():
    """Of fits by natural gradients and by Adam, with groups, and with restarts."""
    said = killed("--kills", "300", timeout=7000)
    assert said.startswith("300 kills in ")
    assert said.endswith(", 0 did not end with the same bytes")
