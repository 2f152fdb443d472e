"""Every family on tables drawn from it: hidden cells and theta recovered, what censoring gains, steadiness, compiling.

    python benchmarks/families.py recovery --kinds gaussian,ordinal [--seeds 5] [--rows 1000]
    python benchmarks/families.py censoring | steady | compile | compare

Each part adds to results/families.json what it measured and leaves the rest. Recovery: thirty columns of one family,
20 % of the cells hidden; closed = (model − marginal) / (oracle − marginal) in nats per hidden cell, where the oracle
knows the functions and theta. Theta: learned over true, column by column.
"""

import argparse
import fcntl
import time

import numpy as np
import pandas as pd
from common import RESULTS, save, saved
from recovery import oracle, unconstrained

from plurigp import PluriGP
from plurigp.answers.baseline import Marginals
from plurigp.data import KINDS
from plurigp.datasets import simulate
from plurigp.inference.gp.linalg import unpack_doubled

N_COLUMNS = 30
EPOCHS = 200  # of the fits behind recovery
SCALED = ("log_sd", "log_scale")  # learned in units of the column's own sd where the family is standardised
STANDARDISED = ("gaussian", "student_t", "censored_gaussian")


def recovery(kind, seed, n_rows, n_points):
    """One table of one family: share closed, and every learned theta beside the true one."""
    sim = simulate(n_rows, 2, {kind: N_COLUMNS}, missing=0.2, random_state=seed, n_levels=(4,))
    model = PluriGP(2, schema=sim.schema, max_epochs=EPOCHS, random_state=seed, calibrate=False).fit(sim.table)
    coder = model.coder_
    ours = model.score_cells(sim.table, sim.truth).to_numpy()
    marginal = Marginals.fit(coder.table(sim.table)).log_density(coder.table(sim.truth)) - coder.log_units
    best = oracle(sim, sim.table, sim.truth, n_points=n_points)
    a, b, c = (float(np.mean(part[sim.hidden])) for part in (ours, marginal, best))
    return {"model": a, "marginal": b, "oracle": c, "closed": (a - b) / (c - b), "epochs": model.n_iter_,
            "theta": learned(model, sim)}  # fmt: skip


def learned(model, sim):
    """{parameter: differences between learned and true, on the free scale}, one per column (and cut)."""
    layout, used = model.predictor_.layout, model.schema_.used
    out = {}
    for block, theta in zip(layout.blocks, model.model_.thetas, strict=True):
        for c, d in enumerate(layout.order[block.columns[0] : block.columns[1]]):
            true = unconstrained(sim.theta[used[d].name])
            for name, values in theta.items():
                if name not in true:  # a fact that is not learned
                    continue
                if name == "first_cut":  # an ordinal's functions may lie higher or lower with all its cuts
                    continue
                scaled = name in SCALED and used[d].kind in STANDARDISED
                found = np.asarray(values[c], float) + (np.log(model.coder_.scale[d]) if scaled else 0.0)
                out.setdefault(name, []).extend(np.atleast_1d(found - true[name]).round(4).tolist())
    return out


LABS = [f"gaussian_{d}" for d in range(1, 5)]


def censoring(seed, n_rows=1000, share=0.3):
    """Four lab values of twelve, each with 30 % below its limit: errors behind the limit and of the mean, three ways.

    Errors are in units of the lab's own sd behind the limit, so that the four can be averaged.
    """
    sim = simulate(n_rows, 2, {"gaussian": 12}, missing=0.0, random_state=seed)
    true = np.exp(0.7 * sim.truth[LABS])
    limits = true.quantile(share)
    below = true < limits
    table = sim.truth.drop(columns=LABS)
    for name in LABS:
        table[name] = np.where(below[name], f"<{float(limits[name])!r}", [repr(float(v)) for v in true[name]])
    model = PluriGP(2, schema=dict.fromkeys(LABS, "censored_lognormal"), random_state=seed, calibrate=False)
    filled = model.fit(table).impute(table, fill_limits=True)[LABS].astype(float)
    ways = {"censored": filled, "limit": true.mask(below, limits, axis=1), "half": true.mask(below, limits / 2, axis=1)}
    out = {way: _errors(values, true, below) for way, values in ways.items()}
    return out | {"inside": bool((filled <= limits)[below].all(axis=None))}


def _errors(filled, true, below):
    sd = true[below].std()
    return {
        "rmse": float(np.sqrt((((filled - true) / sd)[below] ** 2).mean().mean())),
        "mean": float(((filled.mean() - true.mean()).abs() / sd).mean()),
    }


