"""Filling gaps: plurigp and what people would use instead, on tables with lists of cells to hide.

    python benchmarks/imputation.py TABLE [TABLE ...] [--rates 10 20 50] [--draws 1 2 3] [--methods ...] [--again]

A TABLE is a folder, or "support". A folder holds data.csv (no header, numeric codes, gaps empty), data_types.csv (type,
dim, nclass) and MissingR_k.csv (1-based row and column of the cells to hide: R percent, draw k). Error per column on
hidden cells: share of wrong categories; mean distance in ranks over their number for ordinals; root mean squared error
over the column's range for numbers; the score is their mean. Nats per hidden cell for every method with a density, and
for plurigp how often its intervals cover. The settings are the same for every table. What was found is kept after every
method; only what is not there yet is run.
"""

import argparse
import time

import numpy as np
from common import save, saved
from hidden import SETTINGS, Hidden, read_hidden
from intervals import coverage
from peers.imputers import PEERS, Spread

from plurigp import PluriGP
from plurigp.answers.baseline import Marginals
from plurigp.answers.heldout import cell_scores

OURS = "plurigp"


def ours(case: Hidden) -> dict:
    """plurigp's errors, nats and coverage."""
    start = time.perf_counter()
    model = PluriGP(**SETTINGS, schema=case.schema).fit(case.shown)
    filled = case.as_numbers(model.impute(case.shown))
    seconds = time.perf_counter() - start
    shown, complete = model.coder_.table(case.shown), model.coder_.table(case.frame)
    scores = cell_scores(model.predictor_, model.coder_, Marginals.fit(shown), shown, complete)
    return {
        "errors": case.errors(filled),
        "seconds": seconds,
        "epochs": model.n_iter_,
        "nats": float(scores["model"].mean()),
        "marginal_nats": float(scores["marginal"].mean()),
        "coverage": coverage(model, case.shown, case.frame),
    }


def theirs(case: Hidden, name: str) -> dict:
    table = Spread(np.where(case.hidden, np.nan, case.numbers), case.kinds)
    start = time.perf_counter()
    guess = PEERS[name](table)
    seconds = time.perf_counter() - start
    nats = {}
    if guess.sd is not None:
        nats = {"nats": float(table.log_scores(guess, case.numbers, case.hidden).mean())}
    return {"errors": case.errors(table.filled(guess.mean)), "seconds": seconds, **nats}


def one(table: str, rate: int, draw: int, methods: list[str], again: bool) -> None:
    case = read_hidden(table, rate, draw)
    place = case.name, str(rate), str(draw)
    for name in methods:
        result = saved("imputation")
        kept = result.setdefault("tables", {})
        for key in place:
            kept = kept.setdefault(key, {})
        if name in kept and not again:
            continue
        kept[name] = found = ours(case) if name == OURS else theirs(case, name)
        found["error"] = float(np.mean(found["errors"]))
        extra = f"{found['nats']:.3f} nats" if "nats" in found else ""
        print(*place, f"{name:28s} {found['error']:.4f}  {found['seconds']:.0f} s  {extra}", flush=True)
        for kind, figures in found.get("coverage", {}).items():
            print("   ", kind, {k: round(v, 3) for k, v in figures.items()}, flush=True)
        save("imputation", {**result, "settings": SETTINGS})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="+", help='a folder, or "support"')
    parser.add_argument("--rates", nargs="+", type=int, default=[10, 20, 50])
    parser.add_argument("--draws", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--methods", nargs="*", choices=[OURS, *PEERS], default=[OURS, *PEERS])
    parser.add_argument("--again", action="store_true", help="run what is there, too")
    given = parser.parse_args()
    for table in given.tables:
        for rate in given.rates:
            for draw in given.draws:
                one(table, rate, draw, given.methods, given.again)
