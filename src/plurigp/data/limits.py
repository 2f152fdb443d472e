"""Censored cells: "<0.5", ">=200", "1-3" as text, two columns of bounds, or a time and whether it ended."""

import re

import numpy as np

from plurigp.data.cells import MAX_MAGNITUDE, ColumnCells, as_numbers, level_number, refuse, spell
from plurigp.data.column import Column
from plurigp.data.levels import NO_WORDS, YES_WORDS
from plurigp.data.numeric import (
    MAX_DEVIATIONS,
    POSITIVE,
    Units,
    check_domain,
    geometric_units,
    in_units,
    standard_units,
    standardise,
)

_N = r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"  # not padded: 01-05 is a date
_ONE_SIDE = re.compile(rf"\s*(<=|>=|<|>|≤|≥)\s*([+-]?{_N})\s*")
_BETWEEN = re.compile(rf"\s*([+-]?{_N})\s*(?:-|–|to)\s*([+-]?{_N})\s*")
NOT_YET = NO_WORDS | {"censored", "0", "0.0"}
HAPPENED = YES_WORDS | {"event", "died", "deceased", "1", "1.0"}


def bounds_of_text(text: str) -> tuple[float, float]:
    """Lower and upper bound that a text spells, equal for a plain number; NaN where it spells neither."""
    number = level_number(text)
    if not np.isnan(number):
        return number, number
    if one := _ONE_SIDE.fullmatch(text):
        limit = float(one[2])
        return (-np.inf, limit) if one[1] in "<=≤" else (limit, np.inf)
    between = _BETWEEN.fullmatch(text)
    if between and float(between[1]) < float(between[2]):
        return float(between[1]), float(between[2])
    return np.nan, np.nan


def text_of_bounds(low: float, high: float) -> str:
    """The text that spells these bounds: the inverse of `bounds_of_text`. One of the two must be finite."""
    if low == high:
        return spell(low)
    if np.isinf(low):
        return f"<{spell(high)}"
    return f">{spell(low)}" if np.isinf(high) else f"{spell(low)}-{spell(high)}"


def text_bounds(cells: ColumnCells) -> np.ndarray:
    """The bounds [L 2] that each distinct value of a column of text spells, NaN where it spells none."""
    spelled = [bounds_of_text(v) if isinstance(v, str) else (level_number(v),) * 2 for v in cells.distinct]
    return np.array(spelled, dtype=np.float64).reshape(-1, 2)


def as_bounds(cells: ColumnCells, name: object) -> np.ndarray:
    """Lower and upper bound of every cell [N 2]: equal where the value is known, infinite where open, NaN at gaps."""
    if cells.codes is None or cells.form != "text":
        return np.repeat(as_numbers(cells, name)[:, None], 2, axis=1)
    parsed = text_bounds(cells)
    wrong = np.isnan(parsed[:, 0]) | (np.where(np.isinf(parsed), 0, np.abs(parsed)) > MAX_MAGNITUDE).any(axis=1)
    finding = 'text that is neither a number nor a limit such as "<5", ">=5" or "1-3"; correct it or make it a gap.'
    refuse(np.append(wrong, False)[cells.codes], name, finding)
    return np.append(parsed, [[np.nan, np.nan]], axis=0)[cells.codes]


def read_bounds(column: Column, cells: ColumnCells, upper: ColumnCells | None) -> np.ndarray:
    """Bounds from text, or from this column and the one named as `upper`; a gap in one of the two is an open end."""
    if upper is None:
        return as_bounds(cells, column.name)
    low, high = as_numbers(cells, column.name), as_numbers(upper, column.upper)
    refuse(low > high, column.name, "the lower bound exceeds the upper one; correct one of the two.")
    gap = np.isnan(low) & np.isnan(high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return np.where(gap[:, None], np.nan, np.stack([low, high], axis=1))


def read_positive_bounds(column: Column, cells: ColumnCells, upper: ColumnCells | None) -> np.ndarray:
    """The same for numbers above zero, whose lower bound is at least zero."""
    low, high = read_bounds(column, cells, upper).T
    return np.stack([np.maximum(low, 0.0), high], axis=1)


def read_times(column: Column, cells: ColumnCells, event: ColumnCells | None) -> np.ndarray:
    """Times to an event; where it has not happened yet the time is a lower bound."""
    bounds = read_positive_bounds(column, cells, None)
    check_domain(column.name, bounds, POSITIVE, column.kind)  # while the upper bounds are still the times
    if event is not None:
        known = ~np.isnan(bounds[:, 0])
        bounds[known & (read_events(event, column.event, known) == 0), 1] = np.inf
    return bounds


def read_events(cells: ColumnCells, name: object, needed: np.ndarray) -> np.ndarray:
    """1 where the event happened, 0 where not [N]; every cell that is needed must say, others may be NaN."""
    if cells.codes is None:
        numbers = np.full(len(needed), np.nan) if cells.numbers is None else cells.numbers
        said = np.where(np.isin(numbers, (0.0, 1.0)), numbers, np.nan)
    else:
        words = [str(value).strip().lower() for value in cells.distinct]
        meaning = [1.0 if word in HAPPENED else 0.0 if word in NOT_YET else np.nan for word in words]
        said = np.array([*meaning, np.nan])[cells.codes]
    refuse(needed & ~cells.seen, name, "a time without its event; fill it, or make both gaps.")
    silent = "the cell does not say whether the event happened; write 0 or 1, or no or yes."
    refuse(needed & np.isnan(said), name, silent)
    return said


def _middles(bounds: np.ndarray) -> np.ndarray:
    """One number per cell to measure units by [n 1]: the value, the limit, or the middle."""
    finite = np.isfinite(bounds)
    any_finite = finite.any(axis=1)
    if not any_finite.any():
        return np.ones((1, 1))
    sums = np.where(finite, bounds, 0.0).sum(axis=1)
    return (sums[any_finite] / finite.sum(axis=1)[any_finite])[:, None]


def bounded_units(column: Column, bounds: np.ndarray) -> Units:
    """Mean and sd of the values and limits."""
    return standard_units(column, _middles(bounds))


def geometric_bounded_units(column: Column, bounds: np.ndarray) -> Units:
    """Their geometric mean."""
    return geometric_units(column, _middles(np.where(bounds > 0, bounds, np.inf)))


def _with_log_unit(bounds: np.ndarray, coded: np.ndarray, units: Units) -> np.ndarray:
    exact = bounds[:, :1] == bounds[:, 1:]
    return np.concatenate([coded, np.where(exact, np.log(units.scale), 0.0)], axis=1)


def standardise_bounds(column: Column, bounds: np.ndarray, units: Units) -> np.ndarray:
    """Both bounds in standard deviations from the mean; an open end is MAX_DEVIATIONS away."""
    coded = standardise(column, np.where(np.isinf(bounds), units.shift, bounds), units)
    return _with_log_unit(bounds, np.where(np.isinf(bounds), np.sign(bounds) * MAX_DEVIATIONS, coded), units)


def bounds_in_units(column: Column, bounds: np.ndarray, units: Units) -> np.ndarray:
    """Both bounds as multiples of the geometric mean; open ends are as small and as large as float32 allows."""
    return _with_log_unit(bounds, in_units(column, bounds, units), units)
