"""Groups of weighted or repeated rows compared, kind by kind: the contrasts of `characterise` on a sampling design."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from plurigp.data import Column
from plurigp.data.cells import level_numbers
from plurigp.data.kinds import EffectMeasure, kind_of
from plurigp.data.rows import CellBounds
from plurigp.study.findings import contrasts, design
from plurigp.study.findings.censored import fit_normals
from plurigp.study.findings.contrasts import Association, Contrast
from plurigp.study.findings.design import Design, Wald
from plurigp.study.findings.survival import one_step_hazards, weighted_median_time

NAN = float("nan")
LIMITED = (EffectMeasure.CENSORED_MEAN, EffectMeasure.CENSORED_LOG_MEAN)


class Score(NamedTuple):
    """What is averaged of a column's cells [n], NaN where a cell says nothing of it, and what of it is compared."""

    level: str
    measure: str
    cells: Float[np.ndarray, " n"]


def column_scores(column: Column, cells: CellBounds) -> list[Score]:
    """The averages by which a column is compared; of cells with limits, those that are values."""
    low, kind = cells.low, kind_of(column).effect_measure
    match kind:
        case EffectMeasure.ODDS | EffectMeasure.LEVEL_ODDS:
            levels = list(enumerate(column.levels))[1 if kind is EffectMeasure.ODDS else 0 :]
            return [Score(str(level), contrasts.LOG_ODDS_RATIO, (low == k).astype(float)) for k, level in levels]
        case EffectMeasure.RATE:
            return [Score("", contrasts.LOG_RATE_RATIO, low)]
        case EffectMeasure.MEAN_LEVEL:
            return [Score("", contrasts.MEAN_DIFFERENCE, _numbers_of_levels(column)[low.astype(int)])]
        case EffectMeasure.ANY_AND_AMOUNT:
            amount = np.log(np.where(low > 0, low, np.nan))
            odds = Score("any", contrasts.LOG_ODDS_RATIO, (low > 0).astype(float))
            return [odds, Score("amount", contrasts.LOG_RATIO, amount)]
        case EffectMeasure.LOG_MEAN | EffectMeasure.CENSORED_LOG_MEAN:
            return [Score("", contrasts.LOG_RATIO, contrasts.logarithms(cells).low)]
        case _:
            return [Score("", contrasts.MEAN_DIFFERENCE, low)]


def _numbers_of_levels(column: Column) -> np.ndarray:
    """Levels by their numbers where all are numbers, otherwise counted from 1."""
    numbers = level_numbers(column.levels)
    return np.arange(1.0, len(numbers) + 1) if np.isnan(numbers).any() else numbers


# --- two groups ---


def weighted_contrasts(
    column: Column, cells: CellBounds, inside: np.ndarray, sampled: Design
) -> Iterator[tuple[Score, Contrast]]:
    """Observed cells inside a group (True) against the others, with weights and clusters."""
    kind, counts = kind_of(column).effect_measure, (int(inside.sum()), int((~inside).sum()))
    if kind is EffectMeasure.HAZARD:
        yield Score("", contrasts.LOG_HAZARD_RATIO, cells.low), _hazard_ratio(cells, inside, sampled, counts)
        return
    if kind in LIMITED and not cells.exact.all():
        of_logs = kind is EffectMeasure.CENSORED_LOG_MEAN
        compared = _limited_means(contrasts.logarithms(cells) if of_logs else cells, inside, sampled, counts)
        measure = contrasts.LOG_RATIO if of_logs else contrasts.MEAN_DIFFERENCE
        yield Score("", measure, cells.low), contrasts.of_logs(compared) if of_logs else compared
        return
    for score in column_scores(column, cells):
        known = ~np.isnan(score.cells)
        found = contrast_of_means(score.measure, score.cells[known], inside[known], sampled[known])
        yield score, found


