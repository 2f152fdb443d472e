"""Two groups of cells compared: log odds, rate and hazard ratios, Welch's t, means of cells known up to limits.

Many p-values corrected. Plain NumPy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from plurigp.data.rows import Observed
from plurigp.study.findings.censored import (
    Group,
    Normals,
    determined,
    fit_normals,
    likelihood_interval,
    likelihood_ratio,
    one_sided_mean,
    open_side,
    shared_sd_likelihood,
)
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
    """Difference of means of cells of which some are known up to limits, as normals by maximum likelihood.

    Test and interval by the likelihood ratio, as t² = ν (e^{χ²/(ν+2)} − 1): without limits that is Student's t where
    the groups share a variance, and with their own ones Welch's test is taken itself. Each group has its own variance
    where both know enough values to tell one. Otherwise the variance would trade off against the mean, so they share
    it. A group known on one side only ("<0.5" throughout) has no finite mean by maximum likelihood: the interval is
    open there, and the estimate takes the mean at which such a group comes about every other time.

    `inside` and `outside` are NaN where a group with few values has its mean outside everything seen in it.
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


def _informative(cells: Observed) -> np.ndarray:
    return np.isfinite(cells.low) | np.isfinite(cells.high)


def _tells_variance(cells: Observed) -> bool:
    """Whether enough cells are known on both sides, or all of them."""
    n = int((np.isfinite(cells.low) & np.isfinite(cells.high)).sum())
    enough = n == len(cells) or n >= max(FEWEST_KNOWN, LEAST_KNOWN * len(cells))
    return enough and determined(cells.low, cells.high)


def _with_own_variances(counts: tuple[int, int], sides: Sequence[Observed], fits: Sequence[Normals]) -> Contrast:
    a, b = (Group.of(cells.low, cells.high, fit) for cells, fit in zip(sides, fits, strict=True))
    sizes = [len(cells) for cells in sides]
    unbiased = [n / (n - 1) for n in sizes]
    parts = [float(fit.covariance[0, 0]) * more for fit, more in zip(fits, unbiased, strict=True)]
    degrees, se = _satterthwaite(parts, sizes), float(np.sqrt(sum(parts)))
    sd = float(np.sqrt((a.sd**2 * unbiased[0] + b.sd**2 * unbiased[1]) / 2))

    def chi2(difference: float) -> float:
        return likelihood_ratio(a, b, difference)

    difference = a.mean - b.mean
    interval = likelihood_interval(chi2, difference, se, _critical(degrees), degrees > MANY)
    t, p = _t_of_likelihood(chi2(0.0), difference, degrees)
    return Contrast(MEAN_DIFFERENCE, *counts, a.mean, b.mean, difference, *interval, t, p, difference / sd)


def _with_one_variance(counts: tuple[int, int], inside: Observed, outside: Observed) -> Contrast:
    sides = [(cells.low, cells.high) for cells in (inside, outside)]
    low, high = (np.concatenate(bounds) for bounds in zip(*sides, strict=True))
    fits = _one_mean_and_each(low, high, np.repeat([0, 1], [len(inside), len(outside)]))
    if fits is None:
        return Contrast(MEAN_DIFFERENCE, *counts, *[NAN] * 8)
    one, each = fits
    open_sides = [open_side(*bounds) for bounds in sides]
    means = [
        one_sided_mean(*bounds, each.sd) if is_open else float(mean)
        for bounds, is_open, mean in zip(sides, open_sides, each.mean, strict=True)
    ]
    difference, degrees = means[0] - means[1], float(len(low) - 2)
    se = each.sd if any(open_sides) else float(np.sqrt(np.array([1, -1]) @ each.covariance @ np.array([1, -1])))
    log_likelihood = shared_sd_likelihood(*sides)

    def chi2(difference: float) -> float:
        return 2 * (each.log_likelihood - log_likelihood(difference))

    wald, unbounded = degrees > MANY and not any(open_sides), open_sides[0] - open_sides[1]
    interval = likelihood_interval(chi2, difference, se, _critical(degrees), wald, unbounded)
    t, p = _t_of_likelihood(2 * (each.log_likelihood - one.log_likelihood), difference, degrees)
    shown = _mean_if_seen(inside, means[0]), _mean_if_seen(outside, means[1])
    effect = difference / (each.sd * float(np.sqrt(len(low) / degrees)))
    return Contrast(MEAN_DIFFERENCE, *counts, *shown, difference, *interval, t, p, effect)


def _one_mean_and_each(low: np.ndarray, high: np.ndarray, group: np.ndarray) -> tuple[Normals, Normals] | None:
    """Normals of one variance with one mean and with one per group; None where the cells do not tell that variance."""
    if not determined(low, high) or len(low) <= group.max() + 1:
        return None
    one, each = (fit_normals(low, high, groups) for groups in (np.zeros_like(group), group))
    return (one, each) if one.found and each.sd >= 1e-3 * one.sd else None


def _t_of_likelihood(chi2: float, difference: float, degrees: float) -> tuple[float, float]:
    """Student's t that has the likelihood ratio of the same values without limits, and its p."""
    t = float(np.sign(difference) * np.sqrt(degrees * np.expm1(max(0.0, chi2) / (degrees + 2))))
    return t, float(2 * stats.t.sf(abs(t), degrees))


def _critical(degrees: float) -> float:
    """χ² of a t at the 5 % level."""
    return float((degrees + 2) * np.log1p(stats.t.ppf(0.975, degrees) ** 2 / degrees))


def _mean_if_seen(cells: Observed, mean: float) -> float:
    """NaN where few values tell the variance and the mean lies outside all bounds."""
    bounds = np.concatenate([cells.low, cells.high])
    bounds = bounds[np.isfinite(bounds)]
    seen = open_side(cells.low, cells.high) == 0 and bounds.min() <= mean <= bounds.max()
    return mean if seen or _tells_variance(cells) else NAN


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
    known = _informative(cells)
    cells, (names, place) = cells[known], np.unique(group[known], return_inverse=True)
    fits = _one_mean_and_each(cells.low, cells.high, place) if len(names) > 1 else None
    if fits is None:
        return Association("R²", NAN, NAN, NAN)
    one, each = fits
    chi2 = float(max(0.0, 2 * (each.log_likelihood - one.log_likelihood)))
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
