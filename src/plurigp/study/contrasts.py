"""Two groups of cells compared: log odds ratios, Welch's t, rate ratios; many p-values corrected. Plain NumPy."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

Z = float(stats.norm.ppf(0.975))


@dataclass(frozen=True)
class Contrast:
    """A difference between the cells inside and outside a group, its 95 % interval and test."""

    measure: str
    n_inside: int
    n_outside: int
    inside: float  # mean, share or geometric mean
    outside: float
    estimate: float
    low: float
    high: float
    statistic: float
    p: float
    effect: float  # standardised mean difference


def log_odds_ratio(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Of yes against no (1 and 0), half a row added to each of the four counts (Haldane–Anscombe), Wald interval."""
    a, c = float(inside.sum()), float(outside.sum())
    b, d = len(inside) - a, len(outside) - c
    counts = np.array([a, b, c, d]) + 0.5
    estimate = float(np.log(counts[0] * counts[3] / (counts[1] * counts[2])))
    return _wald("log odds ratio", inside, outside, estimate, float(np.sqrt((1 / counts).sum())))


def log_rate_ratio(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Of mean counts, half an event added to each side; the variances are the cells' own, so overdispersion counts."""
    means = [(cells.sum() + 0.5) / len(cells) for cells in (inside, outside)]
    variances = [max(cells.var(ddof=1), mean) / len(cells) / mean**2
                 for cells, mean in zip((inside, outside), means, strict=True)]  # fmt: skip
    estimate = float(np.log(means[0] / means[1]))
    return _wald("log rate ratio", inside, outside, estimate, float(np.sqrt(sum(variances))))


def _wald(measure: str, inside: np.ndarray, outside: np.ndarray, estimate: float, se: float) -> Contrast:
    return Contrast(
        measure,
        len(inside),
        len(outside),
        float(inside.mean()),
        float(outside.mean()),
        estimate,
        estimate - Z * se,
        estimate + Z * se,
        estimate / se,
        float(2 * stats.norm.sf(abs(estimate / se))),
        standardised_difference(inside, outside),
    )


def welch(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Difference of means with Welch's t and its interval; NaN where neither side varies."""
    difference = float(inside.mean() - outside.mean())
    parts = [cells.var(ddof=1) / len(cells) for cells in (inside, outside)]
    se = float(np.sqrt(sum(parts)))
    low = high = t = p = float("nan")
    if se > 0:
        degrees = sum(parts) ** 2 / sum(v**2 / (len(c) - 1) for v, c in zip(parts, (inside, outside), strict=True))
        t = difference / se
        p = float(2 * stats.t.sf(abs(t), degrees))
        reach = float(stats.t.ppf(0.975, degrees)) * se
        low, high = difference - reach, difference + reach
    return Contrast(
        "mean difference", len(inside), len(outside), float(inside.mean()), float(outside.mean()), difference,
        low, high, t, p, standardised_difference(inside, outside),
    )  # fmt: skip


def welch_of_logs(inside: np.ndarray, outside: np.ndarray) -> Contrast:
    """Welch's t of the logarithms: the log ratio of geometric means, for positive columns with a long tail."""
    c = welch(np.log(inside), np.log(outside))
    means = {"inside": float(np.exp(c.inside)), "outside": float(np.exp(c.outside))}
    return Contrast(**{**c.__dict__, "measure": "log ratio", **means})


def standardised_difference(inside: np.ndarray, outside: np.ndarray) -> float:
    """Difference of means over the root of the mean variance of the two groups; NaN where neither varies."""
    spread = np.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2)
    return float((inside.mean() - outside.mean()) / spread) if spread > 0 else float("nan")


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
        return Association("Cramér's V", float("nan"), float("nan"), float("nan"))
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    effect = float(np.sqrt(chi2 / counts.sum() / (min(counts.shape) - 1)))
    return Association("Cramér's V", effect, chi2, float(stats.chi2.sf(chi2, degrees)))


def kruskal_wallis(values: np.ndarray, group: np.ndarray) -> Association:
    """Kruskal–Wallis' H, ties corrected, and ε² = H / (n − 1), the share of the ranks' variance between groups."""
    names = np.unique(group)
    if len(names) < 2 or len(np.unique(values)) < 2:
        return Association("ε²", float("nan"), float("nan"), float("nan"))
    H, p = stats.kruskal(*(values[group == name] for name in names))
    return Association("ε²", float(H / (len(values) - 1)), float(H), float(p))


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Adjusted p-values (q): the smallest false discovery rate at which each is called; NaN is left out."""
    q = np.full(len(p), np.nan)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    raw = p[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    return q
