"""n_components="auto": the number of factors that predict hidden cells best, in a linear model that takes a second."""

import numpy as np
from jaxtyping import Bool, Float

from plurigp.core.arrays import Array
from plurigp.core.threads import single_blas_thread
from plurigp.inference.batches import TrainingTable
from plurigp.inference.compiling import program
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.layout import Layout

CANDIDATES = (2, 4, 8, 16)
HIDDEN_SHARE, MAX_ROWS, EM_STEPS = 0.2, 2000, 60
STREAM = 3  # separates its random numbers from those of training
MIN_GAIN = 0.01  # share of the squared error that more dimensions must take away


@program(static_argnames=("layout",))
def _features(layout: Layout, values: Array, seen: Array) -> tuple[Array, Array]:
    return evaluate.encoder_features(layout, values), evaluate.seen_features(layout, seen)


def choose_components(layout: Layout, table: TrainingTable, seed: int) -> int:
    """Of CANDIDATES, the one whose factors predict cells hidden in some rows best; the fewest among equals.

    The map's lengthscales switch off dimensions that it does not need, so a few too many do not harm.
    """
    rng = np.random.default_rng([seed, STREAM])
    rows = np.sort(rng.permutation(len(table.seen))[:MAX_ROWS])
    seen = np.asarray(table.seen[rows])
    features, known = (np.asarray(part) for part in _features(layout, np.asarray(table.values[rows]), seen))
    kept = seen & (rng.random(seen.shape) > HIDDEN_SHARE)
    shown = np.asarray(_features(layout, np.asarray(table.values[rows]), kept)[1])
    Y = _standardised(features.astype(float), shown)
    most = min(len(layout.order) - 1, len(rows) // 5)
    best, least = CANDIDATES[0], np.inf
    with single_blas_thread():
        for Q in (q for q in CANDIDATES if q <= max(most, CANDIDATES[0])):
            error = float(np.mean((Y - _predicted(Y, shown, min(Q, Y.shape[1]), rng))[known & ~shown] ** 2))
            if error < (1 - MIN_GAIN) * least:
                best, least = Q, error
    return int(min(best, max(most, 1)))


def _standardised(Y: Float[np.ndarray, "N E"], shown: Bool[np.ndarray, "N E"]) -> Float[np.ndarray, "N E"]:
    n = np.maximum(shown.sum(0), 1)
    mean = np.where(shown, Y, 0).sum(0) / n
    sd = np.sqrt(np.where(shown, (Y - mean) ** 2, 0).sum(0) / n)
    return np.clip((Y - mean) / np.where(sd > 0, sd, 1), -5, 5)


def _predicted(Y: np.ndarray, shown: np.ndarray, Q: int, rng: np.random.Generator) -> Float[np.ndarray, "N E"]:
    """E[Y | cells shown] by factor analysis with one noise, from expectation–maximisation over rows with gaps."""
    Y0, (N, E) = np.where(shown, Y, 0.0), Y.shape
    W, noise = 0.3 * rng.normal(size=(E, Q)), 1.0
    for _ in range(EM_STEPS):
        outer = (W[:, :, None] * W[:, None, :]).reshape(E, -1)
        covariance = np.linalg.inv((shown @ outer).reshape(N, Q, Q) / noise + np.eye(Q))
        x = np.einsum("nqr,nr->nq", covariance, Y0 @ W / noise)
        second = (covariance + x[:, :, None] * x[:, None, :]).reshape(N, -1)
        left = (shown.T @ second).reshape(E, Q, Q) + np.eye(Q)  # a standard normal prior of the loadings
        W = np.linalg.solve(left, (Y0.T @ x)[:, :, None])[:, :, 0]
        spread = second @ (W[:, :, None] * W[:, None, :]).reshape(E, -1).T - (x @ W.T) ** 2
        noise = max(float((shown * ((Y0 - x @ W.T) ** 2 + spread)).sum() / shown.sum()), 1e-4)
    return x @ W.T
