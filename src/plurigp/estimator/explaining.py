"""`explain`: which columns each latent dimension is about, how much of them it explains, and in which direction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from plurigp.answers.dimensions import N_REFERENCES, curve_along, linear_loadings, shapley_gains, varimax
from plurigp.answers.latent import positions
from plurigp.core.types import DataError
from plurigp.data import Coder, Table
from plurigp.data.kinds import kind_of
from plurigp.data.numeric import COUNT
from plurigp.data.roles import balanced_weights
from plurigp.data.table import take_rows
from plurigp.estimator.pluri_gp import PluriGP

MAX_ROWS = 300  # whose cells are explained, at random
N_STEPS, REACH = 25, 2.0  # points of a curve, and how many sds it goes to either side
LEVEL = 0.9  # of the curves' intervals
MONOTONE = 0.7  # share of a curve's range that its ends must span to have a direction


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What the latent dimensions of a model explain.

    parts: one line per column and dimension: column, kind, dimension (from 1), deviance (explained, in 2 nats per
      observed cell), se (over rows), share (of all that the column's dimensions explain), r2, direction, rank (of the
      column within the dimension).
    totals: one line per column: column, kind, cells, deviance, se, r2 = 1 − exp(−deviance), which for a Gaussian column
      is the share of its variance that is explained.
    dimensions: one line per dimension: dimension, deviance (over all cells of a row), share, and its three columns.
    views: one line per view and dimension, if views were given: view, dimension, columns (their number), deviance (over
      the view's cells of a row), share (of all that its dimensions explain), r2 (mean over its columns).
    curves: dimension, position (in sds of the rows), column, level, mean, low, high: expected value, or probability of
      the level, in the column's own units; other dimensions at their means, covariates at their average; low to high is
      what the functions leave open at 90 %.
    rotation: [Q Q]; `positions` are the model's own times it.
    """

    parts: pd.DataFrame
    totals: pd.DataFrame
    dimensions: pd.DataFrame
    views: pd.DataFrame
    curves: pd.DataFrame
    positions: np.ndarray
    rotation: np.ndarray

    def __repr__(self) -> str:
        return self.dimensions.to_string(index=False)


def explain(
    model: PluriGP,
    table: Any,
    rotate: bool = False,
    random_state: int = 0,
    views: Mapping[str, Sequence[str]] | None = None,
) -> Explanation:
    """Explain the dimensions of a trained model by the rows of a table, at most 300 of them drawn at random.

    With rotate, dimensions are turned by varimax of their linear loadings, so that each is about few columns; the
    model and its predictions stay as they are. What is explained are cells that the encoder has read, as in the R² of a
    regression, not of one's predictions. `views` are {"labs": [columns]}, the model's own if it was fitted with any.
    """
    views = views if views is not None else model.views or {}
    balanced_weights(model.schema_, views)  # refuses unknown and doubly named columns
    coded = table if isinstance(table, Table) else model.coder_.table(table)
    if not coded.seen.any():
        raise DataError("the table has no observed cell of a used column; give rows with cells")
    predictor, rng = model.predictor_, np.random.default_rng(random_state)
    own, _ = positions(predictor, coded)
    if len(own) < 2:
        raise DataError("1 row does not say what dimensions do; give at least 2 rows")
    R = varimax(linear_loadings(predictor, own)) if rotate else np.eye(own.shape[1])
    R = R * np.where(R.sum(0) < 0, -1.0, 1.0)
    x = own @ R
    rows = np.sort(rng.choice(len(x), min(len(x), MAX_ROWS), replace=False))
    references = x[rng.choice(len(x), N_REFERENCES, replace=len(x) < N_REFERENCES)]
    gains = shapley_gains(predictor, take_rows(coded, rows), x[rows], references, R, random_state)
    curves = pd.concat([_curve_lines(model, x, R, q) for q in range(x.shape[1])], ignore_index=True)
    parts, totals = _summarised(model.coder_, gains, curves)
    return Explanation(parts, totals, _by_dimension(parts, coded), _by_view(parts, coded, views), curves, x, R)


# --- deviances ---


