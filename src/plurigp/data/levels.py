"""Kinds whose cells are levels: finding the levels of a column, and coding a cell by the place of its level."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plurigp.core.text import at, listing, show
from plurigp.core.types import DataError
from plurigp.data.cells import ColumnCells, MisfitError, as_numbers, distinct_levels, level_codes, refuse, value_at
from plurigp.data.column import Column, Level

_PAIRS = (  # words that mean no and yes whatever their alphabetical order
    ("no", "yes"), ("n", "y"), ("false", "true"), ("negative", "positive"), ("neg", "pos"), ("-", "+"), ("off", "on"),
    ("absent", "present"), ("control", "case"), ("normal", "abnormal"), ("healthy", "sick"), ("well", "ill"),
    ("never", "ever"), ("without", "with"), ("unexposed", "exposed"), ("untreated", "treated"), ("placebo", "drug"),
    ("low", "high"), ("alive", "dead"), ("inactive", "active"), ("unaffected", "affected"), ("none", "some"),
)  # fmt: skip
NO_WORDS = {no for no, _ in _PAIRS}
YES_WORDS = {yes for _, yes in _PAIRS}


def two_levels(found: Sequence[Level], ordered: bool = False) -> tuple[Level, ...]:
    """Two levels with the 'yes' second: a known word, else the larger, else the later in the alphabet."""
    if ordered or not all(isinstance(level, str) for level in found):
        return tuple(found)
    first, second = (str(level).strip().lower() for level in found)
    swap = (first in YES_WORDS) > (second in YES_WORDS) or (second in NO_WORDS) > (first in NO_WORDS)
    return (found[1], found[0]) if swap else tuple(found)


def settle_two_levels(column: Column, cells: ColumnCells) -> Column:
    """Finds the two levels; 0 alone or True alone has its partner for granted."""
    levels = _levels(column, cells)
    if len(levels) == 1 and not column.levels and not isinstance(levels[0], str) and levels[0] in (0, 1):
        levels = (False, True) if isinstance(levels[0], bool) else (0, 1)
    if len(levels) > 2:
        raise MisfitError(_needs(column, "2 levels", levels, "recode them"), "more levels")
    if len(levels) < 2:
        raise DataError(_needs(column, "2 levels", levels, "give both: levels = [no, yes]."))
    return replace(column, levels=column.levels or two_levels(levels, cells.ordered))


def settle_levels(column: Column, cells: ColumnCells) -> Column:
    """Finds the levels; there must be at least two."""
    levels = _levels(column, cells)
    if len(levels) < 2:
        raise DataError(_needs(column, "at least 2 levels", levels, "give all its levels, or set it aside."))
    return replace(column, levels=levels)


def settle_ordered_levels(column: Column, cells: ColumnCells) -> Column:
    """Finds the levels and their order: the column's own, or that of numbers; words alone have none."""
    levels = _levels(column, cells)
    if not column.levels and not cells.ordered and any(isinstance(level, str) for level in levels):
        raise DataError(f"{at(column.name)}: {column.kind} needs an order; give levels = [lowest, ..., highest].")
    if len(levels) == 2:
        raise MisfitError(_needs(column, "at least 3 levels", levels, "add levels"), "fewer levels")
    return settle_levels(column, cells)


def _levels(column: Column, cells: ColumnCells) -> tuple[Level, ...]:
    """The declared levels, which every cell must be among, or else those that occur."""
    if column.levels:
        _known_codes(column, cells, "is not among the declared levels", "Add it to them, or recode it.")
        return column.levels
    _check_form(column, cells)
    return tuple(distinct_levels(cells))


def _needs(column: Column, levels: str, found: tuple[Level, ...], remedy: str) -> str:
    return f"{at(column.name)}: {column.kind} needs {levels}, not {len(found)} ({listing(map(show, found))}); {remedy}"


def read_levels(column: Column, cells: ColumnCells, companion: ColumnCells | None) -> np.ndarray:
    """The place of each cell's level; one that the fit did not see is an error."""
    return _known_codes(column, cells, "was not seen in fit", "Recode it or refit.")[:, None]


def _known_codes(column: Column, cells: ColumnCells, finding: str, remedy: str) -> np.ndarray:
    _check_form(column, cells)
    codes = level_codes(cells, column.levels)
    if column.other in column.levels:
        codes = np.where(codes == -1, column.levels.index(column.other), codes)
    if (codes == -1).any():
        value = show(value_at(cells, int(np.argmax(codes == -1))))
        known = listing(map(show, column.levels))
        refuse(codes == -1, column.name, f"level {value} {finding}; known: {known}. {remedy}")
    return codes


def _check_form(column: Column, cells: ColumnCells) -> None:
    if cells.form == "date":
        raise DataError(f'{at(column.name)}: holds dates, which {column.kind} does not take; declare it "aside".')
    if cells.form == "number":
        as_numbers(cells, column.name)
