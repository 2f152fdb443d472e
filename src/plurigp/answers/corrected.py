"""Answers about gaps, by the map alone or corrected by its second stage: one predictive distribution behind all."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from plurigp.answers.delta import column_functions
from plurigp.answers.density import cell_log_density
from plurigp.answers.draws import RowDraws, draw_given
from plurigp.answers.fill import expected_columns, fill_values, points_of_columns
from plurigp.answers.map_view import view_table
from plurigp.answers.predictor import Predictor
from plurigp.answers.second_stage import Correction, SecondStage, correct_gaps
from plurigp.answers.stacking import LEAST_SHARE
from plurigp.data import KINDS, Column, Table
from plurigp.likelihoods.base import NumberScale
from plurigp.likelihoods.layout import first_slots
from plurigp.likelihoods.registry import LIKELIHOODS

MIN_DRAWS = 100  # of a gap, among which the map's draws are ranked


def expected_gaps(predictor: Predictor, stage: SecondStage | None, table: Table) -> list[Float[np.ndarray, "N _"]]:
    """E[y | the row's observed cells] of every column [N 1], or p(level | …) [N K]; gaps corrected."""
    if stage is None:
        return expected_columns(predictor, table)
    view = view_table(predictor, table)
    columns = [own.copy() for own in view.expected]
    for d, found in correct_gaps(predictor, stage, view).items():
        columns[d][found.rows] = found.expected
    return columns


def fill_gaps_with(predictor: Predictor, stage: SecondStage | None, table: Table) -> Float[np.ndarray, "N D"]:
    """One coded value per cell: the mean, or a level."""
    if stage is None:
        return fill_values(predictor, table)
    return points_of_columns(predictor, expected_gaps(predictor, stage, table))


# --- draws ---


def draw_gaps_given(
    predictor: Predictor,
    stage: SecondStage | None,
    table: Table,
    n_draws: int,
    seed: int,
    shift: Float[np.ndarray, " P"] | None = None,
) -> Iterator[RowDraws]:
    """Coded draws of whole rows given their observed cells, as `draw_given`; gaps of corrected columns follow the
    corrected distribution and keep the ranks of the map's draws, so cells of a row stay drawn together. Columns whose
    functions are moved by `shift` follow the map, which alone knows what that does to them."""
    if stage is None:
        yield from draw_given(predictor, table, n_draws, seed, shift=shift)
        return
    moved = [] if shift is None else [d for d, own in enumerate(column_functions(predictor.layout)) if shift[own].any()]
    view = view_table(predictor, table, warn=False)
    corrections = {d: own for d, own in correct_gaps(predictor, stage, view).items() if d not in moved}
    rng = np.random.default_rng([seed, 1])
    for chunk in draw_given(predictor, table, max(n_draws, MIN_DRAWS), seed, shift=shift):
        draws = np.stack(list(chunk.draws))
        for d, found in corrections.items():
            inside = np.flatnonzero((found.rows >= chunk.rows.start) & (found.rows < chunk.rows.stop))
            rows = found.rows[inside]
            own = Correction(rows, found.expected[inside], found.var[inside], found.law)
            at = rows - chunk.rows.start
            column = table.schema.columns[d]
            if column.levels:
                draws[:, at, d] = _moved_levels(draws[:, at, d], view.expected[d][rows], own, rng)
            else:
                draws[:, at, d] = _moved_numbers(draws[:, at, d], column, own, rng)
        yield RowDraws(chunk.rows, iter(draws[:n_draws]))


def _scale(column: Column) -> NumberScale:
    scale = LIKELIHOODS[column.kind].scale
    assert scale is not None
    return scale


def _moved_numbers(
    draws: Float[np.ndarray, "S n"], column: Column, found: Correction, rng: np.random.Generator
) -> Float[np.ndarray, "S n"]:
    """The corrected quantile of every draw's rank among its cell's; equal draws in random order."""
    assert found.law is not None
    scale = _scale(column)
    shuffled = rng.permuted(np.tile(np.arange(len(draws))[:, None], draws.shape[1]), axis=0)
    order = np.lexsort((shuffled, draws), axis=0)
    ranks = np.argsort(order, axis=0)
    u = (ranks + rng.random(draws.shape)) / len(draws)
    moved = scale.back(scale.forward(found.expected[:, 0]) + found.law.quantile(u, found.var))
    if found.law.zero_below > 0:
        return np.where(moved < found.law.zero_below, 0.0, moved)
    return np.maximum(np.round(moved), 0.0) if KINDS[column.kind].whole else moved


def _moved_levels(
    draws: Float[np.ndarray, "S n"], map_: Float[np.ndarray, "n K"], found: Correction, rng: np.random.Generator
) -> Float[np.ndarray, "S n"]:
    """A draw stays with probability min(1, q/p) and is drawn anew from what q has beyond p otherwise, so that as many
    as possible stay with their rows."""
    p, q = np.maximum(map_, 1e-12), found.expected / found.expected.sum(1, keepdims=True)
    at = np.arange(draws.shape[1])
    stays = rng.random(draws.shape) < (q / p)[at, draws.astype(int)]
    beyond = np.cumsum(np.maximum(q - p, 0.0), axis=1) + 1e-300
    u = rng.random(draws.shape) * beyond[:, -1]
    anew = (u[:, :, None] > beyond).sum(2)
    return np.where(stays, draws, np.minimum(anew, q.shape[1] - 1))


# --- densities ---


def gap_log_density(
    predictor: Predictor, stage: SecondStage | None, shown: Table, complete: Table
) -> Float[np.ndarray, "N D"]:
    """log p(y_d | the cells shown) of every cell of `complete`, coded units, as `cell_log_density`; gaps corrected."""
    cells = cell_log_density(predictor, shown, complete)
    if stage is None:
        return cells
    first = first_slots(shown.schema.used)
    for d, found in correct_gaps(predictor, stage, view_table(predictor, shown, warn=False)).items():
        column = shown.schema.columns[d]
        known = complete.seen[found.rows, d]
        rows = found.rows[known]
        y = complete.values[rows, first[d]]
        own = Correction(rows, found.expected[known], found.var[known], found.law)
        cells[rows, d] = _log_share(y.astype(int), own) if column.levels else _log_number(y, column, own)
        if KINDS[column.kind].unit_per_cell:
            cells[rows, d] -= complete.values[rows, first[d] + 1]
    return cells


def _log_share(y: Int[np.ndarray, " n"], found: Correction) -> Float[np.ndarray, " n"]:
    return np.log(np.maximum(found.expected[np.arange(len(y)), y], LEAST_SHARE))


def _log_number(y: Float[np.ndarray, " n"], column: Column, found: Correction) -> Float[np.ndarray, " n"]:
    """A number's density, the mass of a zero that has one; a count's, on the interval of what is rounded to it."""
    assert found.law is not None
    scale = _scale(column)
    centre, law = scale.forward(found.expected[:, 0]), found.law
    if law.zero_below > 0:
        none = np.log(np.maximum(law.cdf(law.zero_below - centre, found.var), LEAST_SHARE))
        return np.where(y > 0, law.log_density(y - centre, found.var), none)
    if not KINDS[column.kind].whole:
        return law.log_density(scale.forward(y) - centre, found.var) + scale.log_slope(y)
    above = law.cdf(scale.forward(y + 0.5) - centre, found.var)
    below = law.cdf(scale.forward(np.maximum(y, 0.5) - 0.5) - centre, found.var)
    return np.log(np.maximum(above - np.where(y > 0, below, 0.0), LEAST_SHARE))
