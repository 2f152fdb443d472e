"""What a trained model answers, in float64 and row by row: no answer depends on the other rows of the call."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float

from plurigp.arrays import Array, Scalar
from plurigp.compiling import compiled_work
from plurigp.data import Table
from plurigp.encoder import Encoder, LatentNormal, kl_x
from plurigp.gp.sparse import Posterior, features, moments
from plurigp.likelihoods import blocks
from plurigp.likelihoods.blocks import Layout
from plurigp.likelihoods.rules import Rule
from plurigp.model import Model, encode

SMALL, LARGE = 16, 512  # chunk sizes: two compilations serve one row and a million
PRIOR_DRAWS = 4  # of the draws of x behind a density, so many come from the prior
REFINE_STEPS, REFINE_RATE, REFINE_DRAWS = 150, 0.05, 8


@dataclass(frozen=True)
class Predictor:
    """A trained model in float64 with all that its answers need."""

    model: Model
    q: Posterior
    layout: Layout
    rules: tuple[Rule, ...]
    kl_weight: float = 1.0


def make_predictor(
    model: Model, q: Posterior, layout: Layout, rules: tuple[Rule, ...], kl_weight: float = 1.0
) -> Predictor:
    """Widen every array to float64."""
    wide_model, wide_q = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), (model, q))
    return Predictor(wide_model, wide_q, layout, rules, kl_weight)


def standard_draws(n_draws: int, n_components: int) -> np.ndarray:
    """The same draws for every row: antithetic pairs [S Q] with variance one, so answers are repeatable."""
    half = np.random.default_rng(20210413).normal(size=((n_draws + 1) // 2, n_components))
    half /= np.sqrt((half**2).mean(0)) if len(half) > 1 else 1.0
    return np.concatenate([half, -half])[:n_draws]


# --- chunks ---


def _chunks(layout: Layout, table: Table) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """(number of real rows, row numbers, values, seen) in block order, padded to one of two sizes."""
    values, seen = blocks.arrange(layout, table)
    at = 0
    while at < len(values):
        size = LARGE if len(values) - at > SMALL else SMALL
        n = min(size, len(values) - at)
        fill = np.minimum(np.arange(at, at + size), len(values) - 1)
        yield n, fill, values[fill], seen[fill]
        at += n


def _over_chunks(predictor: Predictor, table: Table, answer: Callable[..., Any]) -> Any:
    """Apply a compiled answer chunk by chunk under a local float64 switch and put the rows together again."""
    parts = []
    with compiled_work():
        for n, _, values, seen in _chunks(predictor.layout, table):
            parts.append(jax.tree.map(lambda leaf, n=n: np.asarray(leaf)[:n], answer(values, seen)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _schema_order(layout: Layout, block_ordered: np.ndarray) -> np.ndarray:
    out = np.empty_like(block_ordered)
    out[:, list(layout.order)] = block_ordered
    return out


# --- q(x) ---


@partial(jax.jit, static_argnames=("layout",))
def _encode(model: Model, layout: Layout, values: Array, seen: Array) -> LatentNormal:
    return encode(model, layout, values, seen)


def _latent_chunk(predictor: Predictor, values: np.ndarray, seen: np.ndarray) -> LatentNormal:
    if isinstance(predictor.model.encoder, Encoder):
        return _encode(predictor.model, predictor.layout, values, seen)
    shape = (len(values), predictor.model.gp.Z.shape[1])
    return _refine_chunk(predictor, values, seen, LatentNormal(np.zeros(shape), np.full(shape, 0.5)))


def _refine_chunk(predictor: Predictor, values: np.ndarray, seen: np.ndarray, start: LatentNormal) -> LatentNormal:
    p = predictor
    return _refine(p.layout, p.rules, p.kl_weight, p.model, p.q, values, seen, start)


def latent(predictor: Predictor, table: Table) -> LatentNormal:
    """q(x) of every row: the encoder's answer, or refined from the prior where there is no encoder."""
    return _over_chunks(predictor, table, partial(_latent_chunk, predictor))


