"""What the indices would be without structure: shuffled labels (the paper's), and structureless tables."""

import jax
import numpy as np
import pandas as pd

from plurigp.arrays import Array
from plurigp.compiling import compiled_work
from plurigp.data import Table
from plurigp.estimator import PluriGP
from plurigp.gp.linalg import unpack
from plurigp.gp.sparse import Posterior, SparseGP, features
from plurigp.likelihoods import blocks
from plurigp.predict import Predictor
from plurigp.study.consensus import pair_consensus, random_pairs


def permuted_by_matrix(
    matrix: np.ndarray, cluster: np.ndarray, K: int, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Consensus index of every cluster [R K] with the labels of the rows shuffled."""
    known = np.isfinite(matrix) & ~np.eye(len(matrix), dtype=bool)
    values, counts = np.where(known, matrix, 0).astype(np.float32), known.astype(np.float32)
    complete = bool(known.sum() == len(matrix) * (len(matrix) - 1))
    draws = np.empty((n_draws, K))
    for r in range(n_draws):
        one_hot = (rng.permutation(cluster)[:, None] == np.arange(1, K + 1)).astype(np.float32)
        n = one_hot.sum(0)
        pairs = n * (n - 1) if complete else np.einsum("nk,nk->k", counts @ one_hot, one_hot)
        draws[r] = np.einsum("nk,nk->k", values @ one_hot, one_hot, dtype=np.float64) / np.maximum(pairs, 1)
    return draws


def permuted_by_pairs(
    labels: np.ndarray, cluster: np.ndarray, K: int, n_draws: int, n_pairs: int, rng: np.random.Generator
) -> np.ndarray:
    """The same from random pairs of a large table; the sampling of pairs widens the null a little."""
    i, j = random_pairs(len(cluster), n_pairs, rng)
    values = pair_consensus(labels, i, j)
    i, j, values = i[np.isfinite(values)], j[np.isfinite(values)], values[np.isfinite(values)]
    draws = np.empty((n_draws, K))
    for r in range(n_draws):
        shuffled = rng.permutation(cluster)
        same = np.where(shuffled[i] == shuffled[j], shuffled[i], 0)
        total, n = np.bincount(same, values, K + 1)[1:], np.bincount(same, minlength=K + 1)[1:]
        draws[r] = total / np.maximum(n, 1)
    return draws


def threshold(draws: np.ndarray, level: float) -> np.ndarray:
    """The paper's confidence threshold of each cluster [K]: the 1 − level/K quantile (Bonferroni)."""
    return np.quantile(draws, 1 - level / draws.shape[1], axis=0) if len(draws) else np.full(draws.shape[1], np.nan)


def p_values(draws: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Monte Carlo p-values [K]: (1 + draws at least as large) / (1 + draws)."""
    if not len(draws):
        return np.full(len(index), np.nan)
    return (1 + (draws >= index).sum(0)) / (1 + len(draws))


def structureless_table(model: PluriGP, frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A table drawn from the model with x ~ N(0, I): the same columns, companions and gaps, but no clusters."""
    table = model.coder_.table(frame)
    drawn = model.coder_.frame(_draw(model._ready(), table, np.random.default_rng(seed)), frame.index)
    used = {column.name: drawn[column.name].mask(~table.seen[:, d]) for d, column in enumerate(table.schema.columns)}
    return pd.DataFrame({name: used.get(name, frame[name]) for name in frame.columns}, index=frame.index)


def _draw(predictor: Predictor, table: Table, rng: np.random.Generator) -> np.ndarray:
    """Coded rows [N D], schema order: one draw of all functions for the whole table, f = b + s Aᵀv, then cells.

    The rows of a table share their functions, so those of a reference do too.
    """
    layout, gp = predictor.layout, predictor.model.gp
    values, _ = blocks.arrange(layout, table)
    with compiled_work():
        A = np.asarray(_features(gp, rng.normal(size=(len(values), gp.Z.shape[1]))))  # [M N]
        v = _draw_v(predictor.q, rng)
        f = np.asarray(gp.bias) + np.exp(np.asarray(gp.log_scale)) * (v @ A).T
        cells = blocks.draws(layout, jax.tree.map(np.asarray, predictor.model.thetas), values, f, rng)
    out = np.empty_like(cells)
    out[:, list(layout.order)] = cells
    return out


@jax.jit
def _features(gp: SparseGP, x: Array) -> Array:
    return features(gp, x).A


def _draw_v(q: Posterior, rng: np.random.Generator) -> np.ndarray:
    """One draw of v_p ~ N(m_p, S_p) for every function [P M]."""
    m = np.asarray(q.m)
    doubled = np.asarray(unpack(q.S, m.shape[1]))  # off the diagonal
    S = (doubled + np.einsum("pmm->pm", doubled)[:, :, None] * np.eye(m.shape[1])) / 2
    roots = np.linalg.cholesky(S + 1e-9 * np.eye(m.shape[1]))
    return m + np.einsum("pmn,pn->pm", roots, rng.normal(size=m.shape))
