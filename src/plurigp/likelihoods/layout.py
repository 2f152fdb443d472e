"""How the columns of a schema lie in memory: those of one family side by side, block by block."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from tempfile import TemporaryFile

import numpy as np
import pandas as pd

from plurigp.data import KINDS, Column, Schema, Table
from plurigp.likelihoods.base import Likelihood, own_rule
from plurigp.likelihoods.registry import LIKELIHOODS, check_kinds
from plurigp.likelihoods.rules import Rule


@dataclass(frozen=True)
class Block:
    """A family's columns: static slices into the block-ordered columns [D], value slots [V] and functions [P]."""

    likelihood: Likelihood
    columns: tuple[int, int]
    slots: tuple[int, int]
    functions: tuple[int, int]
    n_functions: tuple[int, ...]  # per column; for categories the number of levels

    @property
    def n_columns(self) -> int:
        return self.columns[1] - self.columns[0]

    @property
    def n_slots(self) -> int:
        """W, the numbers of a cell."""
        return (self.slots[1] - self.slots[0]) // self.n_columns

    @property
    def width(self) -> int:
        """H, the functions of a cell; narrower columns are padded up to it."""
        return max(self.n_functions)


@dataclass(frozen=True)
class Layout:
    """How the columns of a schema lie in memory: block by block. `order` maps block order to schema order."""

    blocks: tuple[Block, ...]
    order: tuple[int, ...]  # [D] position in schema.used of each block-ordered column
    slot_order: tuple[int, ...]  # [V] the same for value slots
    column_weights: tuple[float, ...] | None = None  # [D] of the columns in block order; None = all count alike
    covariates: "Layout | None" = None  # of the covariates, whose slots lie behind those of the columns

    @property
    def n_slots(self) -> int:
        """Numbers of a row: those of its cells, and of its covariates behind them."""
        return len(self.slot_order) + (0 if self.covariates is None else len(self.covariates.slot_order))

    @property
    def n_functions(self) -> int:
        return self.blocks[-1].functions[1]


def make_layout(schema: Schema) -> Layout:
    """Group the used columns by family and, for categories, by padded width (2, 4, 8, …).

    Families of constant curvature come last: where they have no gaps their functions can share a basis.
    """
    groups: dict[tuple[bool, str, int], list[int]] = {}
    for position, column in enumerate(schema.used):
        like = LIKELIHOODS[column.kind]
        padded = 1 << (like.n_functions(column) - 1).bit_length()
        key = (like.constant_curvature, column.kind, like.block_width(column) if like.block_width else padded)
        groups.setdefault(key, []).append(position)
    first_slot = first_slots(schema.used)
    blocks: list[Block] = []
    order: list[int] = []
    slot_order: list[int] = []
    n_before = 0
    for (_, kind, _), positions in sorted(groups.items()):
        likelihood, column_at, slot_at = LIKELIHOODS[kind], len(order), len(slot_order)
        widths = tuple(likelihood.n_functions(schema.used[p]) for p in positions)
        order += positions
        slot_order += [int(first_slot[p]) + s for p in positions for s in range(KINDS[kind].n_slots)]
        functions = (n_before, n_before + sum(widths))
        blocks.append(Block(likelihood, (column_at, len(order)), (slot_at, len(slot_order)), functions, widths))
        n_before = functions[1]
    weights = tuple(schema.used[p].weight for p in order)
    column_weights = None if set(weights) == {1.0} else weights
    given = Schema(tuple(replace(column, covariate=False, weight=1.0) for column in schema.covariates))
    covariates = make_layout(given) if len(given) else None
    return Layout(tuple(blocks), tuple(order), tuple(slot_order), column_weights, covariates)


def blocks_with(layout: Layout, columns: Container[int]) -> list[int]:
    """The numbers of the blocks that hold one of these columns (schema order)."""
    return [i for i, b in enumerate(layout.blocks) if any(d in columns for d in layout.order[slice(*b.columns)])]


