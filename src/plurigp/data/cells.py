"""ColumnCells: the cells of one column in one plain form, whatever dtype they came in."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.core.text import at
from plurigp.core.types import DataError
from plurigp.data.column import Level

MAX_MAGNITUDE = 1e100
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_PADDED = re.compile(r"\s*[+-]?0[0-9]+\s*")
_GAP_WORDS = {"n/a", "#n/a", "na", "nan", "-nan", "#na", "<na>", "null", "#null!", "1.#ind", "-1.#ind"}
_DATE_TYPES = {"datetime", "datetime64", "date", "timedelta", "timedelta64", "time", "period"}
_NUMBER_TYPES = {"integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty"}


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """Gaps are False in `seen`, NaN in `numbers` and -1 in `codes`; what lay under them is gone."""

    form: str  # "number" "bool" "text" "date" "empty"
    seen: np.ndarray  # bool [N]
    numbers: np.ndarray | None = None  # float64 [N]: forms number and bool, unless a category dtype
    codes: np.ndarray | None = None  # int [N] into `distinct`: form text, and every category dtype
    distinct: tuple[Level, ...] = ()
    category: bool = False
    ordered: bool = False


class MisfitError(DataError):
    """Cells that another kind would take; `kinds` ends the message by naming it."""

    def __init__(self, message: str, misfit: str) -> None:
        super().__init__(message)
        self.misfit = misfit  # "text", "limit", "value", "more levels" or "fewer levels"


def refuse(wrong: np.ndarray, name: object, message: str, misfit: str = "") -> None:
    """Raises for the first row that is wrong [N]."""
    if wrong.any():
        text = f"{at(name, int(np.argmax(wrong)))}: {message}"
        raise MisfitError(text, misfit) if misfit else DataError(text)


def cells_of(series: pd.Series | np.ndarray, name: object = None) -> ColumnCells:
    """Parses a column of any dtype; cells that are neither number, text nor truth value are an error."""
    if isinstance(series, np.ndarray):
        return _of_objects(series, name)
    name, dtype = series.name if name is None else name, series.dtype
    if isinstance(dtype, pd.SparseDtype):
        return cells_of(pd.Series(np.asarray(series)), name)
    if isinstance(dtype, pd.CategoricalDtype):
        return _of_category(series)
    if pdt.is_complex_dtype(dtype):
        raise DataError(f'{at(name)}: Complex data not supported; keep the real part, or declare it "aside".')
    if pdt.is_numeric_dtype(dtype):  # bool too
        if isinstance(dtype, np.dtype):
            numbers = series.to_numpy(dtype=np.float64)  # not copied where it is float64 already
        else:
            numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return _of_numbers(numbers, "bool" if pdt.is_bool_dtype(dtype) else "number")
    if _holds_dates(dtype):
        return ColumnCells("date", series.notna().to_numpy(dtype=bool))
    if isinstance(dtype, pd.StringDtype):
        return _of_text(series)
    return _of_objects(series.to_numpy(dtype=object), name)


def _holds_dates(dtype: Any) -> bool:
    return pdt.is_datetime64_any_dtype(dtype) or pdt.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype)


def _of_numbers(numbers: np.ndarray, form: str) -> ColumnCells:
    seen = ~np.isnan(numbers)
    return ColumnCells(form if seen.any() else "empty", seen, numbers)


def _of_text(values: Any) -> ColumnCells:
    codes, distinct = pd.factorize(values)
    return _of_codes(codes, [str(text) for text in distinct])


def _of_category(series: pd.Series) -> ColumnCells:
    categories = series.cat.categories
    if _holds_dates(categories.dtype):
        return ColumnCells("date", series.notna().to_numpy(dtype=bool))
    codes = series.cat.codes.to_numpy().astype(np.int64)
    levels = [plain_level(value) for value in categories.tolist()]
    return _of_codes(codes, levels, category=True, ordered=bool(series.cat.ordered))


def _of_codes(codes: np.ndarray, distinct: list, **flags: bool) -> ColumnCells:
    """Blank texts become gaps, levels without a cell are dropped, and the codes are renumbered."""
    held = np.zeros(len(distinct) + 1, dtype=bool)
    held[codes] = True
    blank = np.array([isinstance(level, str) and not level.strip() for level in distinct], dtype=bool)
    keep = held[:-1] & ~blank
    codes = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)[codes]
    levels = tuple(level for level, kept in zip(distinct, keep, strict=True) if kept)
    form = "text" if levels else "empty"
    if levels and not any(isinstance(level, str) for level in levels):
        form = "bool" if all(isinstance(level, bool) for level in levels) else "number"
    return ColumnCells(form, codes >= 0, None, codes, levels, **flags)


def _of_objects(values: np.ndarray, name: object) -> ColumnCells:
    """Python objects: text, numbers and truth values in any mixture; anything else is an error."""
    what = pdt.infer_dtype(values, skipna=True)
    if what == "string":
        return _of_text(values)
    seen = ~pd.isna(values)
    if what in _DATE_TYPES:
        return ColumnCells("date", seen)
    if what not in _NUMBER_TYPES:
        odd = np.array([not isinstance(value, str | np.bool_ | Real | Decimal) for value in values]) & seen
        finding = f"a cell of type {type(values[np.argmax(odd)]).__name__} is neither number nor text"
        refuse(odd, name, f'{finding}; turn it into one, or declare the column "aside".')
        if any(isinstance(value, str) for value in values[seen]):
            spelled = [spell(v) if s else None for v, s in zip(values, seen, strict=True)]
            return _of_text(np.array(spelled, dtype=object))
    numbers = np.full(len(values), np.nan)
    numbers[seen] = _floats(values[seen])
    return _of_numbers(numbers, "bool" if what == "boolean" else "number")


def _floats(values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(np.float64)
    except OverflowError:
        return np.array([_float(value) for value in values])


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond 1e308
        return np.inf


def plain_level(value: object) -> Level:
    """One raw value as a level: whole floats become integers (1 and 1.0 are one level), intervals become text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        number = float(value)
        return int(number) if number.is_integer() else number
    return str(value)


