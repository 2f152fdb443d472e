"""Which group of the prior a row belongs to, and the model without its groups."""

from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Float

from plurigp.answers import latent
from plurigp.answers.predictor import Predictor
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.compiling import Program
from plurigp.inference.encoder import LatentNormal
from plurigp.inference.prior import one_group


@Program
def _probabilities(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B K"], Float[Array, " B"]]:
    """Σ_s w_s π_k N_k(x_s) / p(x_s), and the effective number of draws."""
    prior = p.model.prior
    assert prior is not None
    x, weights, size = latent.weighted_draws(p, values, seen, qx, noise)
    shares = jax.nn.softmax(prior.log_weights + prior.log_densities(x), axis=2)
    return (weights[:, :, None] * shares).sum(0), size


def group_probabilities(
    predictor: Predictor, table: Table, n_draws: int = latent.N_PROPOSALS
) -> Float[np.ndarray, "N K"]:
    """p(group | the row's observed cells), averaged over where the row may lie; ones where the prior has no groups."""
    if predictor.model.prior is None:
        return np.ones((len(table.seen), 1))
    return latent.map_rows_weighted(predictor, table, _probabilities, n_draws)


def without_groups(predictor: Predictor) -> Predictor:
    """The same decoder with x from one Gaussian, that of the mixture's mean and covariance."""
    return replace(predictor, model=replace(predictor.model, prior=one_group(predictor.model.prior)))
