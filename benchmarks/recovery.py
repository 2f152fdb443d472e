"""Recovery on tables drawn from the model: hidden cells against the oracle that knows the true functions, and x.

    python benchmarks/recovery.py [--rows 2000] [--seeds 5]

Closed = (model − marginal) / (oracle − marginal), log score of hidden cells. The oracle knows every function and
theta, not x: it integrates x over a grid given the cells that are seen.
"""

import argparse
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from common import save

from plurigp import PluriGP
from plurigp.answers.baseline import Marginals
from plurigp.data import Coder
from plurigp.datasets import simulate
from plurigp.likelihoods.evaluate import cell_log_probs
from plurigp.likelihoods.layout import arrange, make_layout

FREE = {
    "df": ("log_df", lambda df: np.log(df - 1)),
    "zero": ("logit_zero", lambda p: np.log(p / (1 - p))),
    "first_cut": ("first_cut", np.asarray),
    "low_cut": ("low_cut", np.asarray),
    "gap": ("log_gap", np.log),
    "gaps": ("log_gaps", np.log),
}


def unconstrained(theta):
    """A simulated column's theta as the likelihoods hold it."""
    named = {name: FREE.get(name, (f"log_{name}", np.log)) for name in theta}
    return {free: change(theta[name]) for name, (free, change) in named.items()}


def oracle(sim, frame, truth, edge=4.0, n_points=90):
    """log p(hidden cell | seen cells, true functions, true theta) [N D], raw units."""
    coder = Coder.fit(frame, sim.schema)
    raw = replace(coder, shift=np.zeros_like(coder.shift), scale=np.ones_like(coder.scale))
    layout = make_layout(raw.schema)
    _, seen = arrange(layout, raw.table(frame))
    values, _ = arrange(layout, raw.table(truth))
    axis = np.linspace(-edge, edge, n_points)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    used = raw.schema.used
    places = np.concatenate([np.arange(len(sim.f[0]))[sim.function_slices[used[d].name]] for d in layout.order])
    with jax.enable_x64(True):
        thetas = []
        for block in layout.blocks:
            names = [used[d].name for d in layout.order[block.columns[0] : block.columns[1]]]
            each = [unconstrained(sim.theta[name]) for name in names]
            thetas.append({key: jnp.asarray([theta[key] for theta in each]) for key in each[0]})
        f = jnp.asarray(sim.functions(grid)[:, places])
        prior = -0.5 * (grid**2).sum(1)

        @jax.jit
        def add(so_far, at):  # one sweep: sums are rescaled when a row finds a likelier point
            top, total, cells = so_far
            f_at, prior_at = at
            log_probs = cell_log_probs(layout, tuple(thetas), values, f_at)
            score = jnp.where(seen, log_probs, 0).sum(1) + prior_at
            higher = jnp.maximum(top, score)
            kept, weight = jnp.exp(top - higher), jnp.exp(score - higher)
            cells = kept[:, None] * cells + weight[:, None] * jnp.exp(log_probs)
            return (higher, kept * total + weight, cells), None

        start = (jnp.full(len(seen), -jnp.inf), jnp.zeros(len(seen)), jnp.zeros(seen.shape))
        (_, total, cells), _ = jax.lax.scan(add, start, (f, jnp.asarray(prior)))
        total = cells / total[:, None]
    out = np.empty(seen.shape)
    out[:, list(layout.order)] = np.log(np.maximum(np.asarray(total), 1e-300))
    return out


def run(seed, n_rows, **parameters):
    sim = simulate(n_rows=n_rows, n_components=2, missing=0.2, random_state=seed)
    model = PluriGP(2, schema=sim.schema, random_state=seed, calibrate=False, **parameters).fit(sim.table)
    ours = model.score_cells(sim.table, sim.truth).to_numpy()
    coder = model.coder_
    marginal = Marginals.fit(coder.table(sim.table)).log_density(coder.table(sim.truth)) - coder.log_units
    best = oracle(sim, sim.table, sim.truth)
    hidden = sim.hidden
    a, b, c = (float(np.mean(part[hidden])) for part in (ours, marginal, best))
    x = np.column_stack([model.transform(sim.table), np.ones(n_rows)])
    residual = sim.x - x @ np.linalg.lstsq(x, sim.x, rcond=None)[0]
    r2 = float(1 - (residual**2).sum() / ((sim.x - sim.x.mean(0)) ** 2).sum())
    return {"seed": seed, "model": a, "marginal": b, "oracle": c, "closed": (a - b) / (c - b), "r2": r2,
            "epochs": model.n_iter_}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=300)
    given = parser.parse_args()
    rows = []
    for seed in range(given.seeds):
        rows.append(run(seed, given.rows, max_epochs=given.epochs))
        print({k: round(v, 3) for k, v in rows[-1].items()}, flush=True)
    print("closed", np.mean([r["closed"] for r in rows]).round(3), "R²", np.mean([r["r2"] for r in rows]).round(3))
    save("recovery", {"rows": given.rows, "runs": rows})
