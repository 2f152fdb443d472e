"""Where observed numbers rank among draws of their cells, and the map that makes intervals cover what they say."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

KNOTS = np.linspace(0.0, 1.0, 41)  # the ranks at which a map is kept
FEWEST = 40  # cells below which a column keeps its draws' own quantiles
PRIOR = 100  # the weight of "the draws are right", in cells


def ranks(
    draws: Float[np.ndarray, "S n"],
    low: Float[np.ndarray, " n"],
    high: Float[np.ndarray, " n"],
    rng: np.random.Generator,
) -> Float[np.ndarray, " n"]:
    """The rank of each cell among its draws, in (0, 1): uniform if cell and draws come from one distribution.

    Draws equal to the cell, as of counts, count as below it in a share drawn at random. A cell known up to a limit
    (low < high) ranks at random among the draws within its bounds.
    """
    below, within = (draws < low).sum(0), ((draws >= low) & (draws <= high)).sum(0)
    return (below + rng.random(len(low)) * (within + 1)) / (len(draws) + 1)


def unchanged(n_columns: int) -> Float[np.ndarray, "D K"]:
    """Maps that change nothing."""
    return np.tile(KNOTS, (n_columns, 1))


def rank_map(u: Float[np.ndarray, " n"]) -> Float[np.ndarray, " K"]:
    """G at the knots: the share of ranks up to u, shrunk towards u: G(u) = (n Ĝ(u) + PRIOR u) / (n + PRIOR)."""
    if len(u) < FEWEST:
        return KNOTS.copy()
    at_most = np.searchsorted(np.sort(u), KNOTS, side="right")
    return (at_most + PRIOR * KNOTS) / (len(u) + PRIOR)


def mapped(G: Float[np.ndarray, " K"], u: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """G(u): ranks that are uniform if those of `rank_map` were like these."""
    return np.interp(u, KNOTS, G)


def level_of_draws(G: Float[np.ndarray, " K"], levels: Sequence[float]) -> Float[np.ndarray, "..."]:
    """G⁻¹(p): the level at which the draws have the quantile that a share p of cells lies below."""
    return np.interp(levels, G, KNOTS)
