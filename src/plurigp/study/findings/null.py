"""What the indices would be without structure: shuffled labels (the paper's), and structureless tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.answers.draws import draw_table
from plurigp.answers.groups import without_groups
from plurigp.core.threads import single_blas_thread
from plurigp.data import Column, Schema, to_rows
from plurigp.data.censoring import censor_like, rounded_like, with_one_status, write_bounds, write_times
from plurigp.data.kinds import kind_of
from plurigp.estimator import PluriGP
from plurigp.study.findings.consensus import known_pairs, pair_consensus, random_pairs

SHUFFLES_AT_ONCE = 32  # share one pass over the consensus matrix, which is what takes time


@dataclass(frozen=True, eq=False)
class Nulls:
    """What the indices would be without structure: R draws of each null."""

    permutation: np.ndarray  # [R K] consensus index of each subtype with its labels shuffled
    reference: np.ndarray  # [R] p-value of groups in structureless table r, by one pair of half maps


def permuted_by_matrix(
    matrix: np.ndarray, cluster: np.ndarray, K: int, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Consensus index of every cluster [R K] with the labels of the rows shuffled."""
    values, counts = known_pairs(matrix, np.float32)
    complete = np.count_nonzero(counts) == len(matrix) * (len(matrix) - 1)
    draws = []
    for start in range(0, n_draws, SHUFFLES_AT_ONCE):
        n_shuffles = min(SHUFFLES_AT_ONCE, n_draws - start)
        shuffled = np.stack([rng.permutation(cluster) for _ in range(n_shuffles)], axis=1)
        one_hot = (shuffled[:, :, None] == np.arange(1, K + 1)).astype(np.float32).reshape(len(matrix), -1)
        n = one_hot.sum(0)
        with single_blas_thread():  # float32 sums in an order of their own, whoever has set how many threads
            pairs = n * (n - 1) if complete else np.einsum("nk,nk->k", counts @ one_hot, one_hot)
            total = np.einsum("nk,nk->k", values @ one_hot, one_hot, dtype=np.float64)
        draws.append((total / np.maximum(pairs, 1)).reshape(-1, K))
    return np.concatenate(draws) if draws else np.empty((0, K))


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
    """A table drawn from the model with x from a single Gaussian: the same columns, trials and gaps, but no clusters.

    Cells known up to a limit are drawn without it and censored anew, by limits that do not depend on the row.
    """
    table = model.coder_.table(frame)
    coded = draw_table(without_groups(model.predictor_), table, seed)
    drawn = model.coder_.frame(coded, frame.index)
    cells: dict[str, Any] = {c.name: drawn[c.name].mask(~table.seen[:, d]) for d, c in enumerate(table.schema.columns)}
    rng = np.random.default_rng((seed, 1))
    for columns in read_together(table.schema):
        places = [table.schema.names.index(column.name) for column in columns]
        values = [model.coder_.undo(c.name, coded[:, d]).to_numpy(float) for c, d in zip(columns, places, strict=True)]
        cells |= censored_cells(columns, frame, values, rng)
    return pd.DataFrame({name: cells.get(name, frame[name]) for name in frame.columns}, index=frame.index)


def read_together(schema: Schema) -> list[list[Column]]:
    """The columns with bounds, each by itself but for those that have their event column in common."""
    groups: dict[tuple[str, str], list[Column]] = {}
    for column in schema:
        if kind_of(column).has_bounds:
            key = ("column", column.name) if column.event is None else ("event", column.event)
            groups.setdefault(key, []).append(column)
    return list(groups.values())


def censored_cells(
    columns: Sequence[Column], frame: pd.DataFrame, values: Sequence[np.ndarray], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Drawn values [N] as cells of the columns and their companion, censored as the frame's are.

    Columns that share an event share the random numbers too: a row followed for long is so in all of them.
    """
    seed, new, rows = int(rng.integers(2**63)), [], to_rows(frame)
    for column, value in zip(columns, values, strict=True):
        bounds, positive = rows.numbers(column), kind_of(column).positive
        censored = censor_like(bounds, value, positive, np.random.default_rng(seed))
        new.append(rounded_like(bounds, censored, positive))
    if columns[0].event is None:
        return write_bounds(columns[0], new[0])
    return write_times(columns, with_one_status(new, values))
