"""Likelihoods over whole tables: the one place where functions of a single cell are vmapped.

Rows come first in what these functions take and give, but for f, and last in what they compute: loops then run along
rows, and a block's columns are one contiguous slice. The compiler cancels transpositions that meet.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.core.arrays import Array
from plurigp.data import KINDS, Schema
from plurigp.likelihoods.base import expected_log_prob, predictive_log_prob, predictive_mean
from plurigp.likelihoods.layout import Block, Layout
from plurigp.likelihoods.rules import Rule, expect_by_sampling

Thetas = tuple[dict[str, Float[Array, "_ ..."]], ...]  # one per block, columns first
Rules = tuple[Rule, ...]  # one per block
RowValues = Float[Array, "B V"]
RowSeen = Bool[Array, "B D"]
Moment = Float[Array, "P B"]  # the mean or variance of every function at every row
Sampler = Callable[[int, tuple[int, ...]], Array]  # standard normals for a block, by its number, of a shape [C J H B]
BlockArrays = tuple[dict[str, Array], Array, Array, Array]  # theta [C …], values [C W B], both moments of f [C H B]

# --- from rows to cells ---


def _cell_values(block: Block, values: Float[Array, "V B"]) -> Float[Array, "C W B"]:
    return values[slice(*block.slots)].reshape(block.n_columns, -1, values.shape[1])


def _cell_functions(block: Block, own: Float[Array, "_ B"]) -> Float[Array, "C H B"]:
    """A block's functions, cell by cell; columns with fewer than H functions are padded with zeros."""
    if len(set(block.n_functions)) == 1:
        return own.reshape(block.n_columns, block.width, own.shape[1])
    spread = np.zeros((block.n_columns, block.width, len(own)), own.dtype)
    at = 0
    for column, n in enumerate(block.n_functions):
        spread[column, np.arange(n), np.arange(at, at + n)] = 1
        at += n
    return (spread.reshape(-1, len(own)) @ own).reshape(block.n_columns, block.width, own.shape[1])


def _functions(layout: Layout, f: Moment) -> Iterator[Float[Array, "_ _ B"]]:
    """Each block's functions, cell by cell. The slope of a split is one concatenation; slices' are padded and added."""
    own = jax.lax.split(f, [end - start for start, end in (b.functions for b in layout.blocks)], axis=0)
    return map(_cell_functions, layout.blocks, own)


def _facts(block: Block, theta: dict[str, Array]) -> dict[str, Array]:
    """The learned theta plus the facts a family may need."""
    return {**theta, "n_levels": np.asarray(block.n_functions)}


def _theta(block: Block, theta: dict[str, Array]) -> dict[str, Array]:
    """The same as JAX's arrays."""
    return jax.tree.map(jnp.asarray, _facts(block, theta))  # slopes given by hand take no NumPy arrays


def _by_block(
    layout: Layout, thetas: Thetas, values: RowValues, f_mean: Moment, f_var: Moment, rules: Rules
) -> Iterator[tuple[Block, Rule, BlockArrays]]:
    """Each block, its rule and its arrays, cell by cell; variances are kept off zero, where √ has no slope."""
    values = jnp.asarray(values).T  # slopes given by hand take no NumPy arrays
    moments = _functions(layout, f_mean), _functions(layout, f_var)
    for block, rule, theta, mean, var in zip(layout.blocks, rules, thetas, *moments, strict=True):
        yield block, rule, (_theta(block, theta), _cell_values(block, values), mean, jnp.maximum(var, 1e-10))


def _each_cell(one_cell: Callable) -> Callable:
    """vmap a function of arrays of a cell over columns, the first axis, and rows, the last."""
    return jax.vmap(jax.vmap(one_cell, -1, -1))


def over_cells(one_cell: Callable) -> Callable:
    """The same for a function of (theta of a column, arrays of a cell …)."""
    return jax.vmap(lambda theta, *arrays: jax.vmap(partial(one_cell, theta), -1, -1)(*arrays))


def _evaluate(one_cell: Callable, block: Block, rule: Rule, arrays: BlockArrays) -> Float[Array, "C ... B"]:
    """By the family's form for a whole block where it has one, by `one_cell` of `base.py` vmapped otherwise."""
    whole_block = getattr(block.likelihood, f"block_{one_cell.__name__}")
    if whole_block is not None:
        return whole_block(*arrays, rule)
    return over_cells(lambda t, y, a, v: one_cell(block.likelihood, t, y, a, v, rule))(*arrays)


def _answer(one_cell: Callable, block: Block, rule: Rule, arrays: BlockArrays) -> Float[Array, "C ... B"]:
    """The same in the precision that answers need."""
    if not block.likelihood.single_precision:
        return _evaluate(one_cell, block, rule, arrays)
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float32) if leaf.dtype == jnp.float64 else leaf, arrays)
    return _evaluate(one_cell, block, rule, narrow).astype(arrays[2].dtype)


