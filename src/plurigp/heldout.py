"""Three scores beside the marginals': hidden cells predicted from the rest of their rows, which is the honest test; the
density of whole rows; and the reconstruction of cells that the encoder has read."""

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
    return _lines(model, model.score_cells(shown, truth), _marginal(model, shown, truth))


def reconstruction_scores(model: "PluriGP", table: pd.DataFrame) -> pd.DataFrame:
    """The same for every observed cell, each shown to the encoder before it is scored."""
    return _lines(model, model.score_reconstruction(table), _marginal(model, table, table))


def density_scores(model: "PluriGP", table: pd.DataFrame) -> pd.DataFrame:
    """One line per row: log density of its observed cells under the model, a lower bound, and under the marginals."""
    marginal = np.nansum(_marginal(model, table, table), axis=1)
    return pd.DataFrame({"row": np.arange(len(marginal)), "model": model.score_samples(table), "marginal": marginal})


def _marginal(model: "PluriGP", shown: pd.DataFrame, scored: pd.DataFrame) -> np.ndarray:
    """[N D], own units."""
    coder = model.coder_
    return marginal_log_density(coder.table(shown), coder.table(scored)) - coder.log_units


def _lines(model: "PluriGP", cells: pd.DataFrame, marginal: np.ndarray) -> pd.DataFrame:
    rows, columns = np.nonzero(cells.notna().to_numpy())
    used = model.schema_.used
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
    """Nats per line by "kind", "column" or "row": model, marginal, gain and the gain's standard error."""
    gain = (scores["model"] - scores["marginal"]).groupby(scores[what])
    table = scores.groupby(what)[["model", "marginal"]].mean()
    table.insert(0, "cells", gain.size())
    table["gain"] = gain.mean()
    table["se"] = gain.std() / np.sqrt(gain.size())
    return table
