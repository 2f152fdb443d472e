"""What the second stage reads: the map's view of a table, and the features of rows whose gaps are filled."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from plurigp.answers.fill import expected_columns
from plurigp.answers.latent import positions
from plurigp.answers.predictor import Predictor, over_chunks
from plurigp.core.arrays import Array
from plurigp.data import KINDS, Column, Table
from plurigp.inference.compiling import Program, jax_runtime
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.base import value_feature
from plurigp.likelihoods.layout import first_slots
from plurigp.likelihoods.registry import LIKELIHOODS


@dataclass(frozen=True, eq=False)
class MapView:
    """What the map says of a table: positions, expected cells, and a number for every gap."""

    table: Table
    x: Float[np.ndarray, "N Q"]
    expected: list[Float[np.ndarray, "N _"]]
    fills: Float[np.ndarray, "N D"]


def view_table(predictor: Predictor, table: Table, warn: bool = True) -> MapView:
    """By one sweep for the positions and one for the cells."""
    expected = expected_columns(predictor, table, warn=warn)
    fills = np.stack([as_number(column, own) for column, own in zip(table.schema, expected, strict=True)], 1)
    return MapView(table, positions(predictor, table)[0], expected, fills)


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
    values, owner, amounts = table.values.copy(), feature_owners(predictor), {}
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


def feature_owners(predictor: Predictor) -> Int[np.ndarray, " E"]:
    """The column, by its place among the used ones, that each feature belongs to."""
    layout = predictor.layout
    with jax_runtime():
        of_column = np.asarray(evaluate.seen_features(layout, np.eye(len(layout.order), dtype=bool)))
    return np.asarray(layout.order)[of_column.argmax(0)]


def stage_inputs(features: np.ndarray, others: np.ndarray, x: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """The other columns' features, the position, and the map's prediction without what the rest of it tells."""
    own = prediction if prediction.shape[1] == 1 else prediction[:, 1:]
    return np.concatenate([features[:, others], x, own], 1).astype(np.float32)