# --- what a table is asked ---


def expected_log_probs(
    layout: Layout,
    thetas: Thetas,
    values: RowValues,
    seen: RowSeen,
    f_mean: Moment,
    f_var: Moment,
    rules: Rules,
    normals: Sampler | None = None,
) -> tuple[Float[Array, "B _"], ...]:
    """E_q[log p(y|f)] per block and cell, zero where not seen; with normals, by sampling instead of quadrature."""
    out = []
    seen = jnp.asarray(seen).T
    for number, part in enumerate(_by_block(layout, thetas, values, f_mean, f_var, rules)):
        if normals is None:
            cells = _evaluate(expected_log_prob, *part)
        else:
            cells = _evaluate_by_sampling(partial(normals, number), *part)
        out.append(jnp.where(seen[slice(*part[0].columns)], cells, 0).T)
    return tuple(out)


def weigh_columns(layout: Layout, cells: tuple[Float[Array, "B _"], ...]) -> tuple[Float[Array, "B _"], ...]:
    """OpenCells per block, each times the weight of its column: a likelihood to that power."""
    if layout.column_weights is None:
        return cells
    weights = np.asarray(layout.column_weights)
    pairs = zip(layout.blocks, cells, strict=True)
    return tuple(own * weights[slice(*block.columns)].astype(own.dtype) for block, own in pairs)


def weighted_row_sum(layout: Layout, cells: Float[Array, "B D"]) -> Float[Array, " B"]:
    """Σ_d w_d of a row's cells in block order: what a row says about its position."""
    if layout.column_weights is None:
        return cells.sum(1)
    return cells @ np.asarray(layout.column_weights).astype(cells.dtype)


def _evaluate_by_sampling(
    normals: Callable[[tuple[int, ...]], Array], block: Block, rule: Rule, arrays: BlockArrays
) -> Float[Array, "C B"]:
    def one_cell(t: dict, y: Array, a: Array, v: Array, noise: Array) -> Array:
        return expect_by_sampling(lambda f: block.likelihood.log_prob(t, y, f), a, v, noise)

    C, H, B = arrays[2].shape
    return over_cells(one_cell)(*arrays, normals((C, len(rule.points), H, B)))


def cell_log_probs(layout: Layout, thetas: Thetas, values: RowValues, f: Float[Array, " P"]) -> Float[Array, "B D"]:
    """log p(y|f) of every cell in block order, all rows at the same f."""
    out = []
    values = values.T
    functions = _functions(layout, jnp.broadcast_to(f[:, None], (len(f), values.shape[1])))
    for block, theta, own in zip(layout.blocks, thetas, functions, strict=True):
        out.append(over_cells(block.likelihood.log_prob)(_theta(block, theta), _cell_values(block, values), own))
    return jnp.concatenate(out).T


def predictive_log_probs(
    layout: Layout, thetas: Thetas, values: RowValues, seen: RowSeen, f_mean: Moment, f_var: Moment, rules: Rules
) -> Float[Array, "B D"]:
    """log ∫ p(y|f) q(f) df for every cell in block order, zero where not seen."""
    cells = [_answer(predictive_log_prob, *part) for part in _by_block(layout, thetas, values, f_mean, f_var, rules)]
    return jnp.where(seen.T, jnp.concatenate(cells), 0).T


def predictive_log_probs_and_means(
    layout: Layout, thetas: Thetas, values: RowValues, seen: RowSeen, f_mean: Moment, f_var: Moment, rules: Rules
) -> tuple[Float[Array, "B D"], tuple[Float[Array, "B _ _"], ...]]:
    """`predictive_log_probs` and `predictive_means`, with one integral for both where the density is a share."""
    cells, means = [], []
    for part in _by_block(layout, thetas, values, f_mean, f_var, rules):
        mean, share = _answer(predictive_mean, *part), part[0].likelihood.block_log_share
        cells.append(_answer(predictive_log_prob, *part) if share is None else share(part[2][1], mean))
        means.append(jnp.moveaxis(mean, -1, 0))
    return jnp.where(seen.T, jnp.concatenate(cells), 0).T, tuple(means)


def predictive_means(
    layout: Layout, thetas: Thetas, values: RowValues, f_mean: Moment, f_var: Moment, rules: Rules
) -> tuple[Float[Array, "B _ _"], ...]:
    """E[y] per block and cell (a probability per level for categories)."""
    cells = (_answer(predictive_mean, *part) for part in _by_block(layout, thetas, values, f_mean, f_var, rules))
    return tuple(jnp.moveaxis(part, -1, 0) for part in cells)


def points(layout: Layout, means: tuple[Float[Array, "B _ _"], ...]) -> Float[Array, "B D"]:
    """One coded value per cell, block order."""
    cells = (_each_cell(b.likelihood.point)(jnp.moveaxis(m, 0, -1)) for b, m in zip(layout.blocks, means, strict=True))
    return jnp.concatenate(list(cells)).T


