"""Gives each column a kind from its dtype and values, with the reason in plain words."""

import os
import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from plurigp.core.text import bare, file_name, listing, show
from plurigp.core.types import DataError
from plurigp.data.cells import (
    Cells,
    as_numbers,
    cells_of,
    distinct_levels,
    first_row,
    level_numbers,
    n_distinct,
    spells_numbers,
)
from plurigp.data.column import ASIDE, Column, Level
from plurigp.data.frames import to_rows
from plurigp.data.kinds import read_column, settled
from plurigp.data.levels import two_levels
from plurigp.data.limits import text_bounds
from plurigp.data.schema import Schema, changed, check_names, companions_aside, declaration, load_schema

MOST_LEVELS = 50  # more than this many levels are not one categorical column unless declared so
SMALL_COUNT = 50
MANY_ZEROS, HEAP = 0.05, 0.3  # shares of the cells
LONG_TAIL = 3.0  # skewness
HEAVY = 12.0  # excess kurtosis
OVERDISPERSED = 3.0  # times a Poisson's variance: more than a map usually explains, and the Poisson is a limit of it
ID_ROWS = 20  # an unbroken rise of whole numbers is an id only in tables of at least this many rows

_ID_WORDS = "id|ids|no|nr|num|number|nbr|sno|index|idx|key|mrn|uuid|guid|row"
_ID_NAME = re.compile(rf"(?:^|[^a-z])(?:{_ID_WORDS}|unnamed: \d+)$", re.I)
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


def infer_schema(frame: object, overrides: object = None) -> Schema:
    """A kind and its reason for every column; what is declared in `overrides` wins and is checked against the cells.

    `overrides`: a mapping of names to kinds or settings, a Schema, or the path of a TOML file.
    """
    table = to_rows(frame)
    changes, source = _changes(overrides)
    check_names(changes, tuple(table.columns), source)
    columns = companions_aside(tuple(_column(table[name], changes.get(name)) for name in table.columns))
    for column in columns:
        if column.name in changes and column.kind != ASIDE:
            read_column(column, cells_of(table[column.name]), table)
    return Schema(columns)


def _changes(overrides: object) -> tuple[Mapping, str]:
    """Overrides in any of their forms as {name: declaration}, and what to call them in errors."""
    if overrides is None:
        return {}, ""
    if isinstance(overrides, str | os.PathLike):
        return {column.name: column for column in load_schema(overrides)}, file_name(overrides)
    if isinstance(overrides, Schema):
        return {column.name: column for column in overrides}, "the schema"
    if isinstance(overrides, Mapping):
        return {str(name): change for name, change in overrides.items()}, "the schema"
    given = show(type(overrides).__name__)
    raise DataError(f"a schema is a mapping, a Schema or the path of a TOML file, not {given}; pass one of these.")


def _column(series: pd.Series, change: object) -> Column:
    """One column, guessed or as declared."""
    name = str(series.name)
    given = {} if change is None else declaration(name, change)
    if given.get("kind") == ASIDE:  # its cells may be anything
        return changed(Column(name, ASIDE, dtype=str(series.dtype)), given)
    cells = cells_of(series)
    if "kind" in given:
        column = Column(name, given["kind"], dtype=str(series.dtype))
    else:
        column = Column(name, *_guess(name, cells), dtype=str(series.dtype))
    column = changed(column, given) if given else column
    return column if column.kind == ASIDE else settled(column, cells)


Guess = tuple[str, str, tuple[Level, ...]]


def _guess(name: str, cells: Cells) -> Guess:
    """Kind, reason and levels of one column that nobody declared."""
    if not cells.seen.any():
        return ASIDE, "no observed cell", ()
    if cells.form == "date":
        return ASIDE, "dates or times; to use them, turn them into a number such as days since a start", ()
    if cells.form == "number":
        as_numbers(cells, name)  # infinities and sentinels stop here
    n_values = n_distinct(cells)
    if n_values == 1:
        return ASIDE, "constant: the same value in every observed cell", ()
    if n_values == 2 and _yes_or_no(cells):
        levels = two_levels(distinct_levels(cells), cells.ordered)
        return "bernoulli", f"two values: {listing(map(bare, levels))}", levels
    limited = _guess_limits(cells)
    if limited is not None:
        return limited
    if cells.category or (cells.form == "text" and not spells_numbers(cells)):
        return _guess_text(cells, distinct_levels(cells), int(cells.seen.sum()))
    prefix = "numbers stored as text: " if cells.form == "text" else ""
    kind, reason = _guess_numbers(name, as_numbers(cells, name)[cells.seen], n_values, len(cells.seen))
    return kind, prefix + reason, ()


