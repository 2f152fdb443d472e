"""Clusters of a map: Gaussian mixtures of the latent means, by evidence, by the paper's rule, or of a given number."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.special import logsumexp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from plurigp.core.threads import single_blas_thread
from plurigp.study.findings.mixture import Mixture, log_densities, memberships

RIDGE = 1e-3  # added to the variances, where the prior's are 1: no cluster collapses to a point
SHRINKAGES = (1.0, 8.0, 64.0)  # rows per parameter of a mean that the pooled covariance counts for, to choose from
WEIGHT_ROWS = 1.0  # rows that every cluster has before the first is seen (Dirichlet)
MOST_STEPS, TOLERANCE = 150, 1e-5  # of expectation maximisation; nats per row
STARTING_ROWS = 2500  # that Ward's clustering looks at, at most: its time grows with the square


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which stratum of the map every row belongs to, and the mixture that says so.

    Strata are 1 … K by size; 0 is an outlier, a row of a cluster too small to be one. They are subtypes where the table
    has structure, and describe a continuum where it has none; the columns are named `subtype` in either case.
    """

    subtype: np.ndarray  # [N] int
    probability: np.ndarray  # [N K], the columns are subtypes 1 … K; the rest to one is the outlier clusters' share
    mixture: Mixture

    @property
    def outlier(self) -> np.ndarray:
        """[N] bool."""
        return self.subtype == 0

    @property
    def n_strata(self) -> int:
        return self.probability.shape[1]


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """A mixture of K clusters, how strongly their covariances were pulled towards the pooled one, and its evidence."""

    mixture: Mixture
    shrinkage: float
    log_density: float  # Σ_n log p(x_n)
    evidence: float  # log density less half of log N for each effective parameter: −BIC / 2

    @property
    def n_clusters(self) -> int:
        return len(self.mixture.weights)


class Starts:
    """Partitions to start from: Ward's clustering of the latent means as they are and whitened, and k-means."""

    def __init__(self, x: np.ndarray, seed: int) -> None:
        self.x, self.seed = x, seed
        rows = np.random.default_rng(seed).permutation(len(x))[:STARTING_ROWS]
        self.rows = np.sort(rows)

    @cached_property
    def _trees(self) -> list[np.ndarray]:
        Q, shown = self.x.shape[1], self.x[self.rows]
        covariance = np.cov(shown.T).reshape(Q, Q) + RIDGE * np.eye(Q)
        white = shown @ np.linalg.cholesky(np.linalg.inv(covariance))
        return [linkage(part, "ward") for part in (shown, white)]

    def partitions(self, K: int) -> list[np.ndarray]:
        """Labels 0 … K−1 of all rows [N]; a row that Ward's clustering did not see goes to the nearest centre."""
        found = [self._of_all(cut_tree(tree, K)[:, 0], K) for tree in self._trees]
        return [*found, KMeans(K, n_init=1, random_state=self.seed).fit_predict(self.x)]

    def _of_all(self, labels: np.ndarray, K: int) -> np.ndarray:
        if len(self.rows) == len(self.x):
            return labels
        centres = np.stack([self.x[self.rows][labels == k].mean(0) for k in range(K)])
        return ((self.x[:, None, :] - centres) ** 2).sum(2).argmin(1)


def fit_mixture(x: np.ndarray, K: int, starts: Starts, shrinkages: tuple[float, ...] = SHRINKAGES) -> FittedMixture:
    """The mixture of K clusters with most evidence, over the starts and over how much covariances are shrunk.

    Each covariance is that of its own rows and of `shrinkage` · (Q + 2) rows of the pooled covariance: one family from
    covariances of their own to a common one, of which the evidence takes what the table can afford.
    """
    x = np.asarray(x, float)
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = starts.partitions(K) if K > 1 else [np.zeros(len(x), int)]
        fits = [_maximise(x, np.eye(K)[start], s) for s in (shrinkages if K > 1 else (0.0,)) for start in labels]
    return max(fits, key=lambda fit: fit.evidence)


def evidence_ladder(x: np.ndarray, most: int, seed: int) -> list[FittedMixture]:
    """Mixtures of 1, 2, … clusters, up to `most`."""
    starts = Starts(np.asarray(x, float), seed)
    return [fit_mixture(x, K, starts) for K in range(1, most + 1)]


def _maximise(x: np.ndarray, shares: np.ndarray, shrinkage: float) -> FittedMixture:
    """Expectation maximisation from each row's shares [N K], until a step gains hardly anything."""
    (N, Q), K, before = x.shape, shares.shape[1], -np.inf
    pooled_rows = shrinkage * (Q + 2)
    for _ in range(MOST_STEPS):
        n = shares.sum(0) + 1e-9
        means = shares.T @ x / n[:, None]
        apart = x[None] - means[:, None]
        scatter = np.matmul((shares.T[:, :, None] * apart).swapaxes(1, 2), apart)
        pulled = scatter + pooled_rows * scatter.sum(0) / N
        covariances = pulled / (n + pooled_rows)[:, None, None] + RIDGE * np.eye(Q)
        mixture = Mixture((n + WEIGHT_ROWS) / (N + K * WEIGHT_ROWS), means, covariances, np.arange(1, K + 1))
        logs = log_densities(mixture, x)
        rows = logsumexp(logs, axis=1)
        shares = np.exp(logs - rows[:, None])
        if rows.sum() - before < TOLERANCE * N:
            break
        before = rows.sum()
    effective = 1 + (n / (n + pooled_rows)).sum() * (K - 1) / K  # covariances: 1 if they are common, K if all are free
    n_parameters = K - 1 + K * Q + effective * Q * (Q + 1) / 2
    return FittedMixture(mixture, shrinkage, float(rows.sum()), float(rows.sum() - n_parameters * np.log(N) / 2))


def paper_mixture(
    x: np.ndarray, max_clusters: int, n_init: int, outlier_share: float, seed: int, sd: np.ndarray | None = None
) -> Mixture:
    """The paper's rule: Bayesian mixture, best lower bound of n_init, clusters under the share are outliers."""
    fitted = BayesianGaussianMixture(
        n_components=min(max_clusters, len(x)), n_init=n_init, max_iter=500, random_state=seed, reg_covar=RIDGE
    )
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an initialisation that reaches max_iter is good enough
        fitted.fit(np.asarray(x, float))
    numbers = np.arange(1, len(fitted.weights_) + 1)
    return by_size(Mixture(fitted.weights_, fitted.means_, fitted.covariances_, numbers), x, sd, outlier_share)


def by_size(mixture: Mixture, x: np.ndarray, sd: np.ndarray | None, outlier_share: float) -> Mixture:
    """Subtypes 1 … K by the number of rows; a component with too few is an outlier (0), the largest never.

    Each row is counted where it is likeliest with the sd of its position [N Q]. The outliers' components count
    together, so that each new one may take rows from the subtypes: hence the loop.
    """
    n_kept = len(mixture.weights) + 1
    while (mixture.subtype > 0).sum() < n_kept:
        n_kept = (mixture.subtype > 0).sum()
        counts = np.bincount(memberships(mixture, np.asarray(x, float), sd)[0], minlength=n_kept + 1)[1:]
        order = np.argsort(-counts, kind="stable")
        kept = [k for k in order if counts[k] >= outlier_share * len(x) or k == order[0]]
        number = np.zeros(n_kept + 1, int)
        number[[k + 1 for k in kept]] = np.arange(1, len(kept) + 1)
        mixture = replace(mixture, subtype=number[mixture.subtype])
    return mixture
