"""Cells: one column's cells in one plain form, whatever dtype they came in."""

import re
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.data.column import Level
from plurigp.data.wording import at, show
from plurigp.types import DataError

LARGEST = 1e100
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_CODE = re.compile(r"\s*[+-]?0[0-9]+\s*")


@dataclass(frozen=True, eq=False)
class Cells:
    """Gaps are False in `seen`, NaN in `numbers` and -1 in `codes`; what lay under them is gone."""

    form: str  # "number" "bool" "text" "date" "empty"
    seen: np.ndarray  # bool [N]
    numbers: np.ndarray | None = None  # float64 [N]: forms number and bool, unless a category dtype
    codes: np.ndarray | None = None  # int [N] into `distinct`: form text, and every category dtype
    distinct: tuple[Level, ...] = ()
    category: bool = False
    ordered: bool = False


def cells_of(series: pd.Series, name: object = None) -> Cells:
    """Reads a column of any dtype; cells that are neither number, text nor truth value are an error."""
    name = series.name if name is None else name
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _of_category(series, name)
    if isinstance(dtype, pd.SparseDtype):
        return cells_of(series.sparse.to_dense(), name)
    if pdt.is_complex_dtype(dtype):
        raise DataError(f"{at(name)}: Complex data not supported. Keep the real part, or set the column aside.")
    if pdt.is_bool_dtype(dtype):
        return _of_numbers(series, "bool")
    if pdt.is_numeric_dtype(dtype):
        return _of_numbers(series, "number")
    if pdt.is_datetime64_any_dtype(dtype) or pdt.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return Cells("date", series.notna().to_numpy())
    if isinstance(dtype, pd.StringDtype):
        return _of_text(series.to_numpy(dtype=object, na_value=None))
    return _of_objects(series.to_numpy(dtype=object, na_value=None), name)


def _of_numbers(series: pd.Series, form: str) -> Cells:
    numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
    seen = ~np.isnan(numbers)
    return Cells(form if seen.any() else "empty", seen, numbers)


def _of_text(values: np.ndarray) -> Cells:
    codes, distinct = pd.factorize(values)
    blank = np.array([not text.strip() for text in distinct], dtype=bool)
    return _of_codes(codes, [str(text) for text in distinct], blank)


def _of_codes(codes: np.ndarray, distinct: list, drop: np.ndarray, **flags: bool) -> Cells:
    """Drops the levels that are gaps or hold no cell, and renumbers the codes."""
    held = np.zeros(len(distinct) + 1, dtype=bool)
    held[codes] = True
    keep = held[:-1] & ~drop
    renumber = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1)
    codes = renumber[codes]
    levels = tuple(level for level, kept in zip(distinct, keep, strict=True) if kept)
    form = "empty" if not levels else "text"
    if levels and all(isinstance(level, bool) for level in levels):
        form = "bool"
    elif levels and not any(isinstance(level, str | bool) for level in levels):
        form = "number"
    return Cells(form, codes >= 0, None, codes, levels, **flags)


def _of_category(series: pd.Series, name: object) -> Cells:
    categories = series.cat.categories
    if pdt.is_datetime64_any_dtype(categories.dtype) or pdt.is_timedelta64_dtype(categories.dtype):
        return Cells("date", series.notna().to_numpy())
    levels = category_levels(categories)
    blank = np.array([isinstance(level, str) and not level.strip() for level in levels], dtype=bool)
    codes = series.cat.codes.to_numpy().astype(np.int64)
    return _of_codes(codes, levels, blank, category=True, ordered=bool(series.cat.ordered))


def category_levels(categories: pd.Index) -> list[Level]:
    """Categories as levels: text, truth values and numbers as they are, anything else (intervals) as text."""
    return [plain_level(value) for value in categories.tolist()]


