"""q(x) of every row, by the encoder and refined where asked for; and draws of x weighed by the row's observed cells,
which every answer of the decoder is averaged over."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from plurigp.answers.predictor import Chunk, Predictor, moments_at, moments_of_draws, over_chunks, standard_draws
from plurigp.core.arrays import Array, Scalar
from plurigp.data import Table
from plurigp.inference.compiling import Program, program
from plurigp.inference.encoder import FreeRows, LatentNormal, independent
from plurigp.inference.model import encode
from plurigp.inference.optimise import minimise
from plurigp.inference.prior import MixturePrior, group_moments, kl_to_prior, one_group
from plurigp.likelihoods import evaluate

REFINE_STEPS, REFINE_RATE, REFINE_DRAWS = 100, 0.1, 4
N_PROPOSALS = 64  # draws of x among which a row's own are chosen
FEWEST_DRAWS, FEW_SHARE = 2, 0.1  # effective draws below which a row is misplaced; share of such rows to warn from
PRIOR_DRAWS = 4  # of a row's draws of x, so many come from the prior


@Program
def encode_chunk(p: Predictor, values: Array, seen: Array) -> LatentNormal:
    return encode(p.model, p.layout, values, seen)


def latent_chunk(predictor: Predictor, chunk: Chunk) -> LatentNormal:
    """q(x) by the encoder, refined if asked for; without an encoder, refined from the prior's mean and half its sd."""
    if isinstance(predictor.model.encoder, FreeRows):
        shape = (len(chunk.values), predictor.n_components)
        _, mean, covariance = group_moments(one_group(predictor.model.prior), predictor.n_components)
        sd = np.sqrt(np.diagonal(covariance[0]))
        start = independent(*(np.array(np.broadcast_to(part, shape)) for part in (mean, 0.5 * sd)))
        return _refine(predictor, chunk.values, chunk.seen, start)
    q = encode_chunk(predictor, chunk.values, chunk.seen)
    return _refine(predictor, chunk.values, chunk.seen, q) if predictor.refined else q


def latent(predictor: Predictor, table: Table) -> LatentNormal:
    """q(x) of every row."""
    return over_chunks(predictor, table, latent_chunk)


def positions(predictor: Predictor, table: Table) -> tuple[Float[np.ndarray, "N Q"], Float[np.ndarray, "N Q"]]:
    """Mean and marginal sd of q(x) of every row, without the covariances: a million rows fit into memory."""
    return over_chunks(predictor, table, lambda p, chunk: _mean_and_sd(latent_chunk(p, chunk)))


@Program
def _mean_and_sd(q: LatentNormal) -> tuple[Array, Array]:
    return q.mean, q.sd


@Program
def _refine(p: Predictor, values: Float[Array, "B V"], seen: Bool[Array, "B D"], start: LatentNormal) -> LatentNormal:
    """Adam on each row's mean and on the log factor of its root per dimension, with the decoder frozen; rows are
    independent of each other."""
    noise = jnp.asarray(standard_draws(REFINE_DRAWS, start.mean.shape[1]))

    def refined(free: tuple[Array, Array]) -> LatentNormal:
        return LatentNormal(free[0], jnp.exp(free[1]) * start.stretch, start.base)

    def objective(free: tuple[Array, Array]) -> Scalar:
        qx = refined(free)

        def one_draw(z: Array) -> Scalar:
            f_mean, f_var = moments_at(p, qx.at(z[None, None])[0], values)
            cells = evaluate.expected_log_probs(p.layout, p.model.thetas, values, seen, f_mean, f_var, p.rules)
            return sum((block.sum() for block in evaluate.weigh_columns(p.layout, cells)), jnp.zeros(()))

        return p.kl_weight * kl_to_prior(p.model.prior, qx).sum() - jax.lax.map(one_draw, noise).mean()

    free = (jnp.asarray(start.mean), jnp.zeros_like(start.mean))
    return refined(minimise(objective, free, REFINE_STEPS, REFINE_RATE, 0.02))


# --- importance-weighted draws of x ---


class Proposals(NamedTuple):
    """Draws of x for every row, and log p(x) − log r(x) with r what they were drawn from."""

    x: Float[Array, "S B Q"]
    log_ratio: Float[Array, "S B"]


def propose(prior: MixturePrior | None, qx: LatentNormal, noise: Float[Array, "S Q"]) -> Proposals:
    """The last PRIOR_DRAWS of the S draws come from the prior and r is the mixture of both, so no weight exceeds
    S / PRIOR_DRAWS however narrow q(x) is. Of a prior with groups each has its draw."""
    if prior is not None:
        return _propose_by_group(prior, qx, noise)
    n_draws = len(noise)
    n_prior = min(PRIOR_DRAWS, n_draws - 1)
    share = np.log([1 - n_prior / n_draws, max(n_prior, 1e-300) / n_draws])
    x = jnp.where(_last(n_prior, n_draws), noise[:, None, :], qx.at(noise[:, None, :]))
    log_p = -0.5 * (x**2).sum(2)
    return Proposals(x, log_p - jnp.logaddexp(share[0] + qx.log_density(x), share[1] + log_p))


