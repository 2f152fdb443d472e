"""Can one tell from a model whether a row was in its training table? Half of a table's rows train, the others do not;
an attacker who holds whole rows and the model ranks them by what it says of them.

    python benchmarks/membership.py
    python benchmarks/membership.py --seeds 5

Two attacks: the density of the whole row, and that of cells that are hidden one fifth at a time. The second is the
stronger one where the second stage has learned from single cells. The advantage is the rate of true alarms minus that
of false ones, at the threshold that is best for one half of the rows and measured on the other; 0 is guessing.
"""

import argparse

import numpy as np
import pandas as pd
from common import save
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score, roc_curve

from plurigp import PluriGP
from plurigp.datasets import load_support

N_PARTS = 5  # every cell is hidden once
N_HALVES, N_BOOTSTRAP = 50, 400
STAGES = ("none", "trees")


def tables() -> dict:
    """Table, schema or None, and Q."""
    support = load_support()
    return {
        "SUPPORT, 1,000 × 29": (support.table.iloc[:1000], support.schema, 5),
        "wine, 178 × 13": (load_wine(as_frame=True).data, None, 2),
    }


def cell_scores(model: PluriGP, rows: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Mean log density of a row's cells, each given the row without its part."""
    part = rng.integers(0, N_PARTS, rows.shape)
    found = [
        model.score_cells(rows.mask(part == k), rows).where(pd.DataFrame(part == k, rows.index, rows.columns))
        for k in range(N_PARTS)
    ]
    return pd.concat(found, axis=1).mean(axis=1).to_numpy()


def attack(table: pd.DataFrame, schema, n_components: int, stage: str, seed: int) -> dict[str, np.ndarray]:
    """Who is a member, and the attacker's scores of all rows."""
    rng = np.random.default_rng(seed)
    member = rng.permutation(len(table)) < len(table) // 2
    model = PluriGP(n_components, schema=schema, second_stage=stage, random_state=seed).fit(table[member])
    found = {"rows": model.score_samples(table), "cells": cell_scores(model, table, rng)}
    assert all(np.isfinite(scores).all() for scores in found.values())
    return {"member": member, **found}


def advantage(member: np.ndarray, scores: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """True minus false alarms among the second rows, at the best threshold for the first."""
    false, true, thresholds = roc_curve(member[first], scores[first])
    alarm = scores[second] >= thresholds[np.argmax(true - false)]
    return float(alarm[member[second]].mean() - alarm[~member[second]].mean())


def measured(run: dict[str, np.ndarray], which: str, rng: np.random.Generator, resampled: bool) -> tuple[float, float]:
    """AUC and advantage of one run, by halves drawn at random; each half resampled, members and others apart."""
    member, scores = run["member"], run[which]
    halves: list[list[np.ndarray]] = [[], []]
    for group in (np.flatnonzero(member), np.flatnonzero(~member)):
        for half, rows in zip(halves, np.array_split(rng.permutation(group), 2), strict=True):
            half.append(rng.choice(rows, len(rows)) if resampled else rows)
    first, second = (np.concatenate(half) for half in halves)
    both = np.concatenate([first, second])
    return float(roc_auc_score(member[both], scores[both])), advantage(member, scores, first, second)


def summary(runs: list[dict[str, np.ndarray]], which: str, rng: np.random.Generator) -> dict:
    """Means over the runs, and central 95 % of their bootstrap over rows."""

    def means(n: int, resampled: bool) -> np.ndarray:
        return np.array([np.mean([measured(run, which, rng, resampled) for run in runs], axis=0) for _ in range(n)])

    middle = means(N_HALVES, False).mean(0)
    low, high = np.quantile(means(N_BOOTSTRAP, True), [0.025, 0.975], axis=0)
    return {name: [float(part[n]) for part in (middle, low, high)] for n, name in enumerate(("auc", "advantage"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    result: dict = {}
    for name, (table, schema, n_components) in tables().items():
        result[name] = {}
        for stage in STAGES:
            runs = [attack(table, schema, n_components, stage, seed) for seed in seeds]
            rng = np.random.default_rng(0)
            found = {which: summary(runs, which, rng) for which in ("rows", "cells")}
            result[name][stage] = {"seeds": len(seeds), **found}
            print(name, stage, found, flush=True)
            save("membership", result)


if __name__ == "__main__":
    main()
