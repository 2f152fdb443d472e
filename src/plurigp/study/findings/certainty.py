"""How certain memberships are: as sure of a row's stratum as mixtures that were fitted to other rows prove it to be."""

from dataclasses import replace

import numpy as np

from plurigp.study.findings.cluster import Starts, fit_mixture, informative_part
from plurigp.study.findings.em import NoisyRows
from plurigp.study.findings.mixture import Mixture, memberships, responsibilities
from plurigp.study.findings.robustness import matched

MOST_ROWS = 2000  # that are looked at
N_SPLITS = 3  # into halves, on each of which a mixture is fitted from starts of its own
SHARPNESSES = 0.8 ** np.arange(16)  # 1 … 0.035, to choose from
LEAST_SHARE = 1e-12  # of a stratum in a row, where its logarithm is taken


def flattened(mixture: Mixture, sharpness: float) -> Mixture:
    """The mixture with the memberships of `mixture` to the power τ: its covariances are Σ/τ."""
    log_det = np.linalg.slogdet(mixture.covariances)[1]
    log_weights = sharpness * np.log(mixture.weights) + (1 - sharpness) / 2 * log_det
    weights = np.exp(log_weights - log_weights.max())
    return replace(mixture, weights=weights / weights.sum(), covariances=mixture.covariances / sharpness)


def calibrated(mixture: Mixture, shrinkage: float, mean: np.ndarray, sd: np.ndarray, seed: int) -> Mixture:
    """The mixture, flattened so that its memberships predict best what others make of rows they have not seen.

    Mixtures of random halves of the rows are fitted to the same map from starts of their own. Where they find the same
    strata, memberships stay as they are; where a cut of the map could as well be another, none is certain.
    """
    shown = np.sort(np.random.default_rng(seed).permutation(len(mean))[:MOST_ROWS])
    mean, sd = np.asarray(mean, float)[shown], np.asarray(sd, float)[shown]
    if len(mixture.weights) == 1 or len(mean) < 4 * len(mixture.weights):
        return mixture
    rows, strata = _by_others(mixture, shrinkage, mean, sd, seed)
    losses = [_log_loss(flattened(mixture, sharpness), mean, sd, rows, strata) for sharpness in SHARPNESSES]
    return flattened(mixture, float(SHARPNESSES[int(np.argmin(losses))]))


def _by_others(
    mixture: Mixture, shrinkage: float, mean: np.ndarray, sd: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows, each as often as there are splits, and the stratum of each by a mixture of the half that it is not in."""
    whole, C, N = informative_part(mean, sd), len(mixture.weights), len(mean)
    x, own_sd = whole.x, sd[:, whole.kept]
    component = responsibilities(mixture, mean, sd).argmax(1)
    rng, rows, strata = np.random.default_rng([seed, 1]), [], []
    for split in range(N_SPLITS):
        shuffled = rng.permutation(N)
        for half, rest in (np.split(shuffled, [N // 2]), np.split(shuffled, [N // 2])[::-1]):
            rows_of_half = NoisyRows.of(x[half], own_sd[half])
            own = fit_mixture(x[half], C, Starts(x[half], seed + split), (shrinkage,), rows_of_half).mixture
            found = responsibilities(own, x, own_sd).argmax(1)
            of_found = np.argsort(matched(component, found, C))  # the map's component for each of this half's
            rows.append(rest)
            strata.append(mixture.subtype[of_found[found[rest]]])
    return np.concatenate(rows), np.concatenate(strata)


def _log_loss(mixture: Mixture, mean: np.ndarray, sd: np.ndarray, rows: np.ndarray, strata: np.ndarray) -> float:
    """−log of the share of these strata in these rows, on average; stratum 0 are the outliers."""
    shares = memberships(mixture, mean, sd)[1]
    everything = np.column_stack([1 - shares.sum(1), shares])
    return float(-np.log(np.maximum(everything[rows, strata], LEAST_SHARE)).mean())
