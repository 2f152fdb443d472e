"""What people would use instead: imputers of a table of numbers and codes, each a function (numbers, kinds) -> filled.

`numbers` [N D] has NaN at gaps; `kinds` names each column "number", "ordinal" or "category" (codes 0 … K − 1).
"""

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (importing it is what enables the next one)
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge


def mean_or_mode(numbers: np.ndarray, kinds: list[str]) -> np.ndarray:
    """The column's mean, the most frequent category, the median rank."""
    out = numbers.copy()
    for d, kind in enumerate(kinds):
        seen = numbers[~np.isnan(numbers[:, d]), d]
        value = {"number": np.mean, "ordinal": np.median}.get(kind, lambda y: np.bincount(y.astype(int)).argmax())(seen)
        out[np.isnan(out[:, d]), d] = value
    return out


def _spread(numbers: np.ndarray, kinds: list[str]) -> tuple[np.ndarray, list[slice]]:
    """Numbers standardised, categories as indicators; and where each column went."""
    parts, places, at = [], [], 0
    for d, kind in enumerate(kinds):
        y = numbers[:, d : d + 1]
        if kind == "category":
            part = np.where(np.isnan(y), np.nan, y == np.arange(np.nanmax(y) + 1))
        else:
            part = (y - np.nanmean(y)) / (np.nanstd(y) or 1.0)
        parts.append(part)
        places.append(slice(at, at + part.shape[1]))
        at += part.shape[1]
    return np.concatenate(parts, 1), places


def _gather(spread: np.ndarray, places: list[slice], numbers: np.ndarray, kinds: list[str]) -> np.ndarray:
    """Back to numbers and codes; observed cells as they were."""
    out = numbers.copy()
    for d, (kind, place) in enumerate(zip(kinds, places, strict=True)):
        y, gaps = numbers[:, d], np.isnan(numbers[:, d])
        if kind == "category":
            value = spread[:, place].argmax(1).astype(float)
        else:
            value = np.nanmean(y) + (np.nanstd(y) or 1.0) * spread[:, place.start]
            value = np.clip(value, np.nanmin(y), np.nanmax(y))
            value = np.round(value) if kind == "ordinal" else value
        out[gaps, d] = value[gaps]
    return out


def _chained(estimator: object, max_iter: int) -> Callable[[np.ndarray, list[str]], np.ndarray]:
    def impute(numbers: np.ndarray, kinds: list[str]) -> np.ndarray:
        spread, places = _spread(numbers, kinds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that it has not converged
            filled = IterativeImputer(estimator, max_iter=max_iter, random_state=0).fit_transform(spread)
        return _gather(filled, places, numbers, kinds)

    return impute


def principal_components(
    numbers: np.ndarray, kinds: list[str], n_components: int = 5, n_rounds: int = 100
) -> np.ndarray:
    """Probabilistic PCA by expectation–maximisation over rows with gaps."""
    spread, places = _spread(numbers, kinds)
    seen = ~np.isnan(spread)
    centre = np.nanmean(spread, 0)
    Y = np.where(seen, spread - centre, 0)
    D = Y.shape[1]
    rng = np.random.default_rng(0)
    W, noise = 0.1 * rng.normal(size=(D, n_components)), 1.0
    for _ in range(n_rounds):
        precision = np.einsum("nd,dq,dr->nqr", seen, W, W) / noise + np.eye(n_components)
        covariance = np.linalg.inv(precision)
        x = np.einsum("nqr,nr->nq", covariance, (Y @ W) / noise)
        second = covariance + x[:, :, None] * x[:, None, :]
        left = np.einsum("nd,nqr->dqr", seen, second) + 1e-6 * np.eye(n_components)
        W = np.linalg.solve(left, (Y.T @ x)[:, :, None])[:, :, 0]
        fit = x @ W.T
        spare = np.einsum("dq,nqr,dr->nd", W, covariance, W)
        noise = max((seen * ((Y - fit) ** 2 + spare)).sum() / seen.sum(), 1e-6)
    return _gather(x @ W.T + centre, places, numbers, kinds)


PEERS: dict[str, Callable[[np.ndarray, list[str]], np.ndarray]] = {
    "mean/mode": mean_or_mode,
    "probabilistic PCA": principal_components,
    "chained Bayesian ridge": _chained(BayesianRidge(), 10),
    "chained extra-trees": _chained(ExtraTreesRegressor(n_estimators=50, min_samples_leaf=2, n_jobs=2), 5),
}
