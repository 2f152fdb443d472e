"""Do the right likelihoods pay? Composite against Gaussian-for-everything on hidden cells, family by family.

    python benchmarks/likelihoods.py [--splits 5] [--epochs 60]

Two tables: SUPPORT and the simulated cohort with the paper's clinical make-up. Each split hides another tenth of the
observed cells; both models see the same cells, start from the same seed and are scored like with like: a discrete
value under the Gaussian by the mass on its own interval, in nats per hidden cell.
"""

import argparse

import numpy as np
from common import NO_MASS, like_with_like, save

from plurigp import PluriGP
from plurigp.answers.heldout import hide_cells
from plurigp.datasets import load_support, simulate_cohort
from plurigp_paper.families import gaussian_for_all


def one_split(frame, schema, seed, **parameters):
    """Mean score of hidden cells per family, for both models, and their difference."""
    shown = hide_cells(frame, schema, 0.1, seed)
    parameters |= {"random_state": seed, "calibrate": False}
    composite = PluriGP(schema=schema, **parameters).fit(shown).score_cells(shown, frame)
    numbers, plain = gaussian_for_all(shown, schema)
    complete, _ = gaussian_for_all(frame, schema)
    model = PluriGP(schema=plain, **parameters).fit(numbers)
    gaussian = like_with_like(model, numbers, complete, schema)
    out = {}
    for kind in sorted({c.kind for c in schema.used}):
        names = [c.name for c in schema.used if c.kind == kind]
        a, b = composite[names].to_numpy(), gaussian[names].to_numpy()
        hidden = ~np.isnan(a)
        a, b = a[hidden], b[hidden]
        out[kind] = {
            "composite": float(a.mean()),
            "gaussian": float(b.mean()),
            "difference": float((a - b).mean()),
            "median": float(np.median(a - b)),
            "no_mass": float((b <= NO_MASS / 2).mean()),
        }
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    given = parser.parse_args()
    support, cohort = load_support(), simulate_cohort()
    tables = {
        "support": (support.table, support.schema, {"n_components": 10, "batch_size": 1000}),
        "cohort": (cohort.table, cohort.schema, {"n_components": 5, "batch_size": 350}),
    }
    result = {}
    for name, (frame, schema, parameters) in tables.items():
        result[name] = []
        for seed in range(given.splits):
            result[name].append(one_split(frame, schema, seed, max_epochs=given.epochs, **parameters))
            print(name, seed, {k: round(v["difference"], 3) for k, v in result[name][-1].items()}, flush=True)
        for kind in result[name][0]:
            differences = [split[kind]["difference"] for split in result[name]]
            print(f"{name:8s} {kind:12s} composite − gaussian: mean {np.mean(differences):+.3f}, "
                  f"every split {[round(d, 3) for d in differences]}")  # fmt: skip
    save("likelihoods", result)
