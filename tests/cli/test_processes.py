"""The processes of one training run: what a command line asks for, and what becomes of a group when one of it fails."""

import sys

import pytest
import typer
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.cli.errors import CommandError
from plurigp.cli.fit import check_alone
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


@pytest.mark.parametrize("given", [(2, None, None), (2, "host:1", 0), (2, "host:1", 1)])
def test_a_checkpoint_is_for_one_process(given, tmp_path):
    """Said before any process is started, whether or not there is a checkpoint to go on from."""
    finding = r"a fit by 2 --processes keeps no checkpoint.*; leave out --checkpoint, or --processes \(with --shards 2"
    with pytest.raises(CommandError, match=finding) as caught:
        check_alone(tmp_path, ProcessGroup(*given))
    assert "\n" not in str(caught.value)


def test_one_process_may_keep_a_checkpoint(tmp_path):
    check_alone(tmp_path, ProcessGroup(None, None, None))
    check_alone(tmp_path, ProcessGroup(1, "host:1", 0))
    check_alone(None, ProcessGroup(2, None, None))


def test_the_command_refuses_a_checkpoint_of_several_before_it_starts_them(tmp_path, monkeypatch):
    monkeypatch.setattr("plurigp.cli.fit.run_here", lambda n: pytest.fail("started"))
    folders = ["--out", str(tmp_path / "model"), "--checkpoint", str(tmp_path / "running")]
    done = CliRunner().invoke(app, ["fit", "t.csv", "--processes", "2", *folders])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "leave out --checkpoint" in done.stderr
    assert not list(tmp_path.iterdir())


def test_standard_input_is_for_one_process(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["plurigp", "fit", "-", "--processes", "2"])
    with pytest.raises(CommandError, match="cannot read standard input"):
        run_here(2)


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
