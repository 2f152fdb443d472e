"""What distinguishes each subtype: column by column, with effect sizes, intervals and corrected tests."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from plurigp.data import Column, Schema
from plurigp.data.kinds import cells_in, read_column
from plurigp.estimator import PluriGP
from plurigp.predict import positions
from plurigp.study.contrasts import (
    Contrast,
    benjamini_hochberg,
    cramers_v,
    kruskal_wallis,
    log_odds_ratio,
    log_rate_ratio,
    welch,
    welch_of_logs,
)
from plurigp.study.mixture import Mixture, memberships

Values = dict[str, np.ndarray]  # per used column its cells as numbers [N]; places of levels; NaN at gaps
Groups = Callable[[str], np.ndarray]  # a column's name -> subtypes [N], 0 = left out

COUNTS = ("poisson", "negative_binomial", "zero_inflated_poisson")
POSITIVE = ("lognormal", "gamma")
FEWEST = 5  # observed cells on either side, below which nothing is said


def read_values(frame: pd.DataFrame, schema: Schema) -> Values:
    """The used columns as raw numbers; successes of a binomial as a share of their trials."""
    values = {}
    for column in schema.used:
        numbers = read_column(column, cells_in(frame, column.name), frame)
        share = column.kind == "binomial" and numbers.shape[1] == 2
        values[column.name] = numbers[:, 0] / numbers[:, 1] if share else numbers[:, 0]
    return values


def characteristics(schema: Schema, values: Values, groups: Groups, K: int, rows: str) -> pd.DataFrame:
    """Every subtype against the rest, one line per column (per level of a category), q over all of them."""
    lines = [
        {"rows": rows, "subtype": k, "column": column.name, "kind": column.kind, "level": level, **asdict(contrast)}
        for column in schema.used
        for k in range(1, K + 1)
        for level, contrast in _contrasts(column, values[column.name], groups(column.name), k)
    ]
    return _with_q(pd.DataFrame(lines, columns=CHARACTERISTICS))


def _contrasts(column: Column, cells: np.ndarray, group: np.ndarray, k: int) -> Iterator[tuple[str, Contrast]]:
    seen = np.isfinite(cells) & (group > 0)
    inside, outside = cells[seen & (group == k)], cells[seen & (group != k)]
    if min(len(inside), len(outside)) < FEWEST:
        return
    if column.kind == "categorical":
        for place, level in enumerate(column.levels):
            yield str(level), log_odds_ratio((inside == place).astype(float), (outside == place).astype(float))
    elif column.kind == "bernoulli":
        yield str(column.levels[1]), log_odds_ratio(inside, outside)
    elif column.kind in COUNTS:
        yield "", log_rate_ratio(inside, outside)
    else:
        yield "", (welch_of_logs if column.kind in POSITIVE else welch)(inside, outside)


def associations(schema: Schema, values: Values, groups: Groups, rows: str) -> pd.DataFrame:
    """Every column against all subtypes at once."""
    lines: list[dict[str, Any]] = []
    for column in schema.used:
        cells, group = values[column.name], groups(column.name)
        seen = np.isfinite(cells) & (group > 0)
        test = cramers_v if column.kind in ("bernoulli", "categorical") else kruskal_wallis
        if seen.any():
            found = test(cells[seen], group[seen])
            lines.append({"rows": rows, "column": column.name, "kind": column.kind, **asdict(found)})
    return _with_q(pd.DataFrame(lines, columns=ASSOCIATIONS))


def missingness(schema: Schema, values: Values, group: np.ndarray, K: int) -> pd.DataFrame:
    """Share of gaps inside and outside every subtype, with the log odds ratio of a gap."""
    lines = []
    for column in schema.used:
        gap = np.isnan(values[column.name])
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
