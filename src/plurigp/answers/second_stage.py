"""The second stage: what the map leaves of every column is learned by extra-trees from the row's other cells.

A smooth map of few dimensions sees what all columns share; trees see what is local and what one column says of another,
and a ridge regression what is linear in a short table. Both read the row's other cells, gaps filled. A cell is judged
by trees and regressions that were learned without it, and by the map with the cell hidden from its row and left out of
its functions, so weights and residuals are those of unseen cells. (The map's position and prediction are no inputs:
the map has learned from the cell, and what reads them trusts them more than it can of a gap.) Every round reads gaps
as the one before has filled them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.answers.forest import Forest, grow_out_of_bag
from plurigp.answers.gap_odds import gap_odds
from plurigp.answers.map_view import (
    MapView,
    as_number,
    completed_features,
    feature_owners,
    view_left_out,
    view_table,
)
from plurigp.answers.predictor import Predictor
from plurigp.answers.ridge import Ridge, cross_fitted_ridge
from plurigp.answers.stacking import ResidualLaw, Stacked, residual_law, stack_numbers, weight_of_levels
from plurigp.data import KINDS, Column, Table
from plurigp.data.table import take_rows
from plurigp.likelihoods.layout import first_slots
from plurigp.likelihoods.registry import LIKELIHOODS

STREAM = 2  # separates its random numbers from those of training and calibration
N_FOLDS = 10  # of cells: each is hidden once, with at most a tenth of its row; by itself in a row of ten or fewer
N_TREES = (20, 20, 20, 200)  # of every round; all but the last only fill gaps for the next
MIN_CELLS = 40  # observed cells below which a column keeps the map's answers
MIN_LEAF, MAX_LEAVES = 1, 2000  # cells per leaf; leaves per tree, by larger leaves in a longer table
MAX_ROWS = 20_000  # to learn from
MIN_GAIN = 0.01  # share of the squared error that trees must take away


class ColumnStage(NamedTuple):
    """One column's trees and ridge regression, their weights beside the map and, for numbers, the residuals' law."""

    forest: Forest
    ridge: Ridge | None  # for numbers, where it has a weight
    weights: tuple[float, float]  # of trees and ridge
    law: ResidualLaw | None

    def mean(self, map_: Float[np.ndarray, "n _"], trees: np.ndarray, X: np.ndarray) -> Float[np.ndarray, "n _"]:
        """E[y], or p(level), by all of them."""
        of_trees, of_ridge = self.weights
        mean = (1 - of_trees - of_ridge) * map_ + of_trees * trees[:, : map_.shape[1]]
        return mean if self.ridge is None else mean + of_ridge * self.ridge.predict(X)[:, None]


Round = Mapping[int, ColumnStage]  # by the column's place among the used ones


@dataclass(frozen=True)
class SecondStage:
    """Rounds of corrections; the last one's columns are those that are corrected."""

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
        table = take_rows(table, np.sort(rng.choice(N, MAX_ROWS, replace=False)))
    learner = _Learner(predictor, table, rng)
    rounds = [learner.learn(N_TREES[0])]
    for n_trees in N_TREES[1:]:
        learner.refill(rounds[-1])
        rounds.append(learner.learn(n_trees))
    return SecondStage(tuple(rounds)) if rounds[-1] else None


