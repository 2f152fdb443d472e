"""The honest test: hide observed cells, predict them from the rest of their rows, compare with the marginals."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from plurigp.baseline import marginal_log_density
from plurigp.data import Schema

if TYPE_CHECKING:
    from plurigp.estimator import PluriGP


def hide_cells(frame: pd.DataFrame, schema: Schema, share: float, seed: int) -> pd.DataFrame:
    """A copy in which each observed cell of a used column is a gap with probability `share`."""
    rng = np.random.default_rng(seed)
    hidden = {column.name: rng.random(len(frame)) < share for column in schema.used}
    return pd.DataFrame(
        {name: frame[name].mask(hidden[name]) if name in hidden else frame[name] for name in frame.columns}
    )


def cell_scores(model: "PluriGP", shown: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """One line per hidden cell: its column, kind, log density under the model and under the marginal, own units."""
    cells = model.score_cells(shown, truth)
    coder = model.coder_
    marginal = marginal_log_density(coder.table(shown), coder.table(truth)) - coder.log_units
    rows, columns = np.nonzero(cells.notna().to_numpy())
    used = coder.schema.used
    return pd.DataFrame(
        {
            "row": rows,
            "column": [used[d].name for d in columns],
            "kind": [used[d].kind for d in columns],
            "model": cells.to_numpy()[rows, columns],
            "marginal": marginal[rows, columns],
        }
    )


def by(scores: pd.DataFrame, what: str) -> pd.DataFrame:
    """Nats per hidden cell by "kind" or "column": model, marginal, gain and the gain's standard error."""
    gain = (scores["model"] - scores["marginal"]).groupby(scores[what])
    table = scores.groupby(what)[["model", "marginal"]].mean()
    table.insert(0, "cells", gain.size())
    table["gain"] = gain.mean()
    table["se"] = gain.std() / np.sqrt(gain.size())
    return table
