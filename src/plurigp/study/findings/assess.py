"""How well the map predicts hidden cells of held-out rows: gain over the marginal by column, calibration of levels."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from plurigp.answers.baseline import Marginals
from plurigp.answers.fill import levels_of_columns
from plurigp.answers.heldout import cell_scores, scores_by
from plurigp.data import Table
from plurigp.data.kinds import kind_of
from plurigp.estimator import PluriGP
from plurigp.likelihoods.layout import first_slots

BINS = 10
CALIBRATION = ["column", "kind", "predicted", "observed", "cells"]


def predictive_scores(
    model: PluriGP, training: Table, shown: Table, complete: Table
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores by column and calibration in hidden cells, beside marginals of the rows that the model was fitted to."""
    scores = cell_scores(model.predictor_, model.coder_, Marginals.fit(training), shown, complete)
    table = scores_by(scores, "column").reset_index()
    table.insert(1, "kind", [model.schema_[name].kind for name in table["column"]])
    return table, calibration(model, shown, complete)


def calibration(model: PluriGP, shown: Table, complete: Table) -> pd.DataFrame:
    """Predicted and observed shares of levels in hidden cells, by tenths of the predicted probability."""
    lines = []
    for column, predicted, happened in _level_probabilities(model, shown, complete):
        tenth = np.minimum((predicted * BINS).astype(int), BINS - 1)
        for b in np.unique(tenth):
            own = tenth == b
            means = (float(predicted[own].mean()), float(happened[own].mean()))
            lines.append((column, model.schema_[column].kind, *means, int(own.sum())))
    return pd.DataFrame(lines, columns=CALIBRATION)


def _level_probabilities(model: PluriGP, shown: Table, complete: Table) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Per column with levels: the probability of each level in each hidden cell, and whether it was that one.

    Of two levels only the second, since the probabilities sum to one.
    """
    places = [d for d, column in enumerate(complete.schema) if kind_of(column).has_levels]
    actual = complete.values[:, first_slots(complete.schema)]
    hidden = complete.seen & ~shown.seen
    shares = levels_of_columns(model.predictor_, shown, places) if places else []
    for d, share in zip(places, shares, strict=True):
        column, cells = complete.schema.columns[d], hidden[:, d]
        if cells.any():
            first = int(len(column.levels) == 2)
            happened = actual[cells, d, None] == np.arange(first, len(column.levels))
            yield column.name, share[cells, first : len(column.levels)].ravel(), happened.ravel().astype(float)
