"""What distinguishes each subtype: column by column, with effect sizes, intervals and corrected tests."""

from collections.abc import Callable, Iterable, Sized
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from plurigp.answers.latent import positions
from plurigp.data import Column, Schema, to_rows
from plurigp.data.cells import level_numbers
from plurigp.data.kinds import EffectMeasure, kind_of
from plurigp.data.rows import CellBounds
from plurigp.estimator import PluriGP
from plurigp.study.findings import contrasts
from plurigp.study.findings.contrasts import Association, Contrast
from plurigp.study.findings.design import Design
from plurigp.study.findings.disclosure import MIN_COUNT, protected_counts, too_small
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.weighted import contrast_of_means, weighted_association, weighted_contrasts

Values = dict[str, CellBounds]  # per used column what is known of its cells
Groups = Callable[[str], np.ndarray]  # a column's name -> subtypes [N], 0 = left out
Lines = Iterable[tuple[str, Contrast]]  # the level that a line is about, or an empty text
Compare = Callable[[Column, CellBounds, np.ndarray, int, int], Lines]  # cells, their groups, one of these; `least`

MIN_CELLS = 5  # observed on either side; with fewer there is no line
NUMBERS = ("inside", "outside", "estimate", "low", "high", "statistic", "p", "effect")
WHOLE = ("subtype", "n_inside", "n_outside")
CHARACTERISTICS = ["rows", "subtype", "column", "kind", "level", "measure", *WHOLE[1:], *NUMBERS]
ASSOCIATIONS = ["rows", "column", "kind", "measure", "effect", "statistic", "p"]
MISSINGNESS = ["subtype", "column", *WHOLE[1:], *NUMBERS[:-1]]


def read_values(frame: pd.DataFrame, schema: Schema) -> Values:
    """The used columns in their own units, limits included."""
    rows = to_rows(frame)
    return {column.name: rows.observed(column) for column in schema.used}


def characteristic_frame(
    schema: Schema,
    values: Values,
    groups: Groups,
    K: int,
    rows: str,
    least: int = MIN_COUNT,
    sampled: Design | None = None,
) -> pd.DataFrame:
    """Every subtype against the rest, one line per column (per level of a category), q over all of them.

    No count of fewer than `least` rows is in it; a level that fewer have has no line. With a sampling design, estimates
    are weighted and errors count its clusters; n_inside and n_outside are rows all the same.
    """
    lines = [
        {"rows": rows, "subtype": k, "column": column.name, "kind": column.kind, "level": level, **asdict(contrast)}
        for column in schema.used
        for k in range(1, K + 1)
        for level, contrast in _contrasts(column, values[column.name], groups(column.name), k, least, sampled)
    ]
    return _with_q(pd.DataFrame(lines, columns=CHARACTERISTICS))


def _contrasts(
    column: Column, cells: CellBounds, group: np.ndarray, k: int, least: int, sampled: Design | None
) -> Lines:
    seen = cells.seen & (group > 0)
    if sampled is not None:
        seen = seen & (sampled.weights > 0)
    cells, group = cells[seen], group[seen]
    if not _enough(*_sides(cells, group, k)):
        return ()
    if sampled is not None:
        return _weighted(column, cells, group == k, sampled[seen], least)
    return CONTRASTS[kind_of(column).effect_measure](column, cells, group, k, least)


def _sides(cells: CellBounds, group: np.ndarray, k: int) -> tuple[CellBounds, CellBounds]:
    """Inside a subtype and outside."""
    return cells[group == k], cells[group != k]


def _weighted(column: Column, cells: CellBounds, inside: np.ndarray, sampled: Design, least: int) -> Lines:
    """As CONTRASTS, on a sampling design."""
    for score, contrast in weighted_contrasts(column, cells, inside, sampled):
        known = ~np.isnan(score.cells)
        if contrast.measure != contrasts.LOG_ODDS_RATIO:
            if _enough(score.cells[known & inside], score.cells[known & ~inside]):
                yield score.level, contrast
        else:
            yield from _weighted_odds(score.level, score.cells == 1, inside, contrast, least)


