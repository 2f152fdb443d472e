"""Random parts of a table's rows; rows of one group, such as the visits of a patient, are never separated."""

import numpy as np
import pandas as pd

from plurigp.data.groups import row_groups


def group_ids(frame: pd.DataFrame, column: str | None) -> np.ndarray | None:
    """The group 0, 1, … of every row by the column that names it; None where no column does."""
    if column is None:
        return None
    return row_groups(column, frame)[0]


def shuffled_rows(n_rows: int, seed: int, groups: np.ndarray | None = None) -> np.ndarray:
    """All rows in random order, those of a group side by side."""
    rng = np.random.default_rng(seed)
    if groups is None:
        return rng.permutation(n_rows)
    place = rng.permutation(int(groups.max()) + 1)
    return np.argsort(place[groups], kind="stable")


def first_rows(shuffled: np.ndarray, n: int, groups: np.ndarray | None = None) -> np.ndarray:
    """The first n of them, or as near to n as whole groups come: one at least, and not all of several."""
    if groups is None or n >= len(shuffled):
        return shuffled[:n]
    ends = np.flatnonzero(np.diff(groups[shuffled])) + 1
    return shuffled[: ends[np.argmin(np.abs(ends - n))]] if len(ends) else shuffled
