"""Delta adjustment: filled gaps moved by a stated amount, for gaps that depend on what they hide."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from plurigp.core.text import at, listing, nearest, show
from plurigp.core.types import DataError
from plurigp.data import Coder, Table
from plurigp.data.column import Column
from plurigp.data.kinds import kind_of
from plurigp.likelihoods.layout import Layout

LEAST_POSITIVE = 1e-3  # of the geometric mean: what a positive value that is moved below zero becomes

Delta = Mapping[str, Any]  # {column: amount}, or {column: {level: amount}} where a column has a function per level


class Shift(NamedTuple):
    """What is added to functions before a level is drawn, and to coded numbers after they are drawn."""

    functions: Float[np.ndarray, " P"]
    coded: Float[np.ndarray, " D"]


def make_shift(layout: Layout, coder: Coder, delta: Delta) -> Shift:
    """Numbers move by their own units; levels by the link's: the log odds of yes, or of a named level of a category,
    and the latent standard normal of an ordered one (a probit)."""
    columns = coder.schema.used
    names = [column.name for column in columns]
    for name in delta:
        if name not in names:
            raise DataError(f"delta: {at(name)} is not used by this model; leave it out.{nearest(name, names)}")
    slices = column_functions(layout)
    shift = Shift(np.zeros(layout.n_functions), np.zeros(len(columns)))
    units = coder.scale * np.where(coder.squeeze > 0, coder.squeeze / np.maximum(coder.squeeze - 1, 1.0), 1.0)
    for name, amount in delta.items():
        d = names.index(name)
        own = slices[d]
        if not columns[d].levels:
            shift.coded[d] = _finite(name, amount) / units[d]
        elif own.stop - own.start == 1:
            shift.functions[own] = _finite(name, amount)
        else:
            shift.functions[own] = _by_level(columns[d], amount)
    return shift


def column_functions(layout: Layout) -> list[slice]:
    """Where the functions of each used column lie among the P, in the schema's order."""
    slices = [slice(0, 0)] * len(layout.order)
    for block in layout.blocks:
        starts = block.functions[0] + np.cumsum([0, *block.n_functions])
        for c, d in enumerate(layout.order[slice(*block.columns)]):
            slices[d] = slice(int(starts[c]), int(starts[c + 1]))
    return slices


def _by_level(column: Column, amount: Any) -> np.ndarray:
    if not isinstance(amount, Mapping):
        raise DataError(f"delta: {at(column.name)} is a category; name levels, as in {{level: 0.5}}.")
    for level in amount:
        if level not in column.levels:
            known = listing(map(show, column.levels))
            raise DataError(f"delta: {at(column.name)}: has no level {show(level)}; known: {known}. Correct it.")
    return np.array([_finite(column.name, amount.get(level, 0.0)) for level in column.levels])


def _finite(name: str, amount: Any) -> float:
    try:
        number = float(amount)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise DataError(f"delta: {at(name)}: {show(amount)} is not a number; give one, in the column's units.")
    return number


def shift_gaps(coder: Coder, table: Table, coded: Float[np.ndarray, "N D"], shift: Shift) -> Float[np.ndarray, "N D"]:
    """Coded draws with those in gaps moved; observed cells, and draws within a cell's limits, stay.

    What would leave the column's domain stays at its edge.
    """
    moved = np.where(table.seen, coded, coded + shift.coded)
    for d, column in enumerate(coder.schema.used):
        kind = kind_of(column)
        if shift.coded[d] and kind.domain is not None:
            floor = LEAST_POSITIVE if kind.positive else 0.0
            moved[:, d] = np.where(table.seen[:, d], coded[:, d], np.maximum(moved[:, d], floor))
    return moved