def _weighted_odds(level: str, says_yes: np.ndarray, inside: np.ndarray, contrast: Contrast, least: int) -> Lines:
    """The line, or none where a count is small: weights of so few rows would tell of single ones."""
    counts = [np.sum(says_yes[side] == yes) for side in (inside, ~inside) for yes in (True, False)]
    return [] if too_small(np.array(counts), least) else [(level, contrast)]


def _enough(*sides: Sized) -> bool:
    return min(map(len, sides)) >= MIN_CELLS


def _one_line(contrast: Callable[[CellBounds, CellBounds], Contrast]) -> Compare:
    return lambda column, cells, group, k, least: [("", contrast(*_sides(cells, group, k)))]


def _counts(places: np.ndarray, group: np.ndarray, n_levels: int, least: int) -> np.ndarray:
    """Rows by group and level [K L] as far as they may be shown."""
    counts = np.zeros((int(group.max()), n_levels), int)
    np.add.at(counts, (group - 1, places.astype(int)), 1)
    return protected_counts(counts, least)


def _odds_from(first: int) -> Compare:
    """One line per level, from the one at this place on: of two levels the second says it all."""

    def lines(column: Column, cells: CellBounds, group: np.ndarray, k: int, least: int) -> Lines:
        counts = _counts(cells.low, group, len(column.levels), least)
        for place, level in list(enumerate(column.levels))[first:]:
            yield from _odds(str(level), counts, place, k, least)

    return lines


def _odds(level: str, counts: np.ndarray, place: int, k: int, least: int) -> Lines:
    """One line, or none where it would rest on too few rows."""
    own, said = np.arange(1, len(counts) + 1) == k, np.arange(counts.shape[1]) == place
    inside, outside = (np.array([rows[:, ~said].sum(), rows[:, said].sum()]) for rows in (counts[own], counts[~own]))
    if too_small(np.concatenate([inside, outside]), least) or (inside + outside).min() < least:
        return []
    return [(level, contrasts.log_odds_ratio(np.repeat([0, 1], inside), np.repeat([0, 1], outside)))]


def _mean_level(column: Column, cells: CellBounds, group: np.ndarray, k: int, least: int) -> Lines:
    """Levels by their numbers where all are numbers, otherwise counted from 1."""
    numbers = level_numbers(column.levels)
    numbers = np.arange(1.0, len(numbers) + 1) if np.isnan(numbers).any() else numbers
    own = numbers[cells.low.astype(int)]
    yield "", contrasts.welch(own[group == k], own[group != k])


def _any_and_amount(column: Column, cells: CellBounds, group: np.ndarray, k: int, least: int) -> Lines:
    """Two parts: whether there is anything, and how much where there is, unless that would tell how few have none."""
    counts = _counts(cells.low > 0, group, 2, least)
    yield from _odds("any", counts, 1, k, least)
    amounts = [side.low[side.low > 0] for side in _sides(cells, group, k)]
    shown = [counts[k - 1, 1], counts[:, 1].sum() - counts[k - 1, 1]]
    if _enough(*amounts) and shown == list(map(len, amounts)):
        yield "amount", contrasts.welch_of_logs(*amounts)


CONTRASTS: dict[EffectMeasure, Compare] = {
    EffectMeasure.ODDS: _odds_from(1),
    EffectMeasure.LEVEL_ODDS: _odds_from(0),
    EffectMeasure.RATE: _one_line(lambda inside, outside: contrasts.log_rate_ratio(inside.low, outside.low)),
    EffectMeasure.MEAN: _one_line(contrasts.censored_means),  # Welch's t, without limits
    EffectMeasure.MEAN_LEVEL: _mean_level,
    EffectMeasure.LOG_MEAN: _one_line(contrasts.censored_geometric_means),
    EffectMeasure.ANY_AND_AMOUNT: _any_and_amount,
    EffectMeasure.CENSORED_MEAN: _one_line(contrasts.censored_means),
    EffectMeasure.CENSORED_LOG_MEAN: _one_line(contrasts.censored_geometric_means),
    EffectMeasure.HAZARD: _one_line(contrasts.log_hazard_ratio),
}