def _yes_or_no(cells: Cells) -> bool:
    """Of two values; two lone numbers that are not 0 and 1 say too little to be called a yes/no column."""
    return cells.form != "number" or int(cells.seen.sum()) > 2 or distinct_levels(cells) == [0, 1]


def _guess_limits(cells: Cells) -> Guess | None:
    """Numbers as text of which some are limits; where some lie between two, at least half of the cells must be plain,
    or it is a set of bands."""
    if cells.category or cells.form != "text" or spells_numbers(cells):
        return None
    bounds = text_bounds(cells)
    if np.isnan(bounds).any():
        return None
    low, high = bounds[np.asarray(cells.codes)[cells.seen]].T
    exact = low[low == high]
    counts = {"below": np.isinf(low).sum(), "above": np.isinf(high).sum()}
    counts["between two"] = len(low) - len(exact) - sum(counts.values())
    fewest = 0.5 if counts["between two"] else 0.1
    if len(np.unique(exact)) < 3 or not fewest * len(low) <= len(exact) < len(low):
        return None
    parts = listing(f"{n} {where}" for where, n in counts.items() if n)
    skewed = (high > 0).all() and _is_lognormal(exact, float(exact.min()))
    kind, tail = ("censored_lognormal", " with a long right tail") if skewed else ("censored_gaussian", "")
    return kind, f"numbers{tail}, {len(exact)} of them known and the others up to a limit ({parts})", ()


def _guess_text(cells: Cells, found: list[Level], n_seen: int) -> Guess:
    """Levels, or one of the things that text can be and the model cannot use."""
    if _all_match(_DATE, found):
        return ASIDE, "dates written as text; to use them, turn them into a number such as days since a start", ()
    repeated = len(found) < n_seen and (cells.category or len(found) <= n_seen / 2 + 1)
    if repeated and len(found) <= MOST_LEVELS:
        kind, order = ("ordinal", " in order") if cells.ordered and len(found) > 2 else ("categorical", "")
        return kind, f"{len(found)} levels{order}: {listing(map(bare, found), 5)}", tuple(found)
    return ASIDE, _unusable(cells, found, n_seen), ()


def _unusable(cells: Cells, found: list[Level], n_seen: int) -> str:
    """Why a column of many texts is set aside, and what would make it usable."""
    if _all_match(_COMMA, found):
        return "numbers with a decimal comma; to use them, write a point"
    if _all_match(_PERCENT, found):
        return "numbers with a % sign; to use them, remove it and declare the column beta with bounds = [0, 100]"
    stray = _stray_text(cells)
    if stray:
        return stray
    if len(found) == n_seen and not any(" " in str(text).strip() for text in found):
        return "ids: a different value in every row"
    if len(found) <= n_seen / 5:
        return f"{len(found)} levels, more than {MOST_LEVELS}; to use it, declare it categorical"
    return f"free text: {len(found)} different texts in {n_seen} cells; to use it, declare it categorical"


def _all_match(pattern: re.Pattern, found: list[Level]) -> bool:
    return all(isinstance(text, str) and pattern.fullmatch(text) for text in found)


def _stray_text(cells: Cells) -> str:
    """Says where the first text stands when most cells are numbers."""
    is_text = np.isnan(level_numbers(cells.distinct))
    counts = np.bincount(np.asarray(cells.codes)[cells.seen], minlength=len(is_text))
    n_text = int(counts[is_text].sum())
    if n_text == 0 or n_text > 0.2 * counts.sum():
        return ""
    code = int(np.argmax(is_text))
    first = f"the first in row {first_row(cells, code)}"
    return f"mostly numbers, but {n_text} cells hold other text ({first}); to use it, correct them or make them gaps"


