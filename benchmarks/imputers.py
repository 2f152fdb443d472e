"""Filling gaps beside every imputer that people use: complete numeric tables, three mechanisms, ranks.

    python benchmarks/imputers.py TABLE.csv [TABLE.csv ...] [--rates 10 30 50] [--mechanisms random observed self]
                                  [--seeds 0 1] [--methods ...] [--distinct]

A TABLE is a CSV file with a header, its first column a row number, the others numbers without gaps. Cells are hidden as
`plurigp.datasets.gaps` has it: at random, by the first column, by their own value. The error is the root mean square
over all hidden cells of columns scaled to [0, 1], levels filled by their expected value by every method. plurigp is the
default PluriImputer; its nats per hidden cell and the coverage of its intervals are told, too, with and without the
second stage. --distinct drops duplicate rows first. Everything found is kept in results/imputers.json, and only what is
not there yet is run; ranks are over the cases that all methods have.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from common import save, saved
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (importing it is what enables the next one)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge

from plurigp import PluriImputer
from plurigp.datasets.gaps import MECHANISMS, draw_gaps

OURS, MAP_ONLY = "plurigp", "plurigp, map alone"
NAME = "imputers"
NOMINAL = (0.5, 0.8, 0.9)


def _chained(estimator: object, max_iter: int = 10) -> Callable[[np.ndarray], np.ndarray]:
    return lambda X: IterativeImputer(estimator, max_iter=max_iter, random_state=0).fit_transform(X)


def miceforest_mean(X: np.ndarray) -> np.ndarray:
    """The mean of five completed tables; miceforest 6 needs lightgbm below 4.6."""
    import miceforest

    frame = pd.DataFrame(X, columns=[f"c{d}" for d in range(X.shape[1])])
    kernel = miceforest.ImputationKernel(frame, num_datasets=5, random_state=0)
    kernel.mice(5, num_threads=1)
    return np.mean([kernel.complete_data(number).to_numpy() for number in range(5)], axis=0)


PEERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda X: SimpleImputer().fit_transform(X),
    "nearest neighbours": lambda X: KNNImputer().fit_transform(X),
    "chained ridge": _chained(BayesianRidge()),
    "chained extra-trees": _chained(ExtraTreesRegressor(100, random_state=0)),
    "missForest": _chained(RandomForestRegressor(100, max_features="sqrt", random_state=0), 5),
    "chained boosting": _chained(HistGradientBoostingRegressor(random_state=0)),
    "miceforest": miceforest_mean,
}


def read_numbers(path: str, distinct: bool) -> pd.DataFrame:
    """The table's columns that vary, under plain names."""
    frame = pd.read_csv(path, index_col=0)
    frame = frame.drop_duplicates(ignore_index=True) if distinct else frame.reset_index(drop=True)
    frame = frame.loc[:, frame.nunique() > 1]
    return frame.set_axis([f"c{d}" for d in range(frame.shape[1])], axis=1)


def ours(frame: pd.DataFrame, hidden: np.ndarray, second_stage: str) -> dict:
    """The filled table, seconds, nats and coverage of the default imputer."""
    shown = frame.mask(hidden)
    start = time.perf_counter()
    imputer = PluriImputer(second_stage=second_stage, random_state=0).fit(shown)
    filled = imputer.transform(shown).to_numpy(float)
    found = {"seconds": time.perf_counter() - start}
    found["filled"] = np.where(np.isnan(filled), shown.mean().to_numpy(), filled)  # columns set aside
    model = imputer.model_
    found["nats"] = float(np.nanmean(model.score_cells(shown, frame).to_numpy()))
    gaps = model.describe_gaps(shown, levels=[0.05, 0.1, 0.25, 0.75, 0.9, 0.95])
    gaps = gaps.query("mean == mean").reset_index(drop=True)
    truth = np.array([frame.at[row, name] for row, name in zip(gaps["row"], gaps["column"], strict=True)], float)
    pairs = zip(NOMINAL, ("q25", "q10", "q5"), ("q75", "q90", "q95"), strict=True)
    covers = {f"{p:.0%}": ((truth >= gaps[low]) & (truth <= gaps[high])) for p, low, high in pairs}
    found["coverage"] = {
        kind: {"cells": len(part), **{p: float(inside[part.index].mean()) for p, inside in covers.items()}}
        for kind, part in gaps.groupby("kind")
    }
    found["n_components"] = len(model.get_feature_names_out())
    return found


def one(frame: pd.DataFrame, hidden: np.ndarray, method: str) -> dict:
    """A method's error and seconds, and what else it tells."""
    truth = frame.to_numpy(float)
    low, scale = truth.min(0), np.ptp(truth, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chained peers say that they have not converged
        if method in (OURS, MAP_ONLY):
            found = ours(frame, hidden, "trees" if method == OURS else "none")
            filled = (found.pop("filled") - low) / scale
        else:
            start = time.perf_counter()
            filled = PEERS[method](np.where(hidden, np.nan, (truth - low) / scale))
            found = {"seconds": time.perf_counter() - start}
    return {"error": float(np.sqrt(np.mean((filled - (truth - low) / scale)[hidden] ** 2))), **found}


def ranks(cases: dict[str, dict]) -> dict[str, float]:
    """Each method's mean rank over the cases that all methods have."""
    methods = sorted({method for case in cases.values() for method in case})
    errors = pd.DataFrame(
        [{m: case[m]["error"] for m in methods} for case in cases.values() if all(m in case for m in methods)]
    )
    return errors.rank(axis=1).mean().sort_values().to_dict() if len(errors) else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--rates", nargs="+", type=int, default=[10, 30, 50])
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--methods", nargs="+", choices=[OURS, MAP_ONLY, *PEERS], default=[OURS, MAP_ONLY, *PEERS])
    parser.add_argument("--distinct", action="store_true", help="drop duplicate rows")
    given = parser.parse_args()
    places = [(t, m, r, s) for t in given.tables for m in given.mechanisms for r in given.rates for s in given.seeds]
    for table, mechanism, rate, seed in places:
        frame = read_numbers(table, given.distinct)
        hidden = draw_gaps(np.random.default_rng(seed), frame, rate / 100, mechanism)
        case = f"{Path(table).stem}{' distinct' if given.distinct else ''} {mechanism} {rate} {seed}"
        for method in given.methods:
            result = saved(NAME)
            kept = result.setdefault("cases", {}).setdefault(case, {})
            if method in kept:
                continue
            try:
                kept[method] = one(frame, hidden, method)
            except (ImportError, TypeError) as error:  # a peer that is not installed, or not for this Python
                print(case, method, "left out:", error, file=sys.stderr)
                continue
            told = {name: kept[method][name] for name in ("error", "nats", "seconds") if name in kept[method]}
            print(case, method, {name: round(value, 4) for name, value in told.items()}, flush=True)
            save(NAME, {**result, "ranks": ranks(result["cases"])})


if __name__ == "__main__":
    main()
