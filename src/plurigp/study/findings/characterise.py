"""What distinguishes each subtype: column by column, with effect sizes, intervals and corrected tests."""

from collections.abc import Callable, Iterator, Sized
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from plurigp.answers.latent import positions
from plurigp.data import Column, Schema, to_rows
from plurigp.data.cells import level_numbers
from plurigp.data.kinds import EffectMeasure, kind_of
from plurigp.data.rows import Observed
from plurigp.estimator import PluriGP
from plurigp.study.findings.contrasts import (
    Association,
    Contrast,
    benjamini_hochberg,
    censored_association,
    censored_geometric_means,
    censored_means,
    cramers_v,
    hazard_association,
    kruskal_wallis,
    log_hazard_ratio,
    log_odds_ratio,
    log_rate_ratio,
    logarithms,
    welch,
    welch_of_logs,
)
from plurigp.study.findings.mixture import Mixture, memberships

Values = dict[str, Observed]  # per used column what is known of its cells
Groups = Callable[[str], np.ndarray]  # a column's name -> subtypes [N], 0 = left out
Lines = Iterator[tuple[str, Contrast]]  # the level that a line is about, or an empty text

FEWEST = 5  # observed cells on either side, below which nothing is said


def read_values(frame: pd.DataFrame, schema: Schema) -> Values:
    """The used columns in their own units, limits included."""
    rows = to_rows(frame)
    return {column.name: rows.observed(column) for column in schema.used}


def characteristics(schema: Schema, values: Values, groups: Groups, K: int, rows: str) -> pd.DataFrame:
    """Every subtype against the rest, one line per column (per level of a category), q over all of them."""
    lines = [
        {"rows": rows, "subtype": k, "column": column.name, "kind": column.kind, "level": level, **asdict(contrast)}
        for column in schema.used
        for k in range(1, K + 1)
        for level, contrast in _contrasts(column, values[column.name], groups(column.name), k)
    ]
    return _with_q(pd.DataFrame(lines, columns=CHARACTERISTICS))


def _contrasts(column: Column, cells: Observed, group: np.ndarray, k: int) -> Lines:
    seen = cells.seen & (group > 0)
    inside, outside = cells[seen & (group == k)], cells[seen & (group != k)]
    if _enough(inside, outside):
        yield from CONTRASTS[kind_of(column).effect_measure](column, inside, outside)


def _enough(*sides: Sized) -> bool:
    return min(map(len, sides)) >= FEWEST


def _odds(column: Column, inside: Observed, outside: Observed) -> Lines:
    yield str(column.levels[1]), log_odds_ratio(inside.low, outside.low)


def _level_odds(column: Column, inside: Observed, outside: Observed) -> Lines:
    for place, level in enumerate(column.levels):
        yield str(level), log_odds_ratio((inside.low == place).astype(float), (outside.low == place).astype(float))


def _rate(column: Column, inside: Observed, outside: Observed) -> Lines:
    yield "", log_rate_ratio(inside.low, outside.low)


def _mean(column: Column, inside: Observed, outside: Observed) -> Lines:
    yield "", welch(inside.low, outside.low)


def _mean_level(column: Column, inside: Observed, outside: Observed) -> Lines:
    """Levels by their numbers where all are numbers, otherwise counted from 1."""
    numbers = level_numbers(column.levels)
    numbers = np.arange(1.0, len(numbers) + 1) if np.isnan(numbers).any() else numbers
    yield "", welch(numbers[inside.low.astype(int)], numbers[outside.low.astype(int)])


def _log_mean(column: Column, inside: Observed, outside: Observed) -> Lines:
    yield "", welch_of_logs(inside.low, outside.low)


def _any_and_amount(column: Column, inside: Observed, outside: Observed) -> Lines:
    """Two parts: whether there is anything, and how much where there is."""
    yield "any", log_odds_ratio((inside.low > 0).astype(float), (outside.low > 0).astype(float))
    amounts = inside.low[inside.low > 0], outside.low[outside.low > 0]
    if _enough(*amounts):
        yield "amount", welch_of_logs(*amounts)


def _censored_mean(column: Column, inside: Observed, outside: Observed) -> Lines:
    yield "", censored_means(inside, outside)


def _censored_log_mean(column: Column, inside: Observed, outside: Observed) -> Lines:
    yield "", censored_geometric_means(inside, outside)


