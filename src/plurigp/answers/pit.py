"""Where observed numbers rank among draws of their cells, and the map that makes intervals cover what they say."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

KNOTS = np.linspace(0.0, 1.0, 41)  # the ranks at which a map is kept
CHANCE = float(np.mean(KNOTS * (1 - KNOTS)))  # mean squared deviation of a share of ranks from its place, times n


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
    return ranks_by_counts((draws < low).sum(0), ((draws >= low) & (draws <= high)).sum(0), len(draws), rng)


def ranks_by_counts(
    below: Int[np.ndarray, "..."], within: Int[np.ndarray, "..."], n_draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "..."]:
    """The same from how many draws lie below each cell and how many within its bounds."""
    return (below + rng.random(below.shape) * (within + 1)) / (n_draws + 1)


def unchanged(n_columns: int) -> Float[np.ndarray, "D K"]:
    """Maps that change nothing."""
    return np.tile(KNOTS, (n_columns, 1))


def rank_maps(columns: Sequence[Float[np.ndarray, " _"]]) -> Float[np.ndarray, "D K"]:
    """G of every column at the knots, from its ranks: the share Ĝ(u) of ranks up to u, shrunk towards u.

    G = u + λ (Ĝ − u) with λ = τ² / (τ² + CHANCE / n), where τ² is the mean square of Ĝ − u over all columns beyond what
    chance alone makes of it. So a table whose draws are right keeps them, and one cell more weighs more where they are
    wrong.
    """
    shares = [np.searchsorted(np.sort(u), KNOTS, side="right") / len(u) for u in columns]
    off, chance = np.stack(shares) - KNOTS, CHANCE / np.array([len(u) for u in columns])
    beyond = max(float(((off**2).mean(1) - chance).mean()), 0.0)
    return KNOTS + (beyond / (beyond + chance))[:, None] * off


def mapped(G: Float[np.ndarray, " K"], u: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """G(u): ranks that are uniform if those of `rank_maps` were like these."""
    return np.interp(u, KNOTS, G)


def level_of_draws(G: Float[np.ndarray, " K"], levels: Sequence[float]) -> Float[np.ndarray, "..."]:
    """G⁻¹(p): the level at which the draws have the quantile that a share p of cells lies below."""
    return np.interp(levels, G, KNOTS)
