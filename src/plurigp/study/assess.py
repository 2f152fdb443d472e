"""How well the map predicts cells it was not shown: by column against the marginal, and whether its odds are honest."""

from pathlib import Path

import numpy as np
import pandas as pd

from plurigp.data import Schema
from plurigp.estimator import PluriGP, load
from plurigp.heldout import by, cell_scores
from plurigp.study.characterise import read_values
from plurigp.study.config import StudyConfig
from plurigp.study.tasks import held_out

BINS = 10
LEVELS = ("bernoulli", "categorical", "ordinal")
CALIBRATION = ["column", "kind", "predicted", "observed", "cells"]


def assess(
    folder: Path, frame: pd.DataFrame, rows: np.ndarray, config: StudyConfig
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predictions and calibration of a saved map on held-out rows."""
    model = load(folder)
    shown, truth = held_out(frame, model.schema_, rows, config)
    scores = cell_scores(model, shown, truth)
    kinds = {column.name: column.kind for column in model.schema_.used}
    table = by(scores, "column").reset_index()
    table.insert(1, "kind", [kinds[name] for name in table["column"]])
    return table, calibration(model, shown, truth)


def calibration(model: PluriGP, shown: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Predicted and observed shares of levels in hidden cells, by tenths of the predicted probability."""
    lines = []
    for column, predicted, happened in _level_probabilities(model, shown, truth):
        tenth = np.minimum((predicted * BINS).astype(int), BINS - 1)
        for b in np.unique(tenth):
            own = tenth == b
            means = (float(predicted[own].mean()), float(happened[own].mean()))
            lines.append((column, model.schema_[column].kind, *means, int(own.sum())))
    return pd.DataFrame(lines, columns=CALIBRATION)


def _level_probabilities(
    model: PluriGP, shown: pd.DataFrame, truth: pd.DataFrame
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Per column with levels: the probability of each level in each hidden cell, and whether it was that one.

    Levels are asked for one place at a time, in all columns at once.
    """
    with_levels = [c for c in model.schema_.used if c.kind in LEVELS]
    actual = read_values(truth, Schema(tuple(with_levels)))
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {c.name: [] for c in with_levels}
    for place in range(max((len(c.levels) for c in with_levels), default=0)):
        having = [c for c in with_levels if place < len(c.levels) and (place or c.kind != "bernoulli")]
        asked = {c.name: _constant(truth[c.name], c.levels[place]) for c in having}
        if not asked:
            continue
        log_p = model.score_cells(shown, pd.DataFrame({name: asked.get(name, truth[name]) for name in truth.columns}))
        for name in asked:
            hidden = shown[name].isna().to_numpy() & np.isfinite(actual[name])
            found[name].append((np.exp(log_p[name].to_numpy()[hidden]), (actual[name][hidden] == place).astype(float)))
    return [
        (name, np.concatenate([p for p, _ in parts]), np.concatenate([y for _, y in parts]))
        for name, parts in found.items()
        if sum(len(p) for p, _ in parts)
    ]


def _constant(column: pd.Series, level: object) -> pd.Series:
    """The same level in every row, in the column's own dtype where it has one for it."""
    filled = pd.Series([level] * len(column), index=column.index, dtype=object)
    try:
        return filled.astype(column.dtype)
    except (TypeError, ValueError):
        return filled