def association_frame(
    schema: Schema,
    values: Values,
    groups: Groups,
    rows: str,
    least: int = MIN_COUNT,
    sampled: Design | None = None,
) -> pd.DataFrame:
    """Every column against all subtypes at once, with weights and clusters if rows were sampled by a design.

    Levels go by counts that may be shown, since V is told to many digits.
    """
    lines: list[dict[str, Any]] = []
    for column in schema.used:
        cells, group = values[column.name], groups(column.name)
        seen = cells.seen & (group > 0)
        if sampled is not None:
            seen = seen & (sampled.weights > 0)
        if seen.any():
            found = (
                _association(kind_of(column).effect_measure, cells[seen], group[seen], least)
                if sampled is None
                else weighted_association(column, cells[seen], group[seen], sampled[seen])
            )
            lines.append({"rows": rows, "column": column.name, "kind": column.kind, **asdict(found)})
    return _with_q(pd.DataFrame(lines, columns=ASSOCIATIONS))


def _association(measure: EffectMeasure, cells: CellBounds, group: np.ndarray, least: int) -> Association:
    """Ranks for whatever is neither a level without order nor known up to limits."""
    match measure:
        case EffectMeasure.ODDS | EffectMeasure.LEVEL_ODDS:
            counts = _counts(cells.low, group, int(cells.low.max()) + 1, least)
            return contrasts.cramers_v(*(np.repeat(axis.ravel(), counts.ravel()) for axis in np.indices(counts.shape)))
        case EffectMeasure.CENSORED_MEAN:
            return contrasts.censored_association(cells, group)
        case EffectMeasure.CENSORED_LOG_MEAN:
            return contrasts.censored_association(contrasts.logarithms(cells), group)
        case EffectMeasure.HAZARD:
            return contrasts.hazard_association(cells, group)
        case _:
            return contrasts.kruskal_wallis(cells.low, group)


def missingness_frame(
    schema: Schema,
    values: Values,
    group: np.ndarray,
    K: int,
    least: int = MIN_COUNT,
    sampled: Design | None = None,
) -> pd.DataFrame:
    """Share of gaps inside and outside every subtype, with the log odds ratio of a gap."""
    lines = []
    grouped = group[group > 0]
    sizes = np.bincount(grouped, minlength=K + 1)[1:]
    for column in schema.used if len(grouped) else ():
        gap = ~values[column.name].seen
        counts = _counts(gap[group > 0], grouped, 2, least)
        for k in (np.flatnonzero(np.minimum(sizes, len(grouped) - sizes) >= MIN_CELLS) + 1).tolist():
            own = _odds("", counts, 1, k, least) if sampled is None else _weighted_gaps(gap, group, k, least, sampled)
            lines += [{"subtype": k, "column": column.name, **asdict(odds)} for _, odds in own]
    return _with_q(pd.DataFrame(lines, columns=MISSINGNESS))


def _weighted_gaps(gap: np.ndarray, group: np.ndarray, k: int, least: int, sampled: Design) -> Lines:
    members = (group > 0) & (sampled.weights > 0)
    inside, gap = group[members] == k, gap[members]
    if not _enough(gap[inside], gap[~inside]) or gap.all() or not gap.any():
        return []
    contrast = contrast_of_means(contrasts.LOG_ODDS_RATIO, gap.astype(float), inside, sampled[members])
    return _weighted_odds("", gap, inside, contrast, least)


def _with_q(frame: pd.DataFrame) -> pd.DataFrame:
    dtypes = dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(WHOLE, "int64")
    frame = frame.astype({name: dtypes[name] for name in frame.columns if name in dtypes})
    frame.insert(list(frame.columns).index("p") + 1, "q", contrasts.benjamini_hochberg(frame["p"].to_numpy(float)))
    return frame


def split_groups(model: PluriGP, frame: pd.DataFrame, mixture: Mixture) -> Groups:
    """Subtypes of rows that model and mixture never saw, for each column by the row's other columns alone.

    A row's position depends on its cells, so a test of those same cells would be circular even on unseen rows.
    """
    table, predictor = model.coder_.table(frame), model.predictor_
    names = [column.name for column in table.schema]

    @cache  # every subtype asks again
    def groups(name: str) -> np.ndarray:
        own = np.broadcast_to(np.array(names) == name, table.seen.shape)
        return memberships(mixture, *positions(predictor, table.hidden(own)))[0]

    return groups
