"""Small cells: counts of a few rows that would tell of single patients are changed, pooled or left out of a result."""

from dataclasses import replace

import numpy as np
import pandas as pd

from plurigp.data import Column
from plurigp.data.rows import CellBounds
from plurigp.data.schema import detail

MIN_COUNT = 5  # rows; fewer are a small cell unless a study says otherwise


def protected_counts(counts: np.ndarray, least: int) -> np.ndarray:
    """Rows by group and level [K L] without their small counts; every group keeps its size.

    A count of 1 … least−1 becomes what the level's share in the groups that are not small in it would give, between 1
    and `least`, and the group's commonest level makes up for it. All that is shown is computed from the result, so no
    sum or difference of it gives a small count away; and a group comes closer to the others, never further from them.
    """
    small = (counts > 0) & (counts < least)
    n = counts.sum(axis=1, keepdims=True)
    shares = np.where(small, 0, counts).sum(axis=0) / np.maximum(np.where(small, 0, n).sum(axis=0), 1)
    commonest = np.arange(counts.shape[1]) == counts.argmax(axis=1)[:, None]
    others = np.where(small, np.clip(np.rint(n * shares), 1, least).astype(int), counts) * ~commonest
    too_many = others.sum(axis=1, keepdims=True) > n  # in a group of few rows and many levels
    others = np.where(too_many, np.where(small, 1, counts) * ~commonest, others)
    return others + commonest * (n - others.sum(axis=1, keepdims=True))


def too_small(counts: np.ndarray, least: int) -> bool:
    """Whether one of the counts tells of single patients; none at all is no patient."""
    return bool(((counts > 0) & (counts < least)).any())


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