def draws(
    layout: Layout,
    thetas: Thetas,
    values: Float[np.ndarray, "B V"],
    f: Float[np.ndarray, "B P"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "B D"]:
    """One draw of y given f for every cell, block order; `values` gives the companion slots. In NumPy: rows first, and
    a cell's own numbers last."""
    out = []
    for block, theta in zip(layout.blocks, thetas, strict=True):
        y = values[:, slice(*block.slots)].reshape(len(values), block.n_columns, -1)
        own = np.moveaxis(np.asarray(_cell_functions(block, f[:, slice(*block.functions)].T)), 2, 0)
        out.append(block.likelihood.sample(rng, _facts(block, theta), y, own))
    return np.concatenate(out, axis=1)


class OpenCells(NamedTuple):
    """Some cells of a table of this shape, block by block: their rows, columns of the block and numbers [n W]."""

    shape: tuple[int, int]
    blocks: tuple[tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"], Float[np.ndarray, "n W"]], ...]


def open_cells(layout: Layout, values: Float[np.ndarray, "B V"], asked: Bool[np.ndarray, "B D"]) -> OpenCells:
    """The cells asked for; `values` gives the companion slots."""
    blocks = []
    for block in layout.blocks:
        row, column = np.nonzero(asked[:, slice(*block.columns)])
        y = values[:, slice(*block.slots)].reshape(len(values), block.n_columns, -1)
        blocks.append((row, column, y[row, column]))
    return OpenCells((len(values), len(layout.order)), tuple(blocks))


def draws_of_cells(
    layout: Layout,
    thetas: Thetas,
    cells: OpenCells,
    f_mean: Float[np.ndarray, "P B"],
    f_sd: Float[np.ndarray, "P B"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "B D"]:
    """One draw of f and y for each of these cells, block order, NaN elsewhere."""
    out = np.full(cells.shape, np.nan)
    for block, theta, (row, column, y) in zip(layout.blocks, thetas, cells.blocks, strict=True):
        if len(row):
            own = slice(*block.functions)
            mean, sd = (np.asarray(_cell_functions(block, part[own]))[column, :, row] for part in (f_mean, f_sd))
            f = mean + sd * rng.normal(size=mean.shape)
            of_cells = {name: np.asarray(value)[column] for name, value in _facts(block, theta).items()}
            out[row, block.columns[0] + column] = block.likelihood.sample(rng, of_cells, y, f)
    return out


# --- the start of training, and what the encoder reads ---


def column_starts(schema: Schema, layout: Layout, values: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, Thetas]:
    """Bias on the link scale [P] and theta per block, from each column's own observed cells (block order)."""
    bias: list[np.ndarray] = []
    thetas: list[dict[str, Array]] = []
    for block in layout.blocks:
        starts = []
        for c in range(block.n_columns):
            slot = block.slots[0] + c * block.n_slots
            cells = values[seen[:, block.columns[0] + c], slot : slot + block.n_slots].astype(float)
            column = schema.used[layout.order[block.columns[0] + c]]
            if len(cells) == 0:
                cells = np.array([KINDS[column.kind].stand_in])
            starts.append(block.likelihood.start(cells, column))
        bias += [start.bias for start in starts]
        thetas.append({name: np.asarray([s.theta[name] for s in starts], float) for name in starts[0].theta})
    return np.concatenate(bias), tuple(thetas)


def encoder_features(layout: Layout, values: RowValues) -> Float[Array, "B E"]:
    """What the encoder reads of a row: every block's features, side by side."""
    out = []
    values = values.T
    for block in layout.blocks:
        features = _each_cell(lambda y, b=block: b.likelihood.features(y, b.width))
        out.append(features(_cell_values(block, values)).reshape(-1, values.shape[1]))
    return jnp.concatenate(out).T


def covariate_features(layout: Layout, values: RowValues) -> Float[Array, "B L"]:
    """A row's covariates, read as the encoder reads cells: numbers, logarithms, an indicator per level."""
    assert layout.covariates is not None
    return encoder_features(layout.covariates, values[:, len(layout.slot_order) :])


def feature_columns(layout: Layout) -> Float[np.ndarray, "D E"]:
    """1 where a feature is one of the column's (block order)."""
    with jax.ensure_compile_time_eval():
        return np.asarray(seen_features(layout, np.eye(len(layout.order), dtype=bool)), float)


def seen_features(layout: Layout, seen: RowSeen) -> Bool[Array, "B E"]:
    """`seen`, repeated for every feature of a cell."""
    out = []
    seen = seen.T
    for block in layout.blocks:
        cell = jax.ShapeDtypeStruct((block.n_slots,), jnp.float32)
        n_features = jax.eval_shape(lambda y, b=block: b.likelihood.features(y, b.width), cell).size
        out.append(jnp.repeat(seen[slice(*block.columns)], n_features, axis=0))
    return jnp.concatenate(out).T
