"""Is multiple imputation proper? Rubin's 95 % intervals for two column means and two regression slopes.

    python benchmarks/pooling.py [--tables 200] [--rows 400] [--imputations 20] [--first 0] [--trees]

Each table is drawn anew from one population: two factors behind six numbers, a yes/no column and a category; a
quarter of the cells of all columns but the first is hidden, likelier where the first is high. The truth is that of the
population, from a million rows. Beside it: the same intervals from the rows that are complete, and from a table filled
with single values as if they had been observed. --trees adds the second stage; what it finds is kept by itself.
"""

import argparse

import numpy as np
import pandas as pd
from common import save, saved
from scipy import stats

from plurigp import PluriGP, pool
from plurigp.datasets.gaps import draw_gaps

NUMBERS = [f"lab{d}" for d in range(1, 7)]
LOADINGS = np.random.default_rng(7).normal(size=(2, 8))
TARGETS = ("mean lab2", "mean lab3", "slope lab4 on lab2", "slope lab4 on lab3")


def population(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    f = rng.normal(size=(n_rows, 2)) @ LOADINGS
    frame = pd.DataFrame(f[:, :6] + 0.7 * rng.normal(size=(n_rows, 6)), columns=NUMBERS)
    frame["ill"] = np.where(rng.random(n_rows) < 1 / (1 + np.exp(-f[:, 6])), "yes", "no")
    frame["stage"] = np.array(["a", "b", "c"])[np.digitize(f[:, 7] + rng.normal(size=n_rows), [-0.7, 0.7])]
    return frame


def estimates(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The four figures and their sampling variances, by least squares."""
    y2, y3, y4 = (frame[name].to_numpy(float) for name in ("lab2", "lab3", "lab4"))
    n = len(frame)
    X = np.column_stack([np.ones(n), y2, y3])
    inverse = np.linalg.inv(X.T @ X)
    slopes = inverse @ X.T @ y4
    noise = ((y4 - X @ slopes) ** 2).sum() / (n - 3)
    value = np.array([y2.mean(), y3.mean(), slopes[1], slopes[2]])
    return value, np.array([y2.var(ddof=1) / n, y3.var(ddof=1) / n, noise * inverse[1, 1], noise * inverse[2, 2]])


def one(seed: int, n_rows: int, n_imputations: int, truth: np.ndarray, second_stage: str) -> dict:
    rng = np.random.default_rng([seed, 11])
    frame = population(rng, n_rows)
    shown = frame.mask(draw_gaps(rng, frame, 0.25, "observed"))
    settings = {"kernel": "linear+rbf", "calibrate": False, "second_stage": second_stage}
    model = PluriGP(2, random_state=seed, **settings).fit(shown)
    tables = [estimates(filled) for filled in model.impute_draws(shown, n_imputations, random_state=seed)]
    pooled = pool(*(np.stack(part) for part in zip(*tables, strict=True)), df_complete=n_rows - 4).frame
    half = (pooled["high"] - pooled["low"]) / 2
    out = {"pooled": {"value": pooled["estimate"].tolist(), "half": half.tolist()}}
    for way, table in {"complete rows": shown.dropna(), "filled once": model.impute(shown), "no gaps": frame}.items():
        value, var = estimates(table)
        out[way] = {"value": value.tolist(), "half": (stats.t.ppf(0.975, len(table) - 3) * np.sqrt(var)).tolist()}
    for found in out.values():
        found["covers"] = (np.abs(np.subtract(found["value"], truth)) <= found["half"]).tolist()
    return {"seed": seed, **out}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="table to go on from")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--imputations", type=int, default=20)
    parser.add_argument("--trees", action="store_true", help="with the second stage")
    given = parser.parse_args()
    name, second_stage = ("pooling_trees", "trees") if given.trees else ("pooling", "none")
    truth, _ = estimates(population(np.random.default_rng(3), 1_000_000))
    for seed in range(given.first, given.tables):
        found = one(seed, given.rows, given.imputations, truth, second_stage)
        result = saved(name)
        runs = {run["seed"]: run for run in result.get("runs", [])} | {seed: found}
        ordered = [runs[s] for s in sorted(runs)]
        covers = {w: np.mean([r[w]["covers"] for r in ordered], 0).round(3).tolist() for w in found if w != "seed"}
        print(seed, covers, flush=True)
        save(name, {"targets": TARGETS, "truth": truth.tolist(), "rows": given.rows, "covers": covers,
                    "imputations": given.imputations, "runs": ordered})  # fmt: skip
