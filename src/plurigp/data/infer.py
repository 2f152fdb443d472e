"""Gives each column a kind from its dtype and values, with the reason in plain words."""

import os
import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from plurigp.data.cells import Cells, as_numbers, cells_of, distinct_levels, first_row, spells_numbers, texts_to_numbers
from plurigp.data.column import ASIDE, Column
from plurigp.data.frames import to_frame
from plurigp.data.kinds import kind_of, two_levels
from plurigp.data.schema import Schema, changed, declaration, known_names, load_schema, trials_aside
from plurigp.data.wording import amount, listing, show
from plurigp.types import DataError

MOST_LEVELS = 50  # more than this many levels are not one categorical column unless declared so
SMALL_COUNT = 50
ID_ROWS = 20  # an unbroken rise of whole numbers is an id only in tables of at least this many rows

_ID_NAME = re.compile(r"(?:^|[^a-z])(?:id|ids|no|nr|num|number|nbr|sno|index|idx|key|mrn|uuid|guid|row|unnamed: \d+)$", re.I)
_ID_CAMEL = re.compile(r"[a-z](?:Id|ID|No|Nr)$")
_PERCENT_NAME = re.compile(r"%|percent|pct", re.I)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_TIME = r"(?:[T ]\s*\d{1,2}:\d{2}.*)?"
_DATE = re.compile(
    rf"\s*(?:\d{{4}}[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01]){_TIME}"
    rf"|(?:0?[1-9]|[12]\d|3[01])([-/.])(?:0?[1-9]|[12]\d|3[01])\1(?:\d{{4}}|\d{{2}}){_TIME}"
    rf"|\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}{_TIME}|{_MONTH} \d{{1,2}},? \d{{4}}{_TIME})\s*",
    re.I,
)
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_PERCENT = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*%\s*")

Overrides = Mapping | Schema | str | os.PathLike | None


def infer_schema(frame: object, overrides: Overrides = None) -> Schema:
    """A kind and its reason for every column; what is declared in `overrides` is checked and wins."""
    table = to_frame(frame)
    changes = _changes(overrides)
    known_names(changes, tuple(table.columns))
    columns = tuple(_column(table[name], changes.get(name)) for name in table.columns)
    return Schema(trials_aside(columns))


def _changes(overrides: Overrides) -> Mapping:
    """Overrides in any of their forms as {name: declaration}."""
    if overrides is None:
        return {}
    if isinstance(overrides, str | os.PathLike):
        overrides = load_schema(overrides)
    if isinstance(overrides, Schema):
        return {column.name: column for column in overrides}
    if not isinstance(overrides, Mapping):
        raise DataError(f"a schema is a mapping, a Schema or the path of a TOML file, not {show(type(overrides).__name__)}.")
    return overrides


def _column(series: pd.Series, change: object) -> Column:
    name = str(series.name)
    dtype = str(series.dtype)
    if change is None:
        kind, reason, levels = _guess(name, cells_of(series, name))
        return Column(name, kind, reason, levels, dtype=dtype)
    given = declaration(name, change)
    start = Column(name, str(given["kind"]), dtype=dtype) if "kind" in given else _column(series, None)
    column = changed(start, given)
    return column if column.kind == ASIDE else settled(column, cells_of(series, name))


def settled(column: Column, cells: Cells) -> Column:
    """A declared column completed and checked against its cells; with no cell observed it is set aside."""
    if not cells.seen.any():
        return Column(column.name, ASIDE, "no observed cell", dtype=column.dtype)
    return kind_of(column).settle(column, cells)


Guess = tuple[str, str, tuple]


def _guess(name: str, cells: Cells) -> Guess:
    """Kind, reason and levels of one column that nobody declared."""
    if not cells.seen.any():
        return ASIDE, "no observed cell", ()
    if cells.form == "date":
        return ASIDE, "dates or times; turn them into a number (days since a start) to use them", ()
    if cells.form == "number":
        as_numbers(cells, name)
    found = distinct_levels(cells)
    n_seen = int(cells.seen.sum())
    if len(found) == 1:
        return ASIDE, "constant: the same value in every observed cell", ()
    if cells.form == "bool" or _two_valued(cells, found, n_seen):
        levels = two_levels(found, cells.ordered)
        return "bernoulli", f"two values: {listing(_plain(levels))}", levels
    if cells.category or cells.form == "text" and not spells_numbers(cells):
        return _guess_text(name, cells, found, n_seen)
    prefix = "numbers stored as text; " if cells.form == "text" else ""
    kind, reason = _guess_numbers(name, as_numbers(cells, name)[cells.seen], len(cells.seen))
    return kind, prefix + reason, ()


def _two_valued(cells: Cells, found: list, n_seen: int) -> bool:
    """Two values; two lone numbers that are not 0 and 1 say too little to be called a yes/no column."""
    return len(found) == 2 and (n_seen > 2 or cells.form == "text" or found == [0, 1])


def _plain(levels: tuple) -> list:
    return [_Bare(level) for level in levels]


class _Bare:
    """A level shown without quotes where quotes would only be noise."""

    def __init__(self, level: object) -> None:
        self.level = level

    def __repr__(self) -> str:
        text = str(self.level)
        return text if text.isprintable() and text.strip() == text else repr(self.level)


