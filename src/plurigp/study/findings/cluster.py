"""Clusters of a map: Gaussian mixtures of the latent means, by evidence, by the paper's rule, or of a given number."""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from plurigp.core.threads import single_blas_thread
from plurigp.study.findings.em import (
    MOST_STEPS,
    RIDGE,
    Maximum,
    NoisyRows,
    maximise,
    maximise_noisy,
    moments_of,
    n_parameters,
)
from plurigp.study.findings.mixture import Mixture, memberships

SHRINKAGES = (1.0, 8.0, 64.0)  # rows per parameter of a mean that the pooled covariance counts for, to choose from
TRYING_STEPS = 15  # of expectation maximisation, from each start
STARTING_ROWS = 2500  # that Ward's clustering looks at, at most: its time grows with the square
LEAST_KNOWN = 0.1  # of the prior's variance, the part that a dimension must explain to count for clusters


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


@dataclass(frozen=True, eq=False)
class InformativePart:
    """A map without the dimensions that it has switched off: there the means are noise around zero, and so would be
    their clusters."""

    mean: np.ndarray  # [N Q]
    sd: np.ndarray  # [N Q]
    kept: np.ndarray  # [Q] bool

    @property
    def x(self) -> np.ndarray:
        """[N Q'] the positions to look for clusters in."""
        return self.mean[:, self.kept]

    @cached_property
    def rows(self) -> NoisyRows:
        """The same with their uncertainty."""
        return NoisyRows.of(self.x, self.sd[:, self.kept])

    def embed(self, fitted: FittedMixture) -> FittedMixture:
        """A mixture of x in all Q dimensions; in those left out, all components are alike and decide nothing."""
        mixture, C = fitted.mixture, fitted.n_clusters
        means = np.tile(self.mean.mean(0), (C, 1))
        covariances = np.tile(np.diag(self.mean.var(0) + RIDGE), (C, 1, 1))
        means[:, self.kept] = mixture.means
        covariances[np.ix_(np.arange(C), self.kept, self.kept)] = mixture.covariances
        return replace(fitted, mixture=replace(mixture, means=means, covariances=covariances))


def informative_part(mean: np.ndarray, sd: np.ndarray) -> InformativePart:
    """The dimensions in which positions are known better than the prior, of variance 1, knows them; or all of them."""
    mean, sd = np.asarray(mean, float), np.asarray(sd, float)
    kept = 1 - (sd**2).mean(0) > LEAST_KNOWN
    return InformativePart(mean, sd, kept if kept.any() else np.ones_like(kept))


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


def fit_mixture(
    x: np.ndarray, K: int, starts: Starts, shrinkages: tuple[float, ...] = SHRINKAGES, rows: NoisyRows | None = None
) -> FittedMixture:
    """The mixture of K clusters with most evidence, over the starts and over how much covariances are shrunk.

    Each covariance is that of its own rows and of `shrinkage` · (Q + 2) rows of the pooled covariance: one family from
    covariances of their own to a common one, of which the evidence takes what the table can afford. Every start is
    tried for a few steps, the best of each shrinkage goes on, and of these the best; with `rows`, from the means of
    positions to what the cells say of them.
    """
    x = np.asarray(x, float)
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        moments = moments_of(x)
        shares = [np.eye(K)[labels] for labels in (starts.partitions(K) if K > 1 else [np.zeros(len(x), int)])]
        fits = []
        for shrinkage in shrinkages if K > 1 else (0.0,):
            tried = [maximise(moments, start, shrinkage, TRYING_STEPS) for start in shares]
            reached = max(tried, key=lambda trial: _evidence(trial[0], len(x), shrinkage))[1]
            fits.append(_fitted(moments, reached, shrinkage))
    best = max(fits, key=lambda fit: fit.evidence)
    return best if rows is None else with_uncertainty(best, rows)


def refit_mixture(x: np.ndarray, shares: np.ndarray, shrinkage: float, rows: NoisyRows | None = None) -> Mixture:
    """The mixture that expectation maximisation reaches from each row's shares [N C]: component for component the one
    that the shares are of, learned anew from these rows."""
    with single_blas_thread():
        fitted = _fitted(moments_of(np.asarray(x, float)), shares, shrinkage)
    return (fitted if rows is None else with_uncertainty(fitted, rows)).mixture


def _fitted(moments: np.ndarray, shares: np.ndarray, shrinkage: float) -> FittedMixture:
    reached = maximise(moments, shares, shrinkage, MOST_STEPS)[0]
    return FittedMixture(reached.mixture, shrinkage, reached.log_density, _evidence(reached, len(moments), shrinkage))


def with_uncertainty(fitted: FittedMixture, rows: NoisyRows) -> FittedMixture:
    """The same mixture, gone on from the means of positions to what the cells of the rows say of them."""
    with single_blas_thread():
        reached = maximise_noisy(rows, fitted.mixture, fitted.shrinkage)
    evidence = _evidence(reached, sum(len(own) for own in rows.moments), fitted.shrinkage)
    return replace(fitted, mixture=reached.mixture, log_density=reached.log_density, evidence=evidence)


def _evidence(reached: Maximum, N: int, shrinkage: float) -> float:
    return reached.log_density - n_parameters(reached.sizes, reached.mixture.means.shape[1], shrinkage) * np.log(N) / 2


def evidence_ladder(x: np.ndarray, most: int, seed: int) -> list[FittedMixture]:
    """Mixtures of 1, 2, … clusters, up to `most`."""
    starts = Starts(np.asarray(x, float), seed)
    return [fit_mixture(x, K, starts) for K in range(1, most + 1)]


def paper_mixture(x: np.ndarray, max_clusters: int, n_init: int, outlier_share: float, seed: int) -> Mixture:
    """The paper's rule: Bayesian mixture of the means, best lower bound of n_init; small clusters are outliers.

    It runs in a thread, so that the filters of warnings, which threads share, are left to the caller.
    """
    fitted = BayesianGaussianMixture(
        n_components=min(max_clusters, len(x)), n_init=n_init, max_iter=500, random_state=seed, reg_covar=RIDGE
    )
    with single_blas_thread():
        fitted.fit(np.asarray(x, float))
    numbers = np.arange(1, len(fitted.weights_) + 1)
    return by_size(Mixture(fitted.weights_, fitted.means_, fitted.covariances_, numbers), x, None, outlier_share)


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
