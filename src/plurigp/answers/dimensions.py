"""What each latent dimension explains of each column, and how the column's expected value changes along it.

A dimension's part is its Shapley value: its gain in log density averaged over all orders in which dimensions become
known. Of all ways to divide what several dimensions explain together it is the one whose parts sum to the whole, give
nothing to a dimension that changes nothing, and do not depend on the dimensions' order.
"""

from itertools import permutations
from math import factorial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.answers.latent import log_probs_at
from plurigp.answers.predictor import CHUNK_SIZES, Chunk, Predictor, moments_at, over_chunks, schema_order
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.compiling import Program, jax_runtime
from plurigp.likelihoods import evaluate

N_REFERENCES = 64  # positions over which an unknown coordinate is averaged
MAX_ORDERS = 24  # of dimensions; more are sampled, each with its reverse
N_FUNCTION_DRAWS = 200
SWEEPS, TOLERANCE = 500, 1e-9  # of varimax


@Program
def _known(
    p: Predictor, values: Array, seen: Array, x: Array, references: Array, known: Array, rotation: Array
) -> Float[Array, "B D"]:
    """log (1/K) Σ_k p(y_d | x where known, reference k elsewhere) of every cell, zero at gaps."""

    def one_reference(reference: Array) -> Array:
        return log_probs_at(p, values, seen, jnp.where(known, x, reference) @ rotation.T)[0]

    logs = jax.lax.map(one_reference, references)
    return jax.nn.logsumexp(logs, axis=0) - np.log(len(references))


def shapley_gains(
    predictor: Predictor,
    table: Table,
    x: Float[np.ndarray, "N Q"],
    references: Float[np.ndarray, "K Q"],
    rotation: Float[np.ndarray, "Q Q"],
    seed: int = 0,
) -> Float[np.ndarray, "N D Q"]:
    """Nats that each dimension adds to log p of every observed cell at its row's position; NaN at gaps.

    x and references are in the rotated coordinates. Every order of dimensions goes from nothing known, the mean density
    over the references, to the row's own position, so the parts of a cell sum to the difference of these two.
    """
    Q = x.shape[1]
    found: dict[tuple[bool, ...], np.ndarray] = {}

    def value(known: tuple[bool, ...]) -> np.ndarray:
        if known not in found:

            def score(p: Predictor, chunk: Chunk) -> Array:
                return _known(p, chunk.values, chunk.seen, x[chunk.rows], references, np.array(known), rotation)

            cells = schema_order(predictor.layout, over_chunks(predictor, table, score))
            found[known] = np.where(table.seen, cells, np.nan)
        return found[known]

    gains = np.zeros((*table.seen.shape, Q))
    orders = _orders(Q, seed)
    for order in orders:
        known = [False] * Q
        before = value(tuple(known))
        for q in order:
            known[q] = True
            after = value(tuple(known))
            gains[:, :, q] += (after - before) / len(orders)
            before = after
    return gains


def _orders(Q: int, seed: int) -> list[tuple[int, ...]]:
    """All orders of the dimensions, or pairs of a random one and its reverse."""
    if factorial(Q) <= MAX_ORDERS:
        return list(permutations(range(Q)))
    rng = np.random.default_rng(seed)
    drawn = [tuple(rng.permutation(Q).tolist()) for _ in range(MAX_ORDERS // 2)]
    return [order for one in drawn for order in (one, one[::-1])]


# --- curves ---


class Curve(NamedTuple):
    """E[y] of every column along a line through the map: coded numbers, or probabilities of levels, by block."""

    mean: list[Float[np.ndarray, "B _ _"]]
    low: list[Float[np.ndarray, "B _ _"]]
    high: list[Float[np.ndarray, "B _ _"]]


_moments = Program(moments_at)


@Program
def _expected(p: Predictor, values: Array, f: Float[Array, "S P B"]) -> tuple[Float[Array, "S B _ _"], ...]:
    exact = jnp.zeros_like(f[0])
    return jax.lax.map(lambda one: evaluate.predictive_means(p.layout, p.model.thetas, values, one, exact, p.rules), f)


def curve_along(predictor: Predictor, empty: Table, x: Float[np.ndarray, "B Q"], level: float, seed: int = 0) -> Curve:
    """Expected cells at positions x, with the interval that draws of the functions leave; `empty` has as many rows."""
    assert len(x) <= CHUNK_SIZES[-1]
    rng = np.random.default_rng(seed)
    values = empty.values[:, list(predictor.layout.slot_order)]
    with jax_runtime():
        f_mean, f_var = (np.asarray(part) for part in _moments(predictor, x))
        noise = rng.normal(size=(N_FUNCTION_DRAWS, len(f_mean), 1))  # one deviate per function: curves, not points
        drawn = [np.asarray(block) for block in _expected(predictor, values, f_mean + np.sqrt(f_var) * noise)]
    ends = (1 - level) / 2, (1 + level) / 2
    low, high = zip(*(np.quantile(block, ends, axis=0) for block in drawn), strict=True)
    return Curve([block.mean(0) for block in drawn], list(low), list(high))


# --- rotation ---


def linear_loadings(predictor: Predictor, x: Float[np.ndarray, "N Q"]) -> Float[np.ndarray, "P Q"]:
    """Slopes of every function along every dimension by least squares over the rows, functions of equal variance."""
    with jax_runtime():
        f, f_var = (np.asarray(part) for part in _moments(predictor, x))
    centred = x - x.mean(0)
    slopes = np.linalg.lstsq(centred, (f - f.mean(1, keepdims=True)).T, rcond=None)[0].T
    return slopes / np.sqrt(np.maximum(f.var(1) + f_var.mean(1), 1e-12))[:, None]


def varimax(loadings: Float[np.ndarray, "P Q"]) -> Float[np.ndarray, "Q Q"]:
    """The rotation R (orthogonal) of which loadings @ R have the largest variance of squares (Kaiser 1958)."""
    R, last = np.eye(loadings.shape[1]), 0.0
    for _ in range(SWEEPS):
        rotated = loadings @ R
        target = rotated**3 - rotated * (rotated**2).mean(0)
        left, singular, right = np.linalg.svd(loadings.T @ target)
        R = left @ right
        if singular.sum() <= last * (1 + TOLERANCE):
            break
        last = float(singular.sum())
    return R