def spell(value: object) -> str:
    """A level or number as the text that a CSV file would hold."""
    level = plain_level(value)
    return level if isinstance(level, str) else repr(level)


def level_number(level: Level) -> float:
    """The number that a level is or spells, NaN where it is other text."""
    if not isinstance(level, str):
        return _float(level)
    return float(level) if _NUMBER.fullmatch(level) else np.nan


def is_gap_word(level: Level) -> bool:
    """Whether a text is a spelling of "not available" that no number and few levels share."""
    return isinstance(level, str) and level.strip().lower() in _GAP_WORDS


def level_numbers(levels: tuple[Level, ...]) -> np.ndarray:
    """`level_number` of each."""
    return np.array([level_number(level) for level in levels], dtype=np.float64)


def spells_numbers(cells: ColumnCells) -> bool:
    """Whether every text is a number; codes with leading zeros ("007") are not."""
    if any(isinstance(text, str) and _PADDED.fullmatch(text) for text in cells.distinct):
        return False
    return bool(cells.distinct) and not np.isnan(level_numbers(cells.distinct)).any()


def value_at(cells: ColumnCells, row: int) -> Level:
    """The level that an observed cell holds."""
    if cells.codes is not None:
        return cells.distinct[int(cells.codes[row])]
    assert cells.numbers is not None  # an observed cell is a number or a level
    return _number_levels(cells.numbers[row : row + 1], cells)[0]


def as_numbers(cells: ColumnCells, name: object) -> np.ndarray:
    """The cells as numbers, NaN at gaps; text, dates, infinities and absurd sizes are errors."""
    if cells.form == "date":
        raise DataError(f'{at(name)}: dates are not numbers; turn them into days since a start, or declare it "aside".')
    if cells.codes is None:
        numbers = cells.numbers if cells.numbers is not None else np.full(len(cells.seen), np.nan)
    else:
        numbers = np.append(level_numbers(cells.distinct), np.nan)[cells.codes]
        words = [str(level).lstrip() for level in cells.distinct if np.isnan(level_number(level))]
        limits = all(word.startswith(("<", ">", "≤", "≥")) for word in words)
        finding = f"{'a limit' if limits else 'text'} in a column of numbers; correct it, make it a gap"
        refuse(np.isnan(numbers) & cells.seen, name, finding, misfit="limit" if limits else "text")
    refuse(np.isinf(numbers), name, "the value is infinite; correct it or make it a gap.")
    sentinel = f"the value is beyond {MAX_MAGNITUDE:.0e} (a sentinel?); correct it or make it a gap."
    refuse(np.abs(numbers) > MAX_MAGNITUDE, name, sentinel)
    return numbers


