"""Bounds as the cells of a table again: text, two columns, or a time and whether it ended, as the table has them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.data.cells import cells_of, spell, spells_numbers
from plurigp.data.column import Column
from plurigp.data.kinds import kind_of
from plurigp.data.limits import read_events, text_of_bounds


def write_bounds(column: Column, bounds: np.ndarray, frame: pd.DataFrame) -> dict[str, pd.Series]:
    """The column, and the companion that holds a part of its cells, with these raw bounds [N 2], NaN at gaps.

    Reading them gives the same bounds; forms and dtypes are the frame's where those can hold them.
    """
    if column.event is not None:
        return write_times([column], [bounds], frame)
    low, high = _open_below(column, bounds)
    cells = frame[column.name]
    if column.upper is not None:
        known_low, known_high = np.where(np.isneginf(low), np.nan, low), np.where(np.isposinf(high), np.nan, high)
        return {column.name: _numbers(cells, known_low), column.upper: _numbers(frame[column.upper], known_high)}
    return {column.name: _written(cells, low, high)}


def write_times(columns: Sequence[Column], bounds: Sequence[np.ndarray], frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Time columns that have one event column in common, and that column: its status of a row must suit them all."""
    written: dict[str, pd.Series] = {}
    happened, known = np.zeros(len(frame), dtype=bool), np.zeros(len(frame), dtype=bool)
    for column, own in zip(columns, bounds, strict=True):
        low, high = _open_below(column, own)
        censored = np.isposinf(high)
        written[column.name] = _written(frame[column.name], low, np.where(censored & (low > 0), low, high))
        known |= ~np.isnan(low)
        happened |= np.isfinite(high)
    event = str(columns[0].event)
    return written | {event: _events(frame[event], happened, known)}


def _open_below(column: Column, bounds: np.ndarray) -> np.ndarray:
    """Lower and upper bounds [2 N]; a limit to what is above zero anyway has no lower bound."""
    low, high = bounds.T
    below = (low == 0) & np.isfinite(high) & kind_of(column).positive
    return np.stack([np.where(below, -np.inf, low), high])


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
    """In the dtype of the column where that holds every number exactly: a rounded bound may pass the other one."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return written.astype("category")
    if isinstance(cells.dtype, pd.SparseDtype) or pdt.is_object_dtype(cells.dtype):
        return written
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            cast = written.astype(cells.dtype)
    except (TypeError, ValueError):
        return written
    return cast if pdt.is_object_dtype(written.dtype) or _same_numbers(cast, written) else written


def _same_numbers(cast: pd.Series, written: pd.Series) -> bool:
    return np.array_equal(cast.to_numpy(np.float64, na_value=np.nan), written.to_numpy(), equal_nan=True)


def _events(events: pd.Series, happened: np.ndarray, known: np.ndarray) -> pd.Series:
    """Events in the column's own words; those of rows without a time are not read and stay as they are."""
    said = read_events(cells_of(events), events.name, np.zeros(len(events), dtype=bool))
    written = events.copy()
    if isinstance(events.dtype, pd.SparseDtype):
        written = pd.Series(np.asarray(events), index=events.index, name=events.name)
    for status, own in ((True, known & happened), (False, known & ~happened)):
        if own.any():
            says = said == status
            word: Any = events.iloc[int(np.argmax(says))] if says.any() else _word(events, status)
            if isinstance(written.dtype, pd.CategoricalDtype) and word not in written.cat.categories:
                written = written.cat.add_categories([word])
            written.iloc[np.flatnonzero(own)] = word
    return written


def _word(events: pd.Series, status: bool) -> str | int | bool:
    """How a column that never says this status would say it."""
    cells = cells_of(events)
    if cells.form == "text":
        return str(int(status)) if spells_numbers(cells) else "yes" if status else "no"
    return status if cells.form == "bool" else int(status)
