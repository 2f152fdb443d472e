"""A Gaussian mixture as plain arrays: who belongs where, with the uncertainty of a position counted in."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp


@dataclass(frozen=True, eq=False)
class Mixture:
    """C Gaussian components in Q dimensions; `subtype` says which subtype a component is, 0 for outliers."""

    weights: np.ndarray  # [C]
    means: np.ndarray  # [C Q]
    covariances: np.ndarray  # [C Q Q]
    subtype: np.ndarray  # [C] int


MOST_VARIANCE = 0.95  # of a position, where the prior's is 1; above it the row's cells say next to nothing


def measured(mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the cells of a row say of its position: N(place, noise) [N Q] each.

    q(x) = N(mean, sd²) is that times the prior N(0, I), which the mixture takes the place of.
    """
    variance = np.minimum(np.asarray(sd, float) ** 2, MOST_VARIANCE)
    return np.asarray(mean, float) / (1 - variance), variance / (1 - variance)


def responsibilities(mixture: Mixture, mean: np.ndarray, sd: np.ndarray | None = None) -> np.ndarray:
    """p(component | position) [N C]; with sd, p(component | what the row's cells say of its position)."""
    log_p = log_densities(mixture, mean, sd)
    return np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))


def log_densities(mixture: Mixture, mean: np.ndarray, sd: np.ndarray | None = None) -> np.ndarray:
    """log π_c N(mean; centre, covariance) of every row and component [N C]; with sd, of what its cells say."""
    place, noise = (mean, None) if sd is None else measured(mean, sd)
    log_p = np.empty((len(mean), len(mixture.weights)))
    for c, (centre, covariance) in enumerate(zip(mixture.means, mixture.covariances, strict=True)):
        log_p[:, c] = np.log(mixture.weights[c]) + _log_normal(place - centre, covariance, noise)
    return log_p


def memberships(mixture: Mixture, mean: np.ndarray, sd: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Likeliest subtype [N] and probability per subtype [N K]; 0 where the outliers' components together are likelier.

    The one rule by which a row gets its label, so that label and probabilities never disagree.
    """
    of_component = responsibilities(mixture, mean, sd)
    K = int(mixture.subtype.max())
    shares = np.stack([of_component[:, mixture.subtype == k].sum(1) for k in range(K + 1)], axis=1)  # outliers first
    return shares.argmax(1), shares[:, 1:]


def _log_normal(delta: np.ndarray, covariance: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
    """log N(delta; 0, covariance + diag(noise)) [N]."""
    if noise is None:
        L = np.linalg.cholesky(covariance)
        u = solve_triangular(L, delta.T, lower=True).T
        return -0.5 * (u**2).sum(1) - np.log(np.diag(L)).sum() - 0.5 * delta.shape[1] * np.log(2 * np.pi)
    wide = np.linalg.cholesky(covariance + np.eye(delta.shape[1]) * noise[:, None, :])  # [N Q Q]
    u = np.linalg.solve(wide, delta[..., None])[..., 0]
    log_det = np.log(np.diagonal(wide, axis1=1, axis2=2)).sum(1)
    return -0.5 * (u**2).sum(1) - log_det - 0.5 * delta.shape[1] * np.log(2 * np.pi)
