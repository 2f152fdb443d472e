"""Scores beside the columns' marginals: of hidden cells predicted from the rest of their rows (the honest test), of
whole rows, and of cells that the encoder has read."""

import numpy as np
import pandas as pd

from plurigp.answers.baseline import Marginals
from plurigp.answers.density import cell_log_density, log_density, reconstruction
from plurigp.answers.predictor import Predictor
from plurigp.data import Coder, Schema, Table


def random_cells(n_rows: int, schema: Schema, share: float, seed: int) -> np.ndarray:
    """Cells of the used columns to hide [N D]: each with probability `share`."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.random(n_rows) < share for _ in schema.used], axis=1)


def hide_cells(frame: pd.DataFrame, schema: Schema, share: float, seed: int) -> pd.DataFrame:
    """A copy in which each observed cell of a used column is a gap with probability `share`.

    A cell that lies in two columns (two bounds, or a time and its event) is hidden in both; trials stay known.
    """
    gaps: dict[str, np.ndarray] = {}
    for column, hidden in zip(schema.used, random_cells(len(frame), schema, share, seed).T, strict=True):
        gaps[column.name] = hidden
        if column.upper is not None:
            gaps[column.upper] = hidden | gaps.get(column.upper, False)
        if column.event is not None:  # of several times, it stays with those that are shown
            gaps[column.event] = hidden & gaps.get(column.event, True)
    return pd.DataFrame({name: frame[name].mask(gaps[name]) if name in gaps else frame[name] for name in frame})


# --- scores ---


def cell_scores(
    predictor: Predictor, coder: Coder, marginals: Marginals, shown: Table, complete: Table
) -> pd.DataFrame:
    """One line per hidden cell: its row, column, kind, log density under the model and under the marginal, own units.

    Both are to be fitted to the same rows; `shown` and `complete` are coded by the model's coder.
    """
    cells = cell_log_density(predictor, shown, complete)
    return _lines(coder, np.where(shown.seen, np.nan, cells), marginals.log_density(complete))


def reconstruction_scores(predictor: Predictor, coder: Coder, marginals: Marginals, table: Table) -> pd.DataFrame:
    """The same for every observed cell, each shown to the encoder before it is scored."""
    return _lines(coder, reconstruction(predictor, table), marginals.log_density(table))


def density_scores(predictor: Predictor, coder: Coder, marginals: Marginals, table: Table) -> pd.DataFrame:
    """One line per row: log density of its observed cells under the model, a lower bound, and under the marginals."""
    units = table.seen @ coder.log_units
    marginal = np.nansum(marginals.log_density(table), axis=1)
    model = log_density(predictor, table)
    return pd.DataFrame({"row": np.arange(len(model)), "model": model - units, "marginal": marginal - units})


def _lines(coder: Coder, cells: np.ndarray, marginal: np.ndarray) -> pd.DataFrame:
    """From coded log densities [N D] to lines in the columns' own units."""
    rows, columns = np.nonzero(~np.isnan(cells))
    used, units = coder.schema.used, coder.log_units[columns]
    names, kinds = [used[d].name for d in columns], [used[d].kind for d in columns]
    model, marginal = cells[rows, columns] - units, marginal[rows, columns] - units
    return pd.DataFrame({"row": rows, "column": names, "kind": kinds, "model": model, "marginal": marginal})


# --- means and their errors ---


def scores_by(scores: pd.DataFrame, what: str) -> pd.DataFrame:
    """Nats per line by "kind", "column" or "row": model, marginal, gain and the gain's standard error over rows."""
    gain = scores["model"] - scores["marginal"]
    table = scores.groupby(what)[["model", "marginal"]].mean()
    table.insert(0, "cells", gain.groupby(scores[what]).size())
    table["gain"] = gain.groupby(scores[what]).mean()
    by_row = gain.groupby([scores[what], scores["row"]]).agg(["sum", "size"])
    table["se"] = [ratio_se(rows["sum"], rows["size"]) for _, rows in by_row.groupby(level=0)]
    return table


def ratio_se(total: np.ndarray | pd.Series, n: np.ndarray | pd.Series) -> float:
    """Standard error of the mean per cell m = Σ_i t_i / Σ_i n_i, from each row's total t_i and number of cells n_i.

        se² = R / (R − 1) · Σ_i (t_i − m n_i)² / (Σ_i n_i)²

    Rows are independent and the cells of a row are not: the row is the unit (a ratio estimator, or a mean with errors
    clustered by row). NaN with fewer than two rows that have cells.
    """
    total, n = np.asarray(total, float), np.asarray(n, float)
    R = int((n > 0).sum())
    if R < 2:
        return float("nan")
    residual = total - total.sum() / n.sum() * n
    return float(np.sqrt(R / (R - 1) * (residual**2).sum()) / n.sum())
