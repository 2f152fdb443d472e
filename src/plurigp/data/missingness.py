"""Missingness indicators as columns: whether a cell is a gap is modelled beside what it holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.text import at, nearest
from plurigp.core.types import DataError
from plurigp.data.frames import to_frame
from plurigp.data.rows import Rows

SUFFIX = " (missing)"
IS_GAP, IS_VALUE = "yes", "no"


def add_missingness(table: Any, columns: Iterable[str] | None = None) -> pd.DataFrame:
    """The table with a yes/no column "name (missing)" for each of these columns; all that have gaps if None.

    A map of the result places a row by which of its cells are missing, too, and fills gaps given that. This allows for
    gaps that depend on what the columns share (a shared-parameter model); gaps that depend on the hidden value alone
    are a matter of `delta`.

    Examples
    --------
    >>> import pandas as pd
    >>> import plurigp
    >>> plurigp.add_missingness(pd.DataFrame({"age": [61, 70], "crp": [None, 3.1]})).columns.tolist()
    ['age', 'crp', 'crp (missing)']
    """
    frame = table.frame if isinstance(table, Rows) else to_frame(table)
    gaps = {name: ~Rows(frame).cells(name).seen for name in _named(frame, columns)}
    if columns is None:
        gaps = {name: gap for name, gap in gaps.items() if 0 < gap.sum() < len(gap)}
    for name, gap in gaps.items():
        if not 0 < gap.sum() < len(gap):
            raise DataError(f"{at(name)}: has {'only' if gap.any() else 'no'} gaps, so nothing to model; leave it out.")
    return frame.assign(**{name + SUFFIX: _indicator(gap) for name, gap in gaps.items()})


def _named(frame: pd.DataFrame, columns: Iterable[str] | None) -> list[str]:
    named = [str(name) for name in frame.columns] if columns is None else list(columns)
    for name in named:
        if name not in frame.columns:
            hint = nearest(name, frame.columns)
            raise DataError(f"missingness names {at(name)}, which is not in the table; correct the name.{hint}")
        if name + SUFFIX in frame.columns:
            raise DataError(f"{at(name + SUFFIX)}: is in the table already; rename or drop it.")
    return named


def with_indicators(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The frame with those of these columns that say which cells of another are missing, and are not there yet."""
    made = {}
    for name in names:
        source = name.removesuffix(SUFFIX)
        if name not in frame.columns and name != source and source in frame.columns:
            made[name] = _indicator(~Rows(frame).cells(source).seen)
    return frame.assign(**made) if made else frame


def _indicator(gap: np.ndarray) -> np.ndarray:
    return np.where(gap, IS_GAP, IS_VALUE).astype(object)
