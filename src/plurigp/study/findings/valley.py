"""Are clusters groups? Whether fewer rows lie between two of them than in either, counted on rows that defined neither.

Two clusters of a half map are joined by a curve that bends where their cloud does, and every unseen row has a place
along it. If the density along the curve has one mode, whatever its shape, the middle is not emptier than both flanks:
that is tested by counts, with curve and intervals laid by the rows that the map has seen.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.stats import norm

from plurigp.study.findings.mixture import Mixture

CURVE_POINTS = 101  # between which arc lengths are interpolated
FLANKS, MIDDLES = (0.4, 0.67, 1.0), (0.25, 0.5, 0.75)  # half widths of flanks in sds; widths as shares of the gap
FEWEST_ROWS = 4  # of a cluster among the rows seen, to lay intervals by
HISTOGRAM = np.linspace(-1.0, 2.0, 37)  # places along the curve, 0 at one centre and 1 at the other
LEVEL_GROUND = 0.9  # density of the middle over that of a flank: a map that is stretched there a little has no valley
LEAST_VARIANCE = 0.3  # of a z averaged over splits: it is estimated, and an estimate may be too small


def along_curve(x: np.ndarray, mixture: Mixture, k: int, other: int, seen: np.ndarray) -> np.ndarray:
    """Place [N] of each row along a curve from component k to another, in units of their mean covariance.

    A row's place on the discriminant axis is its t. The rows seen [N], those of both clusters, say how it bends
    to the side as t grows, by a parabola; the place is the arc length of that parabola at t. The shadow of a bent cloud
    on a straight axis is dense at both ends, where the cloud turns towards the axis, and would look like two groups.
    """
    root = np.linalg.cholesky((mixture.covariances[k] + mixture.covariances[other]) / 2)
    white = np.linalg.solve(root, x.T).T
    step = np.linalg.solve(root, mixture.means[other] - mixture.means[k])
    axis = step / max(np.linalg.norm(step), 1e-12)
    t = white @ axis
    aside = white - t[:, None] * axis
    middle, scale = t[seen].mean(), max(t[seen].std(), 1e-12)
    powers = np.vander((t[seen] - middle) / scale, 3)
    bend, slope, _ = np.linalg.lstsq(powers, aside[seen], rcond=None)[0] / np.array([scale**2, scale, 1.0])[:, None]
    grid = np.linspace(t[seen].min(), t[seen].max(), CURVE_POINTS)
    speed = np.sqrt(1 + ((2 * bend * (grid - middle)[:, None] + slope) ** 2).sum(1))
    length = np.concatenate([[0], np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(grid))])
    beyond = np.minimum(t - grid[0], 0) * speed[0] + np.maximum(t - grid[-1], 0) * speed[-1]  # straight on
    return np.interp(t, grid, length) + beyond


class Cloud(NamedTuple):
    """One cluster along the curve, by the rows seen."""

    n: int
    mean: float
    sd: float

    def around(self, width: float) -> tuple[float, float]:
        """So many sds on both sides of the mean."""
        return self.mean - width * self.sd, self.mean + width * self.sd


class Intervals(NamedTuple):
    """The middle and both flanks, each (from, to)."""

    middle: tuple[float, float]
    flanks: tuple[tuple[float, float], tuple[float, float]]


def lay_intervals(first: Cloud, second: Cloud) -> Intervals | None:
    """Those with which two normal clouds of these sizes would show their valley best; None where the clouds overlap."""
    best, found = -np.inf, None
    for width in FLANKS:
        low, high = first.mean + width * first.sd, second.mean - width * second.sd
        if high <= low:
            continue
        places = np.linspace(low, high, 41)
        emptiest = places[np.argmin(_expected_density(first, second, places))]
        flanks = first.around(width), second.around(width)
        for share in MIDDLES:
            half = share * (high - low) / 2
            centre = np.clip(emptiest, low + half, high - half)
            laid = Intervals((centre - half, centre + half), flanks)
            z = min(_z(*_expected(first, second, laid.middle), *_expected(first, second, flank)) for flank in flanks)
            if z > best:
                best, found = z, laid
    return found


def _expected_density(first: Cloud, second: Cloud, at: np.ndarray) -> np.ndarray:
    return sum(cloud.n * norm.pdf(at, cloud.mean, cloud.sd) for cloud in (first, second))


def _expected(first: Cloud, second: Cloud, interval: tuple[float, float]) -> tuple[float, float]:
    """How many rows two normal clouds have in an interval, and its width."""
    n = sum(cloud.n * float(np.diff(norm.cdf(interval, cloud.mean, cloud.sd))[0]) for cloud in (first, second))
    return n, interval[1] - interval[0]


def _z(n_middle: float, middle: float, n_flank: float, flank: float) -> float:
    share = null_share(middle / flank)
    n = n_middle + n_flank
    return (share * n - n_middle) / np.sqrt(share * (1 - share) * n + 1e-9)


def null_share(widths: Any) -> Any:
    """Of the rows in middle and flank, the share in the middle if it is as dense as no valley is."""
    return LEVEL_GROUND * widths / (LEVEL_GROUND * widths + 1)


# --- one half map ---


class Counts(NamedTuple):
    """Unseen rows along the curve between each two components of a half map: [k, l] is the flank at k.

    Where rows are visits of patients, those of one patient in middle and flank share one count between them: they lie
    close together and are no independent rows.
    """

    middle: np.ndarray  # [K K] rows, or patients, in the middle
    flank: np.ndarray  # [K K] those in the flank at k
    widths: np.ndarray  # [K K] width of the middle over that of the flank; 0 where no intervals could be laid
    separation: np.ndarray  # [K K] distance of the centres in sds, of the rows seen; 0 where too few were
    histogram: np.ndarray  # [K K H] unseen rows by place, 0 at k and 1 at l


def count_between(
    mixture: Mixture, x: np.ndarray, labels: np.ndarray, seen: np.ndarray, patients: np.ndarray | None = None
) -> Counts:
    """x [N Q] are positions by a half map, labels [N] its components 0 … K−1, seen [N] the rows it was learned from.

    patients [N]: whose row it is, 0 …; None: every row is somebody else's.
    """
    K, patient = len(mixture.weights), np.arange(len(x)) if patients is None else patients
    counts = Counts(*(np.zeros((K, K, *more)) for more in ((), (), (), (), (len(HISTOGRAM) - 1,))))
    for k in range(K):
        for other in range(k):
            own = [seen & (labels == c) for c in (k, other)]
            if min(rows.sum() for rows in own) < FEWEST_ROWS:
                continue
            place = along_curve(x, mixture, k, other, own[0] | own[1])
            first, second = (Cloud(int(r.sum()), float(place[r].mean()), float(place[r].std()) + 1e-9) for r in own)
            unseen = ~seen & ((labels == k) | (labels == other))
            _add_pair(counts, (k, other), first, second, place[unseen], patient[unseen])
    return counts


def _add_pair(
    counts: Counts, pair: tuple[int, int], first: Cloud, second: Cloud, unseen: np.ndarray, patient: np.ndarray
) -> None:
    apart = second.mean - first.mean
    counts.separation[pair] = counts.separation[pair[::-1]] = apart / np.sqrt((first.sd**2 + second.sd**2) / 2)
    if apart > 0:
        scaled = np.histogram((unseen - first.mean) / apart, HISTOGRAM)[0]
        counts.histogram[pair], counts.histogram[pair[::-1]] = scaled, scaled[::-1]
    laid = lay_intervals(first, second)
    if laid is None:
        return
    middle = _within(unseen, laid.middle)
    for at, flank in zip((pair, pair[::-1]), laid.flanks, strict=True):
        counts.middle[at], counts.flank[at] = _shared_counts(middle, _within(unseen, flank), patient)
        counts.widths[at] = (laid.middle[1] - laid.middle[0]) / (flank[1] - flank[0])


def _within(places: np.ndarray, interval: tuple[float, float]) -> np.ndarray:
    return (places > interval[0]) & (places < interval[1])


def _shared_counts(middle: np.ndarray, flank: np.ndarray, patient: np.ndarray) -> tuple[float, float]:
    """How many lie in the middle and in the flank [n each], where the rows of a patient share one count."""
    if len(patient) == 0:
        return 0.0, 0.0
    share = 1 / np.maximum(np.bincount(patient, middle | flank)[patient], 1)
    return float(share[middle].sum()), float(share[flank].sum())


# --- all half maps together ---


@dataclass(frozen=True, eq=False)
class Valleys:
    """What lies between each two strata, over all pairs of half maps."""

    p: np.ndarray  # [K K] of the hypothesis that there is no valley; 1 on the diagonal
    depth: np.ndarray  # [K K] density of the middle over that of the thinner flank: 0 empty, 1 flat; NaN if not counted
    separation: np.ndarray  # [K K] distance of centres in sds, mean over half maps that have both; NaN if none has
    histogram: np.ndarray  # [K K H] unseen rows by place, summed over half maps


def combine_counts(halves: list[Counts]) -> Valleys:
    """Both halves of a pair are added, since every row is unseen by one of them; then z is averaged over the pairs.

    An average over random splits varies less than one split does, by the variance between splits (the law of total
    variance): z is divided by the sd that is left, unless splits disagree more than chance lets them. A valley has to
    show against both flanks, so the smaller z counts.
    """
    stacked = Counts(*(np.stack(parts) for parts in zip(*halves, strict=True)))
    share = null_share(stacked.widths)
    n = stacked.middle + stacked.flank
    excess, variance = share * n - stacked.middle, share * (1 - share) * n
    both = [part[0::2] + part[1::2] for part in (excess, variance)]  # [pairs K K]
    z = np.where(both[1] > 0, (both[0] - 0.5) / np.sqrt(np.maximum(both[1], 1e-9)), -1.0)
    between = z.var(0, ddof=1) if len(z) > 1 else np.zeros(z.shape[1:])
    left = np.where(between > 1, 1.0, np.maximum(1 - between * (1 - 1 / len(z)), LEAST_VARIANCE))
    z = z.mean(0) / np.sqrt(left)
    p = norm.sf(np.minimum(z, z.T))
    np.fill_diagonal(p, 1.0)
    laid = stacked.widths > 0
    in_middle = np.divide(stacked.middle, stacked.widths, out=np.zeros_like(stacked.middle), where=laid).sum(0)
    in_flank = stacked.flank.sum(0)
    depth = np.divide(in_middle, in_flank, out=np.full_like(p, np.nan), where=in_flank > 0)
    has_both = (stacked.separation != 0).sum(0)
    separation = np.where(has_both > 0, stacked.separation.sum(0) / np.maximum(has_both, 1), np.nan)
    np.fill_diagonal(separation, 0.0)
    return Valleys(p, np.maximum(depth, depth.T), separation, stacked.histogram.sum(0))


def reorder(counts: Counts, order: np.ndarray) -> Counts:
    """The counts between strata, where stratum k is component order[k]."""
    return Counts(*(part[np.ix_(order, order)] for part in counts))


def without(counts: Counts, strata: np.ndarray) -> Counts:
    """The counts as if no intervals could be laid between some strata [K] and any other."""
    left = ~(strata[:, None] | strata)
    middle, flank, widths, separation = (np.where(left, part, 0) for part in counts[:-1])
    return Counts(middle, flank, widths, separation, counts.histogram * left[:, :, None])


def separate_groups(p: np.ndarray, level: float) -> tuple[np.ndarray, float]:
    """Which group each stratum is in [K], 0 …, and the p-value of there being more than one.

    Two groups are apart if there is a valley between each stratum of the one and each of the other. The cuts that come
    into question are the K − 1 edges of the spanning tree that joins strata where p is largest (any other cut crosses a
    larger p); Hochberg's correction is over those. Where all strata are one group, some other tree has no valley on any
    of its edges, and its p-values in order are no larger. Valleys share the flank of a stratum, so that their p-values
    hang together, which makes Hochberg's correction the more cautious (Sarkar 1998).
    """
    K = len(p)
    if K == 1:
        return np.zeros(1, int), 1.0
    tree = minimum_spanning_tree(np.where(np.eye(K, dtype=bool), 0, 2 - p)).tocoo()
    joined = p[tree.row, tree.col]
    order = np.argsort(joined, kind="stable")
    adjusted = np.minimum.accumulate((joined[order] * np.arange(K - 1, 0, -1))[::-1])[::-1]
    kept = order[adjusted > level]
    links = np.zeros((K, K))
    links[tree.row[kept], tree.col[kept]] = 1
    return connected_components(links, directed=False)[1], float(adjusted[0])
