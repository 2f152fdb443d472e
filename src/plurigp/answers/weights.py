"""Draws of x weighed by a row's own cells: what every answer of the decoder is averaged over."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.answers.latent import latent_chunk
from plurigp.answers.predictor import (
    Predictor,
    over_chunks,
    standard_draws,
)
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.encoder import LatentNormal
from plurigp.inference.gp.sparse import moments, project
from plurigp.likelihoods import evaluate

N_PROPOSALS = 64  # draws of x among which a row's own are chosen
FEWEST_DRAWS, FEW_SHARE = 2, 0.1  # effective draws below which a row is misplaced; share of such rows to warn from
PRIOR_DRAWS = 4  # of the draws of x behind a density, so many come from the prior


class Proposals(NamedTuple):
    """Draws of x for every row, and log p(x) − log r(x) with r what they were drawn from."""

    x: Float[Array, "S B Q"]
    log_ratio: Float[Array, "S B"]


def propose(qx: LatentNormal, noise: Float[Array, "S Q"]) -> Proposals:
    """The last PRIOR_DRAWS of the S draws come from the prior and r is the mixture of both, so no weight exceeds
    S / PRIOR_DRAWS however narrow q(x) is."""
    n_draws = len(noise)
    n_prior = min(PRIOR_DRAWS, n_draws - 1)
    share = np.log([1 - n_prior / n_draws, max(n_prior, 1e-300) / n_draws])
    from_prior = (np.arange(n_draws) >= n_draws - n_prior)[:, None, None]
    x = jnp.where(from_prior, noise[:, None, :], qx.at(noise[:, None, :]))
    log_p = -0.5 * (x**2).sum(2)
    return Proposals(x, log_p - jnp.logaddexp(share[0] + qx.log_density(x), share[1] + log_p))


def log_probs_at(p: Predictor, values: Array, seen: Array, x: Array) -> tuple[Float[Array, "B D"], tuple[Array, Array]]:
    """log p(y_d|x) of the cells in `seen`, zero elsewhere; and the moments of f behind them."""
    f = moments(p.model.gp, p.q, project(p.model.gp, x))
    return evaluate.predictive_log_probs(p.layout, p.model.thetas, values, seen, *f, p.rules), f


def log_weights(log_ratio: Float[Array, "S B"], rows: Float[Array, "S B"]) -> Float[Array, "S B"]:
    """Each draw's share in p(x | observed cells), by importance: p(x) Π_d p(y_d|x) / r(x), normalised."""
    return jax.nn.log_softmax(log_ratio + rows, axis=0)


def effective_size(log_weights: Float[Array, "S B"]) -> Float[Array, " B"]:
    """Kish's effective sample size, 1 / Σ_s w_s²: how many of a row's S draws of x carry its answer."""
    return jnp.exp(-jax.nn.logsumexp(2 * log_weights, axis=0))


def warn_of_few_draws(sizes: Float[np.ndarray, " N"]) -> None:
    """Say so where a good part of the rows is answered by hardly more than one draw of x."""
    few = int((sizes < FEWEST_DRAWS).sum())
    if few > FEW_SHARE * len(sizes):
        warnings.warn(
            f"{few} of {len(sizes)} rows are answered by fewer than {FEWEST_DRAWS} effective draws of their position "
            "(see effective_sample_size): the encoder misplaces them; refine=True places them better.",
            RuntimeWarning,
            stacklevel=2,
        )


def ask(predictor: Predictor, table: Table, answer: Callable[..., Any], n_draws: int) -> Any:
    """answer(predictor, values, seen, q(x), noise) for every row."""
    noise = standard_draws(n_draws, predictor.n_components)
    return over_chunks(
        predictor,
        table,
        lambda values, seen: answer(predictor, values, seen, latent_chunk(predictor, values, seen), noise),
    )


def ask_weighted(predictor: Predictor, table: Table, answer: Callable[..., Any], n_draws: int) -> Any:
    """The same for an answer that comes with the effective number of draws behind it."""
    found, sizes = ask(predictor, table, answer, n_draws)
    warn_of_few_draws(sizes)
    return found
