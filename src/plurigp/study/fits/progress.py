"""Progress over all fits of a study: one line on a terminal, nothing anywhere else."""

import sys
import time
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from plurigp.study.fits.tasks import Task


class Progress:
    """`with Progress(total, shown) as progress:`; work is counted in rows, so half maps count half."""

    def __init__(self, n_fits: int, total: float, shown: bool) -> None:
        self.n_fits, self.total = n_fits, total
        self.n_done, self.found, self.worked = 0, 0.0, 0.0
        self.started = time.perf_counter()
        seen = shown and sys.stderr is not None and sys.stderr.isatty()
        self.live = Live(console=Console(file=sys.stderr), refresh_per_second=4) if seen else None

    def __enter__(self) -> "Progress":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()

    def already(self, tasks: Iterable[Task]) -> None:
        """Fits found on disk: they are not in the rate."""
        for task in tasks:
            self.n_done += 1
            self.found += len(task.rows)
        self.say("")

    def done(self, task: Task) -> None:
        """One more fit finished."""
        self.n_done += 1
        self.worked += len(task.rows)
        self.say(task.name)

    def say(self, what: str) -> None:
        """The line: fits done, time left."""
        if self.live is not None:
            self.live.update(Text(self.line(what)))

    def line(self, what: str) -> str:
        """fits 12/71  refit-003  about 4 min left."""
        left = max(self.total - self.found - self.worked, 0.0)
        seconds = (time.perf_counter() - self.started) * left / self.worked if self.worked else None
        return f"fits {self.n_done}/{self.n_fits}  {what}  {time_left(seconds)}".rstrip()


def time_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"
