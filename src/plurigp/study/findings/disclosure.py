"""Small cells: counts of a few rows that would tell of single patients are raised, pooled or left out of a result."""

from dataclasses import replace

import numpy as np
import pandas as pd

from plurigp.data import Column
from plurigp.data.rows import CellBounds
from plurigp.data.schema import detail

MIN_COUNT = 5  # rows; fewer are a small cell unless a study says otherwise


def raised(inside: np.ndarray, outside: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Yes and no (1 and 0) of two groups with 1 … least−1 of either raised to `least`; None where nothing can be shown.

    A raised count makes the two groups more alike, so a difference that is found is there. Nothing is shown where fewer
    than `least` rows of both groups together say yes, or no, or where a group is too small to raise both.
    """
    sides = [_raised_side(np.asarray(side, bool), least) for side in (inside, outside)]
    total, n = int(np.sum(inside) + np.sum(outside)), len(inside) + len(outside)
    if total < least or n - total < least or sides[0] is None or sides[1] is None:
        return None
    return sides[0], sides[1]


def _raised_side(flags: np.ndarray, least: int) -> np.ndarray | None:
    n, yes = len(flags), int(flags.sum())
    if 0 < yes < least:
        yes = least
    elif 0 < n - yes < least:
        yes = n - least
    else:
        return flags
    return np.arange(n) < yes if least <= n - yes or yes == n else None


def public_detail(column: Column, cells: CellBounds | None, least: int) -> tuple[str, str]:
    """Detail and reason of a column, without the levels that fewer than `least` rows have."""
    if not column.levels or cells is None:
        return detail(column), column.reason
    counts = np.bincount(cells.low[cells.seen].astype(int), minlength=len(column.levels))
    named = tuple(level for level, n in zip(column.levels, counts, strict=True) if n >= least)
    n_rare = len(column.levels) - len(named)
    if n_rare == 0:
        return detail(column), column.reason
    rest = f"{n_rare} {'level' if n_rare == 1 else 'levels'} of fewer than {least} rows"
    shown = f"{detail(replace(column, levels=named))} and {rest}" if named else rest
    return shown, f"{len(column.levels)} levels"


def pooled_bins(calibration: pd.DataFrame, least: int) -> pd.DataFrame:
    """Bins of fewer than `least` cells put together by kind and tenth, under no column; what is still small goes."""
    small = calibration["cells"] < least
    if not small.any():
        return calibration
    few = calibration[small]
    tenth = np.minimum((few["predicted"] * 10).astype(int), 9)
    sums = few[["predicted", "observed"]].mul(few["cells"], axis=0).assign(kind=few["kind"], cells=few["cells"])
    pooled = sums.groupby([few["kind"], tenth], sort=True).agg(
        {"predicted": "sum", "observed": "sum", "kind": "first", "cells": "sum"}
    )
    pooled = pooled[pooled["cells"] >= least].reset_index(drop=True).assign(column="")
    pooled[["predicted", "observed"]] = pooled[["predicted", "observed"]].div(pooled["cells"], axis=0)
    kept = [calibration[~small], pooled[list(calibration.columns)]]
    return pd.concat([part for part in kept if len(part)] or kept[:1], ignore_index=True)


def without_few_cells(predictions: pd.DataFrame, least: int) -> pd.DataFrame:
    """Scores by column; those of fewer than `least` cells are not known."""
    scores = ["model", "marginal", "gain", "se"]
    out = predictions.copy()
    out.loc[out["cells"] < least, scores] = np.nan
    return out