def _guess_numbers(name: str, numbers: np.ndarray, n_values: int, n_rows: int) -> tuple[str, str]:
    """Ids, counts, proportions or plain numbers; `numbers` are the observed ones in row order."""
    low, high = float(numbers.min()), float(numbers.max())
    some = f"{n_values} different ones"  # never the smallest or largest: those are cells, and reasons are kept
    whole = bool((numbers == np.floor(numbers)).all())
    if whole and _is_id(name, numbers, n_values, n_rows):
        return ASIDE, "ids: whole numbers that only name the row"
    if whole:
        codes = '; if they are codes, declare it "categorical"' if n_values <= 10 or _names_ids(name) else ""
        if _is_count(numbers, low, high):
            like = "few and small" if n_values <= 10 else "like counts"
            usual = np.minimum(numbers, np.quantile(numbers, 0.99))  # a single outlier is no spread
            times = float(usual.var() / max(usual.mean(), 1e-9))
            if len(numbers) >= ID_ROWS and times > OVERDISPERSED and not codes:
                spread = f"with {times:.0f} times the variance of a Poisson"
                return "negative_binomial", f"whole numbers, {some}, {like}, {spread}"
            return "poisson", f"whole numbers, {some}, {like}{codes}"
        if _is_zero_lognormal(numbers, low) and not codes:
            return "zero_lognormal", f"whole numbers, {_zeros(numbers)}, {some}"
        if _is_lognormal(numbers, low) and not codes:
            return "lognormal", f"positive whole numbers with a long right tail, {some}"
        if _is_heavy(numbers) and not codes:
            return "student_t", f"whole numbers, some of them far out, {some}"
        return "gaussian", f"whole numbers, {some}{codes}"
    if low >= 0 and high <= 1 and n_values >= min(10, len(numbers)) and not _only_small(numbers, low):
        return "beta", f"numbers between 0 and 1, {some}"
    hint = "; if they are percent, declare it beta with bounds = [0, 100]"
    percent = hint if _PERCENT_NAME.search(name) and low >= 0 and high <= 100 else ""
    if _is_zero_lognormal(numbers, low) and not percent:
        return "zero_lognormal", f"numbers, {_zeros(numbers)}, {some}"
    if _is_lognormal(numbers, low) and not percent:
        return "lognormal", f"positive numbers with a long right tail, {some}"
    if _is_heavy(numbers) and not percent:
        return "student_t", f"numbers, some of them far out, {some}"
    return "gaussian", f"numbers, {some}{percent}"


def _only_small(numbers: np.ndarray, low: float) -> bool:
    """Small amounts rather than proportions: a long tail, of which a hundredth at most gets as far as a half."""
    return _is_lognormal(numbers, low) and bool(np.quantile(numbers, 0.99) < 0.5)


def _is_id(name: str, numbers: np.ndarray, n_values: int, n_rows: int) -> bool:
    """Names of rows: mostly different under a name like 'id', or all different and steadily rising (or falling)."""
    if n_values == len(numbers) and len(numbers) >= 3:
        steps = np.diff(numbers)
        monotone = bool((steps > 0).all() or (steps < 0).all())
        return _names_ids(name) or (monotone and n_rows >= ID_ROWS)
    return _names_ids(name) and n_values > max(100, 0.5 * len(numbers))


def _names_ids(name: str) -> bool:
    return bool(_ID_NAME.search(name.strip()) or _ID_CAMEL.search(name.strip()))


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


def _skew(numbers: np.ndarray) -> float:
    scaled = numbers / (np.abs(numbers).max() or 1.0)
    sd = scaled.std()
    return 0.0 if sd == 0 else float((((scaled - scaled.mean()) / sd) ** 3).mean())


def _is_lognormal(numbers: np.ndarray, low: float) -> bool:
    """Above zero, clearly skewed, and much less so on the log scale."""
    return low > 0 and len(numbers) >= 20 and _skew(numbers) > 1.5 and abs(_skew(np.log(numbers))) < _skew(numbers) / 2


def _is_zero_lognormal(numbers: np.ndarray, low: float) -> bool:
    """Zeros below a long tail, or a heap of them: no gaussian has either, and a lognormal has no zero."""
    above = numbers[numbers > 0]
    if low != 0 or len(above) < 20:
        return False
    zeros = 1 - len(above) / len(numbers)
    tailed = _is_lognormal(above, float(above.min())) or (zeros >= MANY_ZEROS and _skew(numbers) > LONG_TAIL)
    return tailed or zeros >= HEAP


def _zeros(numbers: np.ndarray) -> str:
    share = (numbers == 0).mean()
    return f"{'a few' if share < 0.01 else f'{share:.0%}'} of them zero and the others with a long right tail"


def _is_heavy(numbers: np.ndarray) -> bool:
    """Values far out, though not all heaped on one: under a gaussian a single one would outweigh many others."""
    if len(numbers) < 20:
        return False
    scaled = (numbers - numbers.mean()) / (numbers.std() or 1.0)
    heaped = np.unique(numbers, return_counts=True)[1].max() >= HEAP * len(numbers)
    return bool((scaled**4).mean() - 3 > HEAVY) and not heaped
