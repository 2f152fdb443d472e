"""What a study says of its subtypes if gaps are not at random: their columns over a range of deltas."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.text import at, bare
from plurigp.core.types import DataError
from plurigp.data import to_frame
from plurigp.data.column import Column
from plurigp.estimator.sensitivity import Sensitivity, sensitivity
from plurigp.report import words
from plurigp.report.map import studied_cells
from plurigp.study import StudyResult

N_DRAWS = 10  # completed tables per setting


def subtype_sensitivity(
    result: StudyResult, table: Any, deltas: Mapping[str, Any], n_draws: int = N_DRAWS, random_state: int = 0
) -> Sensitivity:
    """How every subtype differs from the other patients in the named columns, over all deltas, gaps filled and pooled.

    table: the one that was studied. deltas: those of `plurigp.sensitivity`, such as ``{"albumin": [-0.5, 0, 0.5]}``.
    Differences are of means, of shares of a level, or of the mean rank of ordered levels. Subtypes stay as they are:
    they rest on observed cells. Give the answer to `write_report(sensitivity=...)`.
    """
    studied_cells(result, table)
    if result.clusters.n_strata < 2:
        raise DataError("the study has one stratum, so there is nothing to compare; sensitivity needs at least two.")
    schema, subtype = result.model.schema_, result.clusters.subtype
    used = {column.name: column for column in schema.used}
    for name in deltas:
        if name not in used:
            raise DataError(f"delta: {at(name)} is not used by the study's map; leave it out.")
    compared = [(used[name], level) for name, own in deltas.items() for level in _levels(used[name], own)]
    one = words.parts_of(result.facts).one

    def analyse(completed: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
        found = {}
        for column, level in compared:
            cells = _as_numbers(completed[column.name], column, level)
            label = column.name if level is None else f"{column.name}: {bare(level)}"
            for k in range(1, result.clusters.n_strata + 1):
                found[f"{label}, {one} {k} against others"] = _difference(cells, subtype == k, subtype > 0)
        pairs = pd.DataFrame(found)
        return pairs.iloc[0], pairs.iloc[1]

    return sensitivity(result.model, schema.matching(to_frame(table)), analyse, deltas, n_draws, random_state)


def _levels(column: Column, deltas: Any) -> list[Any]:
    """The levels whose shares are compared; None where numbers or ranks are."""
    if isinstance(deltas, Mapping):
        return list(deltas)
    return [column.levels[1]] if len(column.levels) == 2 else [None]


def _as_numbers(cells: pd.Series, column: Column, level: Any) -> np.ndarray:
    if level is not None:
        return (cells == level).to_numpy(float)
    if column.levels:
        return cells.map({own: rank for rank, own in enumerate(column.levels, 1)}).to_numpy(float)
    return pd.to_numeric(cells, errors="coerce").to_numpy(float)  # a cell beyond a limit is no number


def _difference(cells: np.ndarray, inside: np.ndarray, members: np.ndarray) -> tuple[float, float]:
    """Of means, and its variance."""
    known = ~np.isnan(cells)
    parts = [cells[inside & known], cells[members & ~inside & known]]
    mean = [float(part.mean()) if len(part) else np.nan for part in parts]
    variance = [float(part.var(ddof=1) / len(part)) if len(part) > 1 else np.nan for part in parts]
    return mean[0] - mean[1], sum(variance)
