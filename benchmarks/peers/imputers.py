"""What people would use instead: imputers of a table of numbers and codes, each a function of a Spread table.

All see numbers standardised and categories as indicators of all levels but the first: with all of them, each would be
what the others leave, and a regression would learn nothing else. A peer with a density gives a Gaussian for every
cell: a number is scored by its density, a count or a rank by the mass on its own interval, as plurigp's discrete kinds
are; a category by the indicators' means, cut to [0.001, 1] and made to add up to one.
"""

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, t
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (importing it is what enables the next one)
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge

LEAST_SHARE = 1e-3
N_FACTORS = 10


class Guess(NamedTuple):
    """Every cell's mean on the spread scale [N S], and its standard deviation if the peer has one."""

    mean: np.ndarray
    sd: np.ndarray | None = None


class Spread:
    """A table of numbers and codes [N D], NaN at gaps, as numbers alone [N S]."""

    def __init__(self, numbers: np.ndarray, kinds: list[str]) -> None:
        self.numbers, self.kinds = numbers, kinds
        self.shift, self.scale, self.places = np.zeros(len(kinds)), np.ones(len(kinds)), []
        parts = []
        for d, kind in enumerate(kinds):
            y = numbers[:, d : d + 1]
            if kind == "category":
                part = np.where(np.isnan(y), np.nan, y == np.arange(1, np.nanmax(y) + 1))
            else:
                self.shift[d], self.scale[d] = np.nanmean(y), np.nanstd(y) or 1.0
                part = (y - self.shift[d]) / self.scale[d]
            at = sum(p.shape[1] for p in parts)
            parts.append(part)
            self.places.append(slice(at, at + part.shape[1]))
        self.values = np.concatenate(parts, 1)

    def shares(self, mean: np.ndarray, d: int) -> np.ndarray:
        """Of all levels of a category [N K]."""
        rest = mean[:, self.places[d]]
        return np.column_stack([1 - rest.sum(1), rest])

    def filled(self, mean: np.ndarray) -> np.ndarray:
        """Numbers and codes from means on the spread scale; observed cells as they were."""
        out = self.numbers.copy()
        for d, (kind, place) in enumerate(zip(self.kinds, self.places, strict=True)):
            y, gaps = self.numbers[:, d], np.isnan(self.numbers[:, d])
            if kind == "category":
                value = self.shares(mean, d).argmax(1).astype(float)
            else:
                value = np.clip(self.shift[d] + self.scale[d] * mean[:, place.start], np.nanmin(y), np.nanmax(y))
                value = np.round(value) if kind == "ordinal" else value
            out[gaps, d] = value[gaps]
        return out

    def log_scores(self, guess: Guess, truth: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Nats of the hidden cells' true values, own units, column by column."""
        out = []
        for d, (kind, place) in enumerate(zip(self.kinds, self.places, strict=True)):
            at = hidden[:, d]
            y = truth[at, d]
            if kind == "category":
                share = np.clip(self.shares(guess.mean[at], d), LEAST_SHARE, 1)
                out.append(np.log(share[np.arange(len(y)), y.astype(int)] / share.sum(1)))
                continue
            mean = self.shift[d] + self.scale[d] * guess.mean[at, place.start]
            sd = self.scale[d] * guess.sd[at, place.start]
            if kind == "number":
                n_cells = np.sum(~np.isnan(self.numbers[:, d]))
                out.append(t.logpdf(y, n_cells, mean, sd))  # a normal whose sd n cells tell, as in plurigp's own
            else:
                top = np.nanmax(truth[:, d]) if kind == "ordinal" else np.inf
                low, high = np.where(y <= 0, -np.inf, y - 0.5), np.where(y >= top, np.inf, y + 0.5)
                out.append(_log_mass((low - mean) / sd, (high - mean) / sd))
        return np.concatenate(out)


def _log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log (Φ(high) − Φ(low)), in the tail where it does not cancel."""
    swap = low > 0
    low, high = np.where(swap, -high, low), np.where(swap, -low, high)
    upper, lower = norm.logcdf(high), norm.logcdf(low)
    return upper + np.log1p(-np.exp(lower - upper))


def mean_or_mode(table: Spread) -> Guess:
    """The column's mean, the most frequent category, the median rank."""
    mean = np.broadcast_to(np.nanmean(table.values, 0), table.values.shape).copy()
    for kind, place in zip(table.kinds, table.places, strict=True):
        if kind == "ordinal":
            mean[:, place] = np.nanmedian(table.values[:, place])
    return Guess(mean)


def chained_ridge(table: Spread) -> Guess:
    """scikit-learn's IterativeImputer with its Bayesian ridge, on numbers as they are: it does better so."""
    width = [place.stop - place.start for place in table.places]
    shift, scale = np.repeat(table.shift, width), np.repeat(table.scale, width)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it has not converged
        imputer = IterativeImputer(BayesianRidge(), max_iter=10, random_state=0)
        return Guess((imputer.fit_transform(shift + scale * table.values) - shift) / scale)


def chained_trees(table: Spread, n_rounds: int = 5) -> Guess:
    """As missForest: each column in turn by extra-trees from all others, categories by classification from codes."""
    gaps = np.isnan(table.numbers)
    numbers = table.filled(mean_or_mode(table).mean)
    guess = mean_or_mode(table).mean
    for _ in range(n_rounds):
        for d in np.argsort(gaps.sum(0)):
            if not gaps[:, d].any():
                continue
            others, at = np.delete(numbers, d, 1), gaps[:, d]
            category = table.kinds[d] == "category"
            kind = ExtraTreesClassifier if category else ExtraTreesRegressor
            trees = kind(n_estimators=50, min_samples_leaf=2, n_jobs=-1, random_state=0)
            trees.fit(others[~at], numbers[~at, d])
            if category:
                numbers[at, d] = trees.predict(others[at])
                guess[at, table.places[d]] = numbers[at, d : d + 1] == np.arange(1, np.ptp(numbers[:, d]) + 1)
            else:
                numbers[at, d] = trees.predict(others[at])
                guess[at, table.places[d].start] = (numbers[at, d] - table.shift[d]) / table.scale[d]
    return Guess(guess)


def principal_components(table: Spread, n_rounds: int = 100) -> Guess:
    """Probabilistic PCA by expectation–maximisation over rows with gaps."""
    seen = ~np.isnan(table.values)
    centre = np.nanmean(table.values, 0)
    Y = np.where(seen, table.values - centre, 0)
    Q = min(N_FACTORS, Y.shape[1] // 2)
    rng = np.random.default_rng(0)
    W, noise = 0.1 * rng.normal(size=(Y.shape[1], Q)), 1.0
    for _ in range(n_rounds):
        outer = (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)
        precision = (seen @ outer).reshape(-1, Q, Q) / noise + np.eye(Q)
        covariance = np.linalg.inv(precision)
        x = np.einsum("nqr,nr->nq", covariance, (Y @ W) / noise)
        second = (covariance + x[:, :, None] * x[:, None, :]).reshape(len(Y), -1)
        left = (seen.T @ second).reshape(-1, Q, Q) + 1e-6 * np.eye(Q)
        W = np.linalg.solve(left, (Y.T @ x)[:, :, None])[:, :, 0]
        outer = (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)
        spare = covariance.reshape(len(Y), -1) @ outer.T
        noise = max((seen * ((Y - x @ W.T) ** 2 + spare)).sum() / seen.sum(), 1e-6)
    return Guess(x @ W.T + centre, np.sqrt(spare + noise))


def mofa(table: Spread) -> Guess:
    """mofapy2: Bayesian factor analysis with a noise per column, Gaussian throughout."""
    from mofapy2.run.entry_point import entry_point

    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = entry_point()
        run.set_data_options()
        run.set_data_matrix([[table.values]])
        run.set_model_options(factors=min(N_FACTORS, table.values.shape[1] - 1))
        run.set_train_options(iter=200, seed=0, quiet=True)
        run.build()
        run.run()
        expected = run.model.getExpectations()
    Z, W = expected["Z"], expected["W"][0]
    mean = Z["E"] @ W["E"].T
    spare = Z["E2"] @ W["E2"].T - Z["E"] ** 2 @ (W["E"] ** 2).T
    noise = 1 / expected["Tau"][0]["E"][0]
    return Guess(mean + np.nanmean(table.values, 0), np.sqrt(np.maximum(spare, 0) + noise))


def copula(table: Spread) -> Guess:
    """gcimpute's Gaussian copula; in minibatches where rows are many, as its documentation has it."""
    from gcimpute.gaussian_copula import GaussianCopula

    many = len(table.values) > 10_000
    vars(np)["round_"] = np.round  # gone from NumPy 2; its release 0.0.4 still calls it
    how = {"training_mode": "minibatch-offline", "batch_size": 1000} if many else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Guess(GaussianCopula(random_state=0, **how).fit_transform(table.values))


PEERS: dict[str, Callable[[Spread], Guess]] = {
    "mean/mode": mean_or_mode,
    "probabilistic PCA": principal_components,
    "MOFA (mofapy2)": mofa,
    "Gaussian copula (gcimpute)": copula,
    "chained Bayesian ridge": chained_ridge,
    "chained extra-trees": chained_trees,
}