@partial(jax.jit, static_argnames=("layout", "rules", "kl_weight"))
def _refine(
    layout: Layout,
    rules: tuple[Rule, ...],
    kl_weight: float,
    model: Model,
    q: Posterior,
    values: Float[Array, "B V"],
    seen: Bool[Array, "B D"],
    start: LatentNormal,
) -> LatentNormal:
    """Adam on each row's own mean and log sd with the decoder frozen; rows do not touch each other."""
    noise = jnp.asarray(standard_draws(REFINE_DRAWS, start.mean.shape[1]))

    def objective(free: tuple[Array, Array]) -> Scalar:
        qx = LatentNormal(free[0], jnp.exp(free[1]))

        def one_draw(z: Array) -> Scalar:
            f_mean, f_var = moments(model.gp, q, features(model.gp, qx.mean + qx.sd * z))
            cells = blocks.expected_log_probs(layout, model.thetas, values, seen, f_mean, f_var, rules)
            return sum((block.sum() for block in cells), jnp.zeros(()))

        return kl_weight * kl_x(qx).sum() - jax.lax.map(one_draw, noise).mean()

    adam = optax.adam(optax.cosine_decay_schedule(REFINE_RATE, REFINE_STEPS, 0.02))
    free = (jnp.asarray(start.mean), jnp.log(jnp.asarray(start.sd)))

    def body(carry: Any, _: None) -> tuple[Any, None]:
        free, state = carry
        update, state = adam.update(jax.grad(objective)(free), state)
        return (optax.apply_updates(free, update), state), None

    (free, _), _ = jax.lax.scan(body, (free, adam.init(free)), None, length=REFINE_STEPS)
    return LatentNormal(free[0], jnp.exp(free[1]))


def refine(predictor: Predictor, table: Table) -> LatentNormal:
    """q(x) of every row, improved from the encoder's answer by decoder-frozen steps."""

    def from_encoder(values: np.ndarray, seen: np.ndarray) -> LatentNormal:
        return _refine_chunk(predictor, values, seen, _latent_chunk(predictor, values, seen))

    return _over_chunks(predictor, table, from_encoder)


# --- the decoder's answers, averaged over draws of x ---


@partial(jax.jit, static_argnames=("layout", "rules"))
def _means_at(
    layout: Layout,
    rules: tuple[Rule, ...],
    model: Model,
    q: Posterior,
    values: Float[Array, "B V"],
    qx: LatentNormal,
    noise: Float[Array, "S Q"],
) -> Float[Array, "B D"]:
    def one_draw(z: Array) -> tuple[Array, ...]:
        f_mean, f_var = moments(model.gp, q, features(model.gp, qx.mean + qx.sd * z))
        return blocks.predictive_means(layout, model.thetas, values, f_mean, f_var, rules)

    means = jax.tree.map(lambda leaf: leaf.mean(0), jax.lax.map(one_draw, noise))
    return blocks.points(layout, means)


