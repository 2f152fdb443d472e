"""The schedule of training: step sizes, plateau detection and the cooldown after it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from plurigp.core.arrays import Scalar

WARMUP_EPOCHS = 5  # in which Adam's rate rises from zero: q(v) settles first, so that the start is not thrown away
DECAY_HALF_LIFE = 100  # epochs in which Adam's rate covers half of its way down; it ends at half of where it began
WINDOW = 10  # epochs over which the bound is smoothed, at least, before a plateau is looked for
WINDOW_SHARE = 0.25  # of all epochs so far, if that is more
COOLDOWN_SHARE = 0.2  # share of the epochs spent letting both step sizes fall to FINAL_RATE_FACTOR of their value
FINAL_RATE_FACTOR = 0.03
BEFORE_GROUPS_SHARE = 2 / 3  # of the epochs, at most, before a mixture as prior starts: the rest is half as many


@dataclass(frozen=True)
class Schedule:
    """How long and how fast. `tol`: nats per observed cell that WINDOW epochs must gain for training to go on.

    `kl_covariance_weight` is the weight of the covariance part of kl_u while training, for either optimiser (1: the
    bound itself): a cold posterior, since the full KL over-regularises output scales and encoder. Once trained, q(v)
    gets the covariance that the full KL gives it.
    """

    max_epochs: int = 600
    batch_size: int = 500
    learning_rate: float = 0.02
    natural_rate: float = 0.3
    tol: float = 3e-4
    optimizer: str = "natural"
    kl_covariance_weight: float = 0.4


class Passes(NamedTuple):
    """Default limits of training: `most` epochs or `steps` steps, but at least `least` epochs."""

    most: int = 600
    steps: int = 12_000
    least: int = 20


DEFAULT_PASSES = Passes()


def enough_epochs(n_rows: int, batch_size: int, passes: Passes = DEFAULT_PASSES) -> int:
    """The default max_epochs for a table of so many rows."""
    n_batches = -(-n_rows // batch_size)
    return max(passes.least, min(passes.most, passes.steps // n_batches))


def before_groups(schedule: Schedule) -> int:
    """Epochs, at most, before a mixture as prior starts."""
    return max(1, round(BEFORE_GROUPS_SHARE * schedule.max_epochs))


class Rates(NamedTuple):
    """Step sizes of an epoch, the caution of its natural steps, and the weight of kl_u's covariance part."""

    learning: Scalar
    natural: Scalar
    caution: Scalar
    kl_covariance_weight: Scalar


def rates_of(schedule: Schedule, n_done: int, factor: float, dtype: Any) -> Rates:
    """For the coming epoch. Adam warms up while natural steps are cautious; then its rate decays."""
    warm, decay = min(n_done / WARMUP_EPOCHS, 1.0), 0.5 + 0.5 ** (1 + n_done / DECAY_HALF_LIFE)
    learning, natural = schedule.learning_rate * factor * warm * decay, schedule.natural_rate * factor
    parts = (learning, natural, 1.0 - warm, schedule.kl_covariance_weight)
    return Rates(*(np.asarray(part, dtype) for part in parts))


@dataclass
class Plateau:
    """Decides when the main phase ends and how far the cooldown has come."""

    schedule: Schedule
    n_cells: float | int
    totals: list[float] = field(default_factory=list)
    cooling_from: int | None = None
    cooling_until: int | None = None

    def add(self, total: float) -> None:
        self.totals.append(total)
        done, longest = len(self.totals), self.schedule.max_epochs
        if self.cooling_from is None and (done >= (1 - COOLDOWN_SHARE) * longest or self._flat()):
            self.cooling_from = done
            self.cooling_until = min(longest, done + max(WINDOW, round(COOLDOWN_SHARE / (1 - COOLDOWN_SHARE) * done)))

    def _flat(self) -> bool:
        """Is the gain from one window to the next below tol, even with two standard errors added?

        The bound is noisy from epoch to epoch: on a small table the noise can hide a gain that is well worth having.
        """
        if len(self.totals) < 3 * WINDOW:
            return False
        width = max(WINDOW, round(WINDOW_SHARE * len(self.totals)))
        windows = np.reshape(self.totals[-2 * width :], (2, width))
        gain = windows[1].mean() - windows[0].mean()
        noise = np.diff(windows, axis=1).std() / np.sqrt(2)  # differences are free of the trend
        enough = self.schedule.tol * self.n_cells * width / WINDOW
        return bool(gain + 2 * noise * np.sqrt(2 / width) < enough)

    def factor(self, ahead: int = 0) -> float:
        """Factor on both step sizes in the coming epoch, or in the one that is so many later."""
        if self.cooling_from is None or self.cooling_until is None:
            return 1.0
        share = (len(self.totals) + ahead - self.cooling_from) / max(self.cooling_until - self.cooling_from, 1)
        return float(FINAL_RATE_FACTOR**share)

    @property
    def reached(self) -> bool:
        """Has the main phase ended?"""
        return self.cooling_from is not None

    @property
    def finished(self) -> bool:
        return self.cooling_until is not None and len(self.totals) >= self.cooling_until
