"""What the map would say of training cells if its functions had not learned from them.

A cell that is hidden from its row is still one of those that q(v) was learned from, and in a short table it is a good
part of them: predicted by q(v), it looks better than a gap will. Without the cell's own term, q(f) at its row is the
cavity of expectation propagation, in closed form: with g = ∂E[log p]/∂a, β = −2 ∂E[log p]/∂v and w the variance that
q(v) has there, the mean is a − w g / (1 − β w); for a Gaussian column this is exact leave-one-out.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.answers.fill import by_column
from plurigp.answers.latent import latent_chunk, log_weights, propose
from plurigp.answers.predictor import Chunk, Predictor, over_chunks, standard_draws
from plurigp.core.arrays import Array, Scalar
from plurigp.data import Table
from plurigp.inference.compiling import Program
from plurigp.inference.encoder import LatentNormal
from plurigp.inference.gp.sparse import moments
from plurigp.inference.model import project_rows
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.layout import arrange

N_DRAWS = 32  # of x, as for other expected values
MAX_LEVERAGE = 0.9  # share of what is known of a function at a row that one cell may have told


@Program
def _means_left_out(
    p: Predictor, values: Array, seen: Array, left_out: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B _ _"], ...]:
    """Σ_s w_s E[y_d|x_s] per block, where `left_out` by functions without the cell."""
    proposals = propose(p.model.prior, qx, noise)

    def one_draw(x: Array) -> tuple[Array, tuple[Array, ...]]:
        projection = project_rows(p.model, p.layout, x, values)
        f = moments(p.model.gp, p.q, projection)
        cells = evaluate.predictive_log_probs(p.layout, p.model.thetas, values, seen, *f, p.rules)
        learned_var = f[1] - jnp.exp(2 * p.model.gp.log_scale)[:, None] * projection.rest
        cavity = without_cells(p, values, left_out, f, learned_var)
        means = evaluate.predictive_means(p.layout, p.model.thetas, values, *cavity, p.rules)
        return evaluate.weighted_row_sum(p.layout, cells), means

    rows, means = jax.lax.map(one_draw, proposals.x)
    weights = jnp.exp(log_weights(proposals.log_ratio, rows))[:, :, None, None]
    return jax.tree.map(lambda leaf: (weights * leaf).sum(0), means)


def without_cells(
    p: Predictor, values: Array, left_out: Array, f: tuple[Array, Array], learned_var: Float[Array, "P B"]
) -> tuple[Float[Array, "P B"], Float[Array, "P B"]]:
    """Mean and variance of every function at its row, without these cells."""

    def expected(f: tuple[Array, Array]) -> Scalar:
        cells = evaluate.expected_log_probs(p.layout, p.model.thetas, values, left_out, *f, p.rules)
        return sum((block.sum() for block in evaluate.weigh_columns(p.layout, cells)), jnp.zeros(()))

    by_mean, by_var = jax.grad(expected)(f)
    leverage = jnp.clip(-2 * by_var * learned_var, 0.0, MAX_LEVERAGE)
    more = learned_var / (1 - leverage)
    return f[0] - by_mean * more, f[1] + leverage * more


def expected_left_out(predictor: Predictor, shown: Table, table: Table) -> list[Float[np.ndarray, "N _"]]:
    """As `expected_columns(predictor, shown)`; the cells of `table` that `shown` has not are left out of what the
    functions have learned."""
    values, seen = arrange(predictor.layout, table)
    noise = standard_draws(N_DRAWS, predictor.n_components)

    def answer(p: Predictor, chunk: Chunk) -> Any:
        own, left_out = values[chunk.rows].astype(chunk.values.dtype), seen[chunk.rows] & ~chunk.seen
        return _means_left_out(p, own, chunk.seen, left_out, latent_chunk(p, chunk), noise)

    return by_column(predictor, table, over_chunks(predictor, shown, answer))
