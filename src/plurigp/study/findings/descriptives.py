"""The figures of a Table 1: counts, means or medians of every group, standardised differences and named tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import stats

from plurigp.data import Column
from plurigp.data.kinds import EffectMeasure, kind_of
from plurigp.data.rows import CellBounds
from plurigp.study.findings import contrasts, design
from plurigp.study.findings.design import Design
from plurigp.study.findings.survival import log_rank, median_time, weighted_median_time
from plurigp.study.findings.weighted import groups_differ, weighted_contrasts

NAN = float("nan")
FEW_EXPECTED = 5  # counts below which χ² is rough
WELCH, ANOVA, KRUSKAL = "Welch's t", "one-way ANOVA", "Kruskal–Wallis"
CHI2, FISHER = "χ²", "Fisher's exact"
ROUGH_CHI2 = f"χ² (expected counts below {FEW_EXPECTED})"
CENSORED, LOG_RANK = "likelihood ratio of censored normals", "log-rank"
WALD, RANK_WALD, JACKKNIFE = "design-based Wald", "design-based rank", "design-based, jackknife"
QUARTILES = (0.25, 0.5, 0.75)


class Description(StrEnum):
    """How the cells of a group are described."""

    YES = "n (%) of yes"
    LEVELS = "n (%) of each level"
    MEAN = "mean (SD)"
    MEDIAN = "median [Q1, Q3]"
    TIME = "median time"


DESCRIPTIONS: dict[EffectMeasure, Description] = {
    EffectMeasure.ODDS: Description.YES,
    EffectMeasure.LEVEL_ODDS: Description.LEVELS,
    EffectMeasure.MEAN_LEVEL: Description.LEVELS,
    EffectMeasure.MEAN: Description.MEAN,
    EffectMeasure.RATE: Description.MEDIAN,
    EffectMeasure.LOG_MEAN: Description.MEDIAN,
    EffectMeasure.ANY_AND_AMOUNT: Description.MEDIAN,
    EffectMeasure.CENSORED_MEAN: Description.MEDIAN,
    EffectMeasure.CENSORED_LOG_MEAN: Description.MEDIAN,
    EffectMeasure.HAZARD: Description.TIME,
}


class Quantile(NamedTuple):
    """A quantile of cells of which some are known up to limits lies between these two."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class GroupFigures:
    """One column in one group of rows."""

    n: int  # observed cells
    missing: int
    counts: tuple[int, ...] = ()  # of each level
    shares: tuple[float, ...] = ()  # of each level among the observed cells, weighted where rows are
    mean: float = NAN
    sd: float = NAN
    quantiles: tuple[Quantile, ...] = ()  # first quartile, median, third
    median_time: float = NAN
    events: int = 0


@dataclass(frozen=True, eq=False)
class ColumnFigures:
    """One column: everybody, every group, and how the groups differ."""

    column: Column
    description: Description
    overall: GroupFigures
    groups: tuple[GroupFigures, ...]
    smd: float  # second less first; the largest one between any two of several groups
    test: str
    p: float


def describe_column(
    column: Column,
    cells: CellBounds,
    group: np.ndarray,
    n_groups: int,
    description: Description | None = None,
    tested: bool = True,
    sampled: Design | None = None,
) -> ColumnFigures:
    """The figures of one column; `group` [N] is 0 for rows in no group, which count in none of them.

    Two groups or more are tested where each has a cell and not all cells are alike. On a sampling design all but the
    counts of rows is weighted, and tests count clusters.
    """
    how = description or DESCRIPTIONS[kind_of(column).effect_measure]
    seen = cells.seen & (group > 0)
    own_rows = [seen & (group == k) for k in range(1, n_groups + 1)]
    missing = [int((~cells.seen & (group == k)).sum()) for k in range(1, n_groups + 1)]
    described = tuple(_figures(column, how, cells, own, n, sampled) for own, n in zip(own_rows, missing, strict=True))
    overall = _figures(column, how, cells, seen, int((~cells.seen & (group > 0)).sum()), sampled)
    test, p = "", NAN
    members = [cells[own] for own in own_rows]
    filled = [own for own in members if len(own)]
    if tested and len(filled) > 1:
        if sampled is None:
            test, p = _tested(column, how, filled)
        else:
            test, p = _tested_by_design(column, how, cells[seen], group[seen], sampled[seen])
    if sampled is None:
        smd = _largest([_smd(column, how, a, b) for a, b in combinations(members, 2) if min(len(a), len(b)) > 1])
    else:
        pairs = combinations(own_rows, 2)
        smd = _largest(
            [_weighted_smd(column, how, cells, a, b, sampled) for a, b in pairs if min(a.sum(), b.sum()) > 1]
        )
    return ColumnFigures(column, how, overall, described, smd if n_groups == 2 else abs(smd), test, p)


