"""Clusters of a map: Gaussian mixtures fitted to the latent means, numbered by size; small ones are outliers."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from plurigp.core.threads import single_blas_thread
from plurigp.study.findings.mixture import Mixture, memberships

RIDGE = 1e-3  # added to the variances, where the prior's are 1: no cluster collapses to a point
HALF_INITS = 3  # initialisations of a half map's mixture


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


def paper_mixture(
    x: np.ndarray, max_clusters: int, n_init: int, outlier_share: float, seed: int, sd: np.ndarray | None = None
) -> Mixture:
    """The paper's rule: Bayesian mixture, best lower bound of n_init, clusters under the share are outliers."""
    fitted = BayesianGaussianMixture(
        n_components=min(max_clusters, len(x)), n_init=n_init, max_iter=500, random_state=seed, reg_covar=RIDGE
    )
    return _by_size(_fit_mixture(fitted, x), x, sd, outlier_share)


def fixed_mixture(
    x: np.ndarray, K: int, covariance: str, n_init: int, outlier_share: float, seed: int, sd: np.ndarray | None = None
) -> Mixture:
    """A mixture of exactly K components, fitted to the latent means x [N Q]; those under the share are outliers.

    Subtypes are numbered by size, each row counted where it is likeliest with the sd of its position [N Q].
    """
    fitted = GaussianMixture(
        K, covariance_type=covariance, n_init=n_init, max_iter=500, random_state=seed, reg_covar=RIDGE
    )
    return _by_size(_fit_mixture(fitted, x), x, sd, outlier_share)


def _fit_mixture(mixture: GaussianMixture | BayesianGaussianMixture, x: np.ndarray) -> Mixture:
    """On one thread, so that sums have one order; an initialisation that reaches max_iter is good enough."""
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(np.asarray(x, float))
    C = len(mixture.weights_)
    covariances = np.broadcast_to(mixture.covariances_, (C, *mixture.covariances_.shape[-2:]))
    return Mixture(mixture.weights_, mixture.means_, np.array(covariances), np.arange(1, C + 1))


def _by_size(mixture: Mixture, x: np.ndarray, sd: np.ndarray | None, outlier_share: float) -> Mixture:
    """Subtypes 1 … K by the number of rows; a component with too few is an outlier (0), the largest never.

    The outliers' components count together, so that each new one may take rows from the subtypes: hence the loop.
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


def half_labels(mean: np.ndarray, sd: np.ndarray, rows: np.ndarray, K: int, covariance: str, seed: int) -> np.ndarray:
    """Component 0 … K−1 of every row [N]; the mixture is fitted to the rows that the map was learned from."""
    fitted = fixed_mixture(mean[rows], K, covariance, HALF_INITS, 0.0, seed, sd[rows])
    return memberships(fitted, mean, sd)[0] - 1
