"""plurigp's training epoch, on the estimator's own path and under the estimator's own conditions."""

from collections.abc import Callable

import numpy as np

from plurigp.data import Table
from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import BoundSpec
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.model import Settings, init_model
from plurigp.inference.schedule import WARMUP_EPOCHS, Schedule, rates_of
from plurigp.inference.steps import start_state
from plurigp.inference.training import run_epoch
from plurigp.likelihoods.layout import arrange, make_layout, n_shared, rules_of


def make_epoch(
    table: Table, n_components: int, n_inducing: int, batch_size: int, n_quadrature: int
) -> Callable[[], float]:
    """A function that does what the training loop does in an epoch, every column under its own likelihood.

    Natural gradients for q(v), Adam for the rest; the bound's parts are brought back to the host. Returns the bound.
    """
    layout, rng, schedule = make_layout(table.schema), np.random.default_rng(0), Schedule()
    values, seen = arrange(layout, table)
    spec = BoundSpec(layout, rules_of(layout, n_quadrature), n_shared=n_shared(layout, seen))
    data = TrainingTable(values.astype("float32"), seen)
    with jax_runtime():
        model = init_model(0, Settings(n_components, n_inducing), table.schema, layout, values, seen)
        state = start_state(spec, model, "natural")
    n_steps = 0

    def epoch() -> float:
        nonlocal state, n_steps
        rates = rates_of(schedule, WARMUP_EPOCHS, 1.0, "float32")
        state, n_steps, parts = run_epoch(spec, state, data.epoch(batch_size, rng), 1, n_steps, rates)
        return float(parts.bound.total)

    return epoch
