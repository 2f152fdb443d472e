"""Clusters of the latent means: Gaussian mixtures, outliers, and the number of clusters that two half maps agree on."""

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from plurigp.core.threads import single_blas_thread
from plurigp.study.findings.mixture import Mixture, memberships

RIDGE = 1e-3  # added to the variances, in units of the prior's: no cluster is a point
HALF_INITS = 3  # initialisations of a half map's mixture
LEAST_SPREAD = 0.01  # of agreement between tables: below, differences are counted in this
TOO_SMALL = 0.5  # a half map's cluster below this part of the outlier share agrees with nothing


def paper_mixture(
    x: np.ndarray, max_clusters: int, n_init: int, outlier_share: float, seed: int, sd: np.ndarray | None = None
) -> Mixture:
    """The paper's rule: Bayesian mixture, best lower bound of n_init, clusters under the share are outliers."""
    fitted = BayesianGaussianMixture(
        n_components=min(max_clusters, len(x)), n_init=n_init, max_iter=500, random_state=seed, reg_covar=RIDGE
    )
    return _by_size(_quietly(fitted, x), x, sd, outlier_share)


def fixed_mixture(
    x: np.ndarray,
    K: int,
    covariance: str,
    n_init: int,
    outlier_share: float,
    seed: int,
    sd: np.ndarray | None = None,
) -> Mixture:
    """A mixture of exactly K components, fitted to the latent means x [N Q]; those under the share are outliers.

    Subtypes are numbered by size, each row counted where it is likeliest with the sd of its position [N Q].
    """
    fitted = GaussianMixture(
        K, covariance_type=covariance, n_init=n_init, max_iter=500, random_state=seed, reg_covar=RIDGE
    )
    return _by_size(_quietly(fitted, x), x, sd, outlier_share)


def _quietly(mixture: GaussianMixture | BayesianGaussianMixture, x: np.ndarray) -> Mixture:
    """Fit on one thread, so that sums have one order; a run that needs more iterations is good enough."""
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(np.asarray(x, float))
    C = len(mixture.weights_)
    covariances = np.broadcast_to(mixture.covariances_, (C, *mixture.covariances_.shape[-2:]))
    return Mixture(mixture.weights_, mixture.means_, np.array(covariances), np.arange(1, C + 1))


def _by_size(mixture: Mixture, x: np.ndarray, sd: np.ndarray | None, outlier_share: float) -> Mixture:
    """Subtypes 1 … K by the number of rows; a component with too few is an outlier (0), the largest never.

    Outliers' components count together, so each that becomes one may take rows from the subtypes: hence the repetition.
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


# --- the number of clusters ---


@dataclass(frozen=True, eq=False)
class HalfMap:
    """A map learned from some rows: mean and sd of all rows' positions [N Q], and which rows it learned from."""

    mean: np.ndarray
    sd: np.ndarray
    rows: np.ndarray


def half_labels(half: HalfMap, K: int, covariance: str, seed: int) -> np.ndarray:
    """Component 0 … K−1 of every row [N]; the mixture is fitted to the rows that the map was learned from."""
    fitted = fixed_mixture(half.mean[half.rows], K, covariance, HALF_INITS, 0.0, seed, half.sd[half.rows])
    return memberships(fitted, half.mean, half.sd)[0] - 1


def agreement(first: np.ndarray, second: np.ndarray, K: int, least: float) -> np.ndarray:
    """For each cluster of two labellings [2 K], the share of its pairs that the other keeps together.

    1 is perfect; a cut at random gives 1/K. A cluster with less than the share `least` of the rows gets 0.
    """
    counts = contingency(first, second, K)
    both = []
    for table in (counts, counts.T):
        n = table.sum(1)
        pairs = np.maximum(n * (n - 1), 1)
        kept = (table * (table - 1)).sum(1) / pairs
        both.append(np.where(n >= max(2, least * len(first)), kept, 0.0))
    return np.stack(both)


def contingency(first: np.ndarray, second: np.ndarray, K: int) -> np.ndarray:
    """How many rows [K K] are in cluster k of the first and l of the second labelling."""
    counts = np.zeros((K, K))
    np.add.at(counts, (first, second), 1.0)
    return counts


