"""Two groups of cells compared: log odds, rate and hazard ratios, Welch's t, means of cells known up to limits.

Many p-values corrected. Plain NumPy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from plurigp.data.observed import Observed
from plurigp.study.censored import Group, Normals, determined, fit_normals, likelihood_interval, likelihood_ratio
from plurigp.study.survival import Z_95, excess_events, log_rank, median_time

LOG_ODDS_RATIO, LOG_RATE_RATIO, LOG_HAZARD_RATIO = "log odds ratio", "log rate ratio", "log hazard ratio"
MEAN_DIFFERENCE, LOG_RATIO = "mean difference", "log ratio"
NAN = float("nan")
SD_OF_LOG_HAZARD = float(np.pi / np.sqrt(6))  # of the logarithm of an exponential variable


@dataclass(frozen=True)
class Contrast:
    """A difference between the cells inside and outside a group, its 95 % interval and test."""

    measure: str
    n_inside: int
    n_outside: int
    inside: float  # mean, share, geometric mean or median time; NaN where it is not known
    outside: float
    estimate: float
    low: float
    high: float
    statistic: float
    p: float
    effect: float  # standardised mean difference; of log times for a hazard ratio, so that later is positive


def log_odds_ratio(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Of yes against no (1 and 0), half a row added to each of the four counts (Haldane–Anscombe), Wald interval."""
    a, c = float(inside.sum()), float(outside.sum())
    b, d = len(inside) - a, len(outside) - c
    counts = np.array([a, b, c, d]) + 0.5
    estimate = float(np.log(counts[0] * counts[3] / (counts[1] * counts[2])))
    return _wald(LOG_ODDS_RATIO, inside, outside, estimate, float(np.sqrt((1 / counts).sum())))


