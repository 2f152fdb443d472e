"""Progress of a fit on a terminal, nothing anywhere else."""

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeRemainingColumn

from plurigp.inference.training import Epoch


class FitProgress:
    """A line per run: the bound and its parts per row, in the units of elbo_, epochs per second and time left at most.

    `log_units` is the bound in coded units minus that in the columns' own.
    """

    def __init__(self, shown: bool, max_epochs: int, n_rows: int, log_units: float) -> None:
        self.max_epochs, self.n_rows, self.log_units = max_epochs, n_rows, log_units
        on_terminal = sys.stderr is not None and sys.stderr.isatty()  # whatever FORCE_COLOR says
        self.label, self.lines = (
            "",
            Progress(
                *(TextColumn(f"{{task.{text}}}") for text in ("description", "fields[bound]", "fields[rate]")),
                TimeRemainingColumn(compact=True),
                console=Console(file=sys.stderr),
                refresh_per_second=4,
                disable=not (shown and on_terminal),
            ),
        )

    def __enter__(self) -> "FitProgress":
        self.lines.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.lines.stop()

    def compiling(self, label: str) -> None:
        """The next run begins, and its first epoch compiles."""
        self.label = label
        self._add("compiling …")

    def __call__(self, epoch: int, record: Epoch) -> None:
        line, bound = self.lines.tasks[-1], record.bound
        if epoch == 1:
            self.lines.reset(line.id, total=self.max_epochs)  # the clock starts after compilation
        shift = self.log_units
        parts = (bound.total - shift, sum(bound.expected_log_prob) - shift, bound.kl_x, bound.kl_u)
        total, fit, kl_x, kl_u = (_short(float(part) / self.n_rows) for part in parts)
        self.lines.update(
            line.id,
            completed=epoch,
            description=f"{self.label} {epoch}/{self.max_epochs}",
            bound=f"bound/row {total} (fit {fit}, kl_x {kl_x}, kl_u {kl_u})",
            rate=f"{line.speed:.1f}/s" if line.speed else "",
        )

    def calibrating(self) -> None:
        """Training is over, calibration begins."""
        self.lines.update(self.lines.tasks[-1].id, total=self.lines.tasks[-1].completed)
        self._add("calibrating …")

    def _add(self, description: str) -> None:
        self.lines.add_task(description, total=None, bound="", rate="")


def _short(number: float) -> str:
    return f"{number:.{2 if abs(number) < 100 else 0}f}"
