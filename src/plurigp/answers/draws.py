"""Joint draws of x, f and y: of gaps given their rows, of new rows, and of whole tables."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from plurigp.answers import latent
from plurigp.answers.predictor import (
    Chunk,
    Predictor,
    chunk_size,
    chunks,
    in_precision,
    moments_at,
    over_chunks,
    schema_order,
    standard_draws,
)
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.compiling import Program, compile_in_background, jax_runtime
from plurigp.inference.gp.linalg import unpack_doubled
from plurigp.inference.model import Model, project_rows
from plurigp.inference.prior import draw_positions
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.evaluate import Thetas
from plurigp.likelihoods.families.gaussian import draw_noise
from plurigp.likelihoods.layout import Layout, blocks_with

_moments_at, _project = Program(moments_at), Program(project_rows, static_argnames=("layout",))


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

    def draw(p: Predictor, chunk: Chunk) -> np.ndarray:
        n, values = chunk.n_rows, chunk.values
        x = draw_positions(p.model.prior, rng, len(values), p.n_components)
        f_mean, f_var = (np.asarray(part).T[:n] for part in _moments_at(p, x, values))
        noise = _draw_noise(p, rng, (n,))
        f = rng.normal(f_mean, noise.spread * np.sqrt(f_var))
        return evaluate.draws(p.layout, noise.thetas, values[:n], f, rng)

    return schema_order(predictor.layout, over_chunks(predictor, table, draw))


def draw_table(predictor: Predictor, table: Table, seed: int) -> np.ndarray:
    """Coded rows [N D] that share one draw of all functions, as the rows of a table do: x from the prior, then cells.

    The table gives companion slots such as trials. Its cells are not used: a draw within a cell's bounds is that cell.
    """
    rng = np.random.default_rng(seed)
    with jax_runtime():
        decoder = next(_draw_decoders(predictor, rng, 1))

    def draw(p: Predictor, chunk: Chunk) -> np.ndarray:
        n, values = chunk.n_rows, chunk.values
        x = draw_positions(p.model.prior, rng, len(values), p.n_components)
        f = _functions_at(p.model, p.layout, decoder, x, values, rng)
        return evaluate.draws(p.layout, decoder.noise.thetas, values[:n], f[:n], rng)

    hidden = table.hidden(np.ones_like(table.seen))
    return schema_order(predictor.layout, over_chunks(predictor, hidden, draw))


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


def _functions_at(
    model: Model, layout: Layout, decoder: DecoderDraw, x: np.ndarray, values: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """f [B P] of rows that share a decoder, b + s (Aᵀv + √rest ε); zero for functions that it does not have."""
    own, gp = decoder.functions, model.gp
    A, rest, _ = (np.asarray(part) for part in _project(model, layout, x, values))
    noise = np.sqrt(rest)[:, None] * decoder.noise.spread[own] * rng.normal(size=(len(x), len(own)))
    f = np.zeros((len(x), len(gp.bias)))
    f[:, own] = np.asarray(gp.bias)[own] + np.exp(np.asarray(gp.log_scale)[own]) * ((decoder.v @ A).T + noise)
    return f


def compile_draws(predictor: Predictor, n_rows: int) -> "Future[None]":
    """Compile in the background what `draw_given` needs to draw once for so many rows; wait for it before asking.

    The predictor need not be trained: only its shapes matter.
    """
    size = chunk_size(n_rows)
    values = jax.ShapeDtypeStruct((size, predictor.layout.n_slots), predictor.dtype)
    wide = jax.ShapeDtypeStruct(values.shape, np.float64)
    seen = jax.ShapeDtypeStruct((size, len(predictor.layout.order)), np.bool_)
    x = jax.ShapeDtypeStruct((size, predictor.n_components), np.float64)
    noise = standard_draws(latent.N_PROPOSALS, predictor.n_components).astype(predictor.dtype)
    return compile_in_background(
        (latent.draw_weighted_once, (predictor, values, seen, noise)),
        (_project, (in_precision(predictor.model, np.float64), predictor.layout, x, wide)),
    )


class RowDraws(NamedTuple):
    """Some rows of a table and draws of them, each [n D], one at a time."""

    rows: slice
    draws: Iterator[Float[np.ndarray, "n D"]]


def draw_given(
    predictor: Predictor,
    table: Table,
    n_draws: int,
    seed: int,
    columns: Sequence[int] | None = None,
    once: bool = False,
    shift: Float[np.ndarray, " P"] | None = None,
) -> Iterator[RowDraws]:
    """Coded draws of whole rows given their observed cells, chunk by chunk: x, f and y, jointly within a row.

    x is drawn among N_PROPOSALS by importance weights, so that the likelihood corrects q(x). The rows of one draw share
    its functions, so their uncertainty shows in whatever is pooled over rows. With `columns`, others may be NaN; with
    `shift`, functions are moved by it before cells are drawn; `once` is what `compile_draws` compiles: x by the encoder
    alone, and no warning of misplaced rows.
    """
    rng = np.random.default_rng(seed)
    noise = standard_draws(latent.N_PROPOSALS, predictor.n_components).astype(predictor.dtype)
    layout, model = predictor.layout, in_precision(predictor.model, np.float64)
    only = blocks_with(layout, range(len(layout.order)) if columns is None else set(columns))
    functions = np.concatenate([np.arange(*layout.blocks[number].functions) for number in only])
    sizes: list[np.ndarray] = []

    def draw(decoder: DecoderDraw, n: int, x: np.ndarray, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """One draw of the rows; x [S B Q], weights [S B] and values [B V] are padded."""
        ends = np.cumsum(weights, axis=0)
        chosen = np.minimum((rng.random(x.shape[1]) * ends[-1] > ends).sum(0), len(x) - 1)
        f = _functions_at(model, layout, decoder, x[chosen, np.arange(x.shape[1])], values, rng)[:n]
        f = f if shift is None else f + shift
        return schema_order(layout, evaluate.draws(layout, decoder.noise.thetas, values[:n], f, rng, only))

    with jax_runtime():
        decoders = list(_draw_decoders(predictor, rng, n_draws, functions))
        for chunk in chunks(layout, table, predictor.dtype):
            n, first = chunk.n_rows, int(chunk.rows[0])
            found = _draws_of_x(predictor, chunk, noise, once)
            x, weights, size = (np.asarray(part, np.float64) for part in found)
            sizes.append(size[:n])
            given = (n, x, weights, chunk.values.astype(np.float64))
            yield RowDraws(slice(first, first + n), (draw(decoder, *given) for decoder in decoders))
    if not once:
        latent.warn_of_few_draws(np.concatenate(sizes))


def _draws_of_x(predictor: Predictor, chunk: Chunk, noise: np.ndarray, once: bool) -> tuple[Array, Array, Array]:
    """Draws of x [S B Q], their weights [S B] and how many of them count [B]."""
    if once:
        return latent.draw_weighted_once(predictor, chunk.values, chunk.seen, noise)
    return latent.weighted_draws(predictor, chunk.values, chunk.seen, latent.latent_chunk(predictor, chunk), noise)