def log_rate_ratio(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Of mean counts, half an event added to each side; the variances are the cells' own, so overdispersion counts."""
    means = [(cells.sum() + 0.5) / len(cells) for cells in (inside, outside)]
    variances = [max(cells.var(ddof=1), mean) / len(cells) / mean**2
                 for cells, mean in zip((inside, outside), means, strict=True)]  # fmt: skip
    estimate = float(np.log(means[0] / means[1]))
    return _wald(LOG_RATE_RATIO, inside, outside, estimate, float(np.sqrt(sum(variances))))


def _wald(measure: str, inside: np.ndarray, outside: np.ndarray, estimate: float, se: float) -> Contrast:
    return Contrast(
        measure,
        len(inside),
        len(outside),
        float(inside.mean()),
        float(outside.mean()),
        estimate,
        estimate - Z_95 * se,
        estimate + Z_95 * se,
        estimate / se,
        float(2 * stats.norm.sf(abs(estimate / se))),
        standardised_difference(inside, outside),
    )


def welch(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Difference of means with Welch's t and its interval; NaN where neither side varies."""
    parts = [cells.var(ddof=1) / len(cells) for cells in (inside, outside)]
    means = float(inside.mean()), float(outside.mean())
    counts = len(inside), len(outside)
    return _student(counts, means, sum(parts), _satterthwaite(parts, counts), standardised_difference(inside, outside))


def _satterthwaite(parts: Sequence[float], counts: Sequence[float | int]) -> float:
    """Degrees of freedom of a sum of two estimated variances, by their shares so that no unit overflows; NaN of 0."""
    largest = max(parts)
    if not largest > 0:
        return NAN
    shares = [v / largest for v in parts]
    return sum(shares) ** 2 / sum(v**2 / (n - 1) for v, n in zip(shares, counts, strict=True))


def _student(
    counts: tuple[int, int], means: tuple[float, float], variance: float, degrees: float, effect: float
) -> Contrast:
    """A difference of means by Student's t."""
    difference, se = means[0] - means[1], float(np.sqrt(variance))
    low = high = t = p = NAN
    if se > 0:
        t = difference / se
        p = float(2 * stats.t.sf(abs(t), degrees))
        reach = float(stats.t.ppf(0.975, degrees)) * se
        low, high = difference - reach, difference + reach
    return Contrast(MEAN_DIFFERENCE, *counts, *means, difference, low, high, t, p, effect)


def welch_of_logs(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Welch's t of the logarithms: the log ratio of geometric means, for positive columns with a long tail."""
    return _of_logs(welch(np.log(inside), np.log(outside)))


def _of_logs(contrast: Contrast) -> Contrast:
    """A difference of mean logarithms as the log ratio of geometric means."""
    inside, outside = float(np.exp(contrast.inside)), float(np.exp(contrast.outside))
    return replace(contrast, measure=LOG_RATIO, inside=inside, outside=outside)


def standardised_difference(inside: np.ndarray, outside: np.ndarray) -> float:
    """Difference of means over the root of the mean variance of the two groups; NaN where neither varies."""
    spread = np.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2)
    return float((inside.mean() - outside.mean()) / spread) if spread > 0 else NAN


# --- cells known up to limits ---


def censored_means(inside: Observed, outside: Observed) -> Contrast:
    """Difference of means of cells of which some are known up to limits, each group a normal of its own.

    Means and variances by maximum likelihood; test and interval by the likelihood ratio, as t² = ν (e^{χ²/(ν+2)} − 1)
    with Satterthwaite's ν, which two groups of values have too. Without limits it is Welch's t itself. Where one group
    alone does not determine a normal, both share a variance, and a group known on one side only ("<0.5" throughout)
    counts half a cell at its outermost limit, which keeps its mean finite, as half a row keeps odds finite.
    """
    if inside.exact.all() and outside.exact.all():
        return welch(inside.low, outside.low)
    counts = len(inside), len(outside)
    sides = [_informative(cells) for cells in (inside, outside)]
    if min(len(cells) for cells in sides) == 0:
        return Contrast(MEAN_DIFFERENCE, *counts, *[NAN] * 8)
    fits = [fit_normals(cells.low, cells.high, np.zeros(len(cells), int)) for cells in sides]
    if not all(determined(cells.low, cells.high) and fit.found for cells, fit in zip(sides, fits, strict=True)):
        return _with_one_variance(counts, *sides)
    return _by_likelihood(counts, sides, fits)


def _by_likelihood(counts: tuple[int, int], sides: Sequence[Observed], fits: Sequence[Normals]) -> Contrast:
    a, b = (Group.of(cells.low, cells.high, fit) for cells, fit in zip(sides, fits, strict=True))
    sizes = [len(cells) for cells in sides]
    unbiased = [n / (n - 1) for n in sizes]
    parts = [float(fit.covariance[0, 0]) * more for fit, more in zip(fits, unbiased, strict=True)]
    degrees, se = _satterthwaite(parts, sizes), float(np.sqrt(sum(parts)))
    difference = a.mean - b.mean
    t = float(np.sign(difference) * np.sqrt(degrees * np.expm1(likelihood_ratio(a, b, 0.0) / (degrees + 2))))
    critical = (degrees + 2) * np.log1p(stats.t.ppf(0.975, degrees) ** 2 / degrees)
    interval = likelihood_interval(a, b, float(critical), se)
    variance = (a.sd**2 * unbiased[0] + b.sd**2 * unbiased[1]) / 2
    p, effect = float(2 * stats.t.sf(abs(t), degrees)), difference / float(np.sqrt(variance))
    return Contrast(MEAN_DIFFERENCE, *counts, a.mean, b.mean, difference, *interval, t, p, effect)


def _informative(cells: Observed) -> Observed:
    return cells[np.isfinite(cells.low) | np.isfinite(cells.high)]


def _with_one_variance(counts: tuple[int, int], inside: Observed, outside: Observed) -> Contrast:
    parts = [inside, outside, *(_half_a_cell(cells) for cells in (inside, outside))]
    low, high = (np.concatenate(sides) for sides in zip(*((cells.low, cells.high) for cells in parts), strict=True))
    sizes = [len(cells) for cells in parts]
    fit = fit_normals(low, high, np.repeat([0, 1, 0, 1], sizes), np.repeat([1.0, 1.0, 0.5, 0.5], sizes))
    n_cells = sizes[0] + sizes[1]
    if not (determined(low[:n_cells], high[:n_cells]) and fit.found):
        return Contrast(MEAN_DIFFERENCE, *counts, *[NAN] * 8)
    n = float(n_cells)
    variance = float(np.array([1, -1]) @ fit.covariance @ np.array([1, -1])) * n / (n - 2)
    means = float(fit.mean[0]), float(fit.mean[1])
    effect = (means[0] - means[1]) / float(fit.sd * np.sqrt(n / (n - 2)))
    return _student(counts, means, variance, n - 2, effect)


def _half_a_cell(cells: Observed) -> Observed:
    """A value at the outermost limit of cells that are all open on the same side; none otherwise."""
    below, above = not np.isfinite(cells.low).any(), not np.isfinite(cells.high).any()
    value = np.array([cells.high.max()] if below else [cells.low.min()] if above else [])
    return Observed(value, value)


def censored_geometric_means(inside: Observed, outside: Observed) -> Contrast:
    """The same of logarithms: the log ratio of geometric means."""
    return _of_logs(censored_means(logarithms(inside), logarithms(outside)))


def logarithms(cells: Observed) -> Observed:
    """Bounds on the log scale; zero is an open end."""
    with np.errstate(divide="ignore"):
        return Observed(np.log(cells.low), np.log(cells.high))


# --- times to an event ---


def log_hazard_ratio(inside: Observed, outside: Observed) -> Contrast:
    """Peto's one-step estimate (O − E)/V with its interval, and the log-rank test; inside and outside are median times.

    A hazard above the others' means earlier events. Log times of a Weibull distribution have sd π/(k√6) and differ by
    −(log hazard ratio)/k, so the standardised difference is −(√6/π) times the estimate whatever the shape k.
    """
    time, event = times_and_events(inside)
    other, other_event = times_and_events(outside)
    group = np.repeat([0, 1], [len(time), len(other)])
    both = excess_events(np.concatenate([time, other]), np.concatenate([event, other_event]), group)
    excess, variance = float(both[0][0]), float(both[1][0, 0])
    means = median_time(time, event), median_time(other, other_event)
    if variance <= 0:
        return Contrast(LOG_HAZARD_RATIO, len(inside), len(outside), *means, *[NAN] * 6)
    estimate, se = excess / variance, variance**-0.5
    z = estimate / se
    p = float(2 * stats.norm.sf(abs(z)))
    interval = estimate - Z_95 * se, estimate + Z_95 * se
    effect = -estimate / SD_OF_LOG_HAZARD
    return Contrast(LOG_HAZARD_RATIO, len(inside), len(outside), *means, estimate, *interval, z, p, effect)


def times_and_events(cells: Observed) -> tuple[np.ndarray, np.ndarray]:
    """Times [N] and whether the event happened [N]; one between two bounds counts at their middle."""
    happened = np.isfinite(cells.high)
    middle = (np.maximum(cells.low, 0.0) + np.where(happened, cells.high, 0.0)) / 2
    return np.where(cells.exact | ~happened, cells.low, middle), happened.astype(float)


# --- all groups at once ---


@dataclass(frozen=True)
class Association:
    """One column against all subtypes at once."""

    measure: str
    effect: float
    statistic: float
    p: float


def cramers_v(level: np.ndarray, group: np.ndarray) -> Association:
    """χ² of levels by groups, and Cramér's V."""
    levels, groups = np.unique(level, return_inverse=True)[1], np.unique(group, return_inverse=True)[1]
    counts = np.zeros((levels.max() + 1, groups.max() + 1))
    np.add.at(counts, (levels, groups), 1.0)
    if min(counts.shape) < 2:
        return Association("Cramér's V", NAN, NAN, NAN)
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    effect = float(np.sqrt(chi2 / counts.sum() / (min(counts.shape) - 1)))
    return Association("Cramér's V", effect, chi2, float(stats.chi2.sf(chi2, degrees)))


def kruskal_wallis(values: np.ndarray, group: np.ndarray) -> Association:
    """Kruskal–Wallis' H, ties corrected, and ε² = H / (n − 1), the share of the ranks' variance between groups."""
    names = np.unique(group)
    if len(names) < 2 or len(np.unique(values)) < 2:
        return Association("ε²", NAN, NAN, NAN)
    H, p = stats.kruskal(*(values[group == name] for name in names))
    return Association("ε²", float(H / (len(values) - 1)), float(H), float(p))


def censored_association(cells: Observed, group: np.ndarray) -> Association:
    """Likelihood ratio of normals with a mean per group against one mean, one variance; R² = 1 − exp(−χ²/n)."""
    told = np.isfinite(cells.low) | np.isfinite(cells.high)
    cells, (names, place) = cells[told], np.unique(group[told], return_inverse=True)
    if len(names) < 2 or not determined(cells.low, cells.high):
        return Association("R²", NAN, NAN, NAN)
    one, each = (fit_normals(cells.low, cells.high, groups) for groups in (np.zeros_like(place), place))
    if not one.found or each.sd < 1e-3 * one.sd:
        return Association("R²", NAN, NAN, NAN)
    chi2 = max(0.0, 2 * (each.log_likelihood - one.log_likelihood))
    return Association("R²", float(-np.expm1(-chi2 / len(cells))), chi2, float(stats.chi2.sf(chi2, len(names) - 1)))


def hazard_association(cells: Observed, group: np.ndarray) -> Association:
    """The log-rank test over all groups, and R² = 1 − exp(−χ² / events); NaN without events, which test nothing."""
    time, event = times_and_events(cells)
    chi2, _, p = log_rank(time, event, group)
    return Association("R²", float(-np.expm1(-chi2 / event.sum())), chi2, p)


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Adjusted p-values (q): the smallest false discovery rate at which each is called; NaN is left out."""
    q = np.full(len(p), np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    raw = p[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    return q
