"""Proposes a kind for each column from its dtype and values, with the reason in plain words.

The one module besides `kinds` that knows kinds by name: it says which cells make which kind likely.
"""

import os
import re
from collections.abc import Mapping, Sequence

import numpy as np

from plurigp.core.text import bare, file_name, listing, show
from plurigp.core.types import DataError
from plurigp.data.cells import (
    ColumnCells,
    as_numbers,
    distinct_levels,
    is_gap_word,
    level_numbers,
    n_distinct,
    spells_numbers,
    without_values,
)
from plurigp.data.column import ASIDE, Column, Level
from plurigp.data.kinds import settled
from plurigp.data.levels import two_levels
from plurigp.data.limits import text_bounds
from plurigp.data.rows import Rows, to_rows
from plurigp.data.schema import Schema, changed, check_names, companions_aside, declaration, load_schema

MAX_LEVELS = 50  # more than this many levels are not one categorical column unless declared so
SMALL_COUNT = 50
MANY_ZEROS, HEAPED = 0.05, 0.3  # shares of the cells
LONG_TAIL_SKEWNESS = 3.0
HEAVY_EXCESS_KURTOSIS = 12.0
OVERDISPERSION = 3.0  # times a Poisson's variance: more than a map usually explains, and the Poisson is a limit of it
MIN_CELLS = 20  # fewer cells say nothing of a distribution's shape, nor whether rising whole numbers are ids

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
_THOUSANDS = r"\d{1,3}(?:[,'’ \u00a0\u202f]\d{3})+(?:\.\d+)?"
_PLAIN = re.compile(r"[+-]?\d+(?:\.\d+)?")
_GROUPED = re.compile(rf"\s*[+-]?(?:{_THOUSANDS}|\d+(?:\.\d+)?)\s*")
_CURRENCY = re.compile(
    rf"\s*[+-]?(?:[$€£¥]|[A-Z]{{3}} )?\s*[+-]?(?:{_THOUSANDS}|\d+(?:[.,]\d+)?)\s*(?:[$€£¥]| ?[A-Z]{{3}})?\s*"
)
_MONEY = re.compile(r"[$€£¥]|\b(?:USD|EUR|GBP|CHF|JPY|SEK|NOK|DKK)\b")
_YES_OR_NO = {"yes": 1, "y": 1, "true": 1, "t": 1, "1": 1, "no": 0, "n": 0, "false": 0, "f": 0, "0": 0}
_PERCENT = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*%\s*")


def infer_schema(frame: object, overrides: object = None) -> Schema:
    """A kind and its reason for every column; what is declared in `overrides` wins and is checked against the cells.

    `overrides`: a mapping of names to kinds or settings, a Schema, or the path of a TOML file.
    """
    rows = to_rows(frame)
    changes, source = _changes(overrides)
    check_names(changes, tuple(rows.columns), source)
    columns = companions_aside(tuple(_column(rows, name, changes.get(name)) for name in rows.columns))
    for column in columns:
        if column.name in changes and column.kind != ASIDE:
            rows.numbers(column)
    return Schema(columns)


def _changes(overrides: object) -> tuple[Mapping, str]:
    """Overrides in any of their forms as {name: declaration}, and what to call them in errors."""
    if isinstance(overrides, str | os.PathLike):
        return {column.name: column for column in load_schema(overrides)}, file_name(overrides)
    if isinstance(overrides, Schema):
        return {column.name: column for column in overrides}, "the schema"
    if isinstance(overrides, Mapping) or overrides is None:
        return {str(name): change for name, change in (overrides or {}).items()}, "the schema"
    given = show(type(overrides).__name__)
    raise DataError(f"a schema is a mapping, a Schema or the path of a TOML file, not {given}; pass one of these.")


def _column(rows: Rows, name: str, change: object) -> Column:
    """One column, proposed or as declared."""
    dtype = str(rows[name].dtype)
    given = {} if change is None else declaration(name, change)
    if given.get("kind") == ASIDE:  # its cells may be anything
        return changed(Column(name, ASIDE, dtype=dtype), given)
    cells = without_values(rows.cells(name), given.get("missing", ()))
    kind, reason, levels = (given["kind"], "", ()) if "kind" in given else _propose(name, cells)
    column = Column(name, kind, reason, levels, dtype=dtype)
    column = changed(column, given) if given else column
    return column if column.kind == ASIDE else settled(column, cells)


Proposal = tuple[str, str, tuple[Level, ...]]  # kind, reason, levels


def _propose(name: str, cells: ColumnCells) -> Proposal:
    """For a column that nobody declared."""
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
    if (censored := _propose_censored(cells)) is not None:
        return censored
    if cells.category or (cells.form == "text" and not spells_numbers(cells)):
        return _propose_levels(cells, distinct_levels(cells), int(cells.seen.sum()))
    prefix = "numbers stored as text: " if cells.form == "text" else ""
    kind, reason = _propose_numbers(name, as_numbers(cells, name)[cells.seen], n_values, len(cells.seen))
    return kind, prefix + reason, ()


