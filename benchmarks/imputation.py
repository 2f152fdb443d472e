"""Filling gaps: plurigp and what people would use instead, on tables with lists of cells to hide.

    python benchmarks/imputation.py FOLDER [FOLDER ...] [--rates 10 20 50] [--draws 1 2 3] [--peers ...]

A folder holds data.csv (no header, numeric codes), data_types.csv (type, dim, nclass) and MissingR_k.csv (1-based row
and column of the cells to hide: R percent, draw k). Error per column on hidden cells: share of wrong categories; mean
distance in ranks over their number for ordinals; root mean squared error over the column's range for numbers; the
score is their mean. For plurigp also nats per hidden cell beside the marginals', and how often intervals cover.
The settings are the same for every table.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import save
from intervals import coverage
from peers.imputers import PEERS

from plurigp import PluriGP
from plurigp.heldout import cell_scores

SETTINGS = {"n_components": 10, "kernel": "linear+rbf", "random_state": 0}
KINDS = {"cat": "category", "ordinal": "ordinal"}


class Hidden:
    """A table and one list of hidden cells, as numbers for the peers and as a frame for plurigp."""

    def __init__(self, folder: Path, rate: int, draw: int) -> None:
        types = pd.read_csv(folder / "data_types.csv")
        self.numbers = pd.read_csv(folder / "data.csv", header=None).to_numpy(float)
        self.kinds = [KINDS.get(kind, "number") for kind in types["type"]]
        self.counts = (types["type"] == "count").to_numpy()
        for d, kind in enumerate(self.kinds):
            if kind == "category":
                self.numbers[:, d] = np.unique(self.numbers[:, d], return_inverse=True)[1]
        self.dims = types["dim"].to_numpy()
        places = pd.read_csv(folder / f"Missing{rate}_{draw}.csv", header=None).to_numpy() - 1
        self.hidden = np.zeros(self.numbers.shape, bool)
        self.hidden[places[:, 0], places[:, 1]] = True
        self.frame = self.as_frame(self.numbers)
        self.shown = pd.DataFrame({n: self.frame[n].mask(self.hidden[:, d]) for d, n in enumerate(self.frame)})

    def as_frame(self, numbers: np.ndarray) -> pd.DataFrame:
        columns = {}
        for d, kind in enumerate(self.kinds):
            y = numbers[:, d]
            if kind == "number":
                columns[f"c{d}"] = pd.array(y, "Int64") if self.counts[d] else y
            else:
                columns[f"c{d}"] = pd.Categorical([f"{int(v):02d}" for v in y], ordered=kind == "ordinal")
        return pd.DataFrame(columns)

    def as_numbers(self, frame: pd.DataFrame) -> np.ndarray:
        return np.stack([frame[name].astype(str).astype(float).to_numpy() for name in frame], 1)

    def errors(self, filled: np.ndarray) -> list[float]:
        """Per column, on its hidden cells."""
        out = []
        for d, kind in enumerate(self.kinds):
            at = self.hidden[:, d]
            y, ours = self.numbers[at, d], filled[at, d]
            if kind == "category":
                out.append(np.mean(y != ours))
            elif kind == "ordinal":
                out.append(np.mean(np.abs(y - ours)) / self.dims[d])
            else:
                out.append(np.sqrt(np.mean((y - ours) ** 2)) / np.ptp(self.numbers[:, d]))
        return [float(error) for error in out]


def ours(case: Hidden) -> dict:
    """plurigp's errors, nats and coverage."""
    start = time.perf_counter()
    model = PluriGP(**SETTINGS).fit(case.shown)
    filled = case.as_numbers(model.impute(case.shown))
    seconds = time.perf_counter() - start
    scores = cell_scores(model, case.shown, case.frame)
    return {
        "errors": case.errors(filled),
        "seconds": seconds,
        "nats": float(scores["model"].mean()),
        "marginal_nats": float(scores["marginal"].mean()),
        "coverage": coverage(model, case.shown, case.frame),
    }


def one(folder: Path, rate: int, draw: int, peers: list[str]) -> dict:
    case = Hidden(folder, rate, draw)
    methods = {"plurigp": ours(case)}
    gaps = np.where(case.hidden, np.nan, case.numbers)
    for name in peers:
        start = time.perf_counter()
        filled = PEERS[name](gaps, case.kinds)
        methods[name] = {"errors": case.errors(filled), "seconds": time.perf_counter() - start}
    for name, result in methods.items():
        result["error"] = float(np.mean(result["errors"]))
        extra = f", {result['nats']:.3f} nats (marginal {result['marginal_nats']:.3f})" if "nats" in result else ""
        print(f"{folder.name} {rate} % draw {draw}  {name:24s} {result['error']:.4f}  "
              f"{result['seconds']:.0f} s{extra}", flush=True)  # fmt: skip
    for kind, figures in methods["plurigp"]["coverage"].items():
        print("   ", kind, {k: round(v, 3) for k, v in figures.items()}, flush=True)
    return {"table": folder.name, "rate": rate, "draw": draw, "methods": methods}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--rates", nargs="+", type=int, default=[10, 20, 50])
    parser.add_argument("--draws", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    given = parser.parse_args()
    runs = [one(f, r, d, given.peers) for f in given.folders for r in given.rates for d in given.draws]
    save("imputation", {"settings": SETTINGS, "runs": runs})
