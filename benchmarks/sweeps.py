"""How an epoch's time grows with rows, columns, inducing points and latent dimensions, beside GPyTorch with shared Z.

    python benchmarks/sweeps.py [--turns 3] [--epochs 3]

Half the columns are gaussian, half bernoulli, 10 % gaps; one size is changed at a time, from a middle shape of 1,000
rows, 100 columns, M = 50, Q = 5 (batches of 500). Both take turns, as in speed.py; report.py draws them.
"""

import argparse

import numpy as np
import pandas as pd
from common import save
from peers import ours
from speed import Contestant, repeated

from plurigp.data import Coder, Column, Schema
from plurigp.inference.compiling import jax_runtime

MIDDLE = {"rows": 1000, "columns": 100, "inducing": 50, "components": 5}
SWEEPS = {
    "rows": [500, 1000, 2000, 4000, 8000],
    "columns": [25, 50, 100, 200, 400, 800],
    "inducing": [20, 35, 50, 80, 120],
    "components": [2, 5, 10, 20],
}
BATCH = 500


def table(n_rows, n_columns):
    """Around two factors, coded."""
    rng = np.random.default_rng(0)
    f = rng.normal(size=(n_rows, 2)) @ rng.normal(size=(2, n_columns))
    y = np.where(np.arange(n_columns) % 2, rng.random(f.shape) < 1 / (1 + np.exp(-f)), f + rng.normal(size=f.shape))
    frame = pd.DataFrame(y, columns=[f"c{d}" for d in range(n_columns)]).mask(rng.random(f.shape) < 0.1)
    kinds = [
        Column(name, "bernoulli", "simulated", levels=(0.0, 1.0), dtype="float64")
        if d % 2
        else Column(name, "gaussian", "simulated", dtype="float64")
        for d, name in enumerate(frame)
    ]
    return Coder.fit(frame, Schema(tuple(kinds))).table(frame)


def race(sizes, turns, epochs):
    """Median milliseconds per epoch at one shape, by name."""
    coded = table(sizes["rows"], sizes["columns"])
    model = sizes["components"], sizes["inducing"], BATCH
    racing = [Contestant("plurigp", ours.make_training(coded, *model, 3), jax_runtime)]
    try:
        from peers import gpytorch_gplvm

        racing.append(Contestant("GPyTorch, Z shared", repeated(gpytorch_gplvm.make_epoch(coded.values, *model, True))))
    except ImportError as error:
        print(f"GPyTorch is left out: {error}")
    for contestant in racing:
        contestant.warm_up()
    for _ in range(turns):
        for contestant in racing:
            contestant.take_turn(epochs)
    return {c.name: 1e3 * float(np.median(c.turns)) for c in racing}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    result = {}
    for name, sizes in SWEEPS.items():
        result[name] = []
        for size in sizes:
            result[name].append({"size": size, "milliseconds": race(MIDDLE | {name: size}, given.turns, given.epochs)})
            print(name, result[name][-1], flush=True)
    save("sweeps", result)
