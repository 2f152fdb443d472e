"""plurigp's training epoch, on the estimator's own path and under the estimator's own conditions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from plurigp.bound import BoundSpec
from plurigp.data import Table, batches
from plurigp.likelihoods.blocks import arrange, make_layout, rules_of
from plurigp.model import Settings, init_model
from plurigp.training import Data, Rates, Schedule, run_epoch, start_state


@contextmanager
def as_in_fit() -> Iterator[None]:
    """What PluriGP.fit wraps its training in."""
    with jax.enable_x64(True), threadpool_limits(1, user_api="blas"):
        yield


def make_epoch(
    table: Table, n_components: int, n_inducing: int, batch_size: int, n_quadrature: int
) -> Callable[[], float]:
    """A function that does what the training loop does in an epoch, every column under its own likelihood.

    Natural gradients for q(v), Adam for the rest; the bound's parts are brought back to the host. Returns the bound.
    """
    layout, rng, schedule = make_layout(table.schema), np.random.default_rng(0), Schedule()
    values, seen = arrange(layout, table)
    spec = BoundSpec(layout, rules_of(layout, n_quadrature))
    with as_in_fit():
        data = Data(jnp.asarray(values, "float32"), jnp.asarray(seen))
        settings = Settings(n_components, n_inducing)
        model = init_model(jax.random.key(0), settings, table.schema, layout, values, seen)
        model = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, "float32")), model)
        state = start_state(model, n_inducing, "natural")
        key = jax.random.key(1)

    def epoch() -> float:
        nonlocal state
        rows, real = map(jnp.asarray, batches(len(values), batch_size, rng))
        rates = Rates(jnp.float32(schedule.learning_rate), jnp.float32(schedule.natural_rate), jnp.float32(0))
        state, parts = run_epoch(spec, state, data, rows, real, key, rates)
        return float(jax.tree.map(np.asarray, parts).bound.total)

    return epoch
