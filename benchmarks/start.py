"""The start decides: the informed start against the paper's random one, on held-out cells.

    python benchmarks/start.py [--seeds 5]

Digits (the paper's simulated set, Q=6) and SUPPORT (Q=10); a tenth of the cells is hidden. "smallest spread" is the
smallest sd of the encoded means over the latent dimensions in use; a dimension is in use when its posterior differs
from the prior (mean kl_x of the dimension above 0.1 nats).
"""

import argparse

import numpy as np
from common import save

from plurigp import PluriGP
from plurigp.answers.heldout import hide_cells
from plurigp.datasets import load_support
from plurigp_paper.digits import digits


def one_run(frame, schema, seed, **parameters):
    shown = hide_cells(frame, schema, 0.1, seed)
    model = PluriGP(schema=schema, random_state=seed, calibrate=False, **parameters).fit(shown)
    mean, sd = model.transform(shown, return_std=True)
    kl = 0.5 * (mean**2 + sd**2 - 1 - 2 * np.log(sd)).mean(0)
    spread = mean.std(0)
    used = kl > 0.1
    return {
        "cells": float(np.nanmean(model.score_cells(shown, frame).to_numpy())),
        "spread": [float(s) for s in spread],
        "used": int(used.sum()),
        "smallest_spread": float(spread[used].min()) if used.any() else 0.0,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--tables", nargs="+", default=["digits", "support"])
    given = parser.parse_args()
    images, support = digits(), load_support()
    tables = {
        "digits": (images.table.iloc[:600], images.schema, {"n_components": 6, "batch_size": 300, "n_quadrature": 3}),
        "support": (support.table, support.schema, {"n_components": 10, "batch_size": 1000}),
    }
    result = {}
    for name in given.tables:
        frame, schema, parameters = tables[name]
        result[name] = {}
        for start in ("informed", "random"):
            runs = []
            for seed in range(given.seeds):
                runs.append(one_run(frame, schema, seed, start=start, max_epochs=given.epochs, **parameters))
                shown = {k: runs[-1][k] for k in ("cells", "used", "smallest_spread")}
                print(name, start, seed, {k: round(v, 3) for k, v in shown.items()}, flush=True)
            result[name][start] = runs
        scores = {s: [r["cells"] for r in runs] for s, runs in result[name].items()}
        wins = sum(a > b for a, b in zip(scores["informed"], scores["random"], strict=True))
        spreads = {start: round(float(np.std(of)), 4) for start, of in scores.items()}
        print(f"{name}: informed ahead in {wins} of {given.seeds}; sd over seeds {spreads}")
    save("start", result)
