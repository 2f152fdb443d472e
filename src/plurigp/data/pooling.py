"""Rare levels as one: what a few rows have is neither learned by itself nor named in what is saved."""

from dataclasses import replace

import numpy as np

from plurigp.data.cells import level_codes
from plurigp.data.column import ASIDE, Column
from plurigp.data.kinds import kind_of
from plurigp.data.rows import Rows
from plurigp.data.schema import Schema

POOLED = "other"


def pooled_schema(rows: Rows, schema: Schema, least: int) -> Schema:
    """The schema with the levels of categories that fewer than `least` rows have as one level; 0 changes nothing."""
    if least < 1:
        return schema
    return Schema(tuple(_pooled(column, rows, least) for column in schema))


def _pooled(column: Column, rows: Rows, least: int) -> Column:
    takes_other = column.kind != ASIDE and "other" in kind_of(column).settings and column.other is None
    if not takes_other or not all(isinstance(level, str) for level in column.levels):  # numbers have no name for it
        return column
    codes = level_codes(rows.column_cells(column), column.levels)
    counts = np.bincount(codes[codes >= 0].astype(int), minlength=len(column.levels))
    kept = tuple(level for level, n in zip(column.levels, counts, strict=True) if n >= least)
    n_rare = len(column.levels) - len(kept)
    if n_rare == 0:
        return column
    reason = f"{len(column.levels)} levels, {n_rare} of fewer than {least} rows"
    if not kept:
        return Column(column.name, ASIDE, f"{reason}; to use it, pool fewer", dtype=column.dtype)
    name = POOLED
    while name in map(str, column.levels):
        name += "_"
    return replace(column, levels=(*kept, name), other=name, reason=f"{reason} counted as one")