def _yes_or_no(cells: ColumnCells) -> bool:
    """Of two values; two lone numbers other than 0 and 1 are too little to call a column yes/no."""
    return cells.form != "number" or int(cells.seen.sum()) > 2 or distinct_levels(cells) == [0, 1]


def _propose_censored(cells: ColumnCells) -> Proposal | None:
    """Numbers as text of which some are limits; where some are intervals, at least half of the cells must be plain
    numbers, or the column is a set of bands."""
    if cells.category or cells.form != "text" or spells_numbers(cells):
        return None
    bounds = text_bounds(cells)
    if np.isnan(bounds).any():
        return None
    low, high = bounds[np.asarray(cells.codes)[cells.seen]].T
    exact = low[low == high]
    counts = {"below": np.isinf(low).sum(), "above": np.isinf(high).sum()}
    counts["between two"] = len(low) - len(exact) - sum(counts.values())
    min_exact = 0.5 if counts["between two"] else 0.1
    if len(np.unique(exact)) < 3 or not min_exact * len(low) <= len(exact) < len(low):
        return None
    parts = listing(f"{n} {where}" for where, n in counts.items() if n)
    skewed = (high > 0).all() and _is_lognormal(exact, float(exact.min()))
    kind, tail = ("censored_lognormal", " with a long right tail") if skewed else ("censored_gaussian", "")
    return kind, f"numeric{tail}, {len(exact)} values and the others known up to a limit ({parts})", ()


def _propose_levels(cells: ColumnCells, found: list[Level], n_seen: int) -> Proposal:
    """Levels, or one of the things that text can be and the model cannot use."""
    if _all_match(_DATE, found):
        return ASIDE, "dates written as text; to use them, turn them into a number such as days since a start", ()
    if written := _written_otherwise(cells, found):
        return ASIDE, written, ()
    repeated = len(found) < n_seen and (cells.category or len(found) <= n_seen / 2 + 1)
    if repeated and len(found) <= MAX_LEVELS:
        kind, order = ("ordinal", " in order") if cells.ordered and len(found) > 2 else ("categorical", "")
        gap = next((f"; if {bare(level)} is a gap, leave the cell empty" for level in found if is_gap_word(level)), "")
        return kind, f"{len(found)} levels{order}: {listing(map(bare, found), 5)}{gap}", tuple(found)
    return ASIDE, _unusable(cells, found, n_seen), ()


def _written_otherwise(cells: ColumnCells, found: list[Level]) -> str:
    """Why texts that are numbers with thousands separators or currency signs, or yes and no spelled in several ways,
    are set aside: as levels they would be taken apart."""
    texts = [text.strip() for text in found if isinstance(text, str)]
    if cells.category or len(texts) < max(3, len(found)):
        return ""
    if _all_match(_GROUPED, found) and not all(map(_PLAIN.fullmatch, texts)):
        grouped = [not _PLAIN.fullmatch(str(text).strip()) for text in cells.distinct]
        return f"numbers with thousands separators ({_first(cells, grouped)}); to use them, remove these"
    if _all_match(_CURRENCY, found) and any(map(_MONEY.search, texts)):
        signs = [_MONEY.search(str(text)) is not None for text in cells.distinct]
        return f"numbers with a currency sign ({_first(cells, signs)}); to use them, write the numbers alone"
    meanings = {_YES_OR_NO.get(text.lower(), -1) for text in texts}
    if meanings == {0, 1}:
        known: dict[int, str] = {}
        other = [
            known.setdefault(_YES_OR_NO[text.lower()], text) != text
            for text in map(str.strip, map(str, cells.distinct))
        ]
        return f"yes and no in several spellings ({_first(cells, other)}); to use it, spell each in one way"
    return ""


def _first(cells: ColumnCells, wrong: Sequence[bool] | np.ndarray) -> str:
    """Where the first of these distinct texts stands."""
    return f"the first in row {np.argmax(np.append(wrong, False)[cells.codes])}"


def _unusable(cells: ColumnCells, found: list[Level], n_seen: int) -> str:
    """Why a column of many texts is set aside, and what would make it usable."""
    if _all_match(_COMMA, found):
        return "numbers with a decimal comma; to use them, write a point or pass decimal=',' (--decimal ,)"
    if _all_match(_PERCENT, found):
        return "numbers with a % sign; to use them, remove it and declare the column beta with bounds = [0, 100]"
    if stray := _stray_text(cells):
        return stray
    if len(found) == n_seen and not any(" " in str(text).strip() for text in found):
        return "ids: a distinct value in every row"
    if len(found) <= n_seen / 5:
        return f"{len(found)} levels, more than {MAX_LEVELS}; to use it, declare it categorical"
    return f"free text: {len(found):,} distinct texts in {n_seen:,} cells; to use it, declare it categorical"