def first_slots(columns: Iterable[Column]) -> np.ndarray:
    """Where each column's values begin in a Table."""
    n_slots = [KINDS[column.kind].n_slots for column in columns]
    return np.cumsum([0, *n_slots[:-1]])


def cell_bounds(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bound [N D] of every cell, equal unless it is known up to a limit only."""
    first = first_slots(table.schema)
    last = first + np.array([KINDS[column.kind].has_bounds for column in table.schema], int)
    return table.values[:, first], table.values[:, last]


def arrange(layout: Layout, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """The table's values [N V] and seen [N D] in block order, its covariates behind the values."""
    values, seen = table.values[:, list(layout.slot_order)], table.seen[:, list(layout.order)]
    if layout.covariates is None:
        return values, seen
    assert table.covariates is not None  # a coder with covariates has coded them
    return np.concatenate([values, table.covariates[:, list(layout.covariates.slot_order)]], axis=1), seen


def arranged_back(layout: Layout, values: np.ndarray, seen: np.ndarray, schema: Schema) -> Table:
    """The table of values and seen in block order."""
    n_cells, index = len(layout.slot_order), pd.RangeIndex(len(values))
    given = None if layout.covariates is None else np.empty((len(values), layout.n_slots - n_cells))
    back = Table(np.empty((len(values), n_cells)), np.empty_like(seen), Schema(schema.used), index, given)
    back.values[:, list(layout.slot_order)], back.seen[:, list(layout.order)] = values[:, :n_cells], seen
    if given is not None and layout.covariates is not None:
        given[:, list(layout.covariates.slot_order)] = values[:, n_cells:]
    return back


IN_MEMORY = 2**29  # bytes of coded cells; more lie in an unnamed temporary file, which the system may page out


def arrange_columns(
    layout: Layout,
    columns: Iterable[tuple[np.ndarray, np.ndarray]],
    n_rows: int,
    dtype: str,
    covariates: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The same from one coded column after another (schema order), so that no more than one is held twice."""
    values = _room((n_rows, layout.n_slots), dtype)
    seen = _room((n_rows, len(layout.order)), "bool")
    slots = iter(np.argsort(layout.slot_order))
    for place, (numbers, known) in zip(np.argsort(layout.order), columns, strict=True):
        for number in numbers.T:
            values[:, next(slots)] = number
        seen[:, place] = known
    if layout.covariates is not None and covariates is not None:
        values[:, len(layout.slot_order) :] = covariates[:, list(layout.covariates.slot_order)]
    return values, seen


def _room(shape: tuple[int, int], dtype: str) -> np.ndarray:
    if shape[0] * shape[1] * np.dtype(dtype).itemsize <= IN_MEMORY:
        return np.empty(shape, dtype)
    with TemporaryFile() as file:  # has no name and goes when the array does
        return np.memmap(file, dtype, "w+", shape=shape)


def n_shared(layout: Layout, seen: np.ndarray) -> int:
    """How many functions, the last ones, belong to columns of constant curvature without a single gap."""
    n = 0
    for block in reversed(layout.blocks):
        if not block.likelihood.constant_curvature or not seen[:, slice(*block.columns)].all():
            break
        n += block.functions[1] - block.functions[0]
    return n


def rules_of(layout: Layout, n_quadrature: int | Mapping[str, int] | None) -> tuple[Rule, ...]:
    """A rule per block: the family's own unless a number of points is given for all or by kind."""
    if isinstance(n_quadrature, Mapping):
        check_kinds("n_quadrature", n_quadrature)
        points = [n_quadrature.get(block.likelihood.kind) for block in layout.blocks]
    else:
        points = [n_quadrature] * len(layout.blocks)
    return tuple(
        own_rule(block.likelihood) if n is None else block.likelihood.rule(n)
        for block, n in zip(layout.blocks, points, strict=True)
    )
