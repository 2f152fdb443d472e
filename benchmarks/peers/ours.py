"""plurigp's training, on the estimator's own path and under the estimator's own conditions."""

from collections.abc import Callable

import numpy as np

from plurigp.data import Table
from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import BoundSpec
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.model import Settings, init_model
from plurigp.inference.schedule import Schedule
from plurigp.inference.steps import start_state
from plurigp.inference.training import Loop
from plurigp.likelihoods.layout import arrange, make_layout, n_shared, rules_of

N_EPOCHS = 10**6  # never reached


def make_training(
    table: Table, n_components: int, n_inducing: int, batch_size: int, n_quadrature: int
) -> Callable[[int], float]:
    """The training loop itself, so many epochs further with each call, every column under its own likelihood; returns
    the bound. It never ends: only the caller stops it."""
    layout, schedule = make_layout(table.schema), Schedule(N_EPOCHS, batch_size, tol=-np.inf)
    values, seen = arrange(layout, table)
    rules = rules_of(layout, n_quadrature or None)
    spec = BoundSpec(layout, rules, n_shared=n_shared(layout, seen))
    data = TrainingTable(values.astype("float32"), seen)
    with jax_runtime():
        model = init_model(0, Settings(n_components, n_inducing), table.schema, layout, values, seen)
        loop = Loop(spec, data, schedule, 1, start_state(spec, model, "natural"))

    def train(n_epochs: int) -> float:
        loop.until(lambda plateau: False, len(loop.epochs) + n_epochs)
        return float(loop.epochs[-1].bound.total)

    return train
