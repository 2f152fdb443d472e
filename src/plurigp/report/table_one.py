"""Table 1: the groups of a table side by side, as journals print them."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from plurigp.core.text import at, bare, listing, show
from plurigp.core.types import DataError
from plurigp.data import ASIDE, Coder, Column, Rows, Schema, infer_schema, to_rows
from plurigp.data.frames import check_named
from plurigp.data.kinds import PLAIN_LEVELS, kind_of
from plurigp.data.limits import text_of_bounds
from plurigp.report import words
from plurigp.report.map import studied_cells
from plurigp.report.printed import TableLine, TableOne
from plurigp.study import StudyResult
from plurigp.study.findings.descriptives import (
    ColumnFigures,
    Description,
    GroupFigures,
    Quantile,
    describe_column,
    is_known,
)
from plurigp.study.findings.design import Design, make_design

MAX_GROUPS = 20
NAN = float("nan")
CIRCULAR = (
    "No p-values for the columns that the {many} were found in: groups that are made to differ in these columns differ "
    "in them whatever the truth."
)


def table_one(
    table: Any,
    by: str | StudyResult | None = None,
    schema: Any = None,
    columns: Iterable[str] | None = None,
    mean: Iterable[str] = (),
    median: Iterable[str] = (),
    title: str | None = None,
    weights: Any = None,
    groups: Any = None,
) -> TableOne:
    """Describe the groups of a table side by side.

    by: the column that holds the groups; a StudyResult, for its subtypes (`table` is then the one that was studied, or
      it with further columns such as outcomes); None for everybody.
    schema: kinds of the columns, as for PluriGP; they decide how a column is described.
    columns: which columns, in this order; all that are used without it.
    mean, median: columns to describe by mean (SD), or by median [Q1, Q3], whatever their kind.
    weights: sampling weights, a column or one number per row: all but the counts of rows then describes the population.
    groups: the column that names a row's patient, or a label per row, where patients have several rows: tests then
      count patients. Both are those of the study by default.
    """
    rows = to_rows(table)
    study = by if isinstance(by, StudyResult) else None
    weights, groups = _sampling(study, weights, groups)
    sampled = make_design(rows, weights, groups)
    if study is not None and schema is None:
        schema = {column.name: column for column in study.model.schema_.used if column.name in rows.columns}
    own = Coder.fit(rows, infer_schema(rows, schema)).schema
    group, names, notes = _groups(rows, own, by)
    forced = _forced(own, mean, median)
    mapped = set() if study is None else set(study.columns.loc[study.columns["used"].astype(bool), "column"])
    found = []
    named = {name for name in (by, weights, groups) if isinstance(name, str)}
    for column in _listed(own, columns, named):
        tested = column.name not in mapped
        cells, how = rows.observed(column), forced.get(column.name)
        found.append(describe_column(column, cells, group, len(names), how, tested, sampled))
    if study is not None:
        notes.append(CIRCULAR.format(many=words.parts_of(study.facts).many))
    sizes = [int((group > 0).sum()), *(int((group == k + 1).sum()) for k in range(len(names)))]
    lines = [line for column in found for line in _lines(column, sizes[0])]
    heading = title or ("Characteristics" if by is None else f"Characteristics by {_title(by)}")
    notes += _explained(found, len(names)) + _design_notes(sampled, weights, groups, len(names))
    return TableOne(words.shown(heading, 200), tuple(names), tuple(sizes), tuple(found), tuple(lines), tuple(notes))


# --- which rows and columns ---


def _groups(rows: Rows, schema: Schema, by: str | StudyResult | None) -> tuple[np.ndarray, list[str], list[str]]:
    """The group 1 … G of every row [N], 0 where it has none; the groups' names; notes about rows left out."""
    if by is None:
        return np.ones(len(rows), int), [], []
    if isinstance(by, StudyResult):
        studied_cells(by, rows.frame)
        group, parts = by.clusters.subtype.astype(int), words.parts_of(by.facts)
        names, why = [parts.number(k + 1) for k in range(by.clusters.n_strata)], "outliers of the study"
    else:
        check_named("by", by, rows.columns)
        column = schema[by]
        if column.kind == ASIDE or not column.levels:
            column = Coder.fit(rows.frame[[by]], Schema((Column(by, PLAIN_LEVELS),))).schema[by]
        cells = to_rows(rows.frame[[by]]).observed(column)
        group = np.where(cells.seen, cells.low + 1, 0).astype(int)
        names, why = [_level_name(by, level) for level in column.levels], f"no {words.shown(by, 60)} is known"
        present = np.flatnonzero(np.bincount(group, minlength=len(names) + 1)[1:]) + 1
        group = np.searchsorted(present, group) * np.isin(group, present) + np.isin(group, present)
        names = [names[k - 1] for k in present]
    if not 2 <= len(names) <= MAX_GROUPS:
        raise DataError(f"{_title(by)}: has {len(names)} groups; give a column with 2 to {MAX_GROUPS}.")
    left_out = int((group == 0).sum())
    return group, names, [f"{words.counted(left_out, 'row')} left out: {why}."] if left_out else []


