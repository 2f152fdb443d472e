"""The per-column marginal: each column's own likelihood with constant functions, fitted to its observed cells.

It is what a model must beat to have learned anything from the other columns.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from plurigp.answers.predictor import schema_order
from plurigp.core.arrays import Array, Scalar
from plurigp.data import Table
from plurigp.inference.compiling import jax_runtime, program
from plurigp.inference.optimise import minimise
from plurigp.likelihoods.evaluate import Thetas, cell_log_probs, column_starts, predictive_log_probs
from plurigp.likelihoods.layout import Layout, arrange, make_layout, rules_of

STEPS, RATE = 500, 0.05


@dataclass(frozen=True, eq=False)
class Marginals:
    """Every column's marginal: constant functions and likelihood parameters."""

    layout: Layout
    bias: Float[np.ndarray, " P"]
    thetas: Thetas

    @staticmethod
    def fit(table: Table) -> "Marginals":
        """Maximum likelihood on the observed cells."""
        layout = make_layout(table.schema)
        values, seen = arrange(layout, table)
        with jax_runtime():
            fitted = _fit(layout, *column_starts(table.schema, layout, values, seen), values, seen)
            return Marginals(layout, *jax.tree.map(np.asarray, fitted))

    def log_density(self, table: Table) -> np.ndarray:
        """log p(y) of every cell [N D], coded units, NaN at gaps."""
        values, seen = arrange(self.layout, table)
        with jax_runtime():
            cells = np.asarray(_cells(self.layout, self.bias, self.thetas, values, seen))
        return schema_order(self.layout, np.where(seen, cells, np.nan))


@program(static_argnames=("layout",))
def _cells(
    layout: Layout, bias: Float[Array, " P"], thetas: Thetas, values: Float[Array, "N V"], seen: Bool[Array, "N D"]
) -> Float[Array, "N D"]:
    """By the same densities as the model's, with functions that are constant and known."""
    f = jnp.broadcast_to(bias[:, None], (len(bias), len(values)))
    known = jax.lax.optimization_barrier(jnp.zeros_like(f))  # else the compiler multiplies these zeros out, for seconds
    return predictive_log_probs(layout, thetas, values, seen, f, known, rules_of(layout, None))


@program(static_argnames=("layout",))
def _fit(
    layout: Layout, bias: Float[Array, " P"], thetas: Thetas, values: Float[Array, "N V"], seen: Bool[Array, "N D"]
) -> tuple[Float[Array, " P"], Thetas]:
    """Maximum likelihood for every column at once; columns do not share anything, so one Adam serves all."""
    n = jnp.maximum(seen.sum(0), 1)

    def objective(tree: tuple[Array, Thetas]) -> Scalar:
        cells = cell_log_probs(layout, tree[1], values, tree[0])
        return -(jnp.where(seen, cells, 0).sum(0) / n).sum()

    return minimise(objective, (jnp.asarray(bias), thetas), STEPS, RATE, 0.01)
