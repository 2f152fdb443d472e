"""PIT calibration: where observed numbers rank among draws of their cells, and the quantiles recalibrated by it."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

KNOTS = np.linspace(0.0, 1.0, 41)  # the PIT values at which a map is kept
CHANCE = float(np.mean(KNOTS * (1 - KNOTS)))  # n times the mean squared error of an empirical CDF of n uniform values


def pit_values(
    below: Int[np.ndarray, "..."], within: Int[np.ndarray, "..."], n_draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "..."]:
    """Randomised PIT values in (0, 1), from how many draws lie below each cell and how many equal it: uniform if cell
    and draws have one distribution. For a cell known up to a limit, `within` counts the draws within its bounds."""
    return (below + rng.random(below.shape) * (within + 1)) / (n_draws + 1)


def identity_maps(n_columns: int) -> Float[np.ndarray, "D K"]:
    """Maps that change nothing."""
    return np.tile(KNOTS, (n_columns, 1))


def pit_maps(
    columns: Sequence[Float[np.ndarray, " _"]], weights: Sequence[Float[np.ndarray, " _"]] | None = None
) -> Float[np.ndarray, "D K"]:
    """G of every column at the knots, from its PIT values: their (weighted) empirical CDF Ĝ(u), shrunk towards u.

    G = u + λ (Ĝ − u) with λ = τ² / (τ² + CHANCE / n), where τ² is the mean square of Ĝ − u over all columns beyond what
    chance explains. A table whose draws are calibrated keeps them; where they are not, columns with more cells are
    corrected more. Weighted values count as many as are effective.
    """
    weights = [np.ones(len(u)) for u in columns] if weights is None else weights
    shares = [_shares_below(u, own) for u, own in zip(columns, weights, strict=True)]
    n_cells = np.array([own.sum() ** 2 / (own**2).sum() for own in weights])
    off, chance = np.stack(shares) - KNOTS, CHANCE / n_cells
    beyond = max(float(((off**2).mean(1) - chance).mean()), 0.0)
    return KNOTS + (beyond / (beyond + chance))[:, None] * off


def _shares_below(u: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> Float[np.ndarray, " K"]:
    """The share of the weight that lies at or below each knot."""
    order = np.argsort(u, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    return below[np.searchsorted(u[order], KNOTS, side="right")] / below[-1]


def calibrated_levels(G: Float[np.ndarray, " K"], levels: Sequence[float]) -> Float[np.ndarray, "..."]:
    """G⁻¹(p): the level of the draws' own quantile below which a share p of cells lies."""
    return np.interp(levels, G, KNOTS)
