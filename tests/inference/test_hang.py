"""A test that hangs fails within its time and prints all stacks; the others go on."""

import subprocess
import sys
from pathlib import Path

QUICKLY = ["-o", "timeout=3", "-o", "faulthandler_timeout=2"]
HANGING = """
import threading

def waits_for_ever():
    threading.Event().wait()

def test_hangs():
    thread = threading.Thread(target=waits_for_ever, daemon=True)
    thread.start()
    thread.join()

def test_goes_on():
    pass
"""


def test_a_hanging_test_fails_and_shows_every_stack(tmp_path):
    (tmp_path / "test_it.py").write_text(HANGING)
    settings = Path(__file__).parents[2] / "pyproject.toml"
    command = [sys.executable, "-m", "pytest", "-c", str(settings), "--rootdir", str(tmp_path), *QUICKLY]
    done = subprocess.run([*command, "-n", "1", str(tmp_path)], capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "1 failed, 1 passed" in said
    assert "waits_for_ever" in said
    assert "Timeout" in said
