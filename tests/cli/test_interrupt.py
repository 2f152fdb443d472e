"""Ctrl-C ends a command within two seconds, by exit code 130, while XLA compiles too. `benchmarks/interrupts.py` does
it at many random moments."""

import os
import signal
import subprocess
import sys
import time

import pytest

from plurigp.cli import errors, interrupt

SCRIPT = """
import sys
import pandas as pd
from plurigp import PluriGP
print("go", flush=True)
PluriGP().fit(pd.read_csv(sys.argv[1]))
"""


def start(command, cache=""):
    environment = os.environ | {"PLURIGP_CACHE": cache}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupted(process):
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, said = process.communicate(timeout=60)
    return process.returncode, time.monotonic() - begin, said


@pytest.fixture
def table(mixed_frame, tmp_path):
    path = tmp_path / "table.csv"
    mixed_frame.to_csv(path, index=False)
    return str(path)


def test_a_fit_that_compiles_ends_at_once(table, tmp_path):
    """Nothing is cached, so that three seconds into it XLA compiles."""
    process = start([sys.executable, "-m", "plurigp.cli", "fit", table, "--out", str(tmp_path / "model")])
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)
    code, seconds, said = interrupted(process)
    assert code == 130
    assert seconds < 10  # two, on a machine that does nothing else
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_a_script_does_not_crash(table):
    """An interpreter that ends while a thread compiles."""
    process = start([sys.executable, "-c", SCRIPT, table])
    assert process.stdout.readline() == "go\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    code, _, said = interrupted(process)
    assert code in (130, -signal.SIGINT)
    assert said.splitlines()[-1] == "KeyboardInterrupt"


def test_an_interrupt_in_a_verb_ends_the_process(monkeypatch):
    ended = []
    monkeypatch.setattr(errors, "terminate", lambda: ended.append(True))
    with errors.one_line_errors():
        raise KeyboardInterrupt
    assert ended == [True]


def test_an_interrupt_that_became_another_error_ends_the_process_too(monkeypatch, capsys):
    """As where it arrives inside a callback from C++."""

    def end():
        raise SystemExit(130)

    monkeypatch.setattr(errors, "terminate", end)
    monkeypatch.setattr(errors, "was_interrupted", lambda: True)
    with pytest.raises(SystemExit, match="130"), errors.one_line_errors():
        raise RuntimeError("something that the interrupt became")
    assert capsys.readouterr().err == ""


def test_workers_are_stopped_and_the_word_is_said_once(monkeypatch, capsys):
    class Worker:
        killed = False

        def kill(self):
            self.killed = True

    worker, codes = Worker(), []
    monkeypatch.setattr(interrupt.multiprocessing, "active_children", lambda: [worker])
    monkeypatch.setattr(interrupt.os, "_exit", codes.append)
    monkeypatch.setattr(interrupt, "GRACE", 0.0)
    monkeypatch.setattr(interrupt, "_ended", interrupt.threading.Lock())
    interrupt.terminate()
    interrupt.terminate()
    assert worker.killed
    assert codes == [130]
    assert capsys.readouterr().err == "interrupted\n"
