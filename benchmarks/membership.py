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
N_BOOTSTRAP = 2000
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
    return {"member": member, "rows": model.score_samples(table), "cells": cell_scores(model, table, rng)}


def advantage(member: np.ndarray, scores: np.ndarray, rng: np.random.Generator) -> float:
    """True minus false alarms in one half of the rows, at the best threshold of the other half."""
    first = rng.permutation(len(member)) < len(member) // 2
    false, true, thresholds = roc_curve(member[first], scores[first])
    alarm = scores[~first] >= thresholds[np.argmax(true - false)]
    return float(alarm[member[~first]].mean() - alarm[~member[~first]].mean())


def summary(runs: list[dict[str, np.ndarray]], which: str, rng: np.random.Generator) -> dict:
    """Means over the runs, and central 95 % of their bootstrap over rows."""

    def measure(resampled: bool) -> tuple[float, float]:
        both = []
        for run in runs:
            rows = np.arange(len(run["member"]))
            rows = rng.choice(rows, len(rows)) if resampled else rows
            member, scores = run["member"][rows], run[which][rows]
            both.append((roc_auc_score(member, scores), advantage(member, scores, rng)))
        auc, gain = np.mean(both, axis=0)
        return float(auc), float(gain)

    middle = np.mean([measure(False) for _ in range(50)], axis=0)  # over the choices of the half
    ranges = np.quantile([measure(True) for _ in range(N_BOOTSTRAP // 4)], [0.025, 0.975], axis=0)
    names = ("auc", "advantage")
    return {name: [float(middle[n]), *ranges[:, n].tolist()] for n, name in enumerate(names)}


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
