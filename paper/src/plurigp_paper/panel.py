"""Figure 4: random halves, the same for all; composite likelihoods, Gaussian for all, and real columns alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from plurigp.answers.heldout import hide_cells
from plurigp.data import Schema
from plurigp.estimator import PluriGP
from plurigp_paper.families import NoiseModel, declare, gaussian_for_all, with_kinds
from plurigp_paper.runs import Work
from plurigp_paper.scores import mass_scorer, score

ENCODER = "masked"  # networks, as the paper has them, that also read which cells are there
HIDDEN_SHARE = 0.2  # share of a held-out row's cells to predict
LEVELS, REAL, SHARE = "levels", "real", "share"  # groups of columns
GROUPS = {"bernoulli": LEVELS, "gaussian": REAL, "beta": SHARE}
APPROACHES = {
    1: "real columns alone",
    2: "composite likelihoods",
    3: "Gaussian for all",
}  # as the paper numbers them


@dataclass(frozen=True, eq=False)
class PanelData:
    """A table of yes/no columns (they come first), real ones and perhaps shares."""

    table: pd.DataFrame
    schema: Schema

    @property
    def groups(self) -> dict[str, str]:
        return {column.name: GROUPS[column.kind] for column in self.schema.used}

    @property
    def n_levels(self) -> int:
        return sum(column.kind == "bernoulli" for column in self.schema.used)


PAPER_NODES = 3


@dataclass(frozen=True)
class Fit:
    """What is the same for all fits of a panel."""

    n_components: int
    max_epochs: int
    batch_size: int
    seed: int = 0
    model: Mapping[str, Any] | None = None

    def estimator(self, schema: Schema, seed: int) -> PluriGP:
        return PluriGP(
            self.n_components,
            schema=schema,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            random_state=self.seed + seed,
            calibrate=False,
            **{"encoder": ENCODER} | dict(self.model or {}),
        )


def halves(n_rows: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows to score, for one random split."""
    shuffled = np.random.default_rng([20210413, split]).permutation(n_rows)
    return np.sort(shuffled[: n_rows // 2]), np.sort(shuffled[n_rows // 2 :])


def approach_table(data: PanelData, approach: int, noise: NoiseModel) -> tuple[pd.DataFrame, Schema]:
    """The table and the kinds that one approach works with."""
    kind = declare(noise)
    if approach == 3:
        return gaussian_for_all(data.table, data.schema, kind)
    schema = with_kinds(data.schema, {"gaussian": kind})
    if approach == 1:
        schema = Schema(tuple(c for c in schema.used if c.kind == kind))
    return data.table[list(schema.names)], schema


def held_out_tables(
    data: PanelData, test: np.ndarray, split: int, frame: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The test rows of an approach's table complete, and with the same cells hidden for every approach."""
    truth = data.table.iloc[test].reset_index(drop=True)
    gaps = hide_cells(truth, data.schema, HIDDEN_SHARE, split).isna()
    complete = frame.iloc[test].reset_index(drop=True)
    return complete, complete.mask(gaps[list(complete.columns)])


def fit_and_score(data: PanelData, fit: Fit, split: int, approach: int, noise: NoiseModel) -> dict[str, Any]:
    """One fit on one half, scored on the other; Gaussian for all also by probability ("mass")."""
    frame, schema = approach_table(data, approach, noise)
    train, test = halves(len(frame), split)
    model = fit.estimator(schema, split).fit(frame.iloc[train].reset_index(drop=True))
    truth, shown = held_out_tables(data, test, split, frame)
    found = {"raw": score(model, truth, shown, data.groups)}
    if approach == 3:
        found["mass"] = score(model, truth, shown, data.groups, mass_scorer(model, noise, data.n_levels))
    return {"scores": found, "bound": model.elbo_ / len(train), "epochs": model.n_iter_, "stopped": model.stopped_}


def panel_tasks(data: PanelData, fit: Fit, splits: Sequence[int], noises: Mapping[str, NoiseModel]) -> dict[str, Work]:
    """Every split with every approach and noise."""
    return {
        task_name(name, approach, split): partial(fit_and_score, data, fit, split, approach, noise)
        for split in splits
        for name, noise in noises.items()
        for approach in APPROACHES
    }


def task_name(noise: str, approach: int, split: int) -> str:
    return f"panel-{noise}-{approach}-{split:02}"


# --- from fits to comparisons ---


def comparisons(found: Mapping[str, Any], noise: str, splits: Sequence[int]) -> dict[str, Any]:
    """Composite against Gaussian for all on all columns; approach 2 against 1 and 3 on the real ones; all paired."""

    def values(approach: int, by: str, score: str, groups: Sequence[str] | None) -> np.ndarray:
        return np.array([_read(found[task_name(noise, approach, s)]["scores"][by], score, groups) for s in splits])

    out: dict[str, Any] = {}
    for score_name in ("reconstruction", "cells", "density"):
        composite = values(2, "raw", score_name, None)
        for by in ("raw", "mass"):
            out[f"all/{score_name}/{by}"] = _pair(composite, values(3, by, score_name, None), "composite", "gaussian")
        ours = values(2, "raw", score_name, (REAL,))
        for other in (1, 3):
            out[f"real/{score_name}/{other}"] = _pair(ours, values(other, "raw", score_name, (REAL,)), "2", str(other))
    for by in ("raw", "mass"):
        for score_name in ("reconstruction", "cells"):
            out[f"levels/{score_name}/{by}"] = _pair(
                values(2, "raw", score_name, (LEVELS,)), values(3, by, score_name, (LEVELS,)), "composite", "gaussian"
            )
    return out


def _read(scores: Mapping[str, Any], name: str, groups: Sequence[str] | None) -> float:
    """Sums over groups for the reconstruction, which is per row; hidden cells count alike, whatever their group."""
    if name == "density":
        return float(scores["density"]["all" if groups is None else groups[0]])
    chosen = scores[name] if groups is None else {g: scores[name][g] for g in groups}
    if name == "reconstruction":
        return float(sum(chosen.values()))
    counts = {g: scores["hidden"][g] for g in chosen}
    return float(sum(chosen[g] * counts[g] for g in chosen) / sum(counts.values()))


def _pair(ours: np.ndarray, other: np.ndarray, name: str, other_name: str) -> dict[str, Any]:
    difference = ours - other
    return {
        "names": [name, other_name],
        "values": [ours.tolist(), other.tolist()],
        "wins": int((difference > 0).sum()),
        "n": len(difference),
        "median": float(np.median(difference)),
        "lowest": float(difference.min()),
        "highest": float(difference.max()),
    }