def _guess_text(name: str, cells: Cells, found: list, n_seen: int) -> Guess:
    """Levels, ids, dates or free text."""
    if _all_match(_DATE, found):
        return ASIDE, "dates written as text; turn them into a number (days since a start) to use them", ()
    few = len(found) <= MOST_LEVELS and len(found) < max(n_seen, 2)
    if few and (cells.category or len(found) <= n_seen / 2 + 1):
        order = "; their order is not used yet" if cells.ordered else ""
        return "categorical", f"{len(found)} levels: {listing(_plain(tuple(found)), 5)}{order}", tuple(found)
    if _all_match(_COMMA, found):
        return ASIDE, "numbers with a decimal comma; write them with a point to use them", ()
    if _all_match(_PERCENT, found):
        return ASIDE, "numbers with a % sign; remove it and declare the column beta with bounds = [0, 100]", ()
    stray = _stray_text(cells)
    if stray:
        return ASIDE, stray, ()
    if len(found) == n_seen and not any(" " in str(text).strip() for text in found):
        return ASIDE, "ids: a different text in every row", ()
    if cells.category:
        return ASIDE, f"{len(found)} levels, more than {MOST_LEVELS}; declare it categorical to use it", ()
    return ASIDE, f"free text: {len(found)} different texts in {n_seen} cells; declare it categorical to use it", ()


def _all_match(pattern: re.Pattern, found: list) -> bool:
    return all(isinstance(text, str) and pattern.fullmatch(text) for text in found)


def _stray_text(cells: Cells) -> str:
    """Says where the first text stands when most cells are numbers."""
    is_text = np.isnan(texts_to_numbers(cells.distinct))
    counts = np.bincount(cells.codes[cells.seen], minlength=len(is_text))
    n_text = int(counts[is_text].sum())
    if n_text > 0.2 * counts.sum():
        return ""
    code = int(np.argmax(is_text))
    return (
        f"numbers, but {n_text} cells hold text (the first, {show(cells.distinct[code])}, in row {first_row(cells, code)}); "
        "correct them or make them gaps, then it can be used"
    )


def _guess_numbers(name: str, numbers: np.ndarray, n_rows: int) -> tuple[str, str]:
    """Ids, counts, proportions or plain numbers; `numbers` are the observed ones in row order."""
    low, high = float(numbers.min()), float(numbers.max())
    n_distinct = len(np.unique(numbers))
    span = f"from {amount(low)} to {amount(high)}"
    whole = bool((numbers == np.floor(numbers)).all())
    if whole and _is_id(name, numbers, n_distinct, n_rows):
        return ASIDE, "ids: whole numbers that only name the row"
    if whole:
        codes = '; if they are codes, declare it "categorical"' if n_distinct <= 10 else ""
        if _is_count(numbers, low, high):
            return "poisson", f"whole numbers {span}, few and small{codes}"
        return "gaussian", f"whole numbers {span}{codes or _skew(numbers, low)}"
    if low >= 0 and high <= 1 and n_distinct >= min(10, len(numbers)):
        return "beta", f"numbers between 0 and 1, {n_distinct} different ones"
    hint = "; if they are percent, declare it beta with bounds = [0, 100]"
    percent = hint if _PERCENT_NAME.search(name) and low >= 0 and high <= 100 else ""
    return "gaussian", f"numbers {span}{percent or _skew(numbers, low)}"


def _is_id(name: str, numbers: np.ndarray, n_distinct: int, n_rows: int) -> bool:
    """Names of rows: nearly all different under a name like 'id', or different and rising without a break."""
    named = bool(_ID_NAME.search(name.strip()) or _ID_CAMEL.search(name.strip()))
    if n_distinct == len(numbers) and len(numbers) >= 3:
        steps = np.diff(numbers)
        rising = bool((steps > 0).all() or (steps < 0).all())
        return named or (rising and n_rows >= ID_ROWS)
    return named and n_distinct > max(100, 0.5 * len(numbers))


def _is_count(numbers: np.ndarray, low: float, high: float) -> bool:
    """Whole numbers from 0 or 1 up, mostly small and not too even, or with the variance of a Poisson."""
    mean = float(numbers.mean())
    if low < 0 or mean == 0:
        return False
    dispersion = float(numbers.var()) / mean
    mostly_small = high <= SMALL_COUNT or (np.quantile(numbers, 0.95) <= SMALL_COUNT and high <= 4 * SMALL_COUNT)
    if mostly_small and low <= 1:
        return dispersion >= (0.25 if low == 0 else 0.5)
    return low <= mean / 2 and 0.7 <= dispersion <= 1.3


def _skew(numbers: np.ndarray, low: float) -> str:
    """A word about a long right tail, which a gaussian fits badly."""
    scaled = numbers / (np.abs(numbers).max() or 1.0)
    sd = scaled.std()
    if low < 0 or sd == 0 or float((((scaled - scaled.mean()) / sd) ** 3).mean()) < 3:
        return ""
    return "; strongly skewed to the right, consider its logarithm"
