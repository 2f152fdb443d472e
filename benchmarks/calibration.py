"""Do intervals cover what they say? Hidden cells of simulated tables, by kind, rate and reason of the gaps.

    python benchmarks/calibration.py [--tables simulated observed self] [--rates 10 20 50] [--seeds 3]

simulated   2,000 × 26 cells of the basic kinds drawn from the model, hidden at random
observed    the same, gaps likelier where the first column, which has none, is high
self        the same, gaps likelier where the hidden value itself is high: no model that is not told can be right

Real tables are in imputation.py, whose settings are used with Q = 2.
"""

import argparse

from common import save, saved
from hidden import SETTINGS
from intervals import coverage

from plurigp import PluriGP
from plurigp.answers.baseline import Marginals
from plurigp.answers.heldout import cell_scores
from plurigp.datasets import simulate

MECHANISM = {"simulated": "random", "observed": "observed", "self": "self"}


def one(name: str, rate: int, seed: int) -> dict:
    sim = simulate(2000, 2, missing=rate / 100, random_state=seed, mechanism=MECHANISM[name])
    model = PluriGP(**SETTINGS | {"n_components": 2}, schema=sim.schema).fit(sim.table)
    shown, complete = model.coder_.table(sim.table), model.coder_.table(sim.truth)
    scores = cell_scores(model.predictor_, model.coder_, Marginals.fit(shown), shown, complete)
    nats = {"nats": float(scores["model"].mean()), "marginal_nats": float(scores["marginal"].mean())}
    found = {"seed": seed, "epochs": model.n_iter_, **nats, "coverage": coverage(model, sim.table, sim.truth)}
    print(name, rate, seed, {k: round(v, 3) for k, v in nats.items()}, flush=True)
    for kind, figures in found["coverage"].items():
        print("   ", kind, {k: round(v, 3) for k, v in figures.items()}, flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(MECHANISM), choices=MECHANISM)
    parser.add_argument("--rates", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for name in given.tables:
        for rate in given.rates:
            runs = [one(name, rate, seed) for seed in range(given.seeds)]
            result = saved("calibration")
            result.setdefault(name, {})[str(rate)] = runs
            save("calibration", result)