def matched(reference: np.ndarray, other: np.ndarray, K: int) -> np.ndarray:
    """For each cluster of `reference` [K] the cluster of `other` that shares most rows with it, one to one."""
    return linear_sum_assignment(-contingency(reference, other, K))[1]


def fewest_references(level: float) -> int:
    """Structureless tables from which on a p-value, (1 + as large) / (1 + tables), can be as small as the level."""
    return math.ceil(1 / level - 1e-9) - 1


@dataclass(frozen=True, eq=False)
class Choice:
    """Agreement of half maps by number of clusters 2, 3, …, against the structureless reference."""

    n_clusters: np.ndarray  # [k]
    stability: np.ndarray  # [k] smallest agreement of a cluster, averaged over pairs of half maps
    reference: np.ndarray  # [R k] the same of each structureless table, from one pair
    level: float
    one_pair: np.ndarray  # [k] the table's own from its first pair alone, which is what a reference's is like

    @property
    def _alike(self) -> np.ndarray:
        """[R+1 k] the structureless tables and, as if it were one more, this one."""
        return np.vstack([self.reference, self.one_pair])

    @property
    def expected(self) -> np.ndarray:
        """[k] mean over the structureless tables and this one; without any, what a cut at random gives."""
        return self._alike.mean(0) if len(self.reference) else 1.0 / self.n_clusters

    @property
    def p_by_number(self) -> np.ndarray:
        """[k] Monte Carlo p-values, adjusted for having tried all numbers of clusters (Westfall and Young's maxT).

        Gains are in units of their spread, which is larger for few clusters: otherwise these would decide the largest.
        Like is compared with like, one pair of half maps with one pair: an average over many pairs varies less than
        a single one, and agreement is too skewed for that not to matter.
        """
        if not len(self.reference):
            return np.full(len(self.n_clusters), np.nan)
        gains = (self._alike - self.expected) / self.spread
        largest = gains[:-1].max(1)
        return (1 + (largest[:, None] >= gains[-1]).sum(0)) / (1 + len(largest))

    @property
    def spread(self) -> np.ndarray:
        """[k] of stability over the structureless tables and this one; the same for all where there are none."""
        return (
            np.maximum(self._alike.std(0, ddof=1), LEAST_SPREAD) if len(self.reference) else np.ones(len(self.one_pair))
        )

    @property
    def p(self) -> float:
        """Of the number of clusters with the clearest gain; NaN without a reference."""
        return float(self.p_by_number.min())

    @property
    def structured(self) -> bool | None:
        """Whether any number of clusters agrees better than structureless tables do.

        None where that cannot be said: without a reference, or with so few tables that no p-value reaches the level.
        """
        if len(self.reference) < fewest_references(self.level):
            return None
        return bool(self.p <= self.level + 1e-12)

    @property
    def gain(self) -> np.ndarray:
        """[k] stability beyond what is expected without structure."""
        return self.stability - self.expected

    @property
    def described(self) -> int:
        """Into how many strata the map is cut: of the numbers with a clear gain that with the largest. Where there is
        none, the largest gain in units of its spread, as in the test: two clusters vary most, so by the gain alone
        every continuum would be cut in two or three."""
        if self.structured:
            clear = self.p_by_number <= self.level + 1e-12
            return int(self.n_clusters[np.argmax(np.where(clear, self.gain, -np.inf))])
        return int(self.n_clusters[np.argmax(self.gain / self.spread)])

    def frame(self, chosen: int) -> pd.DataFrame:
        """One line per number of clusters; `chosen` is the one into which the map is cut."""
        R = len(self.reference)
        none = np.full(len(self.n_clusters), np.nan)
        return pd.DataFrame(
            {
                "n_clusters": self.n_clusters,
                "stability": self.stability,
                "reference_mean": self.reference.mean(0) if R else none,
                "reference_sd": self.reference.std(0, ddof=1) if R > 1 else none,
                "threshold": np.quantile(self.reference, 1 - self.level, axis=0) if R else none,
                "gain": self.gain,
                "p": self.p_by_number,
                "chosen": self.n_clusters == chosen,
            }
        )