def contrast_of_means(measure: str, z: np.ndarray, inside: np.ndarray, sampled: Design) -> Contrast:
    """A difference of weighted means, or of their logarithms or log odds, by linearisation; Welch's degrees of freedom.

    Shares and rates get half a row, and a variance of at least as many independent rows.
    """
    counts = int(inside.sum()), int((~inside).sum())
    found = design.group_means(z[:, None], (~inside).astype(int), sampled)
    mean, covariance = found.mean[:, 0], found.covariance[:, 0, :, 0]
    sides = [(z[side], sampled.weights[side]) for side in (inside, ~inside)]
    at, slope, least = np.array([_linked(measure, m, w) for m, (_, w) in zip(mean, sides, strict=True)]).T
    covariance = covariance + np.diag(np.maximum(least - np.diagonal(covariance), 0.0))
    variance = float(np.array([slope[0], -slope[1]]) @ covariance @ np.array([slope[0], -slope[1]]))
    own = slope**2 * np.diagonal(covariance)
    degrees = float(own.sum() ** 2 / max((own**2 / np.maximum(found.n_clusters - 1, 1)).sum(), 1e-300))
    spread = np.sqrt(np.mean([design.weighted_var(*side) for side in sides]))
    effect = float((mean[0] - mean[1]) / spread) if spread > 0 else NAN
    told = found.n_clusters.min() > 1
    tested = _by_student(float(at[0] - at[1]), variance if told else 0.0, degrees)
    contrast = Contrast(measure, *counts, float(mean[0]), float(mean[1]), *tested, effect)
    return contrasts.of_logs(contrast) if measure == contrasts.LOG_RATIO else contrast


def _linked(measure: str, mean: float, w: np.ndarray) -> tuple[float, float, float]:
    """A mean on the scale of its contrast, the slope of that scale, and the least variance of the mean."""
    n = design.effective_rows(w)
    if measure == contrasts.LOG_ODDS_RATIO:
        share = (mean * n + 0.5) / (n + 1)
        return float(np.log(share / (1 - share))), 1 / (share * (1 - share)), share * (1 - share) / (n + 1)
    if measure == contrasts.LOG_RATE_RATIO:
        rate = mean + 0.5 / n
        return float(np.log(rate)), 1 / rate, rate / n
    return mean, 1.0, 0.0


def _by_student(estimate: float, variance: float, degrees: float) -> tuple[float, float, float, float, float]:
    """The estimate, its 95 % interval, t and p; NaN where nothing varies."""
    if not variance > 0:
        return estimate, NAN, NAN, NAN, NAN
    se = float(np.sqrt(variance))
    half = float(stats.t.ppf(0.975, degrees)) * se
    t = estimate / se
    return estimate, estimate - half, estimate + half, t, float(2 * stats.t.sf(abs(t), degrees))


def _limited_means(cells: CellBounds, inside: np.ndarray, sampled: Design, counts: tuple[int, int]) -> Contrast:
    """Means of weighted normals with one sd, fitted to cells with limits; their difference by the jackknife."""
    normals = _weighted_normals(cells, (~inside).astype(int))
    found = design.jackknife(lambda w: _against_last(normals(w)[:-1]), sampled)
    inner, outer, sd = normals(sampled.weights).tolist()
    difference, variance = float(found.estimate[0]), float(found.covariance[0, 0])
    tested = _by_student(difference, variance, max(found.degrees, 1.0))
    return Contrast(contrasts.MEAN_DIFFERENCE, *counts, inner, outer, *tested, difference / sd)


