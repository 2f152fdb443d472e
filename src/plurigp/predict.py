"""What a trained model answers, in float64 and row by row: no answer depends on the other rows of the call."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float

from plurigp.arrays import Array, Scalar
from plurigp.compiling import Compilation, compiled_work
from plurigp.data import Table
from plurigp.encoder import FreeRows, LatentNormal, independent, kl_x
from plurigp.gp.linalg import unpack_doubled
from plurigp.gp.sparse import Posterior, SparseGP, moments, project
from plurigp.likelihoods import blocks
from plurigp.likelihoods.blocks import Layout, Thetas
from plurigp.likelihoods.gaussian import draw_noise
from plurigp.likelihoods.rules import Rule
from plurigp.model import Model, encode

CHUNKS = (1, 16, 256, 512)  # rows: a few compilations serve one row and a million
N_PROPOSALS = 64  # draws of x among which a row's own are chosen
FEWEST_DRAWS, FEW_SHARE = 2, 0.1  # effective draws below which a row is misplaced; share of such rows to warn from
PRIOR_DRAWS = 4  # of the draws of x behind a density, so many come from the prior
REFINE_STEPS, REFINE_RATE, REFINE_DRAWS = 100, 0.1, 4


class Predictor(eqx.Module):
    """A trained model with all that its answers need; in float64, but for what only weighs draws."""

    model: Model
    q: Posterior
    layout: Layout = eqx.field(static=True)
    rules: tuple[Rule, ...] = eqx.field(static=True)
    kl_weight: float = eqx.field(static=True, default=1.0)
    refined: bool = eqx.field(static=True, default=False)  # the encoder's q(x) is only where each row's own begins

    @property
    def n_components(self) -> int:
        return self.model.gp.Z.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.model.gp.Z.dtype


def in_precision(tree: Any, dtype: Any) -> Any:
    """Every array in this precision."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype), tree)


def make_predictor(
    model: Model, q: Posterior, layout: Layout, rules: tuple[Rule, ...], kl_weight: float = 1.0
) -> Predictor:
    """Widen every array to float64."""
    return Predictor(in_precision(model, np.float64), in_precision(q, np.float64), layout, rules, kl_weight)


