"""Gaps for a complete table: at random, by a column that stays observed, or by the hidden value itself."""

import numpy as np
import pandas as pd
from scipy.special import expit

from plurigp.core.types import DataError

MECHANISMS = ("random", "observed", "self")
STRENGTH = 1.5  # log odds of a gap per standard deviation of what drives it


def draw_gaps(rng: np.random.Generator, truth: pd.DataFrame, missing: float, mechanism: str = "random") -> np.ndarray:
    """True where a cell [N D] is to be hidden; each column that may have gaps loses the share `missing` on average.

    "random": whatever the values. "observed": high values of the first column, which keeps all its cells, make gaps
    in the others likelier. "self": a cell's own high value makes its gap likelier.
    """
    if not 0 <= missing < 1:
        raise DataError(f"missing is {missing}: the share of cells to hide must be at least 0 and below 1.")
    if mechanism not in MECHANISMS:
        raise DataError(f"mechanism {mechanism!r} is not known; choose one of {', '.join(MECHANISMS)}.")
    if mechanism == "random" or missing == 0:
        return rng.random(truth.shape) < missing
    scores = np.column_stack([_ranks(truth[name]) for name in truth])
    if mechanism == "observed":
        scores = np.repeat(scores[:, :1], truth.shape[1], axis=1)
    probability = _gap_probability(scores, missing)
    if mechanism == "observed":
        probability[:, 0] = 0.0
    return rng.random(truth.shape) < probability


def _ranks(column: pd.Series) -> np.ndarray:
    """Standardised ranks (levels in the order of their names), 0 for a constant column."""
    ranks = column.rank().to_numpy(dtype=float)
    return (ranks - ranks.mean()) / max(ranks.std(), 1e-12)


def _gap_probability(scores: np.ndarray, missing: float) -> np.ndarray:
    """expit(c + STRENGTH · score) [N D], with c found per column by bisection so that its mean is `missing`."""
    low, high = np.full(scores.shape[1], -50.0), np.full(scores.shape[1], 50.0)
    for _ in range(60):
        middle = (low + high) / 2
        enough = expit(middle + STRENGTH * scores).mean(axis=0) > missing
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return expit(low + STRENGTH * scores)
