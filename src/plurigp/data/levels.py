"""Kinds whose cells are levels: finding the levels of a column, and coding a cell by the place of its level."""

from dataclasses import replace

import numpy as np

from plurigp.core.text import at, listing, show
from plurigp.core.types import DataError
from plurigp.data.cells import (
    ColumnCells,
    MisfitError,
    as_numbers,
    distinct_levels,
    level_codes,
    value_at,
)
from plurigp.data.column import Column, Level

_PAIRS = (  # words that mean no and yes whatever their alphabetical order
    ("no", "yes"), ("n", "y"), ("false", "true"), ("negative", "positive"), ("neg", "pos"), ("-", "+"), ("off", "on"),
    ("absent", "present"), ("control", "case"), ("normal", "abnormal"), ("healthy", "sick"), ("well", "ill"),
    ("never", "ever"), ("without", "with"), ("unexposed", "exposed"), ("untreated", "treated"), ("placebo", "drug"),
    ("low", "high"), ("alive", "dead"), ("inactive", "active"), ("unaffected", "affected"), ("none", "some"),
)  # fmt: skip
NO_WORDS = {no for no, _ in _PAIRS}
YES_WORDS = {yes for _, yes in _PAIRS}


def two_levels(found: list[Level], ordered: bool = False) -> tuple[Level, ...]:
    """Two levels with the 'yes' second: a known word, else the larger, else the later in the alphabet."""
    if ordered or not all(isinstance(level, str) for level in found):
        return tuple(found)
    first, second = (str(level).strip().lower() for level in found)
    swap = (first in YES_WORDS) > (second in YES_WORDS) or (second in NO_WORDS) > (first in NO_WORDS)
    return (found[1], found[0]) if swap else tuple(found)


def settle_two_levels(column: Column, cells: ColumnCells) -> Column:
    """Finds the two levels; 0 alone or True alone has its partner for granted."""
    if column.levels:
        if len(column.levels) != 2:
            raise DataError(
                f"{at(column.name)}: {column.kind} needs 2 levels, not {len(column.levels)}; give [no, yes]."
            )
        return _covered(column, cells)
    found = _found(column, cells)
    if len(found) == 1 and not isinstance(found[0], str) and found[0] in (0, 1):
        found = [False, True] if isinstance(found[0], bool) else [0, 1]
    if len(found) == 1:
        raise DataError(f"{_declared_but_holds(column, found)}; give both: levels = [no, yes].")
    if len(found) != 2:
        raise MisfitError(f"{_declared_but_holds(column, found)}; recode them", "more levels")
    return replace(column, levels=two_levels(found, cells.ordered))


def settle_levels(column: Column, cells: ColumnCells) -> Column:
    """Finds the levels; there must be at least two."""
    if len(column.levels) == 1:
        raise DataError(f"{at(column.name)}: {column.kind} needs at least 2 levels, not 1; add them, or set it aside.")
    if column.levels:
        return _covered(column, cells)
    found = _found(column, cells)
    if len(found) < 2:
        raise DataError(f"{_declared_but_holds(column, found)}; give all its levels, or set it aside.")
    return replace(column, levels=tuple(found))


def settle_ordered_levels(column: Column, cells: ColumnCells) -> Column:
    """Finds the levels and their order: the column's own, or that of numbers; words alone have none."""
    if not column.levels and not cells.ordered and any(isinstance(level, str) for level in _found(column, cells)):
        raise DataError(f"{at(column.name)}: {column.kind} needs an order; give levels = [lowest, ..., highest].")
    column = settle_levels(column, cells)
    if len(column.levels) < 3:
        message = f"{at(column.name)}: {column.kind} needs at least 3 levels, not 2; add levels"
        raise MisfitError(message, "fewer levels")
    return column


def _declared_but_holds(column: Column, found: list[Level]) -> str:
    shown = listing(map(show, found))
    values = f"one value ({shown})" if len(found) == 1 else f"{len(found)} distinct values ({shown})"
    return f"{at(column.name)}: declared {column.kind}, but it holds {values}"


def _found(column: Column, cells: ColumnCells) -> list[Level]:
    _check_form(column, cells)
    return distinct_levels(cells)


def _check_form(column: Column, cells: ColumnCells) -> None:
    if cells.form == "date":
        raise DataError(f'{at(column.name)}: holds dates, which {column.kind} does not take; declare it "aside".')
    if cells.form == "number":
        as_numbers(cells, column.name)


def _covered(column: Column, cells: ColumnCells) -> Column:
    _known_codes(column, cells, "is not among the declared levels", "Add it to them, or recode it.")
    return column


def read_levels(column: Column, cells: ColumnCells, companion: ColumnCells | None) -> np.ndarray:
    """The place of each cell's level; one that the fit did not see is an error."""
    return _known_codes(column, cells, "was not seen in fit", "Recode it or refit.")[:, None]


def _known_codes(column: Column, cells: ColumnCells, finding: str, remedy: str) -> np.ndarray:
    _check_form(column, cells)
    codes = level_codes(cells, column.levels)
    if (codes == -1).any():
        row = int(np.argmax(codes == -1))
        known = listing(map(show, column.levels))
        value = show(value_at(cells, row))
        raise DataError(f"{at(column.name, row)}: level {value} {finding}; known: {known}. {remedy}")
    return codes