def _figures(
    column: Column, how: Description, cells: CellBounds, rows: np.ndarray, missing: int, sampled: Design | None
) -> GroupFigures:
    own, n = cells[rows], int(rows.sum())
    w = np.ones(n) if sampled is None or sampled.equal else sampled.weights[rows]
    equal = bool(np.ptp(w) == 0) if n else True
    if not w.any():
        return GroupFigures(n, missing, (0,) * len(column.levels), (NAN,) * len(column.levels))
    if how in (Description.YES, Description.LEVELS):
        counts = np.bincount(own.low.astype(int), minlength=len(column.levels))
        shares = np.bincount(own.low.astype(int), w, len(column.levels)) / w.sum()
        return GroupFigures(n, missing, tuple(counts.tolist()), tuple(shares.tolist()))
    if how is Description.TIME:
        time, event = contrasts.times_and_events(own)
        median = median_time(time, event) if equal else weighted_median_time(time, event, w)
        return GroupFigures(n, missing, median_time=median, events=int(event.sum()))
    mean, sd = float(np.average(own.low, weights=w)), float(np.sqrt(design.weighted_var(own.low, w)))
    ends = _finite_ends(_opened(column, own))
    bounds = [np.quantile(z, QUARTILES).tolist() if equal else design.quantiles(z, w, QUARTILES) for z in ends]
    return GroupFigures(n, missing, (), (), mean, sd, tuple(map(Quantile, *bounds)))


def _opened(column: Column, cells: CellBounds) -> CellBounds:
    """A lower bound of zero says nothing of a positive value."""
    says_nothing = kind_of(column).positive & (cells.low == 0)
    return CellBounds(np.where(says_nothing, -np.inf, cells.low), cells.high)


