"""Does the right delta restore what self-masked gaps spoil? Coverage of 95 % intervals of a mean and of a share.

    python benchmarks/sensitivity.py [--tables 100] [--rows 500] [--imputations 20] [--first 0]

Tables are those of `pooling.py`. The higher lab2, the likelier its cell is hidden (odds times e per unit), and cells of
`ill` are hidden with odds three times as large where they say yes. Where the log odds of a gap are linear in the cell,
hidden cells follow the observed ones' distribution tilted by e^{by}: for a yes/no column that is a delta of b in log
odds, exactly; for a number whose residual variance given the other columns is s² it is one of b s², nearly. Both are
known here, s² from a population of a million rows, never from the hidden cells of a table. Beside the right deltas:
none (gaps at random), half and twice as much, and the range over all of them.
"""

import argparse

import numpy as np
import pandas as pd
from common import save, saved
from pooling import NUMBERS, population
from scipy.special import expit

from plurigp import PluriGP
from plurigp.estimator.sensitivity import sensitivity

LAB_SLOPE, ILL_SLOPE = 1.0, float(np.log(3.0))
FACTORS = (0.0, 0.5, 1.0, 2.0)  # of the right delta
TARGETS = ("mean lab2", "share ill")


def mask(rng: np.random.Generator, frame: pd.DataFrame) -> pd.DataFrame:
    """Self-masked gaps in lab2 and ill, about a third each, and a tenth of the other cells at random."""
    hidden = rng.random(frame.shape) < 0.1
    hidden[:, frame.columns.get_loc("lab2")] = rng.random(len(frame)) < expit(LAB_SLOPE * frame["lab2"] - 0.9)
    hidden[:, frame.columns.get_loc("ill")] = rng.random(len(frame)) < expit(ILL_SLOPE * (frame["ill"] == "yes") - 1.3)
    return frame.mask(hidden)


def right_delta() -> dict[str, float]:
    """b s² for lab2, with s² its residual variance given the other numbers among rows where it is observed."""
    rng = np.random.default_rng(17)
    frame = population(rng, 1_000_000)
    observed = mask(rng, frame)["lab2"].notna().to_numpy()
    others = np.column_stack([np.ones(len(frame)), frame[[name for name in NUMBERS if name != "lab2"]]])[observed]
    y = frame["lab2"].to_numpy()[observed]
    residual = y - others @ np.linalg.lstsq(others, y, rcond=None)[0]
    return {"lab2": float(LAB_SLOPE * residual.var()), "ill": ILL_SLOPE}


def estimates(frame: pd.DataFrame) -> tuple[pd.Series, pd.Series, float]:
    values = pd.DataFrame(
        {"mean lab2": frame["lab2"].astype(float), "share ill": (frame["ill"] == "yes").astype(float)}
    )
    return values.mean(), values.var() / len(frame), len(frame) - 1.0


def one(seed: int, n_rows: int, n_imputations: int, truth: pd.Series, delta: dict[str, float]) -> dict:
    rng = np.random.default_rng([seed, 23])
    frame = population(rng, n_rows)
    shown = mask(rng, frame)
    model = PluriGP(2, kernel="linear+rbf", random_state=seed, calibrate=False).fit(shown)
    found: dict = {"seed": seed}
    parts = []
    for factor in FACTORS:
        moved = {name: [factor * amount] for name, amount in delta.items()}
        part = sensitivity(model, shown, estimates, moved, n_imputations, random_state=seed)
        parts.append(part.frame.set_index("term"))
        found[f"{factor:g} x delta"] = covered(parts[-1], truth)
    low, high = (pd.concat([part[end] for part in parts], axis=1) for end in ("low", "high"))
    found["range"] = covered(pd.DataFrame({"low": low.min(axis=1), "high": high.max(axis=1)}), truth)
    value, var, _ = estimates(frame)
    found["no gaps"] = covered(pd.DataFrame({"low": value - 1.96 * var**0.5, "high": value + 1.96 * var**0.5}), truth)
    return found


def covered(lines: pd.DataFrame, truth: pd.Series) -> list[bool]:
    return [bool(lines["low"][name] <= truth[name] <= lines["high"][name]) for name in TARGETS]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="table to go on from")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--imputations", type=int, default=20)
    given = parser.parse_args()
    truth, delta = estimates(population(np.random.default_rng(3), 1_000_000))[0], right_delta()
    print("right delta", delta, flush=True)
    for seed in range(given.first, given.tables):
        found = one(seed, given.rows, given.imputations, truth, delta)
        runs = {run["seed"]: run for run in saved("sensitivity").get("runs", [])} | {seed: found}
        ordered = [runs[s] for s in sorted(runs)]
        covers = {way: np.mean([run[way] for run in ordered], 0).round(3).tolist() for way in found if way != "seed"}
        print(seed, covers, flush=True)
        save("sensitivity", {"targets": TARGETS, "truth": truth.to_dict(), "delta": delta, "rows": given.rows,
                             "imputations": given.imputations, "covers": covers, "runs": ordered})  # fmt: skip
