"""Two groups of cells compared: log odds, rate and hazard ratios, Welch's t, means of cells known up to limits."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.stats.contingency import association, crosstab

from plurigp.data.rows import CellBounds
from plurigp.study.findings import censored
from plurigp.study.findings.censored import Group, Normals, determined, fit_normals, open_side
from plurigp.study.findings.survival import Z_95, excess_events, log_rank, median_time

LOG_ODDS_RATIO, LOG_RATE_RATIO, LOG_HAZARD_RATIO = "log odds ratio", "log rate ratio", "log hazard ratio"
MEAN_DIFFERENCE, LOG_RATIO = "mean difference", "log ratio"
NAN = float("nan")
FEWEST_KNOWN, LEAST_KNOWN = 10, 0.2  # values, and their share, that tell a group's own variance (Helsel 2012)
MANY = 1000  # degrees of freedom above which Wald's interval may do
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
    a, b, c, d = (count + 0.5 for side in (inside, outside) for count in (side.sum(), len(side) - side.sum()))
    se = float(np.sqrt(1 / a + 1 / b + 1 / c + 1 / d))
    return _wald(LOG_ODDS_RATIO, inside, outside, float(np.log(a * d / (b * c))), se)


def log_rate_ratio(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Of mean counts, half an event added to each side; the variances are the cells' own, so overdispersion counts."""
    means = [(cells.sum() + 0.5) / len(cells) for cells in (inside, outside)]
    sides = zip((inside, outside), means, strict=True)
    variance = sum(max(cells.var(ddof=1), mean) / len(cells) / mean**2 for cells, mean in sides)
    return _wald(LOG_RATE_RATIO, inside, outside, float(np.log(means[0] / means[1])), float(np.sqrt(variance)))


def _wald(measure: str, inside: np.ndarray, outside: np.ndarray, estimate: float, se: float) -> Contrast:
    means, effect = (float(inside.mean()), float(outside.mean())), standardised_difference(inside, outside)
    return Contrast(measure, len(inside), len(outside), *means, *_by_normal(estimate, se), effect)


def _by_normal(estimate: float, se: float) -> tuple[float, float, float, float, float]:
    """The estimate, its 95 % interval, z and p."""
    z = estimate / se
    return estimate, estimate - Z_95 * se, estimate + Z_95 * se, z, float(2 * stats.norm.sf(abs(z)))


