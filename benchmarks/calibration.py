"""Do intervals cover what they say? Hidden cells of real and simulated tables, by kind, rate and reason of the gaps.

    python benchmarks/calibration.py [--tables support simulated observed self] [--rates 10 20 50] [--folders ...]

support     the SUPPORT patients, cells hidden at random
simulated   2,000 × 26 cells of the basic kinds drawn from the model, hidden at random
observed    the same, gaps likelier where the first column, which has none, is high
self        the same, gaps likelier where the hidden value itself is high: no model that is not told can be right

--folders adds tables in the format of imputation.py, whose settings are used for all.
"""

import argparse
from pathlib import Path

import numpy as np
from common import save, saved
from hidden import SETTINGS, SUPPORT, read_hidden
from intervals import coverage

from plurigp import PluriGP
from plurigp.datasets import simulate
from plurigp.heldout import cell_scores

MECHANISM = {"simulated": "random", "observed": "observed", "self": "self"}


def hidden_table(name: str, rate: int, seed: int) -> tuple:
    """(shown, truth, schema) of a table with `rate` percent of its cells hidden."""
    if name in MECHANISM:
        sim = simulate(2000, 2, missing=rate / 100, random_state=seed, mechanism=MECHANISM[name])
        return sim.table, sim.truth, sim.schema
    case = read_hidden(name, rate, seed + 1)
    return case.shown, case.frame, case.schema


def one(name: str, rate: int, seed: int) -> dict:
    shown, truth, schema = hidden_table(name, rate, seed)
    model = PluriGP(**SETTINGS | ({"n_components": 2} if name in MECHANISM else {}), schema=schema).fit(shown)
    scores = cell_scores(model, shown, truth)
    nats = {"nats": float(scores["model"].mean()), "marginal_nats": float(scores["marginal"].mean())}
    found = {"rate": rate, "seed": seed, "epochs": model.n_iter_, **nats, "coverage": coverage(model, shown, truth)}
    print(Path(name).name, rate, seed, {k: round(v, 3) for k, v in nats.items()}, flush=True)
    for kind, figures in found["coverage"].items():
        print("   ", kind, {k: round(v, 3) for k, v in figures.items()}, flush=True)
    return found


def pooled(runs: list[dict]) -> dict[str, dict[str, float]]:
    """Coverage by kind over the runs, weighted by cells."""
    out = {}
    for kind in runs[0]["coverage"]:
        parts = [run["coverage"][kind] for run in runs]
        cells = np.array([part["cells"] for part in parts], float)
        names = [name for name in parts[0] if name != "cells"]
        out[kind] = {"cells": int(cells.sum())} | {
            name: float(np.average([part[name] for part in parts], weights=cells)) for name in names
        }
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=[SUPPORT, *MECHANISM], choices=[SUPPORT, *MECHANISM])
    parser.add_argument("--folders", nargs="*", default=[])
    parser.add_argument("--rates", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    for name in [*given.tables, *given.folders]:
        for rate in given.rates:
            runs = [one(name, rate, seed) for seed in range(given.seeds)]
            result = saved("calibration")
            result.setdefault(Path(name).name, {})[str(rate)] = {"runs": runs, "pooled": pooled(runs)}
            save("calibration", result)
