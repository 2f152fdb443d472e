"""What the second stage reads: the map's view of a table, and the features of rows whose gaps are filled."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from plurigp.answers.fill import expected_columns
from plurigp.answers.left_out import expected_left_out
from plurigp.answers.predictor import Predictor, over_chunks
from plurigp.core.arrays import Array
from plurigp.data import KINDS, Column, Table
from plurigp.inference.compiling import Program, jax_runtime
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.base import value_feature
from plurigp.likelihoods.evaluate import feature_columns
from plurigp.likelihoods.layout import Layout, first_slots
from plurigp.likelihoods.registry import LIKELIHOODS


@dataclass(frozen=True, eq=False)
class MapView:
    """What the map says of a table: expected cells, and a number for every gap."""

    table: Table
    expected: list[Float[np.ndarray, "N _"]]
    fills: Float[np.ndarray, "N D"]


def view_table(predictor: Predictor, table: Table, warn: bool = True) -> MapView:
    """By one sweep over the rows."""
    return _view(table, expected_columns(predictor, table, warn=warn))


def view_left_out(predictor: Predictor, shown: Table, table: Table) -> MapView:
    """Of the cells shown; those of the training table that are not are expected as if they had never been seen."""
    return _view(shown, expected_left_out(predictor, shown, table))


def _view(table: Table, expected: list[Float[np.ndarray, "N _"]]) -> MapView:
    fills = np.stack([as_number(column, own) for column, own in zip(table.schema, expected, strict=True)], 1)
    return MapView(table, expected, fills)


def as_number(column: Column, expected: Float[np.ndarray, "N _"]) -> Float[np.ndarray, " N"]:
    """What a gap holds while other columns are predicted: the mean, also of levels that are read as numbers."""
    if not column.levels:
        return expected[:, 0]
    if LIKELIHOODS[column.kind].features is value_feature:
        return expected @ np.arange(expected.shape[1])
    return expected.argmax(1).astype(float)


# --- what the trees read ---


@Program
def _features(p: Predictor, values: Array) -> Float[Array, "B E"]:
    return evaluate.encoder_features(p.layout, values)


def completed_features(predictor: Predictor, table: Table, fills: Float[np.ndarray, "N D"]) -> np.ndarray:
    """The encoder's features of every cell [N E], gaps filled; of amounts that are often zero, the amount instead of
    whether there is any: a filled gap is neither."""
    values, owner, amounts = table.values.copy(), feature_owners(predictor.layout), {}
    for d, (column, first) in enumerate(zip(table.schema, first_slots(table.schema.used), strict=True)):
        gaps = ~table.seen[:, d]
        for slot in range(first, first + 1 + KINDS[column.kind].has_bounds):
            values[gaps, slot] = fills[gaps, d]
        if KINDS[column.kind].often_zero:
            amounts[int(np.argmax(owner == d))] = values[:, first]
    filled = replace(table, values=values)
    found = over_chunks(predictor, filled, lambda p, chunk: _features(p, chunk.values)).copy()
    for place, amount in amounts.items():
        found[:, place] = amount
    return np.nan_to_num(found.astype(np.float32))


def feature_owners(layout: Layout) -> Int[np.ndarray, " E"]:
    """The column, by its place among the used ones, that each feature belongs to."""
    with jax_runtime():
        of_column = feature_columns(layout)
    return np.asarray(layout.order)[of_column.argmax(0)]
