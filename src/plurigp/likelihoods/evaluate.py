"""Likelihoods over whole tables: the one place where functions of a single cell are vmapped."""

from collections.abc import Callable, Container, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Key

from plurigp.core.arrays import Array
from plurigp.data import KINDS, Schema
from plurigp.likelihoods.base import Likelihood, expected_log_prob, predictive_log_prob, predictive_mean
from plurigp.likelihoods.layout import Block, Layout
from plurigp.likelihoods.rules import Rule, expect_by_sampling

Thetas = tuple[dict[str, Float[Array, "_ ..."]], ...]  # one per block, columns first

# --- from rows to cells [C · B] and back ---
#
# Rows come first in what these functions take and give, and last in what they compute: loops then run along rows, and a
# block's columns are one contiguous slice. The compiler cancels the transpositions that meet.


def cell_values(block: Block, values: Float[Array, "B V"]) -> Float[Array, "C W B"]:
    """A block's values, cell by cell."""
    return _cell_values(block, values.T)


def _cell_values(block: Block, values: Float[Array, "V B"]) -> Float[Array, "C W B"]:
    return values[slice(*block.slots)].reshape(block.n_columns, -1, values.shape[1])


def by_block(layout: Layout, f: Float[Array, "P B"]) -> Sequence[Float[Array, "_ B"]]:
    """The functions of each block. The slope of a split is one concatenation; slices' are padded and added up."""
    return jax.lax.split(f, [end - start for start, end in (b.functions for b in layout.blocks)], axis=0)


def cell_functions(block: Block, own: Float[Array, "_ B"]) -> Float[Array, "C H B"]:
    """A block's functions, cell by cell; columns with fewer than H functions are padded with zeros."""
    if len(set(block.n_functions)) == 1:
        return own.reshape(block.n_columns, block.width, own.shape[1])
    spread = np.zeros((block.n_columns, block.width, len(own)), own.dtype)
    at = 0
    for column, n in enumerate(block.n_functions):
        spread[column, np.arange(n), np.arange(at, at + n)] = 1
        at += n
    return (spread.reshape(-1, len(own)) @ own).reshape(block.n_columns, block.width, own.shape[1])


def _each_row(one_cell: Callable) -> Callable:
    return jax.vmap(one_cell, in_axes=-1, out_axes=-1)


def _each_cell(one_cell: Callable) -> Callable:
    """vmap a function of arrays of a cell over columns, the first axis, and rows, the last."""
    return jax.vmap(_each_row(one_cell))


def over_cells(one_cell: Callable) -> Callable:
    """The same for a function of (theta of a column, arrays of a cell …)."""
    return jax.vmap(lambda theta, *arrays: _each_row(lambda *row: one_cell(theta, *row))(*arrays))


def _cells_of(like: Likelihood, one_cell: Callable, whole_block: Callable | None, rule: Rule) -> Callable:
    """The family's form for a whole block where it has one, its one-cell form vmapped otherwise."""
    if whole_block is not None:
        return lambda theta, y, a, v: whole_block(theta, y, a, v, rule)
    return over_cells(lambda t, y, a, v: one_cell(like, t, y, a, v, rule))


def _theta(block: Block, theta: dict[str, Array]) -> dict[str, Array]:
    """The learned theta plus the facts a family may need."""
    facts = {**theta, "n_levels": np.asarray(block.n_functions)}
    return {name: jnp.asarray(value) for name, value in facts.items()}  # slopes given by hand take no NumPy arrays


def _by_block(
    layout: Layout, thetas: Thetas, values: Float[Array, "B V"], f_mean: Float[Array, "P B"], f_var: Float[Array, "P B"]
) -> Iterator[tuple[Block, tuple[dict[str, Array], Array, Array, Array]]]:
    """Each block, and what its family's functions take: theta, values, and both moments of the functions, cell by cell.
    Variances are kept off zero, where √ has no slope."""
    values = jnp.asarray(values).T  # slopes given by hand take no NumPy arrays
    moments = by_block(layout, f_mean), by_block(layout, f_var)
    for block, theta, mean, var in zip(layout.blocks, thetas, *moments, strict=True):
        variances = jnp.maximum(cell_functions(block, var), 1e-10)
        yield block, (_theta(block, theta), _cell_values(block, values), cell_functions(block, mean), variances)


def expected_log_probs(
    layout: Layout,
    thetas: Thetas,
    values: Float[Array, "B V"],
    seen: Bool[Array, "B D"],
    f_mean: Float[Array, "P B"],
    f_var: Float[Array, "P B"],
    rules: tuple[Rule, ...],
    key: Key[Array, ""] | None = None,
) -> tuple[Float[Array, "B _"], ...]:
    """E_q[log p(y|f)] per block and cell, zero where not seen; with a key, by sampling instead of quadrature."""
    out = []
    seen = jnp.asarray(seen).T
    blocks = _by_block(layout, thetas, values, f_mean, f_var)
    for number, ((block, arrays), rule) in enumerate(zip(blocks, rules, strict=True)):
        like = block.likelihood
        if key is None:
            cells = _cells_of(like, expected_log_prob, like.block_expected_log_prob, rule)(*arrays)
        else:
            noise_shape = (block.n_columns, len(rule.points), block.width, seen.shape[1])
            noise = jax.random.normal(jax.random.fold_in(key, number), noise_shape, f_mean.dtype)
            sampled = over_cells(
                lambda t, y, a, v, noise, like=like: expect_by_sampling(lambda f: like.log_prob(t, y, f), a, v, noise)
            )
            cells = sampled(*arrays, noise)
        out.append(jnp.where(seen[slice(*block.columns)], cells, 0).T)
    return tuple(out)