def _summarised(coder: Coder, gains: np.ndarray, curves: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means over observed cells and their errors over rows, by column and dimension and by column."""
    lines, totals = [], []
    for d, column in enumerate(coder.schema.used):
        cells = 2 * gains[~np.isnan(gains[:, d, 0]), d]  # [n Q]
        n = len(cells)
        if n == 0:
            continue
        each, total = cells.mean(0), float(cells.sum(1).mean())
        errors = cells.std(0, ddof=1) / np.sqrt(n) if n > 1 else np.full(cells.shape[1], np.nan)
        se = float(cells.sum(1).std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
        r2 = float(-np.expm1(-max(total, 0.0)))
        about = {"column": column.name, "kind": column.kind}
        totals.append({**about, "cells": n, "deviance": total, "se": se, "r2": r2})
        for q, part in enumerate(each):
            share = float(part / total) if total > 0 else 0.0
            direction = _direction(curves, column.name, q + 1)
            own = {
                "dimension": q + 1,
                "deviance": float(part),
                "se": float(errors[q]),
                "share": share,
                "r2": r2 * share,
            }
            lines.append({**about, **own, "direction": direction})
    parts = pd.DataFrame(lines)
    parts["rank"] = parts.groupby("dimension")["deviance"].rank(ascending=False, method="first").astype(int)
    ordered = pd.DataFrame(totals).sort_values("deviance", ascending=False, kind="stable", ignore_index=True)
    return parts.sort_values(["dimension", "rank"], ignore_index=True), ordered


def _direction(curves: pd.DataFrame, name: str, dimension: int) -> str:
    """Where the curve goes: "higher", "lower" or "bends", "more yes" or "less yes"; of several levels, the one that
    gains most."""
    own = curves[(curves["column"] == name) & (curves["dimension"] == dimension)]
    changes = own.groupby("level", sort=False)["mean"].agg(lambda mean: mean.iloc[-1] - mean.iloc[0])
    spans = own.groupby("level", sort=False)["mean"].agg(lambda mean: mean.max() - mean.min())
    if len(changes) > 1:
        return f"more {changes.idxmax()}"
    change, level = changes.iloc[0], changes.index[0]
    if abs(change) < MONOTONE * spans.iloc[0]:
        return "bends"
    up, down = (f"more {level}", f"less {level}") if level else ("higher", "lower")
    return up if change > 0 else down


def _by_dimension(parts: pd.DataFrame, table: Table) -> pd.DataFrame:
    """What a dimension explains of a row: its columns' deviances times the share of their cells that are observed."""
    weighted = _per_row(parts, table)
    total = weighted.groupby(parts["dimension"]).sum()
    first = parts[parts["rank"] <= 3].groupby("dimension")["column"].agg(list)
    share = total / max(float(total.sum()), 1e-300)
    return pd.DataFrame({"deviance": total, "share": share, "columns": first}).reset_index()


def _per_row(parts: pd.DataFrame, table: Table) -> pd.Series:
    """Deviances times the share of the column's cells that are observed."""
    names = [column.name for column in table.schema]
    observed = dict(zip(names, table.seen.mean(0), strict=True))
    return parts["deviance"] * parts["column"].map(observed).astype(float)


def _by_view(parts: pd.DataFrame, table: Table, views: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """What each dimension explains of each view."""
    lines = []
    for view, names in views.items():
        own = parts[parts["column"].isin(names)]
        by_dimension = own.assign(deviance=_per_row(own, table)).groupby("dimension")
        found = by_dimension.agg(columns=("column", "size"), deviance=("deviance", "sum"), r2=("r2", "mean"))
        share = found["deviance"] / max(float(found["deviance"].sum()), 1e-300)
        lines.append(found.assign(view=view, share=share).reset_index())
    columns = ["view", "dimension", "columns", "deviance", "share", "r2"]
    return pd.concat(lines, ignore_index=True)[columns] if lines else pd.DataFrame(columns=columns)


# --- curves ---


def _curve_lines(model: PluriGP, x: np.ndarray, R: np.ndarray, q: int) -> pd.DataFrame:
    steps = np.linspace(-REACH, REACH, N_STEPS)
    along = np.tile(x.mean(0), (N_STEPS, 1))
    along[:, q] += steps * x[:, q].std()
    names = list(model.schema_.names)
    at_average = replace(model.coder_, covariates=None)
    empty = at_average.table(pd.DataFrame(index=range(N_STEPS), columns=names, dtype=object))
    curve = curve_along(model.predictor_, empty, along @ R.T, LEVEL)
    lines = []
    for block, found in enumerate(zip(*curve, strict=True)):
        start, end = model.predictor_.layout.blocks[block].columns
        for c, d in enumerate(model.predictor_.layout.order[start:end]):
            lines += _column_lines(model.coder_, d, [part[:, c] for part in found], steps, q)
    return pd.DataFrame(lines)


def _column_lines(coder: Coder, d: int, ends: list[np.ndarray], steps: np.ndarray, q: int) -> list[dict[str, Any]]:
    """One column's curve in its own units, or one curve per level."""
    column = coder.schema.used[d]
    return [
        {"dimension": q + 1, "position": at, "column": column.name, "level": level, "mean": m, "low": low, "high": high}
        for level, parts in expected_by_level(coder, d, ends)
        for at, m, low, high in zip(steps.tolist(), *(part.tolist() for part in parts), strict=True)
    ]


def expected_by_level(coder: Coder, d: int, cells: list[np.ndarray]) -> list[tuple[str, list[np.ndarray]]]:
    """Expected cells [B K] of one column as numbers in its own units, level "", or as probabilities by level; of two
    levels that of the second."""
    column = coder.schema.used[d]
    if not column.levels:
        return [("", [_in_own_units(coder, d, part[:, 0]) for part in cells])]
    levels = column.levels[1:] if cells[0].shape[1] == 1 else column.levels
    return [(str(level), [part[:, k] for part in cells]) for k, level in enumerate(levels)]


def _in_own_units(coder: Coder, d: int, coded: np.ndarray) -> np.ndarray:
    """Expected values, which a count's decoding would round."""
    column = coder.schema.used[d]
    return coded if kind_of(column).domain is COUNT else coder.undo(column.name, coded).to_numpy(float)
