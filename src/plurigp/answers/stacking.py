"""Stacking: how much of a second predictor to mix with the map's, and the distribution of what the mixture leaves."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import t as student

from plurigp.answers.gap_odds import effective_cells
from plurigp.answers.pit import KNOTS, pit_maps

PRIOR_CELLS = 10  # a weight is shrunk towards the map as if so many further cells had spoken for it
DEGREES = (2.0, 3.0, 5.0, 10.0, 30.0)  # of freedom, among which a column's are chosen
SIMPLEX = np.array([(20 - i - j, i, j) for i in range(21) for j in range(21 - i)]) / 20  # of map, trees and ridge
MAP_ALONE = 0  # its place there, and the map's among the three
TIE = 1e-9  # share of the error by which the map wins among equals
LOCAL_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
EM_STEPS = 15
BEYOND = 1.5  # times the largest residual seen is the largest that is drawn
LEAST_SHARE = 1e-4  # of a level, before its logarithm


class Stacked(NamedTuple):
    """The mixture of map, trees and ridge: weights of the latter two, E[y] of unseen cells, mean squared errors."""

    weights: tuple[float, float]
    mean: Float[np.ndarray, " n"]
    error: float
    later_error: float  # once all trees answer, and not only those that have not seen the cell
    map_error: float


def stack_numbers(
    y: Float[np.ndarray, " n"],
    map_: Float[np.ndarray, " n"],
    trees: Float[np.ndarray, " n"],
    ridge: Float[np.ndarray, " n"],
    cell_weights: Float[np.ndarray, " n"],
    excess_var: float = 0.0,
) -> Stacked:
    """Weights on the simplex with the least squared error over weighted cells, shrunk towards the map.

    `excess_var` is what the variance of `trees` has here beyond what it will have when they are used.
    """
    candidates = np.stack([map_, trees, ridge], 1)
    errors = candidates - y[:, None]
    now = errors.T @ (errors * cell_weights[:, None]) / cell_weights.sum()
    later = now - np.diag([0.0, min(excess_var, 0.5 * now[1, 1]), 0.0])
    losses = np.einsum("wi,ij,wj->w", SIMPLEX, later, SIMPLEX) + TIE * now[0, 0] * (1 - SIMPLEX[:, MAP_ALONE])
    trust = _trust(cell_weights)
    weights = trust * SIMPLEX[losses.argmin()] + (1 - trust) * SIMPLEX[MAP_ALONE]
    error, later_error = (float(weights @ gram @ weights) for gram in (now, later))
    return Stacked(
        (float(weights[1]), float(weights[2])), candidates @ weights, error, max(later_error, 0.5 * error), now[0, 0]
    )


def weight_of_levels(
    y: Int[np.ndarray, " n"],
    map_: Float[np.ndarray, "n K"],
    other: Float[np.ndarray, "n K"],
    cell_weights: Float[np.ndarray, " n"],
) -> float:
    """The weight with the best log score over weighted cells, shrunk towards the map."""
    at = np.arange(len(y))
    own, others = map_[at, y], other[at, y]
    weights = np.linspace(0, 1, 41)
    scores = [cell_weights @ np.log(np.maximum((1 - w) * own + w * others, LEAST_SHARE)) for w in weights]
    return float(weights[int(np.argmax(scores))]) * _trust(cell_weights)


def _trust(cell_weights: Float[np.ndarray, " n"]) -> float:
    n_cells = effective_cells(cell_weights)
    return n_cells / (n_cells + PRIOR_CELLS)


class ResidualLaw(NamedTuple):
    """A column's residuals r on the scale of its features: (r − centre) / sd is Student's t, recalibrated by G.

    sd² = scale² (local v + (1 − local) v̄), with v the variance that the trees see around a cell and v̄ its mean.
    """

    centre: float
    scale: float
    degrees: float
    local: float
    mean_var: float
    zero_below: float  # amounts below it are zeros; 0 in columns without zeros of their own
    reach: float  # |(r − centre) / sd| beyond which nothing is drawn: on a log scale few degrees would have no bound
    G: Float[np.ndarray, " K"]  # PIT map of the standardised residuals

    def sd(self, var: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return self.scale * np.sqrt(_mixed(var, self.mean_var, self.local))

    def cdf(self, r: Float[np.ndarray, " n"], var: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """P(residual ≤ r)."""
        return np.interp(student.cdf((r - self.centre) / self.sd(var), self.degrees), KNOTS, self.G)

    def quantile(self, u: Float[np.ndarray, "... n"], var: Float[np.ndarray, " n"]) -> Float[np.ndarray, "... n"]:
        """The inverse of `cdf`, for u in (0, 1), within reach."""
        z = np.clip(student.ppf(np.interp(u, self.G, KNOTS), self.degrees), -self.reach, self.reach)
        return self.centre + self.sd(var) * z

    def log_density(self, r: Float[np.ndarray, " n"], var: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """log of the derivative of `cdf`."""
        sd = self.sd(var)
        z = (r - self.centre) / sd
        place = np.clip(np.searchsorted(KNOTS, student.cdf(z, self.degrees), side="right") - 1, 0, len(KNOTS) - 2)
        slope = np.diff(self.G) / np.diff(KNOTS)
        return student.logpdf(z, self.degrees) - np.log(sd) + np.log(slope[place])


def _mixed(var: Float[np.ndarray, " n"], mean_var: float, local: float) -> Float[np.ndarray, " n"]:
    return local * var + (1 - local) * mean_var + 1e-6 * mean_var + 1e-12


def residual_law(
    r: Float[np.ndarray, " n"],
    var: Float[np.ndarray, " n"],
    cell_weights: Float[np.ndarray, " n"],
    zero_below: float = 0.0,
) -> ResidualLaw:
    """Maximum weighted likelihood over centre and scale for each share and degree; the best pair, recalibrated."""
    mean_var, shares = float(var.mean()), cell_weights / cell_weights.sum()
    best: tuple[float, ResidualLaw] | None = None
    for local in LOCAL_SHARES:
        v = _mixed(var, mean_var, local)
        for degrees in DEGREES:
            centre, scale = _location_and_scale(r, v, shares, degrees)
            score = float(shares @ student.logpdf((r - centre) / (scale * np.sqrt(v)), degrees))
            score -= float(np.log(scale) + 0.5 * shares @ np.log(v))
            if best is None or score > best[0]:
                best = score, ResidualLaw(centre, scale, degrees, local, mean_var, zero_below, np.inf, KNOTS)
    assert best is not None
    law = best[1]
    reach = BEYOND * float(np.abs((r - law.centre) / law.sd(var)).max())
    return law._replace(reach=reach, G=pit_maps([law.cdf(r, var)], [cell_weights])[0])


def _location_and_scale(r: np.ndarray, v: np.ndarray, shares: np.ndarray, degrees: float) -> tuple[float, float]:
    """Of residuals with variances proportional to v, by expectation–maximisation of Student's t."""
    centre, scale2 = float(np.median(r)), max(float(shares @ (r**2 / v)), 1e-12)
    for _ in range(EM_STEPS):
        weights = (degrees + 1) / (degrees + (r - centre) ** 2 / (scale2 * v))
        own = shares * weights / v
        centre = float((own * r).sum() / own.sum())
        scale2 = max(float((own * (r - centre) ** 2).sum()), 1e-12)
    return centre, float(np.sqrt(scale2))
