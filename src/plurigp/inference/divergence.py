"""Which column a training run fails at, when the bound is not finite however small the steps."""

from typing import NoReturn

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.core.arrays import Array
from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import BoundSpec
from plurigp.inference.compiling import program
from plurigp.inference.gp.sparse import Posterior, moments, project
from plurigp.inference.model import Model, encode
from plurigp.inference.steps import State, refresh, trained_posterior
from plurigp.likelihoods.evaluate import expected_log_probs

ROWS_AT_ONCE = 1_000


class Diverged(FloatingPointError):
    """Training cannot go on; `column` is where, in block order."""

    def __init__(self, epoch: int, jitter: float, column: int) -> None:
        self.epoch, self.jitter, self.column = epoch, jitter, column
        super().__init__(
            f"the bound is not finite in epoch {epoch} (jitter {jitter:.1e}), however small the steps; "
            "try dtype='float64', or check the columns for extreme values"
        )


def raise_diverged(spec: BoundSpec, state: State, data: TrainingTable, epoch: int, jitter: float) -> NoReturn:
    """From the last state that was finite: the column with the least probable cell, one that is not finite first."""
    q = trained_posterior(refresh(state, np.ones((), data.values.dtype)))
    worst = np.full(data.seen.shape[1], np.inf)
    for first in range(0, len(data.values), ROWS_AT_ONCE):
        rows = np.arange(first, min(first + ROWS_AT_ONCE, len(data.values)), dtype=np.int32)
        cells = np.asarray(_least_probable(spec, state.model, q, data.values[rows], data.seen[rows], rows))
        worst = np.minimum(worst, np.where(np.isnan(cells), -np.inf, cells))
    raise Diverged(epoch, jitter, int(np.argmin(worst)))


@program(static_argnames=("spec",))
def _least_probable(
    spec: BoundSpec,
    model: Model,
    q: Posterior,
    values: Float[Array, "B V"],
    seen: Bool[Array, "B D"],
    rows: Int[Array, " B"],
) -> Float[Array, " D"]:
    """The smallest E log p of a column's cells. A cell that is not finite spoils its row's position, and with it all
    of the row's cells: such a row is put where the prior is centred, so that only its own column suffers."""
    mean = encode(model, spec.layout, values, seen, rows).mean
    x = jnp.where(jnp.isfinite(mean).all(1, keepdims=True), mean, 0)
    f_mean, f_var = moments(model.gp, q, project(model.gp, x))
    cells = expected_log_probs(spec.layout, model.thetas, values, seen, f_mean, f_var, spec.rules)
    return jnp.concatenate([block.min(0) for block in cells])