def plain_level(value: object) -> Level:
    """One raw value as a level: whole floats become integers, so that 1 and 1.0 are one level."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        return int(value) if np.isfinite(value) and value == int(value) else float(value)
    return str(value)


def _of_objects(values: np.ndarray, name: object) -> Cells:
    what = pdt.infer_dtype(values, skipna=True)
    if what == "string":
        return _of_text(values)
    seen = ~pd.isna(values)
    if what in ("datetime", "datetime64", "date", "timedelta", "timedelta64", "time", "period"):
        return Cells("date", seen)
    for row in np.flatnonzero(seen):
        if isinstance(values[row], complex) or not isinstance(values[row], str | np.bool_ | Real | Decimal):
            kind_of_cell = type(values[row]).__name__
            raise DataError(
                f"{at(name, int(row))}: a cell of type {kind_of_cell} is neither number nor text; "
                'turn it into one, or declare the column "aside".'
            )
    return _of_mixed(values, seen, what)


def _of_mixed(values: np.ndarray, seen: np.ndarray, what: str) -> Cells:
    """Numbers and truth values in an object column; with any text among them, everything is text."""
    if any(isinstance(value, str) for value in values[seen]):
        texts = np.array([spell(v) if s else None for v, s in zip(values, seen, strict=True)], dtype=object)
        return _of_text(texts)
    numbers = np.full(len(values), np.nan)
    numbers[seen] = [_float(value) for value in values[seen]]
    form = "empty" if not seen.any() else "bool" if what == "boolean" else "number"
    return Cells(form, ~np.isnan(numbers), numbers)


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # the caller let only numbers through
    except OverflowError:  # a whole number beyond 1e308
        return np.inf


def spell(value: object) -> str:
    """A level or number as the text a CSV file would hold."""
    level = plain_level(value)
    return level if isinstance(level, str) else repr(level)


def texts_to_numbers(texts: tuple[Level, ...]) -> np.ndarray:
    """The number each text spells; NaN where it spells none."""
    return np.array([_text_to_number(text) for text in texts], dtype=np.float64)


def _text_to_number(text: Level) -> float:
    if not isinstance(text, str):
        return float(text)
    return float(text) if _NUMBER.fullmatch(text) else np.nan


def spells_numbers(cells: Cells) -> bool:
    """Whether every text is a number; codes with leading zeros ("007") are names, not numbers."""
    if any(isinstance(text, str) and _CODE.fullmatch(text) for text in cells.distinct):
        return False
    return bool(cells.distinct) and not np.isnan(texts_to_numbers(cells.distinct)).any()


def first_row(cells: Cells, code: int) -> int:
    """The first row that holds this level."""
    assert cells.codes is not None
    return int(np.argmax(cells.codes == code))


def as_numbers(cells: Cells, name: object) -> np.ndarray:
    """The cells as numbers, NaN at gaps; text, dates, infinities and absurd sizes are errors."""
    if cells.form == "date":
        raise DataError(f'{at(name)}: holds dates, not numbers; turn them into days since a start, or declare it "aside".')
    if cells.codes is None:
        numbers = np.full(len(cells.seen), np.nan) if cells.numbers is None else cells.numbers
    else:
        parsed = texts_to_numbers(cells.distinct)
        if np.isnan(parsed).any():
            code = int(np.argmax(np.isnan(parsed)))
            raise DataError(
                f"{at(name, first_row(cells, code))}: {show(cells.distinct[code])} is text in a column of numbers; "
                'correct it, make it a gap, or declare the column "categorical" or "aside".'
            )
        numbers = np.append(parsed, np.nan)[cells.codes]
    return _finite(numbers, name)


def _finite(numbers: np.ndarray, name: object) -> np.ndarray:
    large = np.abs(numbers) > LARGEST
    if not large.any():
        return numbers
    row = int(np.argmax(large))
    value = numbers[row]
    finding = f"the value is {value}" if np.isinf(value) else f"the value {value:.3g} is too large (a sentinel?)"
    raise DataError(f"{at(name, row)}: {finding}; correct it or make it a gap.")


def distinct_levels(cells: Cells) -> list[Level]:
    """The levels that occur: a category dtype's own order, else numbers by size and text by alphabet."""
    if cells.codes is None:
        values = np.unique(cells.numbers[cells.seen]) if cells.numbers is not None else []
        return [bool(v) for v in values] if cells.form == "bool" else [plain_level(v) for v in values]
    levels = list(cells.distinct)
    if cells.category and cells.ordered:
        return levels
    numbers = texts_to_numbers(cells.distinct)
    if not np.isnan(numbers).any():
        return [levels[i] for i in np.argsort(numbers, kind="stable")]
    return sorted(levels, key=lambda level: (not isinstance(level, str), str(level)))


def level_codes(cells: Cells, levels: tuple[Level, ...]) -> np.ndarray:
    """The place of each cell's value among the levels: NaN at gaps, -1 where the value is not among them.

    1, 1.0, True and the text "1" are one level unless the levels themselves tell them apart.
    """
    if cells.form == "empty":
        return np.full(len(cells.seen), np.nan)
    if cells.codes is None:
        assert cells.numbers is not None
        values, inverse = np.unique(cells.numbers[cells.seen], return_inverse=True)
        distinct = tuple(bool(v) for v in values) if cells.form == "bool" else tuple(plain_level(v) for v in values)
        places = _places(distinct, levels)
        found = np.full(len(cells.seen), np.nan)
        found[cells.seen] = places[inverse]
        return found
    return np.append(_places(cells.distinct, levels), np.nan)[cells.codes]


def _places(values: tuple[Level, ...], levels: tuple[Level, ...]) -> np.ndarray:
    exact = {(isinstance(level, str), level): place for place, level in enumerate(levels)}
    loose: dict[object, int] = {}
    for place, level in enumerate(levels):
        key = _loose(level)
        loose[key] = -1 if key in loose else place
    return np.array([exact.get((isinstance(v, str), v), loose.get(_loose(v), -1)) for v in values], dtype=np.float64)


def _loose(level: Level) -> object:
    """What two spellings of one value share: the number, the truth value, else the text."""
    if isinstance(level, str):
        number = _text_to_number(level)
        if not np.isnan(number):
            return number
        lower = level.strip().lower()
        return {"true": 1.0, "false": 0.0}.get(lower, level)
    return float(level)