def _propose_by_group(prior: MixturePrior, qx: LatentNormal, noise: Float[Array, "S Q"]) -> Proposals:
    """The groups take turns, whatever their weights, and r has each in the share of its draws: a small group that q(x)
    misses is tried too, and the sum over draws stays unbiased."""
    n_draws, K = len(noise), prior.n_groups
    n_prior = min(max(PRIOR_DRAWS, K), n_draws - 1)
    group = np.arange(n_draws)[::-1] % K
    counts = np.bincount(group[n_draws - n_prior :], minlength=K)
    from_prior = prior.means[group] + jnp.einsum("sij,sj->si", prior.roots[group], noise)
    x = jnp.where(_last(n_prior, n_draws), from_prior[:, None, :], qx.at(noise[:, None, :]))
    by_group = prior.log_densities(x)
    parts = jnp.concatenate([qx.log_density(x)[:, :, None], by_group], 2)
    log_r = jax.nn.logsumexp(parts, axis=2, b=np.array([n_draws - n_prior, *counts]) / n_draws)
    return Proposals(x, jax.nn.logsumexp(prior.log_weights + by_group, axis=2) - log_r)


def _last(n_prior: int, n_draws: int) -> Bool[np.ndarray, "S 1 1"]:
    return (np.arange(n_draws) >= n_draws - n_prior)[:, None, None]


def log_probs_at(p: Predictor, values: Array, seen: Array, x: Array) -> tuple[Float[Array, "B D"], tuple[Array, Array]]:
    """log p(y_d|x) of the cells in `seen`, zero elsewhere; and the moments of f behind them."""
    f = moments_of_draws(p, x, values)
    return evaluate.predictive_log_probs(p.layout, p.model.thetas, values, seen, *f, p.rules), f


def log_weights(log_ratio: Float[Array, "S B"], rows: Float[Array, "S B"]) -> Float[Array, "S B"]:
    """Each draw's share in p(x | observed cells), by importance: p(x) Π_d p(y_d|x)^w_d / r(x), normalised."""
    return jax.nn.log_softmax(log_ratio + rows, axis=0)


def effective_size(log_weights: Float[Array, "S B"]) -> Float[Array, " B"]:
    """Kish's effective sample size of a row's draws of x, 1 / Σ_s w_s²."""
    return jnp.exp(-jax.nn.logsumexp(2 * log_weights, axis=0))


@Program
def weighted_draws(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "S B Q"], Float[Array, "S B"], Float[Array, " B"]]:
    """Draws of x, their weights and their effective number."""
    proposals = propose(p.model.prior, qx, noise)
    rows = jax.lax.map(lambda x: evaluate.weighted_row_sum(p.layout, log_probs_at(p, values, seen, x)[0]), proposals.x)
    logs = log_weights(proposals.log_ratio, rows)
    return proposals.x, jnp.exp(logs), effective_size(logs)


@program(quick=True)
def draw_weighted_once(
    p: Predictor, values: Array, seen: Array, noise: Array
) -> tuple[Float[Array, "S B Q"], Float[Array, "S B"], Float[Array, " B"]]:
    """The same with q(x) by the encoder, in one program, for a table that is asked once: calibration."""
    return weighted_draws(p, values, seen, encode_chunk(p, values, seen), noise)


def warn_of_few_draws(sizes: Float[np.ndarray, " N"]) -> None:
    """Warn if many rows rest on hardly more than one draw of x."""
    few = int((sizes < FEWEST_DRAWS).sum())
    if few > FEW_SHARE * len(sizes):
        warnings.warn(
            f"{few} of {len(sizes)} rows are answered by fewer than {FEWEST_DRAWS} effective draws of their position "
            "(see effective_sample_size): the encoder misplaces them; refine=True places them better.",
            RuntimeWarning,
            stacklevel=2,
        )


def map_rows(predictor: Predictor, table: Table, answer: Callable[..., Any], n_draws: int) -> Any:
    """answer(predictor, values, seen, q(x), noise) for every row."""
    noise = standard_draws(n_draws, predictor.n_components)
    return over_chunks(
        predictor, table, lambda p, chunk: answer(p, chunk.values, chunk.seen, latent_chunk(p, chunk), noise)
    )


def map_rows_weighted(predictor: Predictor, table: Table, answer: Callable[..., Any], n_draws: int) -> Any:
    """The same for an answer that comes with its effective number of draws."""
    found, sizes = map_rows(predictor, table, answer, n_draws)
    warn_of_few_draws(sizes)
    return found
