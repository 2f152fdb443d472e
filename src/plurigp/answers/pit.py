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


def pit_maps(columns: Sequence[Float[np.ndarray, " _"]]) -> Float[np.ndarray, "D K"]:
    """G of every column at the knots, from its PIT values: their empirical CDF Ĝ(u), shrunk towards u.

    G = u + λ (Ĝ − u) with λ = τ² / (τ² + CHANCE / n), where τ² is the mean square of Ĝ − u over all columns beyond what
    chance explains. A table whose draws are calibrated keeps them; where they are not, columns with more cells are
    corrected more.
    """
    shares = [np.searchsorted(np.sort(u), KNOTS, side="right") / len(u) for u in columns]
    off, chance = np.stack(shares) - KNOTS, CHANCE / np.array([len(u) for u in columns])
    beyond = max(float(((off**2).mean(1) - chance).mean()), 0.0)
    return KNOTS + (beyond / (beyond + chance))[:, None] * off


def calibrated_levels(G: Float[np.ndarray, " K"], levels: Sequence[float]) -> Float[np.ndarray, "..."]:
    """G⁻¹(p): the level of the draws' own quantile below which a share p of cells lies."""
    return np.interp(levels, G, KNOTS)