def _hazard(column: Column, inside: Observed, outside: Observed) -> Lines:
    yield "", log_hazard_ratio(inside, outside)


CONTRASTS: dict[EffectMeasure, Callable[[Column, Observed, Observed], Lines]] = {
    EffectMeasure.ODDS: _odds,
    EffectMeasure.LEVEL_ODDS: _level_odds,
    EffectMeasure.RATE: _rate,
    EffectMeasure.MEAN: _mean,
    EffectMeasure.MEAN_LEVEL: _mean_level,
    EffectMeasure.LOG_MEAN: _log_mean,
    EffectMeasure.ANY_AND_AMOUNT: _any_and_amount,
    EffectMeasure.CENSORED_MEAN: _censored_mean,
    EffectMeasure.CENSORED_LOG_MEAN: _censored_log_mean,
    EffectMeasure.HAZARD: _hazard,
}


def associations(schema: Schema, values: Values, groups: Groups, rows: str) -> pd.DataFrame:
    """Every column against all subtypes at once."""
    lines: list[dict[str, Any]] = []
    for column in schema.used:
        cells, group = values[column.name], groups(column.name)
        seen = cells.seen & (group > 0)
        if seen.any():
            found = _association(kind_of(column).effect_measure, cells[seen], group[seen])
            lines.append({"rows": rows, "column": column.name, "kind": column.kind, **asdict(found)})
    return _with_q(pd.DataFrame(lines, columns=ASSOCIATIONS))


def _association(measure: EffectMeasure, cells: Observed, group: np.ndarray) -> Association:
    """Ranks for whatever is neither a level without order nor known up to limits."""
    match measure:
        case EffectMeasure.ODDS | EffectMeasure.LEVEL_ODDS:
            return cramers_v(cells.low, group)
        case EffectMeasure.CENSORED_MEAN:
            return censored_association(cells, group)
        case EffectMeasure.CENSORED_LOG_MEAN:
            return censored_association(logarithms(cells), group)
        case EffectMeasure.HAZARD:
            return hazard_association(cells, group)
        case _:
            return kruskal_wallis(cells.low, group)


def missingness(schema: Schema, values: Values, group: np.ndarray, K: int) -> pd.DataFrame:
    """Share of gaps inside and outside every subtype, with the log odds ratio of a gap."""
    lines = []
    for column in schema.used:
        gap = ~values[column.name].seen
        if 0 < gap.sum() < len(gap):
            for k in range(1, K + 1):
                inside, outside = gap[group == k].astype(float), gap[(group > 0) & (group != k)].astype(float)
                if min(len(inside), len(outside)) >= FEWEST:
                    lines.append({"subtype": k, "column": column.name, **asdict(log_odds_ratio(inside, outside))})
    return _with_q(pd.DataFrame(lines, columns=MISSINGNESS))


def _with_q(frame: pd.DataFrame) -> pd.DataFrame:
    numbers = [name for name in frame.columns if name in NUMBERS]
    frame = frame.astype(dict.fromkeys(numbers, "float64") | dict.fromkeys(set(frame.columns) & set(WHOLE), "int64"))
    frame.insert(list(frame.columns).index("p") + 1, "q", benjamini_hochberg(frame["p"].to_numpy(float)))
    return frame


NUMBERS = ("inside", "outside", "estimate", "low", "high", "statistic", "p", "effect")
WHOLE = ("subtype", "n_inside", "n_outside")
CHARACTERISTICS = ["rows", "subtype", "column", "kind", "level", "measure", *WHOLE[1:], *NUMBERS]
ASSOCIATIONS = ["rows", "column", "kind", "measure", "effect", "statistic", "p"]
MISSINGNESS = ["subtype", "column", *WHOLE[1:], *NUMBERS[:-1]]


# --- split testing ---


def split_groups(model: PluriGP, frame: pd.DataFrame, mixture: Mixture) -> Groups:
    """Subtypes of rows that the model and mixture never saw; a column's own cells do not place the rows it tests.

    A row's place depends on its cells, so a test of those same cells would be circular even on unseen rows: for
    column d every row is placed by its other columns.
    """

    table, predictor = model.coder_.table(frame), model._ready()
    names = [column.name for column in table.schema]

    @cache  # every subtype asks again
    def groups(name: str) -> np.ndarray:
        own = np.broadcast_to(np.array(names) == name, table.seen.shape)
        return memberships(mixture, *positions(predictor, table.hidden(own)))[0]

    return groups