def _level_name(by: str, level: object) -> str:
    """A group's name; a bare truth value would not say of what."""
    text = {True: "yes", False: "no"}.get(level, "") if isinstance(level, bool) else ""
    return f"{words.shown(by, 50)}: {text}" if text else words.shown(bare(level), 60)


def _title(by: str | StudyResult | None) -> str:
    return words.parts_of(by.facts).one if isinstance(by, StudyResult) else words.shown(by, 80)


def _sampling(study: StudyResult | None, weights: Any, groups: Any) -> tuple[Any, Any]:
    """Those given, or the study's own."""
    own = {} if study is None else study.config
    return (own.get("weights") if weights is None else weights), (own.get("groups") if groups is None else groups)


def _design_notes(sampled: Design | None, weights: Any, groups: Any, n_groups: int) -> list[str]:
    if sampled is None:
        return []
    notes = []
    if weights is not None:
        notes.append("Counts are of rows; percentages, means, SDs, quantiles and SMDs are weighted.")
    if n_groups > 1:
        units = "patients, not rows" if groups is not None else "the weights"
        notes.append(f"Tests are design-based: Wald's F with linearised or jackknifed variances that count {units}.")
    return notes


def _listed(schema: Schema, columns: Iterable[str] | None, named: Collection[str]) -> list[Column]:
    """Those asked for; otherwise all that are used, but for those that name groups or weights."""
    if columns is None:
        return [column for column in schema.used if column.name not in named]
    listed = list(columns)
    for name in listed:
        if name not in schema or schema[name].kind == ASIDE:
            used = listing(show(column.name) for column in schema.used)
            raise DataError(f"{at(name)}: is not a described column; there are {used}. Declare its kind in the schema.")
    return [schema[name] for name in listed]


def _forced(schema: Schema, mean: Iterable[str], median: Iterable[str]) -> dict[str, Description]:
    forced = dict.fromkeys(mean, Description.MEAN) | dict.fromkeys(median, Description.MEDIAN)
    for name, how in forced.items():
        if name not in schema or schema[name].kind == ASIDE or schema[name].levels or kind_of(schema[name]).has_bounds:
            raise DataError(f"{at(name)}: has no plain numbers to describe by {how}; leave it out.")
    return forced


# --- figures as text ---


