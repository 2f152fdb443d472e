"""Progress over all fits of a study: one line on a terminal, nothing anywhere else."""

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

STAGES = {
    "select": "choosing the latent dimension",
    "map": "fitting the map",
    "refit": "refitting to random halves",
    "reference": "fitting to structureless tables",
}  # by kind of task


class StudyProgress:
    """Shown within `with progress.bar:`; work is counted in rows, so a fit to half of them counts half."""

    def __init__(self, n_rows: int, shown: bool) -> None:
        passed = TextColumn("{task.elapsed:.0f} s,")  # ticks while the first fits compile and nothing else moves
        left = TimeRemainingColumn(), TextColumn("left")
        columns = TextColumn("{task.description}", markup=False), BarColumn(), passed, *left
        silent = not (shown and sys.stderr is not None and sys.stderr.isatty())
        self.bar = Progress(*columns, console=Console(stderr=True), disable=silent, speed_estimate_period=3600.0)
        self.line = self.bar.add_task("", total=n_rows)

    def start_stage(self, kind: str, n_fits: int, n_found: int, rows_found: int) -> None:
        """The next fits; those found on disk are no work, so that they do not count as speed."""
        self.stage, self.n_fits, self.n_done = STAGES[kind], n_fits, n_found
        self.bar.update(self.line, total=(self.bar.tasks[0].total or 0) - rows_found)
        self._say_fit()

    def fit_done(self, n_rows: int) -> None:
        """One more fit of this stage is finished."""
        self.n_done += 1
        self.bar.advance(self.line, n_rows)
        self._say_fit()

    def _say_fit(self) -> None:
        compiles = " (compiling)" if not self.bar.tasks[0].completed else ""  # before the first fit is finished
        self.say(f"{self.stage}: fit {min(self.n_done + 1, self.n_fits)} of {self.n_fits}{compiles}")

    def say(self, what: str) -> None:
        """What is going on now."""
        self.bar.update(self.line, description=what)