def fill_values(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """One coded value per cell [N D], schema order: E[y | the row's observed cells], or the likeliest level."""
    noise = standard_draws(n_draws, predictor.model.gp.Z.shape[1])

    def answer(values: np.ndarray, seen: np.ndarray) -> Array:
        qx = _latent_chunk(predictor, values, seen)
        return _means_at(predictor.layout, predictor.rules, predictor.model, predictor.q, values, qx, noise)

    return _schema_order(predictor.layout, _over_chunks(predictor, table, answer))


def values_at(predictor: Predictor, table: Table, x: np.ndarray) -> np.ndarray:
    """One coded value per cell [N D] at given latent positions; the (empty) table gives companion slots."""
    layout, no_noise = predictor.layout, np.zeros((1, x.shape[1]))
    parts = []
    with compiled_work():
        for n, rows, values, _ in _chunks(layout, table):
            at = np.asarray(x[rows], np.float64)
            qx = LatentNormal(at, np.zeros_like(at))
            means = _means_at(layout, predictor.rules, predictor.model, predictor.q, values, qx, no_noise)
            parts.append(np.asarray(means)[:n])
    return _schema_order(layout, np.concatenate(parts))


@partial(jax.jit, static_argnames=("layout", "rules"))
def _log_probs_at(
    layout: Layout,
    rules: tuple[Rule, ...],
    model: Model,
    q: Posterior,
    values: Float[Array, "B V"],
    scored: Bool[Array, "B D"],
    qx: LatentNormal,
    noise: Float[Array, "S Q"],
) -> tuple[Float[Array, " B"], Float[Array, "B D"]]:
    """Per row log (1/S) Σ_s p(x_s)/r(x_s) Π_d p(y_d|x_s), and per cell log mean p(y_d|x_s) over the draws from q(x).

    The last PRIOR_DRAWS of the S draws come from the prior and r is the mixture of both, so no weight exceeds
    S / PRIOR_DRAWS however narrow q(x) is.
    """
    n_draws = len(noise)
    n_prior = min(PRIOR_DRAWS, n_draws - 1)
    from_prior = jnp.arange(n_draws) >= n_draws - n_prior
    share = np.log([1 - n_prior / n_draws, max(n_prior, 1e-300) / n_draws])

    def one_draw(at: tuple[Array, Array]) -> tuple[Array, Array]:
        z, prior = at
        x = jnp.where(prior, z, qx.mean + qx.sd * z)
        f_mean, f_var = moments(model.gp, q, features(model.gp, x))
        cells = blocks.predictive_log_probs(layout, model.thetas, values, scored, f_mean, f_var, rules)
        log_p = -0.5 * (x**2).sum(1)
        log_q = -(0.5 * ((x - qx.mean) / qx.sd) ** 2 + jnp.log(qx.sd)).sum(1)
        log_r = jnp.logaddexp(share[0] + log_q, share[1] + log_p)
        return log_p - log_r + cells.sum(1), jnp.where(prior, -jnp.inf, cells)

    rows, cells = jax.lax.map(one_draw, (noise, from_prior))
    row_score = jax.nn.logsumexp(rows, axis=0) - np.log(n_draws)
    return row_score, jax.nn.logsumexp(cells, axis=0) - np.log(n_draws - n_prior)


def log_density(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """The importance-weighted lower bound on log p(observed cells) of every row [N], in coded units."""
    noise = standard_draws(n_draws, predictor.model.gp.Z.shape[1])

    def answer(values: np.ndarray, seen: np.ndarray) -> Array:
        qx = _latent_chunk(predictor, values, seen)
        return _log_probs_at(predictor.layout, predictor.rules, predictor.model, predictor.q, values, seen, qx, noise)[
            0
        ]

    return _over_chunks(predictor, table, answer)


def cell_log_density(predictor: Predictor, shown: Table, complete: Table, n_draws: int = 32) -> np.ndarray:
    """log p(y_d | the cells shown) for every cell of `complete` [N D], coded units, NaN where it has none.

    `shown` has the scored cells hidden; `complete` has the same rows with them in place.
    """
    layout = predictor.layout
    noise = standard_draws(n_draws, predictor.model.gp.Z.shape[1])
    parts = []
    with compiled_work():
        for (n, _, values, seen), (_, _, truth, known) in zip(
            _chunks(layout, shown), _chunks(layout, complete), strict=True
        ):
            qx = _latent_chunk(predictor, values, seen)
            cells = _log_probs_at(layout, predictor.rules, predictor.model, predictor.q, truth, known, qx, noise)[1]
            parts.append(np.where(known, np.asarray(cells), np.nan)[:n])
    return _schema_order(layout, np.concatenate(parts))


@jax.jit
def _moments_at(model: Model, q: Posterior, x: Float[Array, "B Q"]) -> tuple[Array, Array]:
    return moments(model.gp, q, features(model.gp, x))


def draw_rows(predictor: Predictor, table: Table, seed: int) -> np.ndarray:
    """New coded rows [N D]: x from the prior, f from q(f|x), y from its likelihood; the table gives companion slots."""
    layout, model, rng = predictor.layout, predictor.model, np.random.default_rng(seed)
    parts = []
    with compiled_work():
        for n, rows, values, _ in _chunks(layout, table):
            x = rng.normal(size=(len(rows), model.gp.Z.shape[1]))
            f_mean, f_var = (np.asarray(part)[:n] for part in _moments_at(model, predictor.q, x))
            f = rng.normal(f_mean, np.sqrt(f_var))
            parts.append(blocks.draws(layout, model.thetas, values[:n], f, rng))
    return _schema_order(layout, np.concatenate(parts))
