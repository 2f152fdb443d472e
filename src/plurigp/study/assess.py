"""How well the map predicts cells it was not shown: by column against the marginal, and whether its odds are honest."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from plurigp.data import Schema
from plurigp.data.kinds import kind_of
from plurigp.estimator import PluriGP, load
from plurigp.heldout import by, cell_scores
from plurigp.predict import levels_of_columns
from plurigp.study.characterise import read_values
from plurigp.study.config import StudyConfig
from plurigp.study.tasks import held_out

BINS = 10
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
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Per column with levels: the probability of each level in each hidden cell, and whether it was that one.

    Of two levels one is enough: the other's probability is the rest.
    """
    places = [d for d, column in enumerate(model.schema_.used) if kind_of(column).has_levels]
    with_levels = [model.schema_.used[d] for d in places]
    actual = read_values(truth, Schema(tuple(with_levels)))
    shares = levels_of_columns(model._ready(), model.coder_.table(shown), places) if places else []
    for column, share in zip(with_levels, shares, strict=True):
        hidden = shown[column.name].isna().to_numpy() & actual[column.name].seen
        if hidden.any():
            first = int(len(column.levels) == 2)
            predicted = share[hidden, first : len(column.levels)]
            happened = actual[column.name].low[hidden, None] == np.arange(first, len(column.levels))
            yield column.name, predicted.ravel(), happened.ravel().astype(float)
