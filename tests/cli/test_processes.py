"""The processes of one training run: what a command line asks for, and what becomes of a group when one of it fails."""

import os
import signal
import sys
import time
from threading import Thread

import pytest
import typer

from plurigp.cli.errors import CommandError
from plurigp.cli.processes import ProcessGroup, run_here, run_together

SCRIPT = """
import os, signal, sys, time
number = int(sys.argv[sys.argv.index("--process-id") + 1])
assert sys.argv[sys.argv.index("--coordinator") + 1].startswith("127.0.0.1:")
print("[Gloo] Rank", number, "is connected")
print("process", number)
"""


def command(body: str = "") -> list[str]:
    return [sys.executable, "-c", SCRIPT + body]


def test_a_command_is_one_of_three_things():
    alone, starter = ProcessGroup(None, None, None), ProcessGroup(4, None, None)
    first, last = (ProcessGroup(4, "host:1", process) for process in (0, 3))
    assert [group.starts_here for group in (alone, starter, first, last)] == [False, True, False, False]
    assert [group.leads for group in (alone, starter, first, last)] == [True, True, True, False]
    alone.join()
    ProcessGroup(1, "host:1", 0).join()


def test_joining_names_the_coordinator(monkeypatch):
    asked = []
    monkeypatch.setattr("plurigp.inference.parallel.join_processes", lambda *given: asked.append(given))
    ProcessGroup(2, "host:1", 1).join()
    assert asked == [("host:1", 2, 1)]


@pytest.mark.parametrize(
    ("given", "finding"),
    [
        ((2, "host:1", None), "--coordinator and --process-id belong together"),
        ((2, None, 1), "--coordinator and --process-id belong together"),
        ((2, "host:1", 2), "--process-id 2 needs --processes above it"),
        ((None, "host:1", 0), "--process-id 0 needs --processes above it"),
    ],
)
def test_half_a_group_is_refused(given, finding):
    with pytest.raises(CommandError, match=finding):
        ProcessGroup(*given)


def test_standard_input_is_for_one_process(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["plurigp", "fit", "-", "--processes", "2"])
    with pytest.raises(CommandError, match="cannot read standard input"):
        run_here(2, None)


def test_only_the_first_process_is_heard(capfd):
    run_together(command(), 2)
    assert capfd.readouterr() == ("process 0\n", "")


def test_one_that_fails_ends_the_others_and_is_heard(capfd):
    body = "if number: sys.exit('error: column age')\ntime.sleep(600)"
    with pytest.raises(typer.Exit) as ended:
        run_together(command(body), 3)
    assert ended.value.exit_code == 1
    assert "error: column age" in capfd.readouterr().err


def test_one_that_is_killed_is_named():
    body = "if number == 1: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(600)"
    with pytest.raises(CommandError, match=r"process 1 of 2 was killed \(signal 9\); start again"):
        run_together(command(body), 2)


def test_what_ends_all_is_said_once(capfd):
    with pytest.raises(typer.Exit):
        run_together(command("sys.exit('error: column age')"), 3)
    assert capfd.readouterr().err.count("error: column age") == 1


@pytest.mark.parametrize("first", [0, 1])
def test_the_cause_comes_before_what_follows_from_it(first):
    """Peers of a process that has gone are aborted by JAX, or fail by an error of their own."""
    last = f"time.sleep({0.5 if first else 0})" + "\nos.kill(os.getpid(), signal.SIGABRT)"
    body = f"if number == {first}: sys.exit(3)\n{last}"
    with pytest.raises(typer.Exit) as ended:
        run_together(command(body), 2)
    assert ended.value.exit_code == 3


# --- killed, and on from a checkpoint ---

STEP = """
import pathlib
folder = pathlib.Path({folder!r})
n = len(list(folder.glob("run-*.safetensors")))
if number == 0 and n < {steps}:
    assert ("--resume" in sys.argv) == (n > 0)
    (folder / f"run-{{n}}.safetensors").write_text("")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_group_goes_on_from_its_checkpoint_until_it_is_done(tmp_path, capfd):
    with pytest.warns(RuntimeWarning, match=r"process 0 of 2 was killed \(signal 9\); all go on from /") as warned:
        run_together(command(STEP.format(folder=str(tmp_path), steps=4)), 2, tmp_path)
    assert len(warned) == 4
    assert capfd.readouterr().out == "process 0\n"


@pytest.mark.filterwarnings("ignore:process 1 of 2 was killed .* all go on from the start")
def test_a_group_that_gets_no_further_ends(tmp_path):
    body = "if number == 1: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(600)"
    with pytest.raises(CommandError, match=r"process 1 of 2 was killed \(signal 9\); start again"):
        run_together(command(body), 2, tmp_path)


SAVES = """
import pathlib
ready, saved = (pathlib.Path({folder!r}) / name for name in ("ready", "saved"))
if number == 0:
    ready.touch()
try:
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep(0.5)
    saved.touch() if number == 0 else None
"""


def test_ctrl_c_lets_the_first_process_save(tmp_path):
    def interrupt():
        while not (tmp_path / "ready").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_together(command(SAVES.format(folder=str(tmp_path))), 2, tmp_path)
    assert (tmp_path / "saved").exists()
