"""What the weight of kl_u's covariance part does: nats per hidden cell and coverage of intervals, on five tables, with
20 % of the cells hidden at random.

    python benchmarks/covariance_weight.py
"""

import argparse
import time

from common import save, saved
from intervals import NOMINAL, coverage
from sklearn.datasets import load_breast_cancer, load_wine

from plurigp import PluriGP
from plurigp.answers.heldout import hide_cells
from plurigp.data import infer_schema
from plurigp.datasets import load_support, simulate, simulate_cohort

WEIGHTS = (1.0, 0.7, 0.4, 0.2)
HIDDEN = 0.2


def tables() -> dict:
    """Table, schema or None, and Q."""
    support, cohort, sim = load_support(), simulate_cohort(1400), simulate(500, 2, missing=0.0, random_state=0)
    return {
        "SUPPORT, 2,000 × 29": (support.table.iloc[:2000], support.schema, 5),
        "simulated cohort, 1,400 × 46": (cohort.table, cohort.schema, 5),
        "simulated, 500 × 26": (sim.table, sim.schema, 2),
        "breast cancer, 569 × 30": (load_breast_cancer(as_frame=True).data, None, 5),
        "wine, 178 × 13": (load_wine(as_frame=True).data, None, 3),
    }


def worst_coverage(found: dict, fewest: int = 500) -> float:
    """The largest deviation of a share of covered cells from its nominal level, over kinds with enough cells."""
    deviations = [
        found[kind][f"{level:.0%}"] - level
        for kind in found
        for level in NOMINAL
        if found[kind]["cells"] >= fewest and f"{level:.0%}" in found[kind]
    ]
    return max(deviations, key=abs, default=float("nan"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    result = saved("covariance_weight")
    for name, (frame, schema, Q) in tables().items():
        schema = infer_schema(frame) if schema is None else schema
        for seed in range(given.seeds):
            shown = hide_cells(frame, schema, HIDDEN, seed)
            for weight in WEIGHTS:
                start = time.perf_counter()
                model = PluriGP(Q, schema=schema, kl_covariance_weight=weight, random_state=seed).fit(shown)
                nats = float(model.score_cells(shown, frame).stack().mean())
                line = {"nats": nats, "seconds": time.perf_counter() - start, "coverage": coverage(model, shown, frame)}
                result.setdefault(name, {}).setdefault(str(weight), {})[str(seed)] = line
                worst = worst_coverage(line["coverage"])
                print(f"{name}  seed {seed}  weight {weight}: {nats:.4f} nats, worst {worst:+.3f}", flush=True)
                save("covariance_weight", result)


if __name__ == "__main__":
    main()
