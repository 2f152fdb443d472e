"""Normal distributions fitted to cells known up to limits, by maximum likelihood; profiles of their means.

SciPy fits censored data without weights, shared variances, covariances or profiles, hence this module.

A cell has two bounds, equal where its value is known: it contributes log N(y; μ, σ²), or the log probability of what
lies between its bounds. With δ = μ/σ and γ = 1/σ the log likelihood is concave (Olsen 1978; Burridge 1981), so Newton's
method with halved steps finds its only maximum, or runs away where there is none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from plurigp.likelihoods.families.censored import log_mass
from plurigp.likelihoods.special import HALF_LOG_2PI

NEWTON_STEPS, HALVINGS = 200, 40
LEAST_INCREASE = 1e-9  # of the log likelihood, predicted for a step: below, the maximum is reached
FAR = 1e3  # standard deviations of the bounds, or their inverse: an sd beyond has no maximum
TOLERANCE = 1e-5  # in standard deviations or errors, of a mean or of an end of an interval
WALD_TOLERANCE = 0.02  # in standard errors, between an end by Wald and one by the likelihood
DOUBLINGS = 20
DOUBLING = 2.0 ** np.arange(-1, 12)  # standard deviations
LEAST_CURVATURE = 1e-8  # of the largest: in a flatter direction there is no maximum


class Normals(NamedTuple):
    """Normals with a mean per group and one sd; covariance of the estimated means by the observed information."""

    mean: np.ndarray  # [G]
    sd: float
    covariance: np.ndarray  # [G G]
    log_likelihood: float
    found: bool  # whether the maximum is a finite one


def fit_normals(low: np.ndarray, high: np.ndarray, group: np.ndarray, weight: np.ndarray | None = None) -> Normals:
    """The groups 0 … G−1 of cells; a weight counts a cell so many times."""
    weight = np.ones(len(low)) if weight is None else weight
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    centre, unit = (float(finite.mean()), float(finite.std())) if len(finite) else (0.0, 1.0)
    unit = unit if unit > 0 else 1.0
    cells = (low - centre) / unit, (high - centre) / unit, group, weight
    G = int(group.max()) + 1
    free = np.append(np.zeros(G), 1.0)  # δ of each group, γ
    value, slope, curvature = _likelihood(free, *cells)
    promised = np.inf
    for _ in range(NEWTON_STEPS):
        step = np.linalg.solve(-curvature + 1e-12 * np.trace(-curvature) * np.eye(G + 1), slope)
        promised = float(slope @ step)
        if promised < LEAST_INCREASE:
            break
        for _ in range(HALVINGS):
            trial = free + step
            if trial[-1] > 0 and (tried := _likelihood(trial, *cells))[0] > value:
                free, (value, slope, curvature) = trial, tried
                break
            step = step / 2
        else:
            break
    delta, gamma = free[:-1], float(free[-1])
    mean = delta / gamma
    sizes = np.linalg.eigvalsh(-curvature)
    found = promised < 1e-6 and 1 / FAR < gamma < FAR and bool(sizes[0] > LEAST_CURVATURE * sizes[-1])
    jacobian = np.concatenate([np.eye(G) / gamma, -mean[:, None] / gamma], axis=1)  # d mean / d (δ, γ)
    covariance = jacobian @ np.linalg.pinv(-curvature) @ jacobian.T
    exact_units = float(weight[low == high].sum()) * np.log(unit)
    return Normals(centre + unit * mean, unit / gamma, unit**2 * covariance, float(value) - exact_units, found)


def _likelihood(
    free: np.ndarray, low: np.ndarray, high: np.ndarray, group: np.ndarray, weight: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """The log likelihood of (δ …, γ), its gradient and its Hessian."""
    gamma, exact = free[-1], low == high
    a, b = (gamma * bound - free[group] for bound in (low, np.where(exact, low + 1.0, high)))
    log_p = log_mass(a, b)
    at_a, at_b = (np.exp(np.minimum(-z * z / 2 - HALF_LOG_2PI - log_p, 700.0)) for z in (a, b))  # φ / P
    a, b, y, w = (np.where(np.isfinite(z), z, 0.0) for z in (a, b, low, high))  # φ is 0 at an open end
    # first and second derivatives of log P by δ and γ, then those of the log density where the value is known
    d, g = at_a - at_b, w * at_b - y * at_a
    dd, dg = a * at_a - b * at_b - d * d, w * b * at_b - y * a * at_a - d * g
    gg = y * y * a * at_a - w * w * b * at_b - g * g
    value = np.where(exact, np.log(gamma) - a * a / 2 - HALF_LOG_2PI, log_p)
    d, g = np.where(exact, a, d), np.where(exact, 1 / gamma - a * y, g)
    dd, dg, gg = np.where(exact, -1.0, dd), np.where(exact, y, dg), np.where(exact, -(gamma**-2) - y * y, gg)
    G = len(free) - 1
    sums = [np.bincount(group, weight * part, G) for part in (d, dd, dg)]
    hessian = np.diag(np.append(sums[1], weight @ gg))
    hessian[:-1, -1] = hessian[-1, :-1] = sums[2]
    return float(weight @ value), np.append(sums[0], weight @ g), hessian


def determined(low: np.ndarray, high: np.ndarray) -> bool:
    """Whether the cells can tell a mean and an sd: two of them, and not the same, lie between finite bounds."""
    both = np.isfinite(low) & np.isfinite(high)
    return len(np.unique(np.stack([low[both], high[both]], axis=1), axis=0)) > 1


def open_side(low: np.ndarray, high: np.ndarray) -> int:
    """−1 where no cell has a lower bound, 1 where none has an upper one, otherwise 0."""
    return int(not np.isfinite(high).any()) - int(not np.isfinite(low).any())


def condensed(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fewer cells with weights and the same likelihood: values only matter by their number, mean and variance."""
    exact = low == high
    limits, counts = np.unique(np.stack([low[~exact], high[~exact]], axis=1), axis=0, return_counts=True)
    values = low[exact].mean() + low[exact].std() * np.array([-1.0, 1.0]) if exact.any() else np.zeros(0)
    weight = np.concatenate([np.full(len(values), exact.sum() / 2), counts])
    return np.concatenate([values, limits[:, 0]]), np.concatenate([values, limits[:, 1]]), weight