def welch(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Difference of means with Welch's t and its interval; NaN where neither side varies."""
    means = float(inside.mean()), float(outside.mean())
    low = high = t = p = NAN
    unit = float(np.sqrt(max(inside.var(ddof=1), outside.var(ddof=1))))  # others may overflow within SciPy
    if unit > 0:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # of a side that does not vary
            test = stats.ttest_ind(inside / unit, outside / unit, equal_var=False)
        low, high = (unit * float(end) for end in test.confidence_interval(0.95))
        t, p = float(test.statistic), float(test.pvalue)
    effect = standardised_difference(inside, outside)
    return Contrast(MEAN_DIFFERENCE, len(inside), len(outside), *means, means[0] - means[1], low, high, t, p, effect)


def welch_of_logs(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Welch's t of the logarithms: the log ratio of geometric means, for positive columns with a long tail."""
    return of_logs(welch(np.log(inside), np.log(outside)))


def of_logs(contrast: Contrast) -> Contrast:
    """A difference of mean logarithms as the log ratio of geometric means."""
    inside, outside = float(np.exp(contrast.inside)), float(np.exp(contrast.outside))
    return replace(contrast, measure=LOG_RATIO, inside=inside, outside=outside)


def standardised_difference(inside: np.ndarray, outside: np.ndarray) -> float:
    """Difference of means over the root of the mean variance of the two groups; NaN where neither varies."""
    spread = np.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2)
    return float((inside.mean() - outside.mean()) / spread) if spread > 0 else NAN


def standardised_difference_of_shares(first: np.ndarray, second: np.ndarray) -> float:
    """Of the shares of all levels but one: d = √(δᵀ S⁻¹ δ), S the mean of both multinomial covariances (Yang and Dalton
    2012), with the sign of the difference where there is one share; infinite where a level tells the groups apart
    without error, NaN where there is only one level."""
    difference = second - first
    S = np.mean([np.diag(share) - np.outer(share, share) for share in (first, second)], axis=0)
    if not S.any() and not difference.any():
        return NAN
    weights = np.linalg.pinv(S, hermitian=True) @ difference
    apart = np.abs(S @ weights - difference).max() > 1e-9
    d = np.inf if apart else float(np.sqrt(difference @ weights))
    return float(np.copysign(d, difference[0])) if len(difference) == 1 else d


# --- cells known up to limits ---


def censored_means(inside: CellBounds, outside: CellBounds) -> Contrast:
    """Difference of means of normals fitted by maximum likelihood to cells of which some are known up to limits.

    Test and interval are by the likelihood ratio as t² = ν (e^{χ²/(ν+2)} − 1), which is Student's t of values without
    limits and with one variance; where no cell has a limit, Welch's test is used. Each group has its own variance where
    both have enough known values to estimate one, otherwise they share it. A group known on one side only ("<0.5"
    throughout) has no finite maximum-likelihood mean: the interval is open there, and the estimate takes the mean at
    which such a group has probability ½. `inside` and `outside` are NaN where a group with few values has its mean
    outside all its bounds.
    """
    if inside.exact.all() and outside.exact.all():
        return welch(inside.low, outside.low)
    counts = len(inside), len(outside)
    sides = [cells[_informative(cells)] for cells in (inside, outside)]
    if min(map(len, sides)) == 0:
        return Contrast(MEAN_DIFFERENCE, *counts, *[NAN] * 8)
    if all(map(_tells_variance, sides)):
        fits = [fit_normals(cells.low, cells.high, np.zeros(len(cells), int)) for cells in sides]
        if all(fit.found for fit in fits):
            return _with_own_variances(counts, sides, fits)
    return _with_one_variance(counts, *sides)


def _informative(cells: CellBounds) -> np.ndarray:
    return np.isfinite(cells.low) | np.isfinite(cells.high)


def _tells_variance(cells: CellBounds) -> bool:
    """Whether enough cells are known on both sides, or all of them."""
    n = int((np.isfinite(cells.low) & np.isfinite(cells.high)).sum())
    enough = n == len(cells) or n >= max(FEWEST_KNOWN, LEAST_KNOWN * len(cells))
    return enough and determined(cells.low, cells.high)


def _with_own_variances(counts: tuple[int, int], sides: Sequence[CellBounds], fits: Sequence[Normals]) -> Contrast:
    a, b = (Group.of(cells.low, cells.high, fit) for cells, fit in zip(sides, fits, strict=True))
    sizes = np.array([len(cells) for cells in sides])
    unbiased = sizes / (sizes - 1)
    variances = unbiased * [fit.covariance[0, 0] for fit in fits]
    shares = variances / variances.max()
    degrees = float(shares.sum() ** 2 / (shares**2 / (sizes - 1)).sum())  # Satterthwaite's
    sd = float(np.sqrt((unbiased * [a.sd**2, b.sd**2]).mean()))

    def chi2(difference: float) -> float:
        return censored.likelihood_ratio(a, b, difference)

    difference, se = a.mean - b.mean, float(np.sqrt(variances.sum()))
    test = _by_likelihood(chi2, chi2(0.0), difference, se, degrees, degrees > MANY, 0)
    return Contrast(MEAN_DIFFERENCE, *counts, a.mean, b.mean, *test, difference / sd)


def _with_one_variance(counts: tuple[int, int], inside: CellBounds, outside: CellBounds) -> Contrast:
    sides = [(cells.low, cells.high) for cells in (inside, outside)]
    low, high = (np.concatenate(bounds) for bounds in zip(*sides, strict=True))
    fits = _one_mean_and_each(low, high, np.repeat([0, 1], [len(inside), len(outside)]))
    if fits is None:
        return Contrast(MEAN_DIFFERENCE, *counts, *[NAN] * 8)
    one, each = fits
    open_sides = [open_side(*bounds) for bounds in sides]
    means = [
        censored.one_sided_mean(*bounds, each.sd) if is_open else float(mean)
        for bounds, is_open, mean in zip(sides, open_sides, each.mean, strict=True)
    ]
    difference, degrees = means[0] - means[1], float(len(low) - 2)
    se = each.sd if any(open_sides) else float(np.sqrt(np.array([1, -1]) @ each.covariance @ np.array([1, -1])))
    log_likelihood = censored.shared_sd_likelihood(*sides)

    def chi2(difference: float) -> float:
        return 2 * (each.log_likelihood - log_likelihood(difference))

    at_zero = 2 * (each.log_likelihood - one.log_likelihood)
    wald, unbounded = degrees > MANY and not any(open_sides), open_sides[0] - open_sides[1]
    test = _by_likelihood(chi2, at_zero, difference, se, degrees, wald, unbounded)
    shown = _mean_if_seen(inside, means[0]), _mean_if_seen(outside, means[1])
    effect = difference / (each.sd * float(np.sqrt(len(low) / degrees)))
    return Contrast(MEAN_DIFFERENCE, *counts, *shown, *test, effect)


def _one_mean_and_each(low: np.ndarray, high: np.ndarray, group: np.ndarray) -> tuple[Normals, Normals] | None:
    """Normals of one variance with one mean and with one per group; None where the cells do not tell that variance."""
    if not determined(low, high) or len(low) <= group.max() + 1:
        return None
    one, each = (fit_normals(low, high, groups) for groups in (np.zeros_like(group), group))
    return (one, each) if one.found and each.sd >= 1e-3 * one.sd else None


def _by_likelihood(
    chi2: Callable[[float], float], at_zero: float, estimate: float, se: float, degrees: float, wald: bool, side: int
) -> tuple[float, float, float, float, float]:
    """The estimate, its 95 % interval, and Student's t that without limits has this likelihood ratio, with its p."""
    critical = float((degrees + 2) * np.log1p(stats.t.ppf(0.975, degrees) ** 2 / degrees))  # χ² of a t at the 5 % level
    low, high = censored.likelihood_interval(chi2, estimate, se, critical, wald, side)
    t = float(np.sign(estimate) * np.sqrt(degrees * np.expm1(max(0.0, at_zero) / (degrees + 2))))
    return estimate, low, high, t, float(2 * stats.t.sf(abs(t), degrees))


def _mean_if_seen(cells: CellBounds, mean: float) -> float:
    """NaN where few values tell the variance and the mean lies outside all bounds."""
    bounds = np.concatenate([cells.low, cells.high])
    bounds = bounds[np.isfinite(bounds)]
    seen = open_side(cells.low, cells.high) == 0 and bounds.min() <= mean <= bounds.max()
    return mean if seen or _tells_variance(cells) else NAN


def censored_geometric_means(inside: CellBounds, outside: CellBounds) -> Contrast:
    """The same of logarithms: the log ratio of geometric means."""
    return of_logs(censored_means(logarithms(inside), logarithms(outside)))


def logarithms(cells: CellBounds) -> CellBounds:
    """Bounds on the log scale; zero is an open end."""
    with np.errstate(divide="ignore"):
        return CellBounds(np.log(cells.low), np.log(cells.high))


# --- times to an event ---


def log_hazard_ratio(inside: CellBounds, outside: CellBounds) -> Contrast:
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
    estimate = excess / variance
    effect = -estimate / SD_OF_LOG_HAZARD
    return Contrast(LOG_HAZARD_RATIO, len(inside), len(outside), *means, *_by_normal(estimate, variance**-0.5), effect)


def times_and_events(cells: CellBounds) -> tuple[np.ndarray, np.ndarray]:
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
    counts = crosstab(level, group).count
    if min(counts.shape) < 2:
        return Association("Cramér's V", NAN, NAN, NAN)
    test = stats.chi2_contingency(counts, correction=False)
    effect = association(counts, method="cramer")
    return Association("Cramér's V", float(effect), float(test.statistic), float(test.pvalue))


def kruskal_wallis(values: np.ndarray, group: np.ndarray) -> Association:
    """Kruskal–Wallis' H, ties corrected, and ε² = H / (n − 1), the share of the ranks' variance between groups."""
    names = np.unique(group)
    if len(names) < 2 or len(np.unique(values)) < 2:
        return Association("ε²", NAN, NAN, NAN)
    H, p = stats.kruskal(*(values[group == name] for name in names))
    return Association("ε²", float(H / (len(values) - 1)), float(H), float(p))


def censored_association(cells: CellBounds, group: np.ndarray) -> Association:
    """Likelihood ratio of normals with a mean per group against one mean, one variance; R² = 1 − exp(−χ²/n)."""
    known = _informative(cells)
    cells, (names, place) = cells[known], np.unique(group[known], return_inverse=True)
    fits = _one_mean_and_each(cells.low, cells.high, place) if len(names) > 1 else None
    if fits is None:
        return Association("R²", NAN, NAN, NAN)
    one, each = fits
    chi2 = float(max(0.0, 2 * (each.log_likelihood - one.log_likelihood)))
    return Association("R²", float(-np.expm1(-chi2 / len(cells))), chi2, float(stats.chi2.sf(chi2, len(names) - 1)))


def hazard_association(cells: CellBounds, group: np.ndarray) -> Association:
    """The log-rank test over all groups, and R² = 1 − exp(−χ² / events); NaN without events, which test nothing."""
    time, event = times_and_events(cells)
    chi2, _, p = log_rank(time, event, group)
    return Association("R²", float(-np.expm1(-chi2 / event.sum())), chi2, p)


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Adjusted p-values (q): the smallest false discovery rate at which each is called; NaN is left out."""
    q, known = np.full(len(p), np.nan), np.isfinite(p)
    q[known] = stats.false_discovery_control(p[known])
    return q
