"""A few rows coded in a few calls: columns that are read and coded alike are stacked into one long column.

Reading a column costs some hundred microseconds however few rows it has, so a new row would wait for its columns.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.data.cells import cells_of
from plurigp.data.column import Column
from plurigp.data.kinds import kind_of
from plurigp.data.numeric import Units

FEW = 32


class Coded(NamedTuple):
    """Values [N W] and seen [N] of one column."""

    values: np.ndarray
    seen: np.ndarray


def code_column(column: Column, numbers: np.ndarray, units: Units) -> Coded:
    """Checked raw numbers [N R] in coded units, a stand-in at every gap."""
    kind = kind_of(column)
    coded = kind.code(column, numbers, units)
    return Coded(np.where(np.isnan(coded), kind.stand_in, coded), ~np.isnan(numbers[:, 0]))


def code_few(columns: Sequence[Column], units: Sequence[Units], frame: pd.DataFrame) -> list[Coded | None]:
    """The columns of a frame of a few rows; None where a column must be read by itself.

    A cell that is wrong raises an error that names the wrong column: read the columns one by one for the right one.
    """
    cells = dict(zip(frame.columns, frame.to_numpy(dtype=object).T, strict=True))
    dtypes = dict(zip(frame.columns, frame.dtypes, strict=True))
    alike: dict[Hashable, list[int]] = {}
    for d, (column, unit) in enumerate(zip(columns, units, strict=True)):
        if column.companion is None and column.name in cells and _is_plain(dtypes[column.name]):
            key = (column.kind, column.levels, column.trials, column.bounds, dtypes[column.name].name, unit.squeeze)
            alike.setdefault(key, []).append(d)
    n_rows = len(frame)
    out: list[Coded | None] = [None] * len(columns)
    for group in alike.values():
        one = columns[group[0]]
        long = cells_of(np.concatenate([cells[columns[d].name] for d in group]), one.name)
        coded = code_column(one, kind_of(one).read(one, long, None), _stacked([units[d] for d in group], n_rows))
        for g, d in enumerate(group):
            rows = slice(g * n_rows, (g + 1) * n_rows)
            out[d] = Coded(coded.values[rows], coded.seen[rows])
    return out


def _stacked(units: Sequence[Units], n_rows: int) -> Units:
    """One shift and one scale per cell of the long column; a kind's code works cell by cell."""
    shift, scale = (np.repeat([unit[part] for unit in units], n_rows)[:, None] for part in (0, 1))
    return Units(shift, scale, units[0].squeeze)


def _is_plain(dtype: Any) -> bool:
    """Whether the cells alone, as objects, say all that the column says; objects may be of several sorts."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    return isinstance(dtype, pd.StringDtype) or (pdt.is_numeric_dtype(dtype) and not isinstance(dtype, pd.SparseDtype))
