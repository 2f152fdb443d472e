"""What is known of a column's cells in its own units, limits included."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from plurigp.data.column import Column
from plurigp.data.kinds import cells_in, kind_of, read_column


@dataclass(frozen=True, eq=False)
class Observed:
    """Two bounds per cell [N]: equal where the value is known, infinite (or zero) where open, NaN at gaps.

    The value is a number in the column's units, the place of a level, or successes as a share of their trials.
    """

    low: np.ndarray
    high: np.ndarray

    @property
    def seen(self) -> np.ndarray:
        """[N] False at gaps, as in a coded Table."""
        return ~np.isnan(self.low)

    @property
    def exact(self) -> np.ndarray:
        """[N] whether the value is known."""
        return self.low == self.high

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, rows: np.ndarray) -> "Observed":
        """Some of the cells, by number or by a mask."""
        return Observed(self.low[rows], self.high[rows])


def read_observed(column: Column, frame: pd.DataFrame) -> Observed:
    """The cells of one column, checked, and read together with its companion where it has one."""
    numbers = read_column(column, cells_in(frame, column.name), frame)
    if kind_of(column).has_bounds:
        return Observed(numbers[:, 0], np.where(np.isnan(numbers[:, 0]), np.nan, numbers[:, 1]))
    value = numbers[:, 0] if column.trials is None else numbers[:, 0] / numbers[:, 1]
    return Observed(value, value)
