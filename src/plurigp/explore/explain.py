"""What each latent dimension does: its share of the variation of the columns' functions, and its learned relevance."""

from typing import Any

import numpy as np
from jaxtyping import Float

from plurigp.answers.predictor import Predictor, moments_at
from plurigp.inference.compiling import Program, jax_runtime
from plurigp.inference.prior import draw_positions

N_POSITIONS = 400  # at which the functions are compared
SEED = 0

_moments = Program(moments_at)


def dimension_shares(predictor: Predictor, x: Float[np.ndarray, "N Q"]) -> Float[np.ndarray, " Q"]:
    """Sobol's total indices (Jansen's estimator) of every column's functions, E[(f(x) − f(x with another x_q))²] / 2,
    as shares of their sum, averaged over columns; a column counts as far as its functions are known."""
    layout, (n, Q) = predictor.layout, x.shape
    other = np.roll(np.random.default_rng(SEED).permutation(n), 1)
    with jax_runtime():
        f, f_var = (np.asarray(part) for part in _moments(predictor, x))
        effects = []
        for q in range(Q):
            moved = x.copy()
            moved[:, q] = x[other, q]
            effects.append(((np.asarray(_moments(predictor, moved)[0]) - f) ** 2).mean(1) / 2)
    effect, unknown = np.stack(effects), f_var.mean(1)  # [Q P], [P]
    widths = [width for block in layout.blocks for width in block.n_functions]
    starts = np.cumsum([0, *widths[:-1]])
    by_column = np.add.reduceat(effect, starts, axis=1)
    signal = by_column.sum(0)
    known = signal / np.maximum(signal + np.add.reduceat(unknown, starts), 1e-300)
    shares = (by_column / np.maximum(signal, 1e-300) * known).sum(1)
    return shares / max(float(shares.sum()), 1e-300)


def explanation(predictor: Predictor, x: np.ndarray | None) -> dict[str, Any]:
    """For the page, from the rows' positions, or from draws of the prior where there are none."""
    rng = np.random.default_rng(SEED)
    if x is None or len(x) < 2:
        x = draw_positions(predictor.model.prior, rng, N_POSITIONS, predictor.n_components)
    x = x if len(x) <= N_POSITIONS else x[rng.choice(len(x), N_POSITIONS, replace=False)]
    spread = np.maximum(x.std(0), 1e-9)
    lengthscales = np.exp(np.asarray(predictor.model.gp.kernel.log_lengthscales, float)[-1])
    relevance = spread / lengthscales
    return {
        "shares": dimension_shares(predictor, np.asarray(x, np.float64)).tolist(),
        "relevance": (relevance / relevance.max()).tolist(),
        "centre": x.mean(0).tolist(),
        "spread": spread.tolist(),
    }
