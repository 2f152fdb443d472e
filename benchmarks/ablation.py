"""What every part of the imputer is worth: its error and its nats per hidden cell with the part left out.

    python benchmarks/ablation.py TABLE.csv [TABLE.csv ...] [--rate 30] [--seeds 0] [--rows 2000] [--again]

A TABLE is a CSV file as in imputers.py, whose error and whose mechanism "random" are used. The map is fitted once for
all variants of the second stage; those that were tried and dropped are beside the parts that stayed. Everything found
is kept in results/ablation.json, and only what is not there yet is run.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from common import save, saved
from imputers import read_numbers

from plurigp import PluriImputer
from plurigp.answers import forest, second_stage, stacking
from plurigp.answers.map_view import view_table
from plurigp.datasets.gaps import draw_gaps

NAME = "ablation"
DEFAULT = "all"
ON_SIMPLEX = stacking.SIMPLEX  # weights of map, trees and ridge


def changed(module: Any, name: str, value: Any) -> Callable:
    return lambda: patch.object(module, name, value)


def all_alike(features: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Every observed cell counts as much."""
    return np.ones(int(seen.sum()))


VARIANTS: dict[str, Callable] = {
    DEFAULT: changed(second_stage, "MIN_CELLS", second_stage.MIN_CELLS),
    "without ridge": changed(stacking, "SIMPLEX", ON_SIMPLEX[ON_SIMPLEX[:, 2] == 0]),
    "without trees for numbers": changed(stacking, "SIMPLEX", ON_SIMPLEX[ON_SIMPLEX[:, 1] == 0]),
    "without the map for numbers": changed(
        stacking, "SIMPLEX", np.vstack([ON_SIMPLEX[:1], ON_SIMPLEX[ON_SIMPLEX[:, 0] == 0]])
    ),
    "one round": changed(second_stage, "N_TREES", second_stage.N_TREES[-1:]),
    "two rounds": changed(second_stage, "N_TREES", second_stage.N_TREES[-2:]),
    "gaps like any cell": changed(second_stage, "gap_odds", all_alike),
    "functions that know the cell": changed(
        second_stage, "view_left_out", lambda p, shown, table: view_table(p, shown, warn=False)
    ),
    "splits try all inputs (dropped)": changed(forest, "MAX_FEATURES", 1.0),
    "rounds of more trees (dropped)": changed(second_stage, "N_TREES", (20, 60, 200)),
}


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def scored(imputer: PluriImputer, frame: pd.DataFrame, hidden: np.ndarray) -> dict[str, float]:
    """The error of imputers.py, and nats per hidden cell."""
    shown, truth = frame.mask(hidden), frame.to_numpy(float)
    filled = imputer.transform(shown).to_numpy(float)
    filled = np.where(np.isnan(filled), shown.mean().to_numpy(), filled)  # columns set aside
    off = ((filled - truth) / np.ptp(truth, axis=0))[hidden]
    nats = imputer.model_.score_cells(shown, frame).to_numpy()
    return {"error": float(np.sqrt(np.mean(off**2))), "nats": float(np.nanmean(nats))}


def one(frame: pd.DataFrame, hidden: np.ndarray, seed: int) -> dict[str, dict[str, float]]:
    """Every variant on one table."""
    shown, found = frame.mask(hidden), {}
    plain = PluriImputer(n_components=2, second_stage="none", random_state=seed).fit(shown)
    found["two dimensions, map alone"] = scored(plain, frame, hidden)
    imputer = PluriImputer(second_stage="none", random_state=seed).fit(shown)
    found["map alone"] = scored(imputer, frame, hidden)
    model = imputer.model_
    for name, variant in VARIANTS.items():
        with variant():
            model.second_stage_ = second_stage.fit_second_stage(model.predictor_, model.coder_.table(shown), seed)
        found[name] = scored(imputer, frame, hidden)
        print(f"  {name}: {found[name]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--rate", type=int, default=30)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--rows", type=int, default=2000, help="keep so many rows, drawn at random")
    parser.add_argument("--again", action="store_true", help="run what is there, too")
    given = parser.parse_args()
    for path in given.tables:
        for seed in given.seeds:
            case, result = f"{Path(path).stem} {given.rate} {seed}", saved(NAME)
            if case in result.setdefault("cases", {}) and not given.again:
                continue
            print(case, flush=True)
            frame = read_numbers(path, False, given.rows)
            hidden = draw_gaps(np.random.default_rng(seed), frame, given.rate / 100, "random")
            with quiet():
                result["cases"][case] = one(frame, hidden, seed)
            save(NAME, result)


if __name__ == "__main__":
    main()
