"""The second stage: what the map leaves of every column is learned by extra-trees from the row's other cells.

A smooth map of few dimensions sees what all columns share; trees see what is local and what one column says of another.
Trees read the other cells (gaps filled), the row's latent position and the map's own prediction. Both of these are
computed with the cell itself hidden, and a cell is judged by trees that were grown without it, so weights and residuals
are those of unseen cells. A second round reads gaps filled by the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.answers.fill import expected_columns
from plurigp.answers.forest import Forest, grow_forest, join_forests
from plurigp.answers.latent import positions
from plurigp.answers.predictor import Predictor, over_chunks
from plurigp.answers.stacking import ResidualLaw, residual_law, weight_of_levels, weight_of_numbers
from plurigp.core.arrays import Array
from plurigp.data import KINDS, Column, Table
from plurigp.inference.compiling import Program, jax_runtime
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.base import value_feature
from plurigp.likelihoods.layout import first_slots
from plurigp.likelihoods.registry import LIKELIHOODS

STREAM = 2  # separates its random numbers from those of training and calibration
N_FOLDS = 5  # of cells: each is hidden once, with a fifth of its row
TREES_PER_FOLD = (4, 20)  # of the first round, which only fills gaps for the second, and of the second
MIN_CELLS = 40  # observed cells below which a column keeps the map's answers
MIN_LEAF, MAX_LEAVES = 1, 2000  # cells per leaf; leaves per tree, by larger leaves in a longer table
MAX_ROWS = 20_000  # to learn from
MIN_GAIN = 0.01  # share of the squared error that trees must take away


class ColumnStage(NamedTuple):
    """One column's trees, their weight beside the map and, for numbers, the law of the residuals."""

    forest: Forest
    weight: float
    law: ResidualLaw | None


Round = Mapping[int, ColumnStage]  # by the column's place among the used ones


@dataclass(frozen=True)
class SecondStage:
    """Two rounds of corrections; the second one's columns are those that are corrected."""

    rounds: tuple[Round, ...]

    @property
    def columns(self) -> list[int]:
        return sorted(self.rounds[-1])


class Correction(NamedTuple):
    """Gaps of one column: their rows, E[y] [n 1] or p(level) [n K] by map and trees, and the law of the residuals."""

    rows: Int[np.ndarray, " n"]
    expected: Float[np.ndarray, "n _"]
    var: Float[np.ndarray, " n"]  # that the trees see around the cell, on the scale of the column's feature
    law: ResidualLaw | None


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
    fills = np.stack([_as_number(column, own) for column, own in zip(table.schema, expected, strict=True)], 1)
    return MapView(table, positions(predictor, table)[0], expected, fills)


def _as_number(column: Column, expected: Float[np.ndarray, "N _"]) -> Float[np.ndarray, " N"]:
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


