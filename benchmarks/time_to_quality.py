"""How soon is a model good? Held-out score against wall time, for three ways to train the same model.

    python benchmarks/time_to_quality.py [--first 0] [--seeds 3] [--tables digits support] [--epochs 1000]

natural     natural gradients for q(v), Adam for the rest: what PluriGP does
adam        Adam on everything, for --epochs epochs
sampling    natural gradients, expectations by sampling instead of quadrature (the paper's ablation), same number of
            evaluations per cell

A tenth of the cells is hidden. Now and then (after 5, 10, … epochs, then each time a tenth more of them) the clock
stops and the hidden cells are scored from the training state as it stands. Compilation is not counted: every program
is compiled before the clock starts. Each table and seed is kept as soon as it is done; --first goes on from a seed.
"""

import argparse
import time

import jax
import numpy as np
from common import save, saved

from plurigp.answers.density import cell_log_density
from plurigp.answers.heldout import hide_cells
from plurigp.answers.predictor import make_predictor
from plurigp.data import Coder
from plurigp.datasets import load_support
from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import BoundSpec
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.model import Settings, init_model
from plurigp.inference.schedule import Schedule, rates_of
from plurigp.inference.steps import compile_training, finalise, start_state, trained_posterior
from plurigp.inference.training import Loop
from plurigp.likelihoods.layout import arrange, make_layout, n_shared, rules_of
from plurigp_paper.digits import digits

WAYS = {
    "natural": {"optimizer": "natural"},
    "adam": {"optimizer": "adam"},
    "sampling": {"optimizer": "natural", "sampling": True},
}


class Race:
    """One table with hidden cells, and the score of a training state on some of them."""

    def __init__(self, frame, schema, seed, n_components, batch_size, n_quadrature=None, scored=1500):
        shown = hide_cells(frame, schema, 0.1, seed)
        self.coder = Coder.fit(shown, schema)
        self.schema, self.layout = self.coder.schema, make_layout(self.coder.schema)
        values, seen = arrange(self.layout, self.coder.table(shown))
        self.data = TrainingTable(values.astype("float32"), seen)
        self.rules = rules_of(self.layout, n_quadrature)
        self.settings = Settings(n_components=n_components, n_inducing=50)
        self.batch_size, self.seed = batch_size, seed
        some = np.sort(np.random.default_rng(seed).permutation(len(frame))[:scored])
        self.shown, self.complete = (self.coder.table(part.iloc[some]) for part in (shown, frame))

    def score(self, state) -> float:
        """Nats per hidden cell, from the state as it stands."""
        q = trained_posterior(finalise(state, Schedule.kl_covariance_weight))
        predictor = make_predictor(*jax.tree.map(np.asarray, (state.model, q)), self.layout, self.rules)
        cells = cell_log_density(predictor, self.shown, self.complete, n_draws=16) - self.coder.log_units
        return float(cells[self.complete.seen & ~self.shown.seen].mean())

    def run(self, way: str, n_epochs: int) -> list[dict]:
        """Seconds of training and score, every few epochs."""
        options = dict(WAYS[way])
        natural = options["optimizer"] == "natural"
        tol = Schedule.tol if natural else -np.inf  # Adam goes on to the end, whatever its plateau
        schedule = Schedule(n_epochs, self.batch_size, tol=tol, optimizer=options["optimizer"])
        sampling = options.get("sampling", False)
        spec = BoundSpec(
            self.layout,
            self.rules,
            sampling=sampling,
            n_shared=n_shared(self.layout, self.data.seen) if natural and not sampling else 0,
        )
        with jax_runtime():
            model = init_model(self.seed, self.settings, self.schema, self.layout, self.data.values, self.data.seen)
            loop = Loop(spec, self.data, schedule, self.seed, start_state(spec, model, schedule.optimizer))
            first = next(self.data.epoch(self.batch_size, np.random.default_rng(0)))
            compile_training(spec, loop.state, first, rates_of(schedule, 0, 1.0, "float32"))
            path, seconds, look = [], 0.0, 5
            while True:
                start = time.perf_counter()
                loop.until(lambda plateau: plateau.finished, min(look, n_epochs))
                seconds += time.perf_counter() - start
                done = len(loop.epochs)
                if path and done == path[-1]["epoch"]:
                    return path
                path.append({"epoch": done, "seconds": seconds, "cells": self.score(loop.state)})
                look = max(done + 5, round(1.1 * done))


def reached(path: list[dict], goal: float) -> float | None:
    """The first time at which the goal was reached."""
    return next((p["seconds"] for p in path if p["cells"] >= goal), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--tables", nargs="+", default=["digits", "support"])
    given = parser.parse_args()
    images, support = digits(), load_support()
    tables = {
        "digits": (images.table.iloc[:600], images.schema, {"n_components": 6, "batch_size": 300}),
        "support": (support.table.iloc[:3000], support.schema, {"n_components": 10, "batch_size": 500}),
    }
    for name in given.tables:
        frame, schema, sizes = tables[name]
        for seed in range(given.first, given.seeds):
            race = Race(frame, schema, seed, **sizes)
            paths = {way: race.run(way, given.epochs) for way in WAYS}
            goal = paths["adam"][-1]["cells"]
            times = {way: reached(path, goal) for way, path in paths.items()}
            final = {way: path[-1]["cells"] for way, path in paths.items()}
            total = {way: path[-1]["seconds"] for way, path in paths.items()}
            print(name, seed, f"goal {goal:.4f}")
            for way in WAYS:
                print(f"  {way:9s} reached {times[way]} s, final {final[way]:.4f} after {total[way]:.1f} s", flush=True)
            result = saved("time_to_quality")
            runs = {r["seed"]: r for r in result.get(name, [])}
            runs[seed] = {
                "seed": seed,
                "goal": goal,
                "reached": times,
                "final": final,
                "seconds": total,
                "paths": paths,
            }
            save("time_to_quality", result | {name: [runs[seed] for seed in sorted(runs)]})
