"""Bounds as the cells of a table again: text, two columns, or a time and whether it ended, as the table has them."""

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.data.cells import cells_of, spell
from plurigp.data.column import Column
from plurigp.data.kinds import kind_of
from plurigp.data.limits import read_events, text_of_bounds


def write_bounds(column: Column, bounds: np.ndarray, frame: pd.DataFrame) -> dict[str, pd.Series]:
    """The column, and the companion that holds a part of its cells, with these raw bounds [N 2], NaN at gaps.

    Reading them gives the same bounds; forms and dtypes are the frame's where those can hold them.
    """
    low, high = bounds.T
    if kind_of(column).positive:
        low = np.where((low == 0) & np.isfinite(high), -np.inf, low)
    cells = frame[column.name]
    if column.upper is not None:
        known_low, known_high = np.where(np.isneginf(low), np.nan, low), np.where(np.isposinf(high), np.nan, high)
        return {column.name: _numbers(cells, known_low), column.upper: _numbers(frame[column.upper], known_high)}
    if column.event is not None:
        censored = np.isposinf(high)
        events = _events(frame[column.event], column, ~censored, low)
        return {column.name: _written(cells, low, np.where(censored & (low > 0), low, high)), column.event: events}
    return {column.name: _written(cells, low, high)}


def _written(cells: pd.Series, low: np.ndarray, high: np.ndarray) -> pd.Series:
    """Bounds in one column: as text where the column has text."""
    if cells_of(cells).form != "text":
        return _numbers(cells, low)
    texts = [None if np.isnan(a) else text_of_bounds(a, b) for a, b in zip(low, high, strict=True)]
    return _in_dtype(pd.Series(texts, index=cells.index, name=cells.name, dtype=object), cells)


def _numbers(cells: pd.Series, numbers: np.ndarray) -> pd.Series:
    """Numbers, spelled out where the column has text."""
    if cells_of(cells).form == "text":
        texts = [None if np.isnan(number) else spell(number) for number in numbers]
        return _in_dtype(pd.Series(texts, index=cells.index, name=cells.name, dtype=object), cells)
    return _in_dtype(pd.Series(numbers, index=cells.index, name=cells.name), cells)


def _in_dtype(written: pd.Series, cells: pd.Series) -> pd.Series:
    """In the dtype of the column; as they are where it cannot hold them."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return written.astype("category")
    if isinstance(cells.dtype, pd.SparseDtype) or pdt.is_object_dtype(cells.dtype):
        return written
    try:
        return written.astype(cells.dtype)
    except (TypeError, ValueError):
        return written


def _events(events: pd.Series, column: Column, happened: np.ndarray, times: np.ndarray) -> pd.Series:
    """Events in the column's own words. Those of rows without a time are not read; they change places."""
    known = ~np.isnan(times)
    said = read_events(cells_of(events), column.event, np.zeros(len(events), dtype=bool))
    rows = np.arange(len(events))
    rows[~known] = np.roll(rows[~known], 1)
    for own, value in ((known & happened, 1.0), (known & ~happened, 0.0)):
        if own.any():
            rows[own] = np.argmax(said == value)
    return pd.Series(events.array.take(rows), index=events.index, name=events.name)
