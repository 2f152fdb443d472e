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

# --- from flat arrays to cells [C · B] and back ---
#
# Rows come last in all that is compiled: loops then run along them, and a block's columns are one contiguous slice.


def cell_values(block: Block, values: Float[Array, "V B"]) -> Float[Array, "C W B"]:
    """A block's values, cell by cell."""
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


def _theta(block: Block, theta: dict[str, Array]) -> dict[str, Array]:
    """The learned theta plus the facts a family may need."""
    facts = {**theta, "n_levels": np.asarray(block.n_functions)}
    return {name: jnp.asarray(value) for name, value in facts.items()}  # slopes given by hand take no NumPy arrays


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


def _moments_by_block(
    layout: Layout, f_mean: Float[Array, "P B"], f_var: Float[Array, "P B"]
) -> Iterator[tuple[Float[Array, "_ _ B"], Float[Array, "_ _ B"]]]:
    """Both moments of each block's functions, cell by cell; variances are kept off zero, where √ has no slope."""
    for block, mean, var in zip(layout.blocks, by_block(layout, f_mean), by_block(layout, f_var), strict=True):
        yield cell_functions(block, mean), jnp.maximum(cell_functions(block, var), 1e-10)


def expected_log_probs(
    layout: Layout,
    thetas: Thetas,
    values: Float[Array, "V B"],
    seen: Bool[Array, "D B"],
    f_mean: Float[Array, "P B"],
    f_var: Float[Array, "P B"],
    rules: tuple[Rule, ...],
    key: Key[Array, ""] | None = None,
) -> tuple[Float[Array, "_ B"], ...]:
    """E_q[log p(y|f)] per block and cell, zero where not seen; with a key, by sampling instead of quadrature."""
    out = []
    values = jnp.asarray(values)  # slopes given by hand take no NumPy arrays
    moments = _moments_by_block(layout, f_mean, f_var)
    for number, (block, theta, rule, mv) in enumerate(zip(layout.blocks, thetas, rules, moments, strict=True)):
        like = block.likelihood
        arrays = [cell_values(block, values), *mv]
        if key is None:
            cells = _cells_of(like, expected_log_prob, like.block_expected_log_prob, rule)
        else:
            noise_shape = (block.n_columns, len(rule.points), block.width, values.shape[1])
            arrays.append(jax.random.normal(jax.random.fold_in(key, number), noise_shape, f_mean.dtype))
            cells = over_cells(
                lambda t, y, a, v, noise, like=like: expect_by_sampling(lambda f: like.log_prob(t, y, f), a, v, noise)
            )
        out.append(jnp.where(seen[slice(*block.columns)], cells(_theta(block, theta), *arrays), 0))
    return tuple(out)


def cell_log_probs(
    layout: Layout, thetas: Thetas, values: Float[Array, "V B"], f: Float[Array, " P"]
) -> Float[Array, "D B"]:
    """log p(y|f) of every cell in block order, all rows at the same f."""
    out = []
    rows = by_block(layout, jnp.broadcast_to(f[:, None], (len(f), values.shape[1])))
    for block, theta, own in zip(layout.blocks, thetas, rows, strict=True):
        cells = over_cells(lambda t, y, f, like=block.likelihood: like.log_prob(t, y, f))
        out.append(cells(_theta(block, theta), cell_values(block, values), cell_functions(block, own)))
    return jnp.concatenate(out)


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


def predictive_log_probs(
    layout: Layout,
    thetas: Thetas,
    values: Float[Array, "V B"],
    seen: Bool[Array, "D B"],
    f_mean: Float[Array, "P B"],
    f_var: Float[Array, "P B"],
    rules: tuple[Rule, ...],
) -> Float[Array, "D B"]:
    """log ∫ p(y|f) q(f) df for every cell in block order, zero where not seen."""
    out = []
    moments = _moments_by_block(layout, f_mean, f_var)
    for block, theta, rule, mv in zip(layout.blocks, thetas, rules, moments, strict=True):
        like = block.likelihood
        cells = _cells_of(like, predictive_log_prob, like.block_predictive_log_prob, rule)
        out.append(cells(_theta(block, theta), cell_values(block, values), *mv))
    return jnp.where(seen, jnp.concatenate(out), 0)


def predictive_means(
    layout: Layout,
    thetas: Thetas,
    values: Float[Array, "V B"],
    f_mean: Float[Array, "P B"],
    f_var: Float[Array, "P B"],
    rules: tuple[Rule, ...],
) -> tuple[Float[Array, "_ _ B"], ...]:
    """E[y] per block and cell (a probability per level for categories)."""
    out = []
    moments = _moments_by_block(layout, f_mean, f_var)
    for block, theta, rule, mv in zip(layout.blocks, thetas, rules, moments, strict=True):
        like = block.likelihood
        cells = _cells_of(like, predictive_mean, like.block_predictive_mean, rule)
        out.append(cells(_theta(block, theta), cell_values(block, values), *mv))
    return tuple(out)


def points(layout: Layout, means: tuple[Float[Array, "_ _ B"], ...]) -> Float[Array, "D B"]:
    """One coded value per cell, block order."""
    return jnp.concatenate([_each_cell(b.likelihood.point)(m) for b, m in zip(layout.blocks, means, strict=True)])


def draws(
    layout: Layout,
    thetas: Thetas,
    values: np.ndarray,
    f: np.ndarray,
    rng: np.random.Generator,
    only: Container[int] | None = None,
) -> Float[np.ndarray, "B D"]:
    """One draw of y given f [B P] for every cell, block order; `values` [B V] gives the companion slots. With `only`,
    the other blocks are NaN.

    Not compiled: rows first, and a cell's own numbers last, as NumPy likes them.
    """
    out = np.full((len(values), len(layout.order)), np.nan)
    for number, (block, theta) in enumerate(zip(layout.blocks, thetas, strict=True)):
        if only is None or number in only:
            facts = {**theta, "n_levels": np.asarray(block.n_functions)}
            y, own = cell_values(block, values.T), cell_functions(block, f[:, slice(*block.functions)].T)
            cells = (np.moveaxis(np.asarray(part), 2, 0) for part in (y, own))
            out[:, slice(*block.columns)] = block.likelihood.sample(rng, facts, *cells)
    return out


def encoder_features(layout: Layout, values: Float[Array, "V B"]) -> Float[Array, "E B"]:
    """What the encoder reads of a row: every block's features, one below the other."""
    out = []
    for block in layout.blocks:
        features = _each_cell(lambda y, b=block: b.likelihood.features(y, b.width))
        out.append(features(cell_values(block, values)).reshape(-1, values.shape[1]))
    return jnp.concatenate(out)


def _n_features(block: Block) -> int:
    n_values = (block.slots[1] - block.slots[0]) // block.n_columns
    like = block.likelihood
    return jax.eval_shape(lambda y: like.features(y, block.width), jax.ShapeDtypeStruct((n_values,), jnp.float32)).size


def seen_features(layout: Layout, seen: Bool[Array, "D B"]) -> Bool[Array, "E B"]:
    """`seen`, repeated for every feature of a cell."""
    return jnp.concatenate(
        [jnp.repeat(seen[slice(*block.columns)], _n_features(block), axis=0) for block in layout.blocks]
    )
