"""Several processes that train one model: started here on one machine, or by a scheduler on many."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from plurigp.cli.errors import CommandError

Processes = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Processes that train together; without --coordinator, all start here."),
]
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where process 0 listens; one command per process.")
]
ProcessId = Annotated[
    int | None, typer.Option("--process-id", metavar="N", min=0, help="The number of this process, from 0 on.")
]
Shards = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Parts of the table, equal in length; fixes the result.", show_default="processes"
    ),
]
POLL, GRACE = 0.1, 2.0  # seconds between two looks, and after the first failure
SAVING_SECONDS = 10.0  # at most, between Ctrl-C and the end of a fit with a checkpoint
MAX_IN_VAIN = 2  # times that a group is started again without having got further
GLOO = b"[Gloo]"  # what its collectives print on standard output when they connect


@dataclass(frozen=True)
class ProcessGroup:
    """The processes that a command line asks for."""

    n_processes: int | None
    coordinator: str | None
    process: int | None

    def __post_init__(self) -> None:
        if (self.coordinator is None) != (self.process is None):
            raise CommandError("--coordinator and --process-id belong together; give both or neither.")
        if self.process is not None and (self.n_processes is None or self.process >= self.n_processes):
            raise CommandError(f"--process-id {self.process} needs --processes above it; give their number.")

    @property
    def starts_here(self) -> bool:
        """Whether this command has to start the others."""
        return (self.n_processes or 1) > 1 and self.coordinator is None

    @property
    def leads(self) -> bool:
        """Whether this process writes and reports what all have trained."""
        return not self.process

    def join(self) -> None:
        """Connect to the other processes, before anything is computed."""
        if self.coordinator is not None and self.process is not None and (self.n_processes or 1) > 1:
            from plurigp.inference.parallel import join_processes

            join_processes(self.coordinator, self.n_processes or 1, self.process)


def run_here(n_processes: int, checkpoint: Path | None) -> None:
    """Run this command once per process, each with its share of the cores; if one fails, end all and exit as it did.

    With a checkpoint, a group of which a process was killed is started again and goes on from there, as long as it gets
    further each time.
    """
    if "-" in sys.argv[1:]:
        raise CommandError("--processes cannot read standard input; give a file or a folder.")
    run_together([sys.executable, "-m", "plurigp.cli", *sys.argv[1:]], n_processes, checkpoint)


def run_together(command: list[str], n_processes: int, checkpoint: Path | None = None) -> None:
    """The command so many times, with the options that make each of them one of a group."""
    kept, in_vain, again = _last_written(checkpoint), 0, list[str]()
    while True:
        resumed = ["--resume"] if kept is not None and "--resume" not in command else []
        ended = _run_group([*command, *resumed, *again], n_processes)
        if ended.killed is None:
            break
        finding = f"process {ended.failed} of {n_processes} was killed (signal {ended.killed})"
        before, kept = kept, _last_written(checkpoint)
        in_vain = 0 if kept != before else in_vain + 1
        if checkpoint is None or in_vain > MAX_IN_VAIN:
            raise CommandError(f"{finding}; start again.")
        again = [] if "--force" in command else ["--force"]  # over a model that this very command may have saved
        there = checkpoint if kept is not None else "the start"
        warnings.warn(f"{finding}; all go on from {there}", RuntimeWarning, stacklevel=2)
    if ended.code:
        raise typer.Exit(ended.code)


@dataclass(frozen=True)
class Ended:
    """How a group of processes has ended: well, by the failure of one of them, or because one was killed."""

    failed: int | None = None
    code: int = 0

    @property
    def killed(self) -> int | None:
        """The signal."""
        return -self.code if self.code < 0 else None


def _last_written(checkpoint: Path | None) -> tuple[int, ...] | None:
    """What changes when the checkpoint gets further; None where there is none to go on from."""
    from plurigp.estimator.checkpoints import RUNS

    found = sorted(checkpoint.glob(RUNS)) if checkpoint is not None else []
    return tuple(path.stat().st_mtime_ns for path in found) or None


def _run_group(command: list[str], n_processes: int) -> Ended:
    """Until all have ended well, or one has not; the rest are ended with it."""
    command = [*command, "--coordinator", f"127.0.0.1:{_free_port()}"]
    environment = {**os.environ, "NPROC": str(max(1, (os.cpu_count() or 1) // n_processes))}
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as failures:
        started: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(n_processes):
                out, err = (said, None) if number == 0 else (subprocess.DEVNULL, failures)
                own: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "env": environment}
                group = [*command, "--process-id", str(number)]
                started.append(subprocess.Popen(group, **own, start_new_session=True))  # Ctrl-C comes from here alone
            failed = _first_failure(started)
            code = 0 if failed is None else started[failed].returncode
        except KeyboardInterrupt:
            _let_save(started[:1])
            raise
        finally:
            for process in started:
                process.kill()
                process.wait()
        if code >= 0:
            _pass_on(said, sys.stdout)
            if failed:  # process 0 has spoken for itself
                _pass_on(failures, sys.stderr)
        return Ended(failed, code)


def _let_save(leader: "list[subprocess.Popen[bytes]]") -> None:
    """Give the process that writes the checkpoint the time to do so."""
    for process in leader:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(SAVING_SECONDS - GRACE)


def _first_failure(started: "list[subprocess.Popen[bytes]]") -> int | None:
    """Wait until the first process, or every one, has ended well (None), or for the one that has not: the others would
    wait for it in vain.

    What is wrong with the data ends all of them within a moment, and then process 0 has already reported it.
    """
    deadline = float("inf")
    while True:
        codes = [process.poll() for process in started]
        if codes[0] == 0:  # it has saved the model
            return None
        failed = min((_order(code), place) for place, code in enumerate(codes))
        over = None not in codes or time.monotonic() > deadline
        if failed[0] is Order.WELL:
            if over:
                return None
        elif over or failed[0] is Order.KILLED or failed[1] == 0:
            return failed[1]
        else:
            deadline = min(deadline, time.monotonic() + GRACE)
        time.sleep(POLL)


class Order(IntEnum):
    """Of what a process did, the likeliest cause of what others did first: JAX aborts those whose peers have gone."""

    KILLED, FAILED, ABORTED, WELL = range(4)


def _order(code: int | None) -> Order:
    if not code:
        return Order.WELL
    if code > 0:
        return Order.FAILED
    return Order.ABORTED if code == -signal.SIGABRT else Order.KILLED


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _pass_on(written: IO[bytes], stream: IO[str]) -> None:
    written.seek(0)
    stream.write("".join(line.decode(errors="replace") for line in written if not line.startswith(GLOO)))
