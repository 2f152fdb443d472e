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
from plurigp.study.findings.disclosure import MIN_COUNT, raised
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.weighted import contrast_of_means, weighted_association, weighted_contrasts

Values = dict[str, CellBounds]  # per used column what is known of its cells
Groups = Callable[[str], np.ndarray]  # a column's name -> subtypes [N], 0 = left out
Lines = Iterable[tuple[str, Contrast]]  # the level that a line is about, or an empty text
Compare = Callable[[Column, CellBounds, CellBounds, int], Lines]  # cells inside a subtype with those outside; `least`

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

    Counts of fewer than `least` rows are raised to it; a level that fewer have has no line. With a sampling design,
    estimates are weighted and errors count its clusters; n_inside and n_outside are rows all the same.
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
    inside, outside = cells[seen & (group == k)], cells[seen & (group != k)]
    if not _enough(inside, outside):
        return ()
    if sampled is not None:
        return _weighted(column, cells[seen], group[seen] == k, sampled[seen], least)
    return CONTRASTS[kind_of(column).effect_measure](column, inside, outside, least)


def _weighted(column: Column, cells: CellBounds, inside: np.ndarray, sampled: Design, least: int) -> Lines:
    """As CONTRASTS, on a sampling design; a share that rests on few rows is compared by its raised counts."""
    for score, contrast in weighted_contrasts(column, cells, inside, sampled):
        known = ~np.isnan(score.cells)
        if contrast.measure != contrasts.LOG_ODDS_RATIO:
            if _enough(score.cells[known & inside], score.cells[known & ~inside]):
                yield score.level, contrast
        else:
            yield from _weighted_odds(score.level, score.cells == 1, inside, contrast, least)


def _weighted_odds(level: str, says_yes: np.ndarray, inside: np.ndarray, contrast: Contrast, least: int) -> Lines:
    """The line as it is where no count was raised; otherwise of the raised counts, without weights."""
    sides = says_yes[inside], says_yes[~inside]
    shown = raised(*sides, least)
    if shown is None:
        return []
    same = all(len(a) == len(b) and a.sum() == b.sum() for a, b in zip(shown, sides, strict=True))
    return [(level, contrast if same else contrasts.log_odds_ratio(*shown))]


def _enough(*sides: Sized) -> bool:
    return min(map(len, sides)) >= MIN_CELLS


def _one_line(contrast: Callable[[CellBounds, CellBounds], Contrast]) -> Compare:
    return lambda column, inside, outside, least: [("", contrast(inside, outside))]


def _odds_from(first: int) -> Compare:
    """One line per level, from the one at this place on: of two levels the second says it all."""

    def lines(column: Column, inside: CellBounds, outside: CellBounds, least: int) -> Lines:
        for place, level in list(enumerate(column.levels))[first:]:
            yield from _odds(str(level), inside.low == place, outside.low == place, least)

    return lines


def _odds(level: str, inside: np.ndarray, outside: np.ndarray, least: int) -> Lines:
    """One line, or none where it would rest on too few rows."""
    shown = raised(inside, outside, least)
    return [] if shown is None else [(level, contrasts.log_odds_ratio(*shown))]


def _mean_level(column: Column, inside: CellBounds, outside: CellBounds, least: int) -> Lines:
    """Levels by their numbers where all are numbers, otherwise counted from 1."""
    numbers = level_numbers(column.levels)
    numbers = np.arange(1.0, len(numbers) + 1) if np.isnan(numbers).any() else numbers
    yield "", contrasts.welch(numbers[inside.low.astype(int)], numbers[outside.low.astype(int)])


def _any_and_amount(column: Column, inside: CellBounds, outside: CellBounds, least: int) -> Lines:
    """Two parts: whether there is anything, and how much where there is."""
    yield from _odds("any", inside.low > 0, outside.low > 0, least)
    amounts = inside.low[inside.low > 0], outside.low[outside.low > 0]
    if _enough(*amounts):
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
    schema: Schema, values: Values, groups: Groups, rows: str, sampled: Design | None = None
) -> pd.DataFrame:
    """Every column against all subtypes at once, with weights and clusters if rows were sampled by a design."""
    lines: list[dict[str, Any]] = []
    for column in schema.used:
        cells, group = values[column.name], groups(column.name)
        seen = cells.seen & (group > 0)
        if sampled is not None:
            seen = seen & (sampled.weights > 0)
        if seen.any():
            found = (
                _association(kind_of(column).effect_measure, cells[seen], group[seen])
                if sampled is None
                else weighted_association(column, cells[seen], group[seen], sampled[seen])
            )
            lines.append({"rows": rows, "column": column.name, "kind": column.kind, **asdict(found)})
    return _with_q(pd.DataFrame(lines, columns=ASSOCIATIONS))


def _association(measure: EffectMeasure, cells: CellBounds, group: np.ndarray) -> Association:
    """Ranks for whatever is neither a level without order nor known up to limits."""
    match measure:
        case EffectMeasure.ODDS | EffectMeasure.LEVEL_ODDS:
            return contrasts.cramers_v(cells.low, group)
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
    """Share of gaps inside and outside every subtype, with the log odds ratio of a gap; small counts are raised."""
    lines = []
    for column in schema.used:
        gap = ~values[column.name].seen
        if 0 < gap.sum() < len(gap):
            for k in range(1, K + 1):
                for _, odds in _odds_of_gaps(gap, group, k, least, sampled):
                    lines.append({"subtype": k, "column": column.name, **asdict(odds)})
    return _with_q(pd.DataFrame(lines, columns=MISSINGNESS))


def _odds_of_gaps(gap: np.ndarray, group: np.ndarray, k: int, least: int, sampled: Design | None) -> Lines:
    members = (group > 0) if sampled is None else (group > 0) & (sampled.weights > 0)
    sides = gap[members & (group == k)], gap[members & (group != k)]
    if not _enough(*sides):
        return []
    if sampled is None:
        return _odds("", *sides, least)
    inside, measure = group[members] == k, contrasts.LOG_ODDS_RATIO
    contrast = contrast_of_means(measure, gap[members].astype(float), inside, sampled[members])
    return _weighted_odds("", gap[members], inside, contrast, least)


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