def steady(seed):
    """One random table of the families that are not log-concave: is everything finite, and Λ positive definite?"""
    rng = np.random.default_rng(seed)
    kinds = ("student_t", "gaussian_hetero", "zero_inflated_poisson", "negative_binomial", "zero_one_beta")
    sim = simulate(200, 2, dict.fromkeys(kinds, 3), missing=float(rng.uniform(0, 0.5)), random_state=seed,
                   lengthscale=float(rng.uniform(0.7, 3)))  # fmt: skip
    table = sim.table.copy()
    wild = [name for name in table if name.startswith(("student", "gaussian"))]
    for name in wild:  # one value in fifty is wild
        table.loc[rng.random(len(table)) < 0.02, name] *= 50
    model = PluriGP(2, schema=sim.schema, max_epochs=25, n_inducing=20, random_state=seed, calibrate=False).fit(table)
    q = model.predictor_.q
    eigenvalues = np.linalg.eigvalsh(np.asarray(unpack_doubled(q.S, q.m.shape[1])))
    finite = bool(np.isfinite(model.history_.to_numpy()).all() and np.isfinite(model.transform(table)).all())
    return {"finite": finite, "smallest": float(eigenvalues.min())}


def compiling():
    """Seconds until the second epoch of a table with twelve categorical columns of 2 to 40 levels."""
    rng = np.random.default_rng(0)
    levels = np.linspace(2, 40, 12).round().astype(int)
    frame = pd.DataFrame({f"c{k}": [f"l{i}" for i in rng.integers(0, k, 400)] for k in levels})
    start = time.perf_counter()
    PluriGP(2, schema=dict.fromkeys(frame, "categorical"), max_epochs=1, random_state=0).fit(frame)
    first = time.perf_counter() - start
    start = time.perf_counter()
    PluriGP(2, schema=dict.fromkeys(frame, "categorical"), max_epochs=1, random_state=0).fit(frame)
    return {"levels": levels.tolist(), "first": first, "again": time.perf_counter() - start}


def compare(n_rows=500):
    """Simulated columns of known kind: which does `plurigp check --compare` recommend?"""
    from plurigp.estimator.compare import compare_kinds

    columns = {"gaussian": 3, "student_t": 3, "lognormal": 3, "gamma": 3, "poisson": 6, "negative_binomial": 3,
               "zero_inflated_poisson": 3, "beta": 3, "ordinal": 3}  # fmt: skip
    out = []
    for seed in range(3):
        sim = simulate(n_rows, 2, columns, missing=0.05, random_state=seed)
        found = compare_kinds(sim.table, sim.schema, random_state=seed)
        out += [{"true": column.kind, "picked": found[column.name].recommended} for column in sim.schema]
        print(seed, [(o["true"], o["picked"]) for o in out[-30:] if o["true"] != o["picked"]], flush=True)
    return out


def add_run(kind, n_rows, run):
    """One more seed of a family; a run of the same seed is replaced. Several processes may add at once."""
    with (RESULTS / ".families.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = saved("families")
        family = result.setdefault("recovery", {}).setdefault(kind, {"rows": n_rows, "runs": []})
        others = [r for r in family["runs"] if r["seed"] != run["seed"]] if family["rows"] == n_rows else []
        result["recovery"][kind] = {"rows": n_rows, "runs": sorted([*others, run], key=lambda r: r["seed"])}
        save("families", result)


def run_recovery(kind, seed, n_rows, n_points):
    began = time.perf_counter()
    run = {"seed": seed, **recovery(kind, seed, n_rows, n_points)}
    theta = {k: f"{np.mean(v):+.2f} ± {np.std(v):.2f}" for k, v in run["theta"].items()}
    print(kind, seed, f"{run['closed']:.3f}", theta, run["epochs"], f"{time.perf_counter() - began:.0f} s", flush=True)
    add_run(kind, n_rows, run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["recovery", "censoring", "steady", "compile", "compare"])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed to go on from")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--points", type=int, default=45, help="of the oracle's grid, per dimension")
    given = parser.parse_args()
    if given.part == "recovery":
        for seed in range(given.first, given.seeds):
            for kind in given.kinds.split(","):
                run_recovery(kind, seed, given.rows, given.points)
    else:
        parts = {
            "censoring": lambda: [censoring(seed) for seed in range(given.seeds)],
            "steady": lambda: [steady(seed) for seed in range(50)],
            "compile": compiling,
            "compare": compare,
        }
        measured = parts[given.part]()
        save("families", {**saved("families"), given.part: measured})
