"""Filling gaps beside every imputer that people use: complete numeric tables, three mechanisms, ranks.

    python benchmarks/imputers.py TABLE.csv [TABLE.csv ...] [--rates 10 30 50] [--mechanisms random observed self]
                                  [--seeds 0 1] [--methods ...] [--distinct] [--rows 1000] [--again]

A TABLE is a CSV file with a header, its first column a row number, the others numbers without gaps. Cells are hidden as
`plurigp.datasets.gaps` has it: at random, by the first column, by their own value. The error is the root mean square
over all hidden cells of columns scaled to [0, 1], levels filled by their expected value by every method; the CRPS, of
methods with a distribution, is the mean over these cells. plurigp is the default PluriImputer; its nats per hidden cell
and how often its intervals cover (by randomised PIT values, see `intervals.py`) are told, too, with and without the
second stage. --distinct drops duplicate rows first, --rows keeps so many. Everything found is kept in
results/imputers.json, and only what is not there yet is run; ranks are over the methods that were run on every case.
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
from intervals import coverage
from peers.imputers import PEERS as SPREAD_PEERS
from peers.imputers import Spread
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (importing it is what enables the next one)
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge

from plurigp import PluriGP, PluriImputer
from plurigp.answers.corrected import draw_gaps_given
from plurigp.datasets.gaps import MECHANISMS, draw_gaps

OURS, MAP_ONLY = "plurigp", "plurigp, map alone"
NAME = "imputers"
N_DRAWS = 100  # of a gap, for the CRPS of methods that draw


def _chained(estimator: object, max_iter: int = 10) -> Callable[[np.ndarray], np.ndarray]:
    return lambda X: IterativeImputer(estimator, max_iter=max_iter, random_state=0).fit_transform(X)


def spread_peer(name: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]:
    """A peer of `peers/imputers.py` on numbers: the filled table and, if it has one, the sd of every cell."""

    def fill(X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        table = Spread(X, ["number"] * X.shape[1])
        guess = SPREAD_PEERS[name](table)
        return np.where(np.isnan(X), table.shift + table.scale * guess.mean, X), _times(guess.sd, table.scale)

    return fill


def _times(sd: np.ndarray | None, scale: np.ndarray) -> np.ndarray | None:
    return None if sd is None else sd * scale


def crps_of_normal(y: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> float:
    """The mean over cells of E|Y − y| − E|Y − Y'|/2, in closed form."""
    z = (y - mean) / sd
    return float(np.mean(sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))))


def crps_of_draws(y: np.ndarray, draws: np.ndarray) -> float:
    """The same from draws [S n], without the bias of few draws."""
    S = len(draws)
    place = (2 * np.arange(1, S + 1) - S - 1)[:, None]
    between = 2 * (place * np.sort(draws, axis=0)).sum(0) / (S * (S - 1))
    return float(np.mean(np.abs(draws - y).mean(0) - between / 2))


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
WITH_SD = {
    "Gaussian copula (gcimpute)": spread_peer("Gaussian copula (gcimpute)"),
    "MOFA (mofapy2)": spread_peer("MOFA (mofapy2)"),
}
METHODS = (OURS, MAP_ONLY, *PEERS, *WITH_SD)


def read_numbers(path: str, distinct: bool, n_rows: int | None = None) -> pd.DataFrame:
    """The table's columns that vary, under plain names; some of its rows."""
    frame = pd.read_csv(path, index_col=0)
    frame = frame.drop_duplicates(ignore_index=True) if distinct else frame.reset_index(drop=True)
    if n_rows is not None and n_rows < len(frame):
        frame = frame.sample(n_rows, random_state=0, ignore_index=True)
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
    found["crps"] = own_crps(model, shown, frame, hidden)
    found["coverage"] = coverage(model, shown, frame)
    found["n_components"] = len(model.get_feature_names_out())
    return found


def own_crps(model: PluriGP, shown: pd.DataFrame, truth: pd.DataFrame, hidden: np.ndarray) -> float:
    """Over all hidden cells of columns scaled to [0, 1]; a column set aside has its observed cells as draws."""
    drawn = draw_gaps_given(model.predictor_, model.second_stage_, model.coder_.table(shown), N_DRAWS, 0)
    coded = np.concatenate([np.stack(list(chunk.draws)) for chunk in drawn], axis=1)
    parts, used = [], [column.name for column in model.schema_.used]
    for d, name in enumerate(truth):
        at, scale = hidden[:, d], float(np.ptp(truth[name]))
        if name in used:
            own = coded[:, at, used.index(name)]
            draws = model.coder_.undo(name, own.ravel()).to_numpy(float).reshape(own.shape)
        else:
            draws = np.random.default_rng(0).choice(shown[name].dropna(), (N_DRAWS, int(at.sum())))
        if at.any():
            parts.append((int(at.sum()), crps_of_draws(truth[name].to_numpy(float)[at], draws) / scale))
    n, of_column = np.array(parts).T
    return float(n @ of_column / n.sum())


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
            shown = np.where(hidden, np.nan, (truth - low) / scale)
            filled, sd = (PEERS[method](shown), None) if method in PEERS else WITH_SD[method](shown)
            found = {"seconds": time.perf_counter() - start}
            if sd is not None:
                found["crps"] = crps_of_normal(((truth - low) / scale)[hidden], filled[hidden], sd[hidden])
    return {"error": float(np.sqrt(np.mean((filled - (truth - low) / scale)[hidden] ** 2))), **found}


def ranks(cases: dict[str, dict], what: str) -> dict[str, float]:
    """The mean rank of every method that has this figure in every case."""
    figures = pd.DataFrame([{m: own[what] for m, own in case.items() if what in own} for case in cases.values()])
    figures = figures.dropna(axis=1)
    return figures.rank(axis=1).mean().sort_values().to_dict()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--rates", nargs="+", type=int, default=[10, 30, 50])
    parser.add_argument("--mechanisms", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--distinct", action="store_true", help="drop duplicate rows")
    parser.add_argument("--rows", type=int, help="keep so many rows, drawn at random")
    parser.add_argument("--again", action="store_true", help="run what is there, too")
    given = parser.parse_args()
    places = [(t, m, r, s) for t in given.tables for m in given.mechanisms for r in given.rates for s in given.seeds]
    for table, mechanism, rate, seed in places:
        frame = read_numbers(table, given.distinct, given.rows)
        hidden = draw_gaps(np.random.default_rng(seed), frame, rate / 100, mechanism)
        which = f"{' distinct' if given.distinct else ''}{f' {given.rows} rows' if given.rows else ''}"
        case = f"{Path(table).stem}{which} {mechanism} {rate} {seed}"
        for method in given.methods:
            result = saved(NAME)
            kept = result.setdefault("cases", {}).setdefault(case, {})
            if method in kept and not given.again:
                continue
            try:
                kept[method] = one(frame, hidden, method)
            except (ImportError, TypeError, ValueError) as error:  # a peer that is not there, or fails here
                if method in (OURS, MAP_ONLY):
                    raise
                print(case, method, "left out:", error, file=sys.stderr)
                continue
            told = {name: kept[method][name] for name in ("error", "crps", "nats", "seconds") if name in kept[method]}
            print(case, method, {name: round(value, 4) for name, value in told.items()}, flush=True)
            error, crps = (ranks(result["cases"], what) for what in ("error", "crps"))
            save(NAME, {**result, "ranks": error, "crps_ranks": crps})


if __name__ == "__main__":
    main()
