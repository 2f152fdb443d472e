"""Ridge regression of one column on the others, its penalty by generalised cross-validation."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from plurigp.core.threads import single_blas_thread

N_FOLDS = 5
PENALTIES = np.logspace(-5, 1, 13)  # per row, inputs with variance one
MAX_SHARE = 0.95  # of rows that parameters may use up, in the denominator of the validation error


class Ridge(NamedTuple):
    """y = intercept + X coef, kept within the range of its training cells."""

    coef: Float[np.ndarray, " E"]
    intercept: float
    low: float
    high: float

    def predict(self, X: Float[np.ndarray, "N E"]) -> Float[np.ndarray, " N"]:
        return np.clip(X.astype(float) @ self.coef + self.intercept, self.low, self.high)


def fit_ridge(X: Float[np.ndarray, "N E"], y: Float[np.ndarray, " N"]) -> Ridge:
    """By the singular values of the standardised inputs, which serve all penalties."""
    N, mean, sd = len(X), X.mean(0, dtype=float), X.std(0, dtype=float)
    sd = np.where(sd > 1e-6, sd, np.inf)  # a constant input has no coefficient
    y_mean = float(y.mean())
    U, s, Vt = np.linalg.svd((X - mean) / sd, full_matrices=False)
    along = U.T @ (y - y_mean)
    shrinkage = s**2 / (s**2 + N * PENALTIES[:, None])  # [L E]
    rss = ((y - y_mean) ** 2).sum() - ((2 - shrinkage) * shrinkage) @ along**2
    n_used = 1 + shrinkage.sum(1)
    best = int(np.argmin(rss / (1 - np.minimum(n_used / N, MAX_SHARE)) ** 2))
    coef = Vt.T @ (s / (s**2 + N * PENALTIES[best]) * along) / sd
    return Ridge(coef, y_mean - float(mean @ coef), float(y.min()), float(y.max()))


def cross_fitted_ridge(
    X: Float[np.ndarray, "N E"],
    X_unseen: Float[np.ndarray, "N E"],
    y: Float[np.ndarray, " N"],
    rng: np.random.Generator,
) -> tuple[Ridge, Float[np.ndarray, " N"]]:
    """The regression on all rows, and what those without a row's fold say of it from `X_unseen`."""
    fold, unseen = rng.permutation(len(y)) % N_FOLDS, np.empty(len(y))
    with single_blas_thread():
        for k in range(N_FOLDS):
            out = fold == k
            unseen[out] = fit_ridge(X[~out], y[~out]).predict(X_unseen[out])
        return fit_ridge(X, y), unseen