def _inputs(features: np.ndarray, others: np.ndarray, x: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """The other columns' features, the position, and the map's prediction without what the rest of it tells."""
    own = prediction if prediction.shape[1] == 1 else prediction[:, 1:]
    return np.concatenate([features[:, others], x, own], 1).astype(np.float32)


# --- to learn ---


def can_be_corrected(column: Column) -> bool:
    """Levels, and numbers on a scale of their own; cells with bounds or with two ends keep the map's answers."""
    return bool(column.levels) or LIKELIHOODS[column.kind].scale is not None


def fit_second_stage(predictor: Predictor, table: Table, seed: int) -> SecondStage | None:
    """Learn from a training table and the model trained on it; None where no column gains."""
    rng = np.random.default_rng([seed, STREAM])
    N, D = table.seen.shape
    if D < 2:
        return None
    if N > MAX_ROWS:
        rows = np.sort(rng.choice(N, MAX_ROWS, replace=False))
        table = replace(table, values=table.values[rows], seen=table.seen[rows], index=table.index[rows])
    learner = _Learner(predictor, table, rng)
    first = learner.learn(0)
    learner.refill(first)
    second = learner.learn(1)
    return SecondStage((first, second)) if second else None


class _Learner:
    """The table as the trees see it, whole and with each fold of cells hidden."""

    def __init__(self, predictor: Predictor, table: Table, rng: np.random.Generator) -> None:
        self.predictor, self.table, self.rng = predictor, table, rng
        N, D = table.seen.shape
        n_folds = min(N_FOLDS, D)
        self.fold = rng.permuted(np.tile(np.arange(D) % n_folds, (N, 1)), axis=1)
        self.whole = view_table(predictor, table, warn=False)
        self.hidden = [view_table(predictor, table.hidden(self.fold == k), warn=False) for k in range(n_folds)]
        self.owner, self.first = feature_owners(predictor), first_slots(table.schema.used)
        self._refresh()

    def _refresh(self) -> None:
        """Features with the observed cells in place: gaps filled by all cells of their row, or without one fold."""
        self.features = completed_features(self.predictor, self.table, self.whole.fills)
        self.hidden_features = np.stack(
            [completed_features(self.predictor, self.table, view.fills) for view in self.hidden]
        )

    def refill(self, corrections: Round) -> None:
        """Gaps as this round fills them, in every view."""
        self.whole = refilled(self.whole, apply_round(self.predictor, corrections, self.whole))
        gaps = ~self.table.seen
        self.hidden = [refilled(v, apply_round(self.predictor, corrections, v, gaps)) for v in self.hidden]
        self._refresh()

    def learn(self, number: int) -> dict[int, ColumnStage]:
        """This round's correction of every column that gains by one."""
        found: dict[int, ColumnStage] = {}
        for d, column in enumerate(self.table.schema):
            if can_be_corrected(column) and self.table.seen[:, d].sum() >= MIN_CELLS:
                stage = self._column(d, column, TREES_PER_FOLD[number])
                if stage is not None:
                    found[d] = stage
        return found

    def _column(self, d: int, column: Column, n_trees: int) -> ColumnStage | None:
        rows = np.flatnonzero(self.table.seen[:, d])
        fold, others = self.fold[rows, d], self.owner != d
        x = np.stack([view.x for view in self.hidden])[fold, rows]
        prediction = np.stack([view.expected[d] for view in self.hidden])[fold, rows]
        X = _inputs(self.features[rows], others, x, prediction)
        X_unseen = _inputs(self.hidden_features[fold, rows], others, x, prediction)
        y = self.table.values[rows, self.first[d]]
        target, statistics = _targets(column, y)
        forests, unseen, tree_var = [], np.empty((len(rows), statistics.shape[1])), np.zeros(len(rows))
        min_leaf = max(MIN_LEAF, len(rows) // MAX_LEAVES)
        for k in np.unique(fold):
            train, test = fold != k, fold == k
            seed = int(self.rng.integers(2**31))
            forests.append(grow_forest(X[train], target[train], statistics[train], n_trees, min_leaf, seed))
            by_tree = forests[-1].by_tree(X_unseen[test])
            unseen[test], tree_var[test] = by_tree.mean(0), by_tree[:, :, 0].var(0)
        excess_var = float(tree_var.mean()) / n_trees * (1 - 1 / len(forests))  # all folds' trees answer later
        return _judged(column, y, prediction, unseen, excess_var, join_forests(forests))


def _targets(column: Column, y: Float[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    """What trees split by and what their leaves hold: indicators; or y, its feature and that squared."""
    if column.levels:
        indicators = (y[:, None] == np.arange(len(column.levels))).astype(float)
        return indicators, indicators
    scale = LIKELIHOODS[column.kind].scale
    assert scale is not None
    f = scale.forward(y)
    return y[:, None], np.stack([y, f, f**2], 1)


def _judged(
    column: Column, y: np.ndarray, prediction: np.ndarray, unseen: np.ndarray, excess_var: float, forest: Forest
) -> ColumnStage | None:
    """The trees with their weight, or None where they do not gain on the map."""
    if column.levels:
        weight = weight_of_levels(y.astype(int), prediction, unseen)
        return ColumnStage(forest, weight, None) if weight > 0 else None
    map_ = prediction[:, 0]
    weight = weight_of_numbers(y, map_, unseen[:, 0], excess_var)
    mean = (1 - weight) * map_ + weight * unseen[:, 0]
    error, own_error = float(np.mean((y - mean) ** 2)), float(np.mean((y - map_) ** 2))
    later_error = max(error - weight**2 * excess_var, 0.5 * error)
    if later_error > (1 - MIN_GAIN) * own_error:
        return None
    scale = LIKELIHOODS[column.kind].scale
    assert scale is not None
    residuals = (scale.forward(y) - scale.forward(mean)) * np.sqrt(later_error / error)
    zero_below = float(y[y > 0].min()) / 2 if KINDS[column.kind].often_zero and (y > 0).any() else 0.0
    return ColumnStage(forest, weight, residual_law(residuals, _variance(unseen), zero_below))


def _variance(leaf_means: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, " n"]:
    return np.maximum(leaf_means[:, 2] - leaf_means[:, 1] ** 2, 0.0)


# --- to correct ---


def apply_round(
    predictor: Predictor, corrections: Round, view: MapView, gaps: Bool[np.ndarray, "N D"] | None = None
) -> dict[int, Correction]:
    """The corrections of all gaps, or of these."""
    gaps = ~view.table.seen if gaps is None else gaps
    features, owner = completed_features(predictor, view.table, view.fills), feature_owners(predictor)
    found: dict[int, Correction] = {}
    for d, stage in corrections.items():
        rows = np.flatnonzero(gaps[:, d])
        if len(rows) == 0:
            continue
        own = view.expected[d][rows]
        trees = stage.forest.mean(_inputs(features[rows], owner != d, view.x[rows], own))
        mean = trees[:, : own.shape[1]]
        var = np.zeros(len(rows)) if stage.law is None else _variance(trees)
        found[d] = Correction(rows, (1 - stage.weight) * own + stage.weight * mean, var, stage.law)
    return found


def refilled(view: MapView, corrections: Mapping[int, Correction]) -> MapView:
    """The view with corrected gaps; the map's own expectations stay, since trees read them."""
    fills = view.fills.copy()
    for d, found in corrections.items():
        fills[found.rows, d] = _as_number(view.table.schema.columns[d], found.expected)
    return replace(view, fills=fills)


def correct_gaps(predictor: Predictor, stage: SecondStage, view: MapView) -> dict[int, Correction]:
    """Every corrected column's gaps, by all rounds."""
    corrections: dict[int, Correction] = {}
    for number in stage.rounds:
        corrections = apply_round(predictor, number, view)
        view = refilled(view, corrections)
    return corrections