def _lines(column: ColumnFigures, n_rows: int) -> list[TableLine]:
    """The column's lines: one, or its head and one per level."""
    own, how = (column.overall, *column.groups), column.description
    name, n_missing = words.shown(column.column.name, 80), column.overall.missing
    missing = f"{n_missing:,} ({_percentage(n_missing / n_rows)})" if n_missing else "0"
    has_sign = len(column.groups) == 2 and how is not Description.LEVELS
    smd = words.signed(column.smd) if has_sign else words.fixed(column.smd)
    compared = ("∞" if math.isinf(column.smd) else smd, words.p_value(column.p), column.test or words.UNKNOWN)
    if how is Description.YES:
        yes = words.trait(column.column.name, str(column.column.levels[1]), column.column.kind)
        return [TableLine(yes, "n (%)", False, missing, tuple(_count(part, 1) for part in own), *compared)]
    if how is Description.LEVELS:
        head = TableLine(name, "n (%)", False, missing, ("",) * len(own), *compared)
        levels = [words.shown(bare(level), 60) for level in column.column.levels]
        return [head, *(
            TableLine(level, "", True, "", tuple(_count(part, place) for part in own), "", "", "")
            for place, level in enumerate(levels)
        )]  # fmt: skip
    decimals = _decimals(column)
    cells = tuple(_spelled(part, how, decimals) for part in own)
    return [TableLine(name, str(how), False, missing, cells, *compared)]


def _percentage(share: float) -> str:
    """To a tenth of a percent; what is there is never printed as nothing."""
    if math.isnan(share):
        return words.UNKNOWN
    return "<0.1%" if 0 < share < 0.0005 else f"{100 * share:.1f}%"


def _count(own: GroupFigures, place: int) -> str:
    share = own.shares[place] if own.n else NAN
    return f"{own.counts[place]:,} ({_percentage(share)})"


def _decimals(column: ColumnFigures) -> int:
    """One more than the spread's first digit, at least one below 100, as journals print them; none where every quantile
    is whole."""
    quantiles = [quantile for own in (column.overall, *column.groups) for quantile in own.quantiles]
    if column.description is Description.MEDIAN and all(low == math.floor(low) for low, _ in quantiles):
        return 0
    first, _, third = column.overall.quantiles or (Quantile(0.0, 0.0),) * 3
    sd, range_ = column.overall.sd, 2 * (third.low - first.low)
    spread = sd if column.description is Description.MEAN else min(sd, range_) if math.isfinite(sd) else range_
    if not 0 < spread < 1e300:
        return 1
    size = math.floor(math.log10(spread))
    return 0 if size >= 2 else 1 if size >= 0 else min(1 - size, 8)


def _spelled(own: GroupFigures, how: Description, decimals: int) -> str:
    if not own.n:
        return words.UNKNOWN
    if how is Description.MEAN:
        return f"{_number(own.mean, decimals)} ({_number(own.sd, decimals)})"
    if how is Description.TIME:
        time = "not reached" if math.isnan(own.median_time) else words.number(own.median_time)
        return f"{time} ({words.counted(own.events, 'event')})"
    first, median, third = (_quantile(quantile, decimals) for quantile in own.quantiles)
    return f"{median} [{first}, {third}]"


def _number(value: float, decimals: int) -> str:
    return words.UNKNOWN if not math.isfinite(value) else f"{value:,.{decimals}f}".replace("-", "−")


def _quantile(quantile: Quantile, decimals: int) -> str:
    if is_known(quantile):
        return _number(quantile.low, decimals)
    open_low, open_high = quantile.low < -1e300, quantile.high > 1e300
    if open_low and open_high:
        return words.UNKNOWN
    low, high = (value if abs(value) > 1e300 else float(f"{value:.{decimals}f}") for value in quantile)
    return text_of_bounds(-math.inf if open_low else low, math.inf if open_high else high).replace("-", "–")


def _explained(found: Sequence[ColumnFigures], n_groups: int) -> list[str]:
    """What the reader must know of the figures that are there."""
    notes = ["Missing cells are left out of every figure, and of the percentages' denominators."]
    if any(not is_known(quantile) for column in found for quantile in column.overall.quantiles):
        notes.append("A quantile that detection limits leave open is given by its limits.")
    if n_groups > 1:
        which = "second group less first" if n_groups == 2 else "the largest between any two groups, without sign"
        notes.append(f"SMD: standardised mean difference, {which}; of levels by Yang and Dalton (2012).")
    if any(column.test for column in found):
        notes.append("p-values are not adjusted for the number of columns.")
    return notes
