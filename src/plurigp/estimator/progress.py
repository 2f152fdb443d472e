"""Progress of a fit on a terminal, nothing anywhere else."""

import sys

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeRemainingColumn

from plurigp.inference.steps import EpochMetrics


class FitProgress:
    """A line per run: the bound and its parts per row, in the units of elbo_, epochs per second and time left at most.

    `log_units` is the bound in coded units minus that in the columns' own. The lines show inside `with progress.lines`.
    """

    def __init__(self, shown: bool, n_runs: int, max_epochs: int, n_rows: int, log_units: float) -> None:
        self.n_runs, self.max_epochs, self.n_rows, self.log_units = n_runs, max_epochs, n_rows, log_units
        hidden = not (shown and sys.stderr is not None and sys.stderr.isatty())  # whatever FORCE_COLOR says
        self.lines = Progress(
            *(TextColumn(f"{{task.{text}}}") for text in ("description", "fields[bound]", "fields[rate]")),
            TimeRemainingColumn(compact=True),
            console=Console(file=sys.stderr, quiet=hidden),
            refresh_per_second=4,
            disable=hidden,
        )

    def phase(self, name: str) -> None:
        """A new line: a run, which compiles first, or what comes after the runs."""
        for line in self.lines.tasks[-1:]:
            self.lines.update(line.id, total=line.completed)  # finished: no time is left
        self.lines.add_task(f"{name} …", total=None, bound="", rate="")

    def __call__(self, epoch: int, record: EpochMetrics) -> None:
        if self.lines.disable:  # an estimate of the speed takes a tenth of a small step
            return
        line, bound = self.lines.tasks[-1], record.bound
        if line.total is None:  # the clock starts after compilation; a resumed run has epochs behind it
            self.lines.reset(line.id, total=self.max_epochs, completed=epoch - 1)
        label = "epoch" if self.n_runs == 1 else f"run {len(self.lines.tasks)}/{self.n_runs}"
        own_units = (bound.total - self.log_units, sum(bound.expected_log_prob) - self.log_units)
        per_row = [float(part) / self.n_rows for part in (*own_units, bound.kl_x, bound.kl_u)]
        total, fit, kl_x, kl_u = (f"{part:.{2 if abs(part) < 100 else 0}f}" for part in per_row)
        description = f"{label} {epoch}/{self.max_epochs}"
        shown = f"bound/row {total} (fit {fit}, kl_x {kl_x}, kl_u {kl_u})"
        rate = f"{line.speed:.1f}/s" if line.speed else ""
        time_left = "1:00:00" if (line.time_remaining or 0) >= 3600 else "00:00"
        if len(" ".join((description, shown, rate, time_left))) > self.lines.console.width:  # it would be cut
            shown = f"bound/row {total}"
        self.lines.update(
            line.id,
            completed=epoch,
            description=description,
            bound=shown,
            rate=rate,
        )
