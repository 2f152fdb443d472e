"""One line of progress on a terminal, nothing anywhere else."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from plurigp.inference.training import Epoch


class ProgressLine:
    """`with ProgressLine(...) as line: train(..., on_epoch=line)`: bound, its parts, rate and time left."""

    def __init__(self, max_epochs: int, n_rows: int, shown: bool, label: str = "") -> None:
        self.max_epochs, self.n_rows, self.label = max_epochs, n_rows, label
        self.started = time.perf_counter()
        seen = shown and sys.stderr is not None and sys.stderr.isatty()  # whatever FORCE_COLOR says
        self.live = Live(console=Console(file=sys.stderr), refresh_per_second=4) if seen else None

    def __enter__(self) -> "ProgressLine":
        if self.live is not None:
            self.live.start()
            self.live.update(Text(f"{self.label}compiling …"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, epoch: int, record: Epoch) -> None:
        if self.live is None:
            return
        if epoch == 1:  # the first epoch compiles; the rate starts after it
            self.started = time.perf_counter()
        seconds = max(time.perf_counter() - self.started, 1e-9)
        rate = (epoch - 1) / seconds if epoch > 1 else 0.0
        left = f"{(self.max_epochs - epoch) / rate:4.0f} s left at most" if rate else ""
        parts = record.bound
        fit, n = float(sum(parts.expected_log_prob)), self.n_rows
        self.live.update(
            Text(
                f"{self.label}epoch {epoch}/{self.max_epochs}  bound {float(parts.total) / n:.3f} per row "
                f"(fit {fit / n:.3f}, kl_x {float(parts.kl_x) / n:.3f}, kl_u {float(parts.kl_u) / n:.3f})  "
                f"{rate:.1f} epochs/s  {left}"
            )
        )
