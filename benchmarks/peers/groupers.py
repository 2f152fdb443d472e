"""What people would use to find groups: each peer is a function (frame, K, seed) -> labels [N].

With K None a peer finds the number of groups by its usual rule, from at most MAX_K groups. All see the same columns:
a column of numbers with more than two values is a number, every other column a category; columns of one value are left
out. Peers that cannot take gaps see medians and modes instead, numbers standardised and categories as indicators.
`Worker` runs a peer in a process of its own, so that one that fails or takes too long does not stop a benchmark.
"""

import contextlib
import io
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier

MAX_K, MAX_COMPONENTS = 10, 10
N_FAMD, N_FACTORS = 5, 10
VARIANCE_KEPT = 0.9  # by principal components
MAX_LEVELS = 10  # of a number that latent classes take as a category
MIN_R2 = 0.01  # of a view's variance: what is left of a factor that MOFA has switched off is below
MIN_CLUSTER_SHARE = 0.05
TIME_LIMIT = 120.0  # seconds
TOO_SLOW = "too slow"

# --- columns ---


class Columns(NamedTuple):
    """Standardised numbers [N D] and codes 0, 1, … of categories [N C], NaN at gaps."""

    numbers: pd.DataFrame
    codes: pd.DataFrame

    def filled(self) -> "Columns":
        """Gaps filled by the median of a number and the mode of a category."""
        modes = {name: column.mode()[0] for name, column in self.codes.items()}
        return Columns(self.numbers.fillna(self.numbers.median()), self.codes.fillna(modes))

    def indicators(self) -> np.ndarray:
        """Categories as 0/1 [N S], NaN at gaps: one column for two levels, else one per level."""
        parts = [np.empty((len(self.codes), 0))]
        for name in self.codes:
            y = self.codes[name].to_numpy()[:, None]
            n_levels = int(np.nanmax(y)) + 1
            levels = np.arange(n_levels) if n_levels > 2 else np.array([1])
            parts.append(np.where(np.isnan(y), np.nan, y == levels))
        return np.concatenate(parts, 1)


def split(frame: pd.DataFrame) -> Columns:
    """Numbers and categories of a table, without the columns of one value."""
    numbers, codes = {}, {}
    for name, column in frame.items():
        n_values = column.nunique()
        if n_values < 2:
            continue
        if n_values > 2 and pd.api.types.is_numeric_dtype(column):
            numbers[name] = (column - column.mean()) / column.std()
        else:
            code = pd.factorize(column)[0].astype(float)
            codes[name] = np.where(code < 0, np.nan, code)
    return Columns(pd.DataFrame(numbers, frame.index, dtype=float), pd.DataFrame(codes, frame.index, dtype=float))


def encode(frame: pd.DataFrame) -> np.ndarray:
    """A table as numbers without gaps [N S]."""
    columns = split(frame).filled()
    return np.column_stack([columns.numbers, columns.indicators()])


# --- rules for the number of groups ---


def _candidates(k: int | None, least: int, n_rows: int) -> Iterable[int]:
    return [k] if k else range(least, min(MAX_K, n_rows - 1) + 1)


def _least_bic(fit: Callable[[int], Any], X: np.ndarray | pd.DataFrame, k: int | None) -> np.ndarray:
    """Groups of the mixture of K parts, or of the 1 to MAX_K parts with the least BIC among the fits that succeed."""
    best, labels = np.inf, None
    for n_parts in _candidates(k, 1, len(X)):
        with contextlib.suppress(ValueError):  # a covariance that is not positive
            model = fit(n_parts)
            if (bic := model.bic(X)) < best:
                best, labels = bic, model.predict(X)
    if labels is None:
        raise ValueError("no fit has a finite BIC")
    return labels


def _mixture(X: np.ndarray, k: int | None, seed: int) -> np.ndarray:
    """Gaussian mixture with full covariances; K by BIC."""
    return _least_bic(lambda n: GaussianMixture(n, n_init=5, random_state=seed).fit(X), X, k)


def _elbow(costs: list[float]) -> int:
    """Where costs, falling from K = 1 on, lie farthest below the line from the first to the last."""
    return int(np.argmax(np.linspace(costs[0], costs[-1], len(costs)) - costs))


# --- the peers ---