class _Learner:
    """The table as the trees see it, whole and with each fold of cells hidden."""

    def __init__(self, predictor: Predictor, table: Table, rng: np.random.Generator) -> None:
        self.predictor, self.table, self.rng = predictor, table, rng
        N, D = table.seen.shape
        n_folds = min(N_FOLDS, D)
        self.fold = rng.permuted(np.tile(np.arange(D) % n_folds, (N, 1)), axis=1)
        self.whole = view_table(predictor, table, warn=False)
        self.hidden = [view_left_out(predictor, table.hidden(self.fold == k), table) for k in range(n_folds)]
        self.owner, self.first = feature_owners(predictor.layout), first_slots(table.schema.used)
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

    def learn(self, n_trees: int) -> dict[int, ColumnStage]:
        """This round's correction of every column that gains by one."""
        found: dict[int, ColumnStage] = {}
        for d, column in enumerate(self.table.schema):
            if can_be_corrected(column) and self.table.seen[:, d].sum() >= MIN_CELLS:
                stage = self._column(d, column, n_trees)
                if stage is not None:
                    found[d] = stage
        return found

    def _column(self, d: int, column: Column, n_trees: int) -> ColumnStage | None:
        """Learned from gaps filled with the cell in its row, which are the better ones; judged without it."""
        rows = np.flatnonzero(self.table.seen[:, d])
        fold, others = self.fold[rows, d], self.owner != d
        prediction = np.stack([view.expected[d] for view in self.hidden])[fold, rows]
        X, X_unseen = self.features[rows][:, others], self.hidden_features[fold, rows][:, others]
        y = self.table.values[rows, self.first[d]]
        target, statistics = _targets(column, y)
        like_gaps = gap_odds(self.features[:, others], self.table.seen[:, d])
        min_leaf = max(MIN_LEAF, len(rows) // MAX_LEAVES)
        seed = int(self.rng.integers(2**31))
        forest, unseen, excess_var = grow_out_of_bag(X, X_unseen, target, statistics, n_trees, min_leaf, seed)
        if column.levels:
            weight = weight_of_levels(y.astype(int), prediction, unseen, like_gaps)
            return ColumnStage(forest, None, (weight, 0.0), None) if weight > 0 else None
        ridge, linear = cross_fitted_ridge(X, X_unseen, y, self.rng)
        stacked = stack_numbers(y, prediction[:, 0], unseen[:, 0], linear, like_gaps, excess_var)
        if stacked.later_error > (1 - MIN_GAIN) * stacked.map_error:
            return None
        law = _law(column, y, stacked, _variance(unseen), like_gaps)
        return ColumnStage(forest, ridge if stacked.weights[1] > 0 else None, stacked.weights, law)


def _targets(column: Column, y: Float[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    """What trees split by and what their leaves hold: indicators; or y, its feature and that squared."""
    if column.levels:
        indicators = (y[:, None] == np.arange(len(column.levels))).astype(float)
        return indicators, indicators
    scale = LIKELIHOODS[column.kind].scale
    assert scale is not None
    f = scale.forward(y)
    return y[:, None], np.stack([y, f, f**2], 1)


def _law(
    column: Column, y: np.ndarray, stacked: Stacked, var: Float[np.ndarray, " n"], cell_weights: np.ndarray
) -> ResidualLaw:
    """Of residuals on the scale of the column's feature, as small as they will be when all trees answer."""
    scale = LIKELIHOODS[column.kind].scale
    assert scale is not None
    shrink = np.sqrt(stacked.later_error / stacked.error) if stacked.error > 0 else 1.0
    residuals = (scale.forward(y) - scale.forward(stacked.mean)) * shrink
    zero_below = float(y[y > 0].min()) / 2 if KINDS[column.kind].often_zero and (y > 0).any() else 0.0
    return residual_law(residuals, var, cell_weights, zero_below)


def _variance(leaf_means: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, " n"]:
    return np.maximum(leaf_means[:, 2] - leaf_means[:, 1] ** 2, 0.0)


# --- to correct ---


def apply_round(
    predictor: Predictor, corrections: Round, view: MapView, gaps: Bool[np.ndarray, "N D"] | None = None
) -> dict[int, Correction]:
    """The corrections of all gaps, or of these."""
    gaps = ~view.table.seen if gaps is None else gaps
    features, owner = completed_features(predictor, view.table, view.fills), feature_owners(predictor.layout)
    found: dict[int, Correction] = {}
    for d, stage in corrections.items():
        rows = np.flatnonzero(gaps[:, d])
        if len(rows) == 0:
            continue
        own = view.expected[d][rows]
        X = features[rows][:, owner != d]
        trees = stage.forest.mean(X)
        var = np.zeros(len(rows)) if stage.law is None else _variance(trees)
        found[d] = Correction(rows, stage.mean(own, trees, X), var, stage.law)
    return found


def refilled(view: MapView, corrections: Mapping[int, Correction]) -> MapView:
    """The view with corrected gaps; the map's own expectations stay, since corrections mix with them."""
    fills = view.fills.copy()
    for d, found in corrections.items():
        fills[found.rows, d] = as_number(view.table.schema.columns[d], found.expected)
    return replace(view, fills=fills)


def correct_gaps(predictor: Predictor, stage: SecondStage, view: MapView) -> dict[int, Correction]:
    """Every corrected column's gaps, by all rounds."""
    corrections: dict[int, Correction] = {}
    for number in stage.rounds:
        corrections = apply_round(predictor, number, view)
        view = refilled(view, corrections)
    return corrections