# --- likelihood ratios of a difference of means ---


@dataclass(frozen=True, eq=False)
class Group:
    """Cells of one group, condensed, in units of its sd around its mean: the maximum is at 0 with sd 1."""

    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray
    mean: float
    sd: float

    @staticmethod
    def of(low: np.ndarray, high: np.ndarray, fit: Normals) -> "Group":
        """From a fit to this group alone."""
        low, high, weight = condensed(low, high)
        mean = float(fit.mean[0])
        return Group((low - mean) / fit.sd, (high - mean) / fit.sd, weight, mean, fit.sd)

    @cached_property
    def best(self) -> float:
        """The largest log likelihood."""
        return self.profile(self.mean)[0]

    def profile(self, mean: float) -> tuple[float, float]:
        """The largest log likelihood over sds at this mean, up to a constant, and its slope."""
        shift = (mean - self.mean) / self.sd
        cells = self.low - shift, self.high - shift, np.zeros(len(self.low), int), self.weight
        gamma = float(1 / np.sqrt(1 + shift**2))  # the answer for values without limits
        value, slope, curvature = _likelihood(np.array([0.0, gamma]), *cells)
        for _ in range(NEWTON_STEPS):
            step = max(-slope[1] / min(curvature[1, 1], -1e-300), -gamma / 2)
            while step * slope[1] >= LEAST_INCREASE:
                tried = _likelihood(np.array([0.0, gamma + step]), *cells)
                if tried[0] > value:
                    break
                step /= 2
            else:
                break
            gamma, (value, slope, curvature) = gamma + step, tried
        return value, gamma * float(slope[0]) / self.sd


def likelihood_ratio(first: Group, second: Group, difference: float) -> float:
    """χ² of means that differ by so much, each group with its own sd, against the means that fit best.

    The best mean of the second group then lies between its own best one and the first group's less the difference.
    There may be a maximum near either end and a minimum between them (Behrens–Fisher), so slopes are taken on a grid
    whose steps double away from both ends, and every change from rising to falling is refined.
    """
    (low, low_sd), (high, high_sd) = sorted([(second.mean, second.sd), (first.mean - difference, first.sd)])
    grid = np.concatenate([[low, high], low + DOUBLING * low_sd, high - DOUBLING * high_sd])
    grid = np.unique(grid[(grid >= low) & (grid <= high)]).tolist()

    @cache
    def profile(mean: float) -> tuple[float, float]:
        (value, slope), (other, other_slope) = first.profile(mean + difference), second.profile(mean)
        return value + other, slope + other_slope

    best = max(profile(mean)[0] for mean in grid)
    for left, right in pairwise(grid):
        if profile(left)[1] > 0 > profile(right)[1]:
            top = brentq(lambda mean: profile(mean)[1], left, right, xtol=TOLERANCE * min(first.sd, second.sd))
            best = max(best, profile(float(top))[0])
    return max(0.0, 2 * (first.best + second.best - best))


def shared_sd_likelihood(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]
) -> Callable[[float], float]:
    """The largest log likelihood of means that differ by so much, both groups with one sd."""
    (low, high, weight), (other_low, other_high, other_weight) = condensed(*first), condensed(*second)
    weight = np.concatenate([weight, other_weight])

    def log_likelihood(difference: float) -> float:
        cells = np.concatenate([low - difference, other_low]), np.concatenate([high - difference, other_high])
        return fit_normals(*cells, np.zeros(len(weight), int), weight).log_likelihood

    return log_likelihood


def likelihood_interval(
    chi2: Callable[[float], float], best: float, se: float, critical: float, wald: bool = False, unbounded: int = 0
) -> tuple[float, float]:
    """The differences whose χ² does not exceed a critical value; infinite on a side (−1, 1) that has no end.

    The root of χ² is nearly linear in the difference. Wald's ends are kept where that is allowed and the root there is
    the critical one to `WALD_TOLERANCE` standard errors: long columns with many limits need not be searched.
    """
    root = float(np.sqrt(critical))

    def excess(difference: float) -> float:
        return float(np.sqrt(max(0.0, chi2(difference)))) - root

    def end(side: int) -> float:
        near = best
        for far in map(float, best + side * root * se * 2.0 ** np.arange(DOUBLINGS)):
            over = excess(far)
            if wald and abs(over) < WALD_TOLERANCE:
                return far
            if over > 0:
                return float(brentq(excess, near, far, xtol=TOLERANCE * se))
            near = far
        return side * float("inf")

    low, high = (side * float("inf") if side == unbounded else end(side) for side in (-1, 1))
    return low, high


def one_sided_mean(low: np.ndarray, high: np.ndarray, sd: float) -> float:
    """The mean at which cells that are all open on one side have probability ½, given the sd.

    The likelihood has no maximum there; this is the median-unbiased estimate where the limits are the same.
    """
    if open_side(low, high) > 0:
        return -one_sided_mean(-high, -low, sd)

    def excess(z: float) -> float:  # of log probability, with the mean z standard deviations below the lowest limit
        return float(log_ndtr(z + (high - high.min()) / sd).sum() + np.log(2))

    return float(high.min() - sd * brentq(excess, -FAR, FAR))