def _all_match(pattern: re.Pattern, found: list[Level]) -> bool:
    return all(isinstance(text, str) and pattern.fullmatch(text) for text in found)


def _stray_text(cells: ColumnCells) -> str:
    """Where the first text stands when most cells are numbers."""
    is_text = np.isnan(level_numbers(cells.distinct))
    counts = np.bincount(np.asarray(cells.codes)[cells.seen], minlength=len(is_text))
    n_text = int(counts[is_text].sum())
    if n_text == 0 or n_text > 0.2 * counts.sum():
        return ""
    first = _first(cells, is_text)
    return f"mostly numbers, but {n_text} cells hold other text ({first}); to use it, correct them or make them gaps"


def _propose_numbers(name: str, numbers: np.ndarray, n_values: int, n_rows: int) -> tuple[str, str]:
    """Ids, counts, proportions or other numbers; `numbers` are the observed ones in row order."""
    low, high = float(numbers.min()), float(numbers.max())
    is_whole = bool((numbers == np.floor(numbers)).all())
    # the number of values, never the smallest or largest: those are cells, and reasons are kept
    found = f"{'whole numbers' if is_whole else 'numeric'}, {n_values:,} distinct values"
    hint = ""
    if is_whole:
        if _is_id(name, numbers, n_values, n_rows):
            return ASIDE, "ids: whole numbers that only name the row"
        if n_values <= 10 or _names_ids(name):
            hint = '; if they are codes, declare it "categorical"'
        if _is_count(numbers, low, high):
            return _propose_counts(numbers, found, n_values, hint)
    else:
        if low >= 0 and high <= 1 and n_values >= min(10, len(numbers)) and not _only_small(numbers, low):
            return "beta", f"{found} between 0 and 1"
        if _PERCENT_NAME.search(name) and low >= 0 and high <= 100:
            hint = "; if they are percent, declare it beta with bounds = [0, 100]"
    if not hint:
        if _is_zero_lognormal(numbers, low):
            share = float((numbers == 0).mean())
            zeros = "a few" if share < 0.01 else f"{share:.0%}"
            return "zero_lognormal", f"{found}, {zeros} of the cells zero and the others with a long right tail"
        if _is_lognormal(numbers, low):
            return "lognormal", f"{found}, positive with a long right tail"
        if _is_heavy_tailed(numbers):
            return "student_t", f"{found}, with outliers"
    return "gaussian", found + hint


def _propose_counts(numbers: np.ndarray, found: str, n_values: int, hint: str) -> tuple[str, str]:
    like = "few and small" if n_values <= 10 else "like counts"
    usual = np.minimum(numbers, np.quantile(numbers, 0.99))  # a single outlier is no spread
    ratio = float(usual.var() / max(usual.mean(), 1e-9))
    if len(numbers) >= MIN_CELLS and ratio > OVERDISPERSION and not hint:
        return "negative_binomial", f"{found}, {like}, with {ratio:.0f} times the variance of a Poisson"
    return "poisson", f"{found}, {like}{hint}"


def _only_small(numbers: np.ndarray, low: float) -> bool:
    """Small amounts rather than proportions: a long tail, with at most a hundredth of the cells above a half."""
    return _is_lognormal(numbers, low) and bool(np.quantile(numbers, 0.99) < 0.5)


def _is_id(name: str, numbers: np.ndarray, n_values: int, n_rows: int) -> bool:
    """Names of rows: mostly different under a name like 'id', or all different and steadily rising (or falling)."""
    if n_values == len(numbers) and len(numbers) >= 3:
        steps = np.diff(numbers)
        monotone = bool((steps > 0).all() or (steps < 0).all())
        return _names_ids(name) or (monotone and n_rows >= MIN_CELLS)
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
    return (
        low > 0
        and len(numbers) >= MIN_CELLS
        and _skew(numbers) > 1.5
        and abs(_skew(np.log(numbers))) < _skew(numbers) / 2
    )


def _is_zero_lognormal(numbers: np.ndarray, low: float) -> bool:
    """Zeros below a long tail, or a heap of them: no gaussian has either, and a lognormal has no zero."""
    above = numbers[numbers > 0]
    if low != 0 or len(above) < MIN_CELLS:
        return False
    zeros = 1 - len(above) / len(numbers)
    tailed = _is_lognormal(above, float(above.min())) or (zeros >= MANY_ZEROS and _skew(numbers) > LONG_TAIL_SKEWNESS)
    return tailed or zeros >= HEAPED


def _is_heavy_tailed(numbers: np.ndarray) -> bool:
    """Outliers, unless many cells are heaped on one value: a single one would outweigh many others in a gaussian."""
    if len(numbers) < MIN_CELLS:
        return False
    scaled = (numbers - numbers.mean()) / (numbers.std() or 1.0)
    heaped = np.unique(numbers, return_counts=True)[1].max() >= HEAPED * len(numbers)
    return bool((scaled**4).mean() - 3 > HEAVY_EXCESS_KURTOSIS) and not heaped
