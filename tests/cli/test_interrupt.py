"""Ctrl-C ends a command within two seconds, by exit code 130, while XLA compiles too. `benchmarks/interrupts.py` does
it at many random moments."""

import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from plurigp.cli import errors, interrupt
from plurigp.cli.app import app
from plurigp.cli.fit import check_checkpoint

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


STOPPED_IN_EPOCH_3 = """
import os, signal, sys
from plurigp.cli import main
from plurigp.estimator.checkpoints import Checkpoint
keep, number = Checkpoint.keep, int(sys.argv.pop())
def keep_and_stop(self, snapshot):
    keep(self, snapshot)
    if len(snapshot.epochs) == 3:
        os.kill(os.getpid(), number)
Checkpoint.keep = keep_and_stop
main()
"""


def test_a_fit_with_a_checkpoint_saves_says_how_to_go_on_and_goes_on(table, tmp_path):
    """Stopped by SIGTERM, then resumed; a model that was fitted without a word is the same."""
    fit = ["fit", table, "--epochs", "5", "--inducing", "5", "--exclude", "patient"]
    kept = [*fit, "--out", str(tmp_path / "model"), "--checkpoint", str(tmp_path / "running")]
    cache = os.environ["PLURIGP_CACHE"]
    stopped = start([sys.executable, "-c", STOPPED_IN_EPOCH_3, *kept, str(int(signal.SIGTERM))], cache)
    _, said = stopped.communicate(timeout=200)
    assert stopped.returncode == 128 + signal.SIGTERM
    assert said.splitlines() == [f"terminated; the same command with --resume goes on from {tmp_path / 'running'}"]
    assert not (tmp_path / "model").exists()
    again = CliRunner().invoke(app, kept)
    assert again.exit_code == 1
    assert "running: holds the checkpoint of a fit; pass --resume to go on, or name another folder." in again.stderr
    assert CliRunner().invoke(app, [*kept, "--resume"]).exit_code == 0
    assert CliRunner().invoke(app, [*fit, "--out", str(tmp_path / "other")]).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other", "table.csv"]
    for path in (tmp_path / "model").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_resuming_needs_a_folder(table, tmp_path):
    done = CliRunner().invoke(app, ["fit", table, "--out", str(tmp_path / "model"), "--resume"])
    assert done.exit_code == 1
    assert "--resume needs the folder to go on from; pass it as --checkpoint DIR." in done.stderr


def test_an_interrupt_before_the_first_checkpoint_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(interrupt, "_ending", interrupt.Ending())
    check_checkpoint(tmp_path / "running", resume=True)
    assert interrupt._ending.advice() == " before the first checkpoint; start again"


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
    monkeypatch.setattr(interrupt, "_ending", interrupt.Ending())
    interrupt.terminate()
    interrupt.terminate()
    assert worker.killed
    assert codes == [130]
    assert capsys.readouterr().err == "interrupted\n"
