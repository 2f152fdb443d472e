"""Joint draws of x, f and y: of gaps given their rows, of new rows, and of whole tables."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

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
from plurigp.inference.gp.sparse import SparseGP
from plurigp.inference.model import Model, project_rows
from plurigp.inference.prior import draw_positions
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.evaluate import Thetas
from plurigp.likelihoods.families.gaussian import draw_noise
from plurigp.likelihoods.layout import Layout, blocks_with, cell_bounds

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
        cells = evaluate.open_cells(p.layout, values, np.ones((len(values), len(p.layout.order)), bool))
        return _draw_cells(p.model.gp, p.layout, decoder, _places(p.model, p.layout, x, values), cells, rng)[:n]

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


class Places(NamedTuple):
    """What a position of every row says of all functions: see `Projection`."""

    A: Float[np.ndarray, "M n"]
    rest: Float[np.ndarray, "1 n"]


def _places(model: Model, layout: Layout, x: Float[np.ndarray, "S Q"], values: Float[np.ndarray, "B V"]) -> Places:
    """Of positions, S = draws · B."""
    projection = _project(model, layout, x, values)
    return Places(np.asarray(projection.A), np.asarray(projection.rest)[None])


def _draw_cells(
    gp: SparseGP,
    layout: Layout,
    decoder: DecoderDraw,
    places: Places,
    cells: evaluate.OpenCells,
    rng: np.random.Generator,
) -> Float[np.ndarray, "n D"]:
    """OpenCells of rows that share a decoder: f = b + s (Aᵀv + √rest ε), and y given f. NaN where not asked."""
    own, bias = decoder.functions, np.asarray(gp.bias)
    scale = np.exp(np.asarray(gp.log_scale)[own])[:, None]
    f_mean, f_sd = np.zeros((2, len(bias), places.A.shape[1]))
    f_mean[own] = bias[own, None] + scale * (decoder.v @ places.A)
    f_sd[own] = scale * decoder.noise.spread[own, None] * np.sqrt(places.rest)
    return evaluate.draws_of_cells(layout, decoder.noise.thetas, cells, f_mean, f_sd, rng)


def compile_draws(predictor: Predictor, n_rows: int) -> "Future[None]":
    """Compile in the background what `draw_given` needs to draw once for so many rows; wait for it before asking.

    The predictor need not be trained: only its shapes matter.
    """
    size = chunk_size(n_rows)
    values = jax.ShapeDtypeStruct((size, predictor.layout.n_slots), predictor.dtype)
    wide = jax.ShapeDtypeStruct(values.shape, np.float64)
    seen = jax.ShapeDtypeStruct((size, len(predictor.layout.order)), np.bool_)
    x = jax.ShapeDtypeStruct((latent.N_PROPOSALS * size, predictor.n_components), np.float64)
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
    """Coded draws of gaps, and of cells known within limits, given the observed cells of their rows, chunk by chunk: x,
    f and y, jointly within a row; NaN elsewhere.

    x is drawn among N_PROPOSALS by importance weights, so that the likelihood corrects q(x). The rows of one draw share
    its functions, so their uncertainty shows in whatever is pooled over rows. With `columns`, gaps of these alone; with
    `shift`, functions are moved by it before cells are drawn; `once` is what `compile_draws` compiles: x by the encoder
    alone, and no warning of misplaced rows.
    """
    rng = np.random.default_rng(seed)
    noise = standard_draws(latent.N_PROPOSALS, predictor.n_components).astype(predictor.dtype)
    layout, model = predictor.layout, in_precision(predictor.model, np.float64)
    asked = _asked(layout, table, columns)
    gp = model.gp if shift is None else replace(model.gp, bias=model.gp.bias + shift)
    sizes: list[np.ndarray] = []

    def draw(decoder: DecoderDraw, proposed: Places, ends: np.ndarray, own: evaluate.OpenCells) -> np.ndarray:
        """One draw of n rows among S proposals each, A [M S·n]; ends [S n] are the sums of their weights."""
        passed = (rng.random(ends.shape[1]) * ends[-1] > ends).sum(0)
        chosen = np.minimum(passed, len(ends) - 1) * ends.shape[1] + np.arange(ends.shape[1])
        places = Places(*(np.take(part, chosen, axis=1) for part in proposed))
        return schema_order(layout, _draw_cells(gp, layout, decoder, places, own, rng))

    with jax_runtime():
        decoders = list(_draw_decoders(predictor, rng, n_draws, _functions_behind(layout, asked)))
        for chunk in chunks(layout, table, predictor.dtype):
            n, values = chunk.n_rows, chunk.values.astype(np.float64)
            x, weights, size = (np.asarray(part, np.float64) for part in _draws_of_x(predictor, chunk, noise, once))
            sizes.append(size[:n])
            placed = _places(model, layout, x.reshape(-1, x.shape[2]), values)
            rows = slice(int(chunk.rows[0]), int(chunk.rows[0]) + n)
            cells = evaluate.open_cells(layout, values[:n], asked[rows])
            given = (_of_rows(placed, n, len(values)), np.cumsum(weights[:, :n], axis=0), cells)
            yield RowDraws(rows, (draw(decoder, *given) for decoder in decoders))
    if not once:
        latent.warn_of_few_draws(np.concatenate(sizes))


def _asked(layout: Layout, table: Table, columns: Sequence[int] | None) -> Bool[np.ndarray, "N D"]:
    """Gaps, and cells known within limits, of these columns or of all; block order."""
    low, high = cell_bounds(table)
    asked = ~table.seen | (low < high)
    if columns is not None:
        asked[:, np.setdiff1d(np.arange(asked.shape[1]), columns)] = False
    return asked[:, list(layout.order)]


def _functions_behind(layout: Layout, asked: Bool[np.ndarray, "N D"]) -> Int[np.ndarray, " n"]:
    """Those of the blocks that hold any of these cells."""
    only = blocks_with(layout, {layout.order[place] for place in np.flatnonzero(asked.any(0))})
    return np.array([p for number in only for p in range(*layout.blocks[number].functions)], int)


def _of_rows(places: Places, n: int, n_padded: int) -> Places:
    """Of the first n rows of every draw."""
    return Places(*(part.reshape(len(part), -1, n_padded)[..., :n].reshape(len(part), -1) for part in places))


def _draws_of_x(predictor: Predictor, chunk: Chunk, noise: np.ndarray, once: bool) -> tuple[Array, Array, Array]:
    """Draws of x [S B Q], their weights [S B] and how many of them count [B]."""
    if once:
        return latent.draw_weighted_once(predictor, chunk.values, chunk.seen, noise)
    return latent.weighted_draws(predictor, chunk.values, chunk.seen, latent.latent_chunk(predictor, chunk), noise)