def _finite_ends(cells: CellBounds) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds; quantiles interpolate, which an infinite end would spoil beyond its own place."""
    largest = np.finfo(float).max / 4
    return np.clip(cells.low, -largest, largest), np.clip(cells.high, -largest, largest)


def is_known(quantile: Quantile) -> bool:
    """Whether limits leave the quantile as it is."""
    return quantile.low == quantile.high


# --- standardised differences ---


def _largest(found: Sequence[float]) -> float:
    return max((value for value in found if not np.isnan(value)), key=abs, default=NAN)


def _weighted_smd(
    column: Column, how: Description, cells: CellBounds, first: np.ndarray, second: np.ndarray, sampled: Design
) -> float:
    """As `_smd`, second less first, with weighted shares, means and variances."""
    w = sampled.weights
    if not (w[first].any() and w[second].any()):
        return NAN
    if how in (Description.YES, Description.LEVELS):
        K = len(column.levels)
        shares = [np.bincount(cells.low[own].astype(int), w[own], K)[1:] / w[own].sum() for own in (first, second)]
        return contrasts.standardised_difference_of_shares(*shares)
    both = first | second
    if how is Description.TIME or not cells.exact[both].all():
        ((_, contrast),) = weighted_contrasts(column, cells[both], second[both], sampled[both])
        return contrast.effect
    sides = [(cells.low[own], w[own]) for own in (first, second)]
    spread = float(np.sqrt(np.mean([design.weighted_var(*side) for side in sides])))
    low, high = (float(np.average(z, weights=own)) for z, own in sides)
    return (high - low) / spread if spread > 0 else NAN


def _smd(column: Column, how: Description, first: CellBounds, second: CellBounds) -> float:
    if how is Description.YES:
        return contrasts.standardised_difference_of_shares(*(np.array([own.low.mean()]) for own in (first, second)))
    if how is Description.LEVELS:
        K = len(column.levels)
        shares = [np.bincount(own.low.astype(int), minlength=K)[1:] / len(own) for own in (first, second)]
        return contrasts.standardised_difference_of_shares(*shares)
    if how is Description.TIME:
        return contrasts.log_hazard_ratio(second, first).effect
    if not (first.exact.all() and second.exact.all()):
        return contrasts.censored_means(second, first).effect
    return contrasts.standardised_difference(second.low, first.low)


# --- tests ---


def _tested(column: Column, how: Description, members: Sequence[CellBounds]) -> tuple[str, float]:
    """The test's name and p; an empty name where nothing varies."""
    cells = CellBounds(*(np.concatenate([getattr(own, end) for own in members]) for end in ("low", "high")))
    group = np.repeat(np.arange(len(members)), [len(own) for own in members])
    if not (np.ptp(_finite_ends(cells)[0]) > 0 or np.ptp(_finite_ends(cells)[1]) > 0):
        return "", NAN
    if how is Description.TIME:
        time, event = contrasts.times_and_events(cells)
        return (LOG_RANK, log_rank(time, event, group)[2]) if event.any() else ("", NAN)
    if kind_of(column).effect_measure in (EffectMeasure.ODDS, EffectMeasure.LEVEL_ODDS):
        return _tested_levels(column, members)
    if not cells.exact.all():
        return CENSORED, contrasts.censored_association(cells, group).p
    if how is Description.MEAN:
        return _tested_means([own.low for own in members])
    return KRUSKAL, contrasts.kruskal_wallis(cells.low, group).p


def _tested_by_design(
    column: Column, how: Description, cells: CellBounds, group: np.ndarray, sampled: Design
) -> tuple[str, float]:
    """Wald's F of weighted means, shares or ranks, or of jackknifed normals and hazards; the name says which."""
    counted = sampled.weights > 0
    place = np.unique(group[counted], return_inverse=True)[1]
    found = groups_differ(column, cells[counted], place, sampled[counted], means=how is Description.MEAN)
    if np.isnan(found.p):
        return "", NAN
    by_jackknife = how is Description.TIME or not cells.exact.all()
    of_shares = kind_of(column).effect_measure in (EffectMeasure.ODDS, EffectMeasure.LEVEL_ODDS)
    ranked = not of_shares and how is not Description.MEAN
    return (JACKKNIFE if by_jackknife else RANK_WALD if ranked else WALD), found.p


def _tested_means(members: Sequence[np.ndarray]) -> tuple[str, float]:
    if min(map(len, members)) < 2 or max(own.std() for own in members) == 0:
        return "", NAN
    if len(members) == 2:
        return WELCH, contrasts.welch(*members).p
    return ANOVA, float(stats.f_oneway(*members).pvalue)


def _tested_levels(column: Column, members: Sequence[CellBounds]) -> tuple[str, float]:
    """χ², with Yates' correction for two by two; Fisher's test there if a count is small."""
    counts = np.stack([np.bincount(own.low.astype(int), minlength=len(column.levels)) for own in members])
    counts = counts[:, counts.any(0)]
    test = stats.chi2_contingency(counts)
    few = test.expected_freq.min() < FEW_EXPECTED
    if counts.shape == (2, 2) and (few or counts.min() < FEW_EXPECTED):
        return FISHER, float(stats.fisher_exact(counts).pvalue)
    return (ROUGH_CHI2 if few else CHI2), float(test.pvalue)
