"""How much an observed cell looks like a gap: weights for what is learned on observed cells and used on gaps.

Where gaps depend on other columns, gaps lie where those are high, say, and so do the cells that errors there have to be
learned from: each is weighed by the odds of being a gap given the rest of its row (covariate shift).
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit

from plurigp.core.threads import single_blas_thread

MIN_GAPS = 20  # of a column, below which all its cells count alike
PENALTY = 4.0  # inverse variance of the coefficients' prior, inputs with variance one
MAX_INPUTS = 50  # those that gaps go with most; in a wide table most columns have nothing to do with them
NEWTON_STEPS = 8
MAX_WEIGHT = 5.0  # times the mean


def gap_odds(X: Float[np.ndarray, "N E"], seen: Bool[np.ndarray, " N"]) -> Float[np.ndarray, " n"]:
    """Weights of the observed cells, one on average: odds by a ridge logistic regression, clipped."""
    if (~seen).sum() < MIN_GAPS:
        return np.ones(int(seen.sum()))
    sd = X.std(0, dtype=float)
    Z = np.where(sd > 1e-6, (X - X.mean(0, dtype=float)) / np.where(sd > 1e-6, sd, 1.0), 0.0)
    Z = np.clip(Z, -5.0, 5.0)
    with single_blas_thread():
        related = np.abs(Z.T @ (seen - seen.mean()))
    Z = np.column_stack([np.ones(len(Z)), Z[:, np.sort(np.argsort(-related, kind="stable")[:MAX_INPUTS])]])
    coef, penalty = np.zeros(Z.shape[1]), np.r_[1e-3, np.full(Z.shape[1] - 1, PENALTY)]
    with single_blas_thread():
        for _ in range(NEWTON_STEPS):
            p = expit(Z @ coef)
            slope = Z.T @ (~seen - p) - penalty * coef
            coef = coef + np.linalg.solve((Z * (p * (1 - p))[:, None]).T @ Z + np.diag(penalty), slope)
        odds = np.exp(np.clip(Z[seen] @ coef, -20.0, 20.0))
    weights = np.clip(odds / odds.mean(), 1 / MAX_WEIGHT, MAX_WEIGHT)
    return weights / weights.mean()


def effective_cells(weights: Float[np.ndarray, " n"]) -> float:
    """Kish's effective number of weighted cells."""
    return float(weights.sum() ** 2 / (weights**2).sum())
