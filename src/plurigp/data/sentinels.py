"""Numbers that stand for a gap (999, -1): likely ones are named, declared ones become gaps."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.core.text import amount, at, listing, printable, show
from plurigp.core.types import DataError
from plurigp.data.cells import cells_of, level_number, without_values
from plurigp.data.column import Column
from plurigp.data.frames import check_present
from plurigp.data.kinds import kind_of

_NINES = [float("9" * n) for n in range(2, 8)]
CODES = np.array([*_NINES, 777, 888, 7777, 8888, -1, -7, -8, -9, -77, -88, *(-n for n in _NINES), -777, -888])
MIN_REST = 10  # cells other than codes that a column must have to tell
MIN_VALUES = 5  # distinct ones, for a negative code below a column that has no other negative number

Missing = Sequence[object] | Mapping[str, Sequence[object]]


class SentinelWarning(UserWarning):
    """Numbers of a column that seem to stand for a gap."""


def likely_sentinels(numbers: np.ndarray) -> list[float]:
    """The codes that occur at least twice and lie outside the other numbers [N] by more than their whole range, or
    below zero where no other number does; NaN is a gap."""
    numbers = numbers[~np.isnan(numbers)]
    is_code = np.isin(numbers, CODES)
    rest = numbers[~is_code]
    if len(rest) < MIN_REST or not is_code.any():
        return []
    low, high = float(rest.min()), float(rest.max())
    spread = high - low
    signed = low >= 0 and len(np.unique(rest)) >= MIN_VALUES
    values, counts = np.unique(numbers[is_code], return_counts=True)
    far = (values - high > spread) | (low - values > spread) | (signed & (values < 0))
    return [float(value) for value in values[far & (counts > 1)]]


def suspected_codes(column: Column, numbers: np.ndarray) -> list[float]:
    """`likely_sentinels` of a column of single numbers [N]; other kinds have none."""
    kind = kind_of(column)
    if kind.has_levels or kind.has_bounds or column.trials is not None:
        return []
    return likely_sentinels(numbers)


def warn_sentinels(column: Column, numbers: np.ndarray) -> None:
    """Warns by column, row and code; nothing is dropped. Codes come from a fixed list and are no measurements."""
    if found := suspected_codes(column, numbers):
        codes = listing(map(amount, found))
        n, first = int(np.isin(numbers, found).sum()), int(np.argmax(np.isin(numbers, found)))
        warnings.warn(
            f"{at(column.name, first)}: {n} cells hold {codes}, far from the rest of the column, and are used as "
            f"numbers. If they stand for gaps, say so: --missing {printable(column.name, 80)}={amount(found[0])}, "
            f"missing = [{codes}] in the schema file, or "
            f"read_table(path, missing={{{show(column.name, 80)}: [{codes}]}}).",
            SentinelWarning,
            stacklevel=2,
        )


def with_gaps_for(frame: pd.DataFrame, missing: Missing | None) -> pd.DataFrame:
    """The frame with the declared values as gaps: in every column, or of {column: values} in these."""
    if not missing:
        return frame
    if isinstance(missing, str) or not isinstance(missing, Sequence | Mapping):
        raise DataError("missing must be a list of values or a mapping of columns to such lists; write missing=[999].")
    declared = missing if isinstance(missing, Mapping) else dict.fromkeys(frame.columns, missing)
    check_present(declared, frame.columns)
    frame = frame.copy(deep=False)
    for name, values in declared.items():
        column = frame[name]
        _empty(frame, name, _holds(column, [values] if isinstance(values, str | int | float) else values))
    return frame


def with_gaps_of(frame: pd.DataFrame, columns: Iterable[Column]) -> pd.DataFrame:
    """The frame with the values that these columns declare missing as gaps, as a model of them reads it."""
    declared = [column for column in columns if column.missing]
    frame = frame.copy(deep=False) if declared else frame
    for column in declared:
        for name in (column.name, column.companion):
            if name is not None and name in frame.columns:
                cells = cells_of(frame[name], name)
                _empty(frame, name, cells.seen & ~without_values(cells, column.missing).seen)
    return frame


def _empty(frame: pd.DataFrame, name: str, gone: np.ndarray) -> None:
    """Make cells of one column gaps, in place."""
    if gone.any():
        column = frame[name]
        whole = pdt.is_integer_dtype(column.dtype) and isinstance(column.dtype, np.dtype)
        column = (column.astype(np.float64) if whole else column).mask(gone)
        frame.isetitem(frame.columns.get_loc(name), column.array)  # type: ignore[arg-type]  # names differ


def _holds(column: pd.Series, values: Iterable[object]) -> np.ndarray:
    """Where a cell is one of the values [N]: as a number where both are, else as text."""
    if pdt.is_numeric_dtype(column.dtype):
        numbers = [level_number(v if isinstance(v, int | float) else str(v)) for v in values]
        return column.isin([number for number in numbers if not np.isnan(number)]).to_numpy(dtype=bool)
    return column.astype(object).map(str).isin([str(v) for v in values]).to_numpy(dtype=bool)