def cell_log_probs(
    layout: Layout, thetas: Thetas, values: Float[Array, "B V"], f: Float[Array, " P"]
) -> Float[Array, "B D"]:
    """log p(y|f) of every cell in block order, all rows at the same f."""
    out = []
    values = values.T
    rows = by_block(layout, jnp.broadcast_to(f[:, None], (len(f), values.shape[1])))
    for block, theta, own in zip(layout.blocks, thetas, rows, strict=True):
        cells = over_cells(lambda t, y, f, like=block.likelihood: like.log_prob(t, y, f))
        out.append(cells(_theta(block, theta), _cell_values(block, values), cell_functions(block, own)))
    return jnp.concatenate(out).T


def predictive_log_probs(
    layout: Layout,
    thetas: Thetas,
    values: Float[Array, "B V"],
    seen: Bool[Array, "B D"],
    f_mean: Float[Array, "P B"],
    f_var: Float[Array, "P B"],
    rules: tuple[Rule, ...],
) -> Float[Array, "B D"]:
    """log ∫ p(y|f) q(f) df for every cell in block order, zero where not seen."""
    out = []
    for (block, arrays), rule in zip(_by_block(layout, thetas, values, f_mean, f_var), rules, strict=True):
        like = block.likelihood
        out.append(_cells_of(like, predictive_log_prob, like.block_predictive_log_prob, rule)(*arrays))
    return jnp.where(seen.T, jnp.concatenate(out), 0).T


def predictive_means(
    layout: Layout,
    thetas: Thetas,
    values: Float[Array, "B V"],
    f_mean: Float[Array, "P B"],
    f_var: Float[Array, "P B"],
    rules: tuple[Rule, ...],
) -> tuple[Float[Array, "B _ _"], ...]:
    """E[y] per block and cell (a probability per level for categories)."""
    out = []
    for (block, arrays), rule in zip(_by_block(layout, thetas, values, f_mean, f_var), rules, strict=True):
        like = block.likelihood
        cells = _cells_of(like, predictive_mean, like.block_predictive_mean, rule)(*arrays)
        out.append(jnp.moveaxis(cells, -1, 0))
    return tuple(out)


def points(layout: Layout, means: tuple[Float[Array, "B _ _"], ...]) -> Float[Array, "B D"]:
    """One coded value per cell, block order."""
    cells = (_each_cell(b.likelihood.point)(jnp.moveaxis(m, 0, -1)) for b, m in zip(layout.blocks, means, strict=True))
    return jnp.concatenate(list(cells)).T


def column_starts(schema: Schema, layout: Layout, values: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, Thetas]:
    """Bias on the link scale [P] and theta per block, from each column's own observed cells (block order)."""
    bias: list[np.ndarray] = []
    thetas: list[dict[str, Array]] = []
    for block in layout.blocks:
        n_slots = (block.slots[1] - block.slots[0]) // block.n_columns
        starts = []
        for c in range(block.n_columns):
            slot = block.slots[0] + c * n_slots
            cells = values[seen[:, block.columns[0] + c], slot : slot + n_slots].astype(float)
            column = schema.used[layout.order[block.columns[0] + c]]
            if len(cells) == 0:
                cells = np.array([KINDS[column.kind].stand_in])
            starts.append(block.likelihood.start(cells, column))
        bias += [start.bias for start in starts]
        thetas.append({name: np.asarray([s.theta[name] for s in starts], float) for name in starts[0].theta})
    return np.concatenate(bias), tuple(thetas)


def draws(
    layout: Layout,
    thetas: Thetas,
    values: Float[np.ndarray, "B V"],
    f: Float[np.ndarray, "B P"],
    rng: np.random.Generator,
    only: Container[int] | None = None,
) -> Float[np.ndarray, "B D"]:
    """One draw of y given f for every cell, block order; `values` gives the companion slots. With `only`, the other
    blocks are NaN. In NumPy, rows first and a cell's own numbers last."""
    out = np.full((len(values), len(layout.order)), np.nan)
    for number, (block, theta) in enumerate(zip(layout.blocks, thetas, strict=True)):
        if only is None or number in only:
            facts = {**theta, "n_levels": np.asarray(block.n_functions)}
            y, own = cell_values(block, values), cell_functions(block, f[:, slice(*block.functions)].T)
            cells = (np.moveaxis(np.asarray(part), 2, 0) for part in (y, own))
            out[:, slice(*block.columns)] = block.likelihood.sample(rng, facts, *cells)
    return out


def encoder_features(layout: Layout, values: Float[Array, "B V"]) -> Float[Array, "B E"]:
    """What the encoder reads of a row: every block's features, side by side."""
    out = []
    values = values.T
    for block in layout.blocks:
        features = _each_cell(lambda y, b=block: b.likelihood.features(y, b.width))
        out.append(features(_cell_values(block, values)).reshape(-1, values.shape[1]))
    return jnp.concatenate(out).T


def seen_features(layout: Layout, seen: Bool[Array, "B D"]) -> Bool[Array, "B E"]:
    """`seen`, repeated for every feature of a cell."""
    seen = seen.T
    return jnp.concatenate(
        [jnp.repeat(seen[slice(*block.columns)], _n_features(block), axis=0) for block in layout.blocks]
    ).T


def _n_features(block: Block) -> int:
    n_values = (block.slots[1] - block.slots[0]) // block.n_columns
    like = block.likelihood
    return jax.eval_shape(lambda y: like.features(y, block.width), jax.ShapeDtypeStruct((n_values,), jnp.float32)).size