def are_among(levels: Sequence[Level], values: Iterable[Level]) -> np.ndarray:
    """Which of the levels are one of the values [L]: as numbers where both spell numbers, else as text."""
    known = {_shared(value) for value in values}
    return np.array([_shared(level) in known for level in levels], dtype=bool)


def without_values(cells: ColumnCells, values: Sequence[Level]) -> ColumnCells:
    """The cells, with those that hold one of the values as gaps."""
    if not values or cells.form in ("date", "empty"):
        return cells
    if cells.codes is None:
        numbers = np.asarray(cells.numbers)
        return _of_numbers(np.where(np.isin(numbers, level_numbers(tuple(values))), np.nan, numbers), cells.form)
    gone = np.append(are_among(cells.distinct, values), False)[cells.codes]
    codes = np.where(gone, -1, cells.codes)
    return _of_codes(codes, list(cells.distinct), category=cells.category, ordered=cells.ordered)


def n_distinct(cells: ColumnCells) -> int:
    """How many distinct values occur."""
    if cells.codes is not None:
        return len(cells.distinct)
    return 0 if cells.numbers is None else len(np.unique(cells.numbers[cells.seen]))


def distinct_levels(cells: ColumnCells) -> list[Level]:
    """The levels that occur: an ordered category's own order, else numbers by size and text by alphabet."""
    if cells.codes is None:
        return [] if cells.numbers is None else _number_levels(np.unique(cells.numbers[cells.seen]), cells)
    levels = list(cells.distinct)
    if cells.ordered:
        return levels
    numbers = level_numbers(cells.distinct)
    if not np.isnan(numbers).any():
        return [levels[i] for i in np.argsort(numbers, kind="stable")]
    return sorted(levels, key=lambda level: (isinstance(level, str), str(level)))


def level_codes(cells: ColumnCells, levels: tuple[Level, ...]) -> np.ndarray:
    """The place of each cell's value among the levels: NaN at gaps, -1 where the value is not among them.

    1, 1.0, True and the text "1" are one level unless the levels themselves tell them apart.
    """
    if cells.codes is not None:
        return np.append(_places(cells.distinct, levels), np.nan)[cells.codes]
    found = np.full(len(cells.seen), np.nan)
    if cells.numbers is not None and cells.seen.any():
        values, inverse = np.unique(cells.numbers[cells.seen], return_inverse=True)
        found[cells.seen] = _places(tuple(_number_levels(values, cells)), levels)[inverse]
    return found


def _number_levels(values: np.ndarray, cells: ColumnCells) -> list[Level]:
    return [bool(v) for v in values] if cells.form == "bool" else [plain_level(v) for v in values]


def _places(values: tuple[Level, ...], levels: tuple[Level, ...]) -> np.ndarray:
    exact, shared = _spellings(levels)
    places = [exact.get((isinstance(v, str), v)) for v in values]
    places = [shared.get(_shared(v), -1) if p is None else p for p, v in zip(places, values, strict=True)]
    return np.array(places, dtype=np.float64)


@lru_cache(maxsize=10_000)  # a model asks for the same columns with every row it is given
def _spellings(levels: tuple[Level, ...]) -> tuple[dict[object, int], dict[object, int]]:
    """The place of every level as it stands, and of what its other spellings share (-1 where two levels share it)."""
    exact: dict[object, int] = {(isinstance(level, str), level): place for place, level in enumerate(levels)}
    shared: dict[object, int] = {}
    for place, level in enumerate(levels):
        key = _shared(level)
        shared[key] = -1 if key in shared else place
    return exact, shared


def _shared(level: Level) -> object:
    """What two spellings of one value share: the number or truth value, else the text."""
    number = level_number(level)
    if isinstance(level, str) and np.isnan(number):
        return {"true": 1.0, "false": 0.0}.get(level.strip().lower(), level)
    return number
