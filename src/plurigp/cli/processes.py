"""Several processes that train one model: started here on one machine, or by a scheduler on many."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
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


def run_here(n_processes: int) -> None:
    """Run this command once per process, each with its share of the cores; if one fails, end all and exit as it did."""
    if "-" in sys.argv[1:]:
        raise CommandError("--processes cannot read standard input; give a file or a folder.")
    run_together([sys.executable, "-m", "plurigp.cli", *sys.argv[1:]], n_processes)


def run_together(command: list[str], n_processes: int) -> None:
    """The command so many times, with the options that make each of them one of a group."""
    command = [*command, "--coordinator", f"127.0.0.1:{_free_port()}"]
    environment = {**os.environ, "NPROC": str(max(1, (os.cpu_count() or 1) // n_processes))}
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as failures:
        started: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(n_processes):
                out, err = (said, None) if number == 0 else (subprocess.DEVNULL, failures)
                own: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "env": environment}
                started.append(subprocess.Popen([*command, "--process-id", str(number)], **own))
            failed = _first_failure(started)
        finally:
            for process in started:
                process.kill()
                process.wait()
        _pass_on(said, sys.stdout)
        if failed is not None:
            if failed > 0:
                _pass_on(failures, sys.stderr)
            _exit_as(started[failed].returncode, f"process {failed} of {n_processes}")


def _first_failure(started: "list[subprocess.Popen[bytes]]") -> int | None:
    """Wait until all have ended well (None), or for the first that has not: the others would wait for it in vain.

    What is wrong with the data ends all of them within a moment, and then process 0 has already reported it.
    """
    last = float("inf")
    while True:
        codes = [process.poll() for process in started]
        failed = next((place for place, code in enumerate(codes) if code not in (None, 0)), None)
        if None not in codes or failed == 0 or time.monotonic() > last:
            return failed
        if failed is not None:
            last = min(last, time.monotonic() + GRACE)
        time.sleep(POLL)


def _exit_as(code: int, which: str) -> None:
    if code < 0:
        raise CommandError(f"{which} was killed (signal {-code}); start again.")
    raise typer.Exit(code)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _pass_on(written: IO[bytes], stream: IO[str]) -> None:
    written.seek(0)
    stream.write("".join(line.decode(errors="replace") for line in written if not line.startswith(GLOO)))