def k_means(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """k-means on encoded columns; K by the largest mean silhouette, from 2 on."""
    X = encode(frame)
    groupings = [KMeans(n, n_init=10, random_state=seed).fit_predict(X) for n in _candidates(k, 2, len(X))]
    return groupings[0] if k else max(groupings, key=lambda labels: silhouette_score(X, labels))


def principal_mixture(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """Gaussian mixture on the principal components of 90 % of the variance, at most 10; K by BIC."""
    pca = PCA(random_state=seed).fit(X := encode(frame))
    n_kept = 1 + int(np.searchsorted(np.cumsum(pca.explained_variance_ratio_), VARIANCE_KEPT))
    return _mixture(pca.transform(X)[:, : min(n_kept, MAX_COMPONENTS)], k, seed)


def famd_mixture(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """Gaussian mixture on 5 components of prince's FAMD (PCA or MCA where columns are of one type); K by BIC."""
    import prince

    columns = split(frame).filled()
    names = columns.codes.astype(int).astype(str)
    most = columns.numbers.shape[1] + sum(int(columns.codes[c].max()) for c in columns.codes)
    options = {"n_components": min(N_FAMD, most), "random_state": seed}
    if names.shape[1] == 0:
        X = prince.PCA(**options).fit_transform(columns.numbers)
    elif columns.numbers.shape[1] == 0:
        X = prince.MCA(**options).fit(names).row_coordinates(names)
    else:
        X = prince.FAMD(**options).fit_transform(pd.concat([columns.numbers, names], axis=1))
    return _mixture(np.asarray(X), k, seed)


def k_prototypes(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """kmodes' k-prototypes (k-modes or k-means where columns are of one type); K by the elbow of its cost."""
    from kmodes.kmodes import KModes
    from kmodes.kprototypes import KPrototypes

    columns = split(frame).filled()
    n_numbers, n_codes = columns.numbers.shape[1], columns.codes.shape[1]
    X = np.column_stack([columns.numbers, columns.codes])

    def fit(n: int) -> tuple[float, np.ndarray]:
        if not n_codes:
            model = KMeans(n, n_init=10, random_state=seed).fit(X)
            return model.inertia_, model.labels_
        if not n_numbers:
            model = KModes(n, n_init=3, random_state=seed).fit(X)
        else:
            categories = list(range(n_numbers, X.shape[1]))
            model = KPrototypes(n, n_init=3, random_state=seed).fit(X, categorical=categories)
        return model.cost_, model.labels_

    fits = [fit(n) for n in _candidates(k, 1, len(X))]
    return fits[0][1] if k else fits[_elbow([cost for cost, _ in fits])][1]


def latent_classes(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """StepMix: columns independent within a class, gaps by its own full-information likelihoods; K by BIC.

    Numbers are Gaussian with a variance per class, those of at most 10 values categories, as such models take ratings.
    """
    from stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    _steady_stepmix()
    numbers, codes = split(frame)
    few = [name for name in numbers if numbers[name].nunique() <= MAX_LEVELS]
    ranks = numbers[few].rank(method="dense") - 1
    table = pd.concat([numbers.drop(columns=few), codes, ranks], axis=1)
    binary = [name for name in codes if codes[name].max() == 1]
    categorical = [name for name in [*codes, *few] if name not in binary]
    kinds = {"continuous": [n for n in numbers if n not in few], "binary": binary, "categorical": categorical}
    gaps = "_nan" if table.isna().to_numpy().any() else ""  # the same likelihoods, slower
    data, parts = get_mixed_descriptor(table, **{kind + gaps: names for kind, names in kinds.items() if names})
    options = {"measurement": parts, "n_init": 5, "abs_tol": 1e-6, "max_iter": 500, "progress_bar": 0}
    return _least_bic(lambda n: StepMix(n, **options, random_state=seed).fit(data), data, k)


@cache
def _steady_stepmix() -> None:
    """StepMix 3.0's Gaussian with gaps lacks the least variance of the one without: a constant column gives NaN."""
    from stepmix.emission.build_emission import EMISSION_DICT
    from stepmix.emission.gaussian import GaussianDiagNan

    class Steady(GaussianDiagNan):
        def _compute_cov(self, X: np.ndarray, resp: np.ndarray, resp_sums: list) -> np.ndarray:
            return super()._compute_cov(X, resp, resp_sums) + 1e-6

    EMISSION_DICT["continuous_nan"] = Steady


def _umap(frame: pd.DataFrame, seed: int) -> np.ndarray:
    """Two dimensions for clustering, with the settings of UMAP's documentation but for the neighbours' default."""
    from umap import UMAP

    return UMAP(n_neighbors=15, min_dist=0.0, n_components=2, random_state=seed, n_jobs=1).fit_transform(encode(frame))


def umap_mixture(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """Gaussian mixture on UMAP's two dimensions; K by BIC."""
    return _mixture(_umap(frame, seed).astype(float), k, seed)


def umap_hdbscan(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """HDBSCAN on UMAP's two dimensions; K by clusters of at least 5 % of the rows.

    With K given, of 20 least sizes the one whose number of clusters is nearest to K, then nearest to 5 %. Noise goes to
    the cluster of the nearest clustered row; all rows are one group if all are noise.
    """
    X = _umap(frame, seed)
    usual = max(2, round(MIN_CLUSTER_SHARE * len(X)))
    sizes = np.unique(np.geomspace(2, len(X) // 2, 20).astype(int)).tolist() if k else []
    found = {n: HDBSCAN(min_cluster_size=n, copy=True).fit_predict(X) for n in [usual, *sizes]}
    best = min(found, key=lambda n: (abs(found[n].max() + 1 - (k or 0)), abs(np.log(n / usual)))) if k else usual
    labels = found[best]
    seen = labels >= 0
    if not seen.any():
        return np.zeros(len(X), int)
    return KNeighborsClassifier(1).fit(X[seen], labels[seen]).predict(X)


def mofa_mixture(frame: pd.DataFrame, k: int | None, seed: int) -> np.ndarray:
    """Gaussian mixture on the factors of mofapy2 that explain at least 1 % of a view; K by BIC.

    Numbers are a Gaussian view, indicators a Bernoulli view; gaps are MOFA's own.
    """
    from mofapy2.run.entry_point import entry_point

    columns = split(frame)
    views = {"gaussian": columns.numbers.to_numpy(), "bernoulli": columns.indicators()}
    views = {kind: view for kind, view in views.items() if view.shape[1]}
    n_columns = sum(view.shape[1] for view in views.values())
    run = entry_point()
    run.set_data_options()
    run.set_data_matrix([[view] for view in views.values()], likelihoods=list(views))
    run.set_model_options(factors=min(N_FACTORS, n_columns - 1))
    run.set_train_options(iter=1000, seed=seed, quiet=True)
    run.build()
    run.run()
    explained = np.max(run.model.calculate_variance_explained(total=False)[0], 0)  # [factors]
    Z = run.model.getExpectations()["Z"]["E"]
    kept = explained >= MIN_R2
    return _mixture(Z[:, kept if kept.any() else [int(explained.argmax())]], k, seed)


PEERS: dict[str, Callable[[pd.DataFrame, int | None, int], np.ndarray]] = {
    "k-means": k_means,
    "PCA + mixture": principal_mixture,
    "FAMD + mixture": famd_mixture,
    "k-prototypes": k_prototypes,
    "latent classes": latent_classes,
    "UMAP + mixture": umap_mixture,
    "UMAP + HDBSCAN": umap_hdbscan,
    "MOFA + mixture": mofa_mixture,
}

# --- running them ---


class Grouping(NamedTuple):
    """A peer's labels, or None and the reason."""

    labels: np.ndarray | None
    seconds: float
    reason: str = ""


def attempt(name: str, frame: pd.DataFrame, k: int | None, seed: int) -> Grouping:
    """A peer's answer in this process, without its messages; an error becomes the reason."""
    start = time.perf_counter()
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = np.asarray(PEERS[name](frame, k, seed)).astype(int)
    except (Exception, SystemExit) as error:  # mofapy2 leaves by sys.exit
        return Grouping(None, time.perf_counter() - start, f"{type(error).__name__}: {error}")
    return Grouping(labels, time.perf_counter() - start)


@cache
def _compile_umap() -> None:
    """UMAP's functions are compiled at their first call: this is not counted as a peer's time."""
    for n_rows in (100, 5000):  # more than 4,096 rows take other functions
        attempt("UMAP + mixture", pd.DataFrame(np.random.default_rng(0).normal(size=(n_rows, 3))), 2, 0)


def _serve(jobs: Connection) -> None:
    """The process of a Worker: "ready" and a Grouping for every job, until the other end is closed."""
    with contextlib.suppress(EOFError):
        while True:
            job = jobs.recv()
            if job[0].startswith("UMAP"):
                _compile_umap()
            jobs.send("ready")
            jobs.send(attempt(*job))


class Worker:
    """A process that runs one peer after another; one that takes longer than the limit is killed."""

    def __init__(self, time_limit: float = TIME_LIMIT) -> None:
        self.time_limit = time_limit
        self.process: multiprocessing.process.BaseProcess | None = None

    def _start(self) -> multiprocessing.process.BaseProcess:
        context = multiprocessing.get_context("spawn")  # fork is not safe once jax runs
        self.jobs, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        return self.process

    def run(self, name: str, frame: pd.DataFrame, k: int | None, seed: int) -> Grouping:
        """A peer's answer, or None and the reason."""
        process = self.process or self._start()
        self.jobs.send((name, frame, k, seed))
        start = time.perf_counter()
        try:
            self.jobs.recv()
            start = time.perf_counter()
            if self.jobs.poll(self.time_limit):
                return self.jobs.recv()
            reason = TOO_SLOW
        except EOFError:
            reason = "its process died"
        process.kill()
        self.stop()
        return Grouping(None, time.perf_counter() - start, reason)

    def stop(self) -> None:
        """Ends the process; the next run starts another."""
        if self.process is not None:
            self.jobs.close()
            self.process.join()
            self.process = None