def standard_draws(n_draws: int, n_components: int) -> np.ndarray:
    """The same draws for every row: antithetic pairs [S Q] with variance one, so answers are repeatable."""
    half = np.random.default_rng(20210413).normal(size=((n_draws + 1) // 2, n_components))
    half /= np.sqrt((half**2).mean(0)) if len(half) > 1 else 1.0
    return np.concatenate([half, -half])[:n_draws]


# --- chunks ---


def _chunks(
    layout: Layout, table: Table, dtype: Any = np.float64
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """(number of real rows, row numbers, values, seen) in block order, padded to one of the sizes."""
    values, seen = blocks.arrange(layout, table)
    values = values.astype(dtype, copy=False)
    size, at = _chunk_size(len(values)), 0
    while at < len(values):
        n = min(size, len(values) - at)
        fill = np.minimum(np.arange(at, at + size), len(values) - 1)
        yield n, fill, values[fill], seen[fill]
        at += n


def _chunk_size(n_rows: int) -> int:
    return next((size for size in CHUNKS if size >= n_rows), CHUNKS[-1])


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


@jax.jit
def _encode(p: Predictor, values: Array, seen: Array) -> LatentNormal:
    return encode(p.model, p.layout, values, seen)


def _latent_chunk(predictor: Predictor, values: np.ndarray, seen: np.ndarray) -> LatentNormal:
    if isinstance(predictor.model.encoder, FreeRows):
        shape = (len(values), predictor.n_components)
        return _refine(predictor, values, seen, independent(np.zeros(shape), np.full(shape, 0.5)))
    q = _encode(predictor, values, seen)
    return _refine(predictor, values, seen, q) if predictor.refined else q


def latent(predictor: Predictor, table: Table) -> LatentNormal:
    """q(x) of every row: the encoder's answer, refined if asked for, or from the prior where there is no encoder."""
    return _over_chunks(predictor, table, partial(_latent_chunk, predictor))


def positions(predictor: Predictor, table: Table) -> tuple[Float[np.ndarray, "N Q"], Float[np.ndarray, "N Q"]]:
    """Mean and sd of q(x) of every row, dimension by dimension: what a table of a million rows has room for."""

    return _over_chunks(predictor, table, lambda values, seen: _mean_and_sd(_latent_chunk(predictor, values, seen)))


@jax.jit
def _mean_and_sd(q: LatentNormal) -> tuple[Array, Array]:
    return q.mean, q.sd


@jax.jit
def _refine(p: Predictor, values: Float[Array, "B V"], seen: Bool[Array, "B D"], start: LatentNormal) -> LatentNormal:
    """Adam on each row's own mean and on the logarithm of what its root is multiplied by, dimension by dimension, with
    the decoder frozen; rows do not touch each other."""
    noise = jnp.asarray(standard_draws(REFINE_DRAWS, start.mean.shape[1]))

    def refined(free: tuple[Array, Array]) -> LatentNormal:
        return LatentNormal(free[0], jnp.exp(free[1]) * start.stretch, start.base)

    def objective(free: tuple[Array, Array]) -> Scalar:
        qx = refined(free)

        def one_draw(z: Array) -> Scalar:
            f_mean, f_var = moments(p.model.gp, p.q, project(p.model.gp, qx.at(z[None, None])[0]))
            cells = blocks.expected_log_probs(p.layout, p.model.thetas, values.T, seen.T, f_mean, f_var, p.rules)
            return sum((block.sum() for block in cells), jnp.zeros(()))

        return p.kl_weight * kl_x(qx).sum() - jax.lax.map(one_draw, noise).mean()

    adam = optax.adam(optax.cosine_decay_schedule(REFINE_RATE, REFINE_STEPS, 0.02))
    free = (jnp.asarray(start.mean), jnp.zeros_like(start.mean))

    def body(carry: Any, _: None) -> tuple[Any, None]:
        free, state = carry
        update, state = adam.update(jax.grad(objective)(free), state)
        return (optax.apply_updates(free, update), state), None

    (free, _), _ = jax.lax.scan(body, (free, adam.init(free)), None, length=REFINE_STEPS)
    return refined(free)


# --- the decoder's answers, averaged over draws of x ---


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


def _log_probs(p: Predictor, values: Array, seen: Array, x: Array) -> tuple[Float[Array, "B D"], tuple[Array, Array]]:
    """log p(y_d|x) of the cells in `seen`, zero elsewhere; and the moments of f behind them."""
    f = moments(p.model.gp, p.q, project(p.model.gp, x))
    return blocks.predictive_log_probs(p.layout, p.model.thetas, values.T, seen.T, *f, p.rules).T, f


@jax.jit
def _densities(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
    """log (1/S) Σ_s p(x_s)/r(x_s) Π_d p(y_d|x_s), and the effective number of draws."""
    proposals = propose(qx, noise)
    rows = jax.lax.map(lambda x: _log_probs(p, values, seen, x)[0].sum(1), proposals.x)
    weights = rows + proposals.log_ratio
    total = jax.nn.logsumexp(weights, axis=0)
    return total - np.log(len(noise)), effective_size(weights - total)


@jax.jit
def _reconstructed(p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array) -> Float[Array, "B D"]:
    """E over q(x) and q(f|x) of log p(y_d|f), zero at gaps."""

    def one_draw(z: Array) -> Array:
        f = moments(p.model.gp, p.q, project(p.model.gp, qx.at(z[None, None])[0]))
        return jnp.concatenate(blocks.expected_log_probs(p.layout, p.model.thetas, values.T, seen.T, *f, p.rules)).T

    return jax.lax.map(one_draw, noise).mean(0)


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


@jax.jit
def _cells(
    p: Predictor, truth: Array, known: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B D"], Float[Array, " B"]]:
    """log Σ_s w_s p(y_d|x_s) for every known cell, the weights by the seen ones alone, and their effective number."""
    proposals = propose(qx, noise)
    cells = jax.lax.map(lambda x: _log_probs(p, truth, known, x)[0], proposals.x)
    weights = log_weights(proposals.log_ratio, jnp.where(seen, cells, 0).sum(2))
    return jax.nn.logsumexp(weights[:, :, None] + cells, axis=0), effective_size(weights)


@jax.jit
def _means(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[tuple[Float[Array, "_ _ B"], ...], Float[Array, " B"]]:
    """Σ_s w_s E[y_d|x_s], per block (a probability per level for categories), and the effective number of draws."""
    proposals = propose(qx, noise)

    def one_draw(x: Array) -> tuple[Array, tuple[Array, ...]]:
        cells, f = _log_probs(p, values, seen, x)
        return cells.sum(1), blocks.predictive_means(p.layout, p.model.thetas, values.T, *f, p.rules)

    rows, means = jax.lax.map(one_draw, proposals.x)
    logs = log_weights(proposals.log_ratio, rows)
    weights = jnp.exp(logs)[:, None, None]
    return jax.tree.map(lambda leaf: (weights * leaf).sum(0), means), effective_size(logs)


@jax.jit
def _expected(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[tuple[Array, ...], Float[Array, " B"]]:
    means, size = _means(p, values, seen, qx, noise)
    return tuple(jnp.moveaxis(part, -1, 0) for part in means), size


@jax.jit
def _points(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B D"], Float[Array, " B"]]:
    means, size = _means(p, values, seen, qx, noise)
    return blocks.points(p.layout, means).T, size


@jax.jit
def _points_at(p: Predictor, values: Array, x: Float[Array, "B Q"]) -> Float[Array, "B D"]:
    f = moments(p.model.gp, p.q, project(p.model.gp, x))
    return blocks.points(p.layout, blocks.predictive_means(p.layout, p.model.thetas, values.T, *f, p.rules)).T


@jax.jit
def _weighted_draws(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "S B Q"], Float[Array, "S B"], Float[Array, " B"]]:
    """Draws of x, their weights and their effective number."""
    proposals = propose(qx, noise)
    rows = jax.lax.map(lambda x: _log_probs(p, values, seen, x)[0].sum(1), proposals.x)
    logs = log_weights(proposals.log_ratio, rows)
    return proposals.x, jnp.exp(logs), effective_size(logs)


def _answers(predictor: Predictor, table: Table, answer: Callable[..., Any], n_draws: int) -> Any:
    """answer(predictor, values, seen, q(x), noise) for every row."""
    noise = standard_draws(n_draws, predictor.n_components)
    return _over_chunks(
        predictor,
        table,
        lambda values, seen: answer(predictor, values, seen, _latent_chunk(predictor, values, seen), noise),
    )


def _weighted_answers(predictor: Predictor, table: Table, answer: Callable[..., Any], n_draws: int) -> Any:
    """The same for an answer that comes with the effective number of draws behind it."""
    found, sizes = _answers(predictor, table, answer, n_draws)
    warn_of_few_draws(sizes)
    return found


def effective_sample_size(predictor: Predictor, table: Table, n_draws: int = N_PROPOSALS) -> Float[np.ndarray, " N"]:
    """How many of n_draws importance-weighted draws of x carry each row's answers."""
    return _answers(predictor, table, _densities, n_draws)[1]


def fill_values(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """One coded value per cell [N D], schema order: E[y | the row's observed cells], or the likeliest level."""
    return _schema_order(predictor.layout, _weighted_answers(predictor, table, _points, n_draws))


def level_probabilities(predictor: Predictor, table: Table, column: int, n_draws: int = 32) -> np.ndarray:
    """p(level | the row's observed cells) [N K] of a column of levels, given by its place among the used ones."""
    return levels_of_columns(predictor, table, [column], n_draws)[0]


def levels_of_columns(
    predictor: Predictor, table: Table, columns: Sequence[int], n_draws: int = 32
) -> list[np.ndarray]:
    """The same of several columns from one sweep over the rows, which costs as much as for one of them."""
    expected = _weighted_answers(predictor, table, _expected, n_draws)
    found = []
    for column in columns:
        place = predictor.layout.order.index(column)
        number = next(n for n, block in enumerate(predictor.layout.blocks) if place < block.columns[1])
        own = expected[number][:, place - predictor.layout.blocks[number].columns[0]]
        found.append(np.concatenate([1 - own, own], 1) if own.shape[1] == 1 else own)
    return found


def values_at(predictor: Predictor, table: Table, x: np.ndarray) -> np.ndarray:
    """One coded value per cell [N D] at given latent positions; the (empty) table gives companion slots."""
    parts = []
    with compiled_work():
        for n, rows, values, _ in _chunks(predictor.layout, table):
            parts.append(np.asarray(_points_at(predictor, values, np.asarray(x[rows], np.float64)))[:n])
    return _schema_order(predictor.layout, np.concatenate(parts))


def log_density(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """The importance-weighted lower bound on log p(observed cells) of every row [N], in coded units."""
    return _weighted_answers(predictor, table, _densities, n_draws)


def reconstruction(predictor: Predictor, table: Table, n_draws: int = 32) -> np.ndarray:
    """E log p of every observed cell [N D], NaN at gaps, coded units: the encoder has read what is scored."""
    cells = _schema_order(predictor.layout, _answers(predictor, table, _reconstructed, n_draws))
    return np.where(table.seen, cells, np.nan)


def cell_log_density(predictor: Predictor, shown: Table, complete: Table, n_draws: int = 32) -> np.ndarray:
    """log p(y_d | the cells shown) for every cell of `complete` [N D], coded units, NaN where it has none.

    `shown` has the scored cells hidden; `complete` has the same rows with them in place.
    """
    layout = predictor.layout
    noise = standard_draws(n_draws, predictor.n_components)
    parts, sizes = [], []
    with compiled_work():
        for (n, _, values, seen), (_, _, truth, known) in zip(
            _chunks(layout, shown), _chunks(layout, complete), strict=True
        ):
            qx = _latent_chunk(predictor, values, seen)
            cells, size = _cells(predictor, truth, known, seen & known, qx, noise)
            parts.append(np.where(known, np.asarray(cells), np.nan)[:n])
            sizes.append(np.asarray(size)[:n])
    warn_of_few_draws(np.concatenate(sizes))
    return _schema_order(layout, np.concatenate(parts))


# --- draws ---


@jax.jit
def _moments_at(p: Predictor, x: Float[Array, "B Q"]) -> tuple[Array, Array]:
    return moments(p.model.gp, p.q, project(p.model.gp, x))


@jax.jit
def _project(gp: SparseGP, x: Array) -> tuple[Array, Array]:
    projection = project(gp, x)
    return projection.A, projection.rest


class Noise(NamedTuple):
    """One draw of the columns' noise: their thetas with it, and what the deviations of f are multiplied by."""

    thetas: Thetas
    spread: Float[np.ndarray, "... P"]


def _draw_noise(p: Predictor, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Noise:
    """A noise sd for every column whose cells tell it no better than a χ²; it is that of the column's last function."""
    thetas: list[dict[str, Array]] = []
    spread = np.ones((*shape, p.layout.n_functions))
    for block, theta in zip(p.layout.blocks, p.model.thetas, strict=True):
        plain: dict[str, Array] = {name: np.asarray(value) for name, value in theta.items()}
        if "n_cells" in theta:
            plain["noise_scale"] = draw_noise(rng, plain, shape)
            spread[..., block.functions[0] + block.width - 1 : block.functions[1] : block.width] = plain["noise_scale"]
        thetas.append(plain)
    return Noise(tuple(thetas), spread)


def draw_rows(predictor: Predictor, table: Table, seed: int) -> np.ndarray:
    """New coded rows [N D]: x from the prior, f from q(f|x), y from its likelihood; the table gives companion slots."""
    rng = np.random.default_rng(seed)
    parts = []
    with compiled_work():
        for n, rows, values, _ in _chunks(predictor.layout, table):
            x = rng.normal(size=(len(rows), predictor.n_components))
            f_mean, f_var = (np.asarray(part).T[:n] for part in _moments_at(predictor, x))
            noise = _draw_noise(predictor, rng, (n,))
            f = rng.normal(f_mean, noise.spread * np.sqrt(f_var))
            parts.append(blocks.draws(predictor.layout, noise.thetas, values[:n], f, rng))
    return _schema_order(predictor.layout, np.concatenate(parts))


def draw_table(predictor: Predictor, table: Table, seed: int) -> np.ndarray:
    """Coded rows [N D] that share one draw of all functions, as the rows of a table do: x ~ N(0, I), then cells.

    The table gives companion slots such as trials. Its cells are not used: a draw within a cell's bounds is that cell.
    """
    rng = np.random.default_rng(seed)
    table = table.hidden(np.ones_like(table.seen))
    parts = []
    with compiled_work():
        decoder = next(_draw_decoders(predictor, rng, 1))
        for n, rows, values, _ in _chunks(predictor.layout, table):
            x = rng.normal(size=(len(rows), predictor.n_components))
            f = _functions_at(predictor.model.gp, decoder, x, rng)
            parts.append(blocks.draws(predictor.layout, decoder.noise.thetas, values[:n], f[:n], rng))
    return _schema_order(predictor.layout, np.concatenate(parts))


class DecoderDraw(NamedTuple):
    """One draw of what a trained decoder leaves open: v of these functions, and the noise of every column."""

    functions: np.ndarray  # [n] out of P
    v: Float[np.ndarray, "n M"]
    noise: Noise


def _draw_decoders(
    p: Predictor, rng: np.random.Generator, n_draws: int, functions: np.ndarray | None = None
) -> Iterator[DecoderDraw]:
    """v_p ~ N(m_p, S_p) and noise for every function, or for these, n_draws times."""
    own = np.arange(p.layout.n_functions) if functions is None else functions
    m, S = (np.asarray(part, np.float64)[own] for part in (p.q.m, p.q.S))
    roots = np.linalg.cholesky(unpack_doubled(S, m.shape[1]) + 1e-9 * np.eye(m.shape[1]))
    for _ in range(n_draws):
        noise = _draw_noise(p, rng)
        deviation = (roots @ rng.normal(size=(*m.shape, 1)))[..., 0]
        yield DecoderDraw(own, m + noise.spread[own, None] * deviation, noise)


def _functions_at(gp: SparseGP, decoder: DecoderDraw, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """f [B P] of rows that share a decoder, b + s (Aᵀv + √rest ε); zero for functions that it does not have."""
    own = decoder.functions
    A, rest = (np.asarray(part) for part in _project(gp, x))
    noise = np.sqrt(rest)[:, None] * decoder.noise.spread[own] * rng.normal(size=(len(x), len(own)))
    f = np.zeros((len(x), len(gp.bias)))
    f[:, own] = np.asarray(gp.bias)[own] + np.exp(np.asarray(gp.log_scale)[own]) * ((decoder.v @ A).T + noise)
    return f


def compile_draws(predictor: Predictor, n_rows: int) -> Compilation:
    """Compile in the background what `draw_given` needs for so many rows; wait for it before asking.

    The predictor need not be trained: only its shapes matter.
    """
    size = _chunk_size(n_rows)
    values = jax.ShapeDtypeStruct((size, len(predictor.layout.slot_order)), predictor.dtype)
    seen = jax.ShapeDtypeStruct((size, len(predictor.layout.order)), np.bool_)
    x = jax.ShapeDtypeStruct((size, predictor.n_components), np.float64)
    noise = standard_draws(N_PROPOSALS, predictor.n_components).astype(predictor.dtype)
    with jax.enable_x64(True):
        qx = jax.eval_shape(_encode, predictor, values, seen)
    return Compilation(
        (_encode, (predictor, values, seen)),
        (_weighted_draws, (predictor, values, seen, qx, noise)),
        (_project, (in_precision(predictor.model.gp, np.float64), x)),
    )


class Chunk(NamedTuple):
    """Some rows of a table: where they begin, how many they are, and draws of them, each [n D], one at a time."""

    start: int
    n_rows: int
    draws: Iterator[Float[np.ndarray, "n D"]]

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.n_rows)


def draw_given(
    predictor: Predictor,
    table: Table,
    n_draws: int,
    seed: int,
    columns: Sequence[int] | None = None,
    warn: bool = True,
) -> Iterator[Chunk]:
    """Coded draws of whole rows given their observed cells, chunk by chunk: x, f and y, jointly within a row.

    x is drawn among N_PROPOSALS by their weights, so that what q(x) got wrong is put right by the likelihood. The
    rows of one draw share its functions: what is not known of them then shows in whatever is pooled over rows. Where
    only some columns are asked for, others may be NaN.
    """
    rng = np.random.default_rng(seed)
    noise = standard_draws(N_PROPOSALS, predictor.n_components).astype(predictor.dtype)
    layout, gp = predictor.layout, in_precision(predictor.model.gp, np.float64)
    only = blocks.blocks_with(layout, range(len(layout.order)) if columns is None else set(columns))
    functions = np.concatenate([np.arange(*layout.blocks[number].functions) for number in only])
    sizes: list[np.ndarray] = []

    def draw(decoder: DecoderDraw, x: np.ndarray, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """One draw of the rows that `values` [n V] has; x [S B Q] and weights [S B] are padded."""
        ends = np.cumsum(weights, axis=0)
        chosen = np.minimum((rng.random(x.shape[1]) * ends[-1] > ends).sum(0), len(x) - 1)
        f = _functions_at(gp, decoder, x[chosen, np.arange(x.shape[1])], rng)[: len(values)]
        return _schema_order(layout, blocks.draws(layout, decoder.noise.thetas, values, f, rng, only))

    at = 0
    with compiled_work():
        decoders = list(_draw_decoders(predictor, rng, n_draws, functions))
        for n, _, values, seen in _chunks(layout, table, predictor.dtype):
            weighted = _weighted_draws(predictor, values, seen, _latent_chunk(predictor, values, seen), noise)
            x, weights, size = (np.asarray(part, np.float64) for part in weighted)
            sizes.append(size[:n])
            rows = (x, weights, values[:n].astype(np.float64))
            yield Chunk(at, n, (draw(decoder, *rows) for decoder in decoders))
            at += n
    if warn:
        warn_of_few_draws(np.concatenate(sizes))