def _weighted_normals(cells: CellBounds, group: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """From weights to the groups' means and their sd [G + 1]; NaN where cells do not tell them."""
    informative = np.isfinite(cells.low) | np.isfinite(cells.high)
    G = int(group.max()) + 1

    def normals(w: np.ndarray) -> np.ndarray:
        kept = informative & (w > 0)
        if len(np.unique(group[kept])) < G:
            return np.full(G + 1, NAN)
        found = fit_normals(cells.low[kept], cells.high[kept], group[kept], w[kept])
        return np.append(found.mean, found.sd) if found.found else np.full(G + 1, NAN)

    return normals


def _hazard_ratio(cells: CellBounds, inside: np.ndarray, sampled: Design, counts: tuple[int, int]) -> Contrast:
    """Peto's one-step estimate with weighted events and rows at risk; inside and outside are median times."""
    time, event = contrasts.times_and_events(cells)
    ratio = one_step_hazards(time, event, (~inside).astype(int))
    found = design.jackknife(ratio, sampled)
    sides = [(time[side], event[side], sampled.weights[side]) for side in (inside, ~inside)]
    inner, outer = (weighted_median_time(*side) for side in sides)
    tested = _by_student(float(found.estimate[0]), float(found.covariance[0, 0]), max(found.degrees, 1.0))
    effect = -float(found.estimate[0]) / contrasts.SD_OF_LOG_HAZARD
    return Contrast(contrasts.LOG_HAZARD_RATIO, *counts, inner, outer, *tested, effect)


# --- all groups at once ---


def weighted_association(column: Column, cells: CellBounds, group: np.ndarray, sampled: Design) -> Association:
    """One column against all groups: Cramér's V of weighted shares, the share of the ranks' variance between groups,
    or of cells with limits and of times the test alone."""
    kind, place = kind_of(column).effect_measure, np.unique(group, return_inverse=True)[1]
    test = groups_differ(column, cells, place, sampled)
    if kind in (EffectMeasure.ODDS, EffectMeasure.LEVEL_ODDS):
        return Association("Cramér's V", _cramers_v(cells.low, place, sampled.weights), *test)
    if kind is EffectMeasure.HAZARD or not cells.exact.all():
        return Association("R²", NAN, *test)
    ranks = design.mid_ranks(cells.low, sampled.weights)
    return Association("ε²", _share_between(ranks, place, sampled.weights), *test)


def groups_differ(
    column: Column, cells: CellBounds, group: Int[np.ndarray, " n"], sampled: Design, means: bool = False
) -> Wald:
    """Whether the groups 0 … G−1 differ: in shares of levels, in mean ranks or, if so asked, in means."""
    kind = kind_of(column).effect_measure
    if group.max() < 1:
        return design.UNTESTED
    if kind is EffectMeasure.HAZARD:
        time, event = contrasts.times_and_events(cells)
        return design.jackknife_test(one_step_hazards(time, event, group), sampled)
    if not cells.exact.all():
        limited = contrasts.logarithms(cells) if kind is EffectMeasure.CENSORED_LOG_MEAN else cells
        normals = _weighted_normals(limited, group)
        return design.jackknife_test(lambda w: _against_last(normals(w)[:-1]), sampled)
    if kind in (EffectMeasure.ODDS, EffectMeasure.LEVEL_ODDS):
        scores = (cells.low[:, None] == np.arange(1, len(column.levels))).astype(float)
    else:
        scores = (cells.low if means else design.mid_ranks(cells.low, sampled.weights))[:, None]
    return design.equal_means(scores, group, sampled)


def _against_last(means: np.ndarray) -> np.ndarray:
    return means[:-1] - means[-1]


def _cramers_v(level: np.ndarray, group: np.ndarray, w: np.ndarray) -> float:
    shares = np.zeros((int(level.max()) + 1, int(group.max()) + 1))
    np.add.at(shares, (level.astype(int), group), w / w.sum())
    shares = shares[shares.any(1)]
    smaller = min(shares.shape) - 1
    expected = np.outer(shares.sum(1), shares.sum(0))
    return float(np.sqrt(((shares - expected) ** 2 / expected).sum() / smaller)) if smaller else NAN


def _share_between(z: np.ndarray, group: np.ndarray, w: np.ndarray) -> float:
    """Of the weighted variance of z."""
    total = np.bincount(group, w)
    means = np.bincount(group, w * z) / total
    whole = float(np.average((z - np.average(z, weights=w)) ** 2, weights=w))
    between = float(np.average((means - np.average(z, weights=w)) ** 2, weights=total))
    return between / whole if whole > 0 else NAN
