"""The tables of the page: cells as people read them, with a plain value beside each to sort by."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from plurigp.report.summary import NOT_FOLLOWED, confirmed, horizon
from plurigp.report.words import (
    Number,
    fixed,
    is_continuum,
    is_share,
    kind,
    levels,
    number,
    parts_of,
    percent,
    probability,
    shown,
    signed,
)
from plurigp.study import StudyResult
from plurigp.study.findings.robustness import untested

MOST_LINES = 400  # of one table on the page; the file has them all


@dataclass(frozen=True)
class Cell:
    """What is read and what is sorted by."""

    text: str
    sort: float | str


@dataclass(frozen=True)
class PageTable:
    """A table with a caption; `groups` names the group of each line where the page offers a menu over them."""

    name: str
    caption: str
    heads: Sequence[str]
    rows: list[list[Cell]]
    groups: list[int] = field(default_factory=list)
    left_out: int = 0

    def numeric(self) -> list[bool]:
        """Which columns are numbers, set flush right and sorted as such."""
        return [all(isinstance(row[place].sort, float) for row in self.rows) for place in range(len(self.heads))]


def text(value: object, limit: int = 120) -> Cell:
    """A name."""
    line = shown(value, limit)
    return Cell(line, line.casefold())


def figure(value: Number, said: str) -> Cell:
    """A number; one that is not known sorts below all others."""
    return Cell(said, float(value) if value is not None and math.isfinite(value) else -1e300)


def page_tables(result: StudyResult) -> dict[str, PageTable]:
    """Every table by name; empty ones are left out."""
    made = (columns(result), subtypes(result), characteristics(result), missingness(result), predictions(result),
            risks(result), clusterings(result), selection(result))  # fmt: skip
    return {table.name: table for table in made if table.rows}


def columns(result: StudyResult) -> PageTable:
    """What every column was taken for."""
    rows = [
        [text(r["column"]), text(kind(r["kind"])), text(r["detail"]), figure(r["n_observed"], f"{r['n_observed']:,}"),
         figure(r["gap_share"], percent(r["gap_share"])), text(r["reason"], 200)]
        for r in _records(result.columns)
    ]  # fmt: skip
    heads = ("Column", "Taken for", "Values", "Patients with a value", "Gaps", "Why")
    return _cut(PageTable("columns", "Every column, what it was taken for, and how much of it is there.", heads, rows))


def subtypes(result: StudyResult) -> PageTable:
    """Size and robustness."""
    word, not_tested = parts_of(result.facts), bool(untested(result.facts))
    rows = [
        [
            figure(r["subtype"], f"{r['subtype']:.0f}"),
            figure(r["size"], f"{r['size']:,}"),
            figure(r["share"], percent(r["share"])),
            figure(r["certainty"], percent(r["certainty"])),
            figure(r["index"], fixed(r["index"])),
            figure(r["permutation_p"], probability(r["permutation_p"])),
            figure(r["agreement"], fixed(r["agreement"])),
            figure(r["reference_p"], probability(r["reference_p"])),
            text("not tested" if not_tested else "yes" if r["robust"] else "no"),
        ]
        for r in _records(result.subtypes)
    ]
    heads = (word.one.capitalize(), "Patients", "Share", "Certainty", "Consensus index", "p, shuffled labels",
             "Agreement of halves", "p, structureless", "Robust")  # fmt: skip
    caption = f"The {word.many} and how robust each is."
    if not_tested:
        caption = "The subtypes; whether they are robust was not tested."
    if is_continuum(result.facts):
        caption = "The strata and how well each comes back; none is a robust subtype."
    return PageTable("subtypes", caption, heads, rows)


def characteristics(result: StudyResult) -> PageTable:
    """Every subtype against the rest, largest differences first, with the test on held-back patients."""
    table = confirmed(result.characteristics)
    table = table.reindex(table["effect"].abs().sort_values(ascending=False, kind="stable").index)
    word = parts_of(result.facts)
    heads = (word.one.capitalize(), "Column", "Level", "In it", "Others", "Standardised difference", "q when tested",
             "Estimate (95% interval)")  # fmt: skip
    caption = f"What distinguishes each {word.one} from the other patients."
    rows = [_characteristic(line) for line in _records(table)]
    return _cut(PageTable("characteristics", caption, heads, rows, [int(k) for k in table["subtype"]]))


def _characteristic(line: dict[str, Any]) -> list[Cell]:
    inside, outside = levels(line["inside"], line["outside"], line["measure"])
    q = line["tested_q"]
    known = math.isfinite(q)
    return [
        figure(line["subtype"], f"{line['subtype']:.0f}"),
        text(line["column"]),
        text(line["level"]),
        figure(line["inside"], inside),
        figure(line["outside"], outside),
        figure(line["effect"], signed(line["effect"])),
        figure(q if known else 2.0, probability(q) if known else "not confirmed"),  # sorts after every q
        Cell(_estimate(line), line["measure"]),
    ]


def _estimate(line: dict[str, Any]) -> str:
    """The effect in its own units with its interval; logarithms as ratios."""
    parts = [line["estimate"], line["low"], line["high"]]
    name = "difference"
    if line["measure"].startswith("log "):
        name = line["measure"].removeprefix("log ")
        with np.errstate(over="ignore"):
            parts = [float(np.exp(v)) for v in parts]
    middle, low, high = (number(v, 2 if is_share(line["measure"]) else 3) for v in parts)
    return f"{name} {middle} ({_between(low, high, line['low'] == -math.inf, line['high'] == math.inf)})"


def _between(low: str, high: str, no_lower: bool, no_upper: bool) -> str:
    """An interval, of which an end may be missing."""
    if no_lower and no_upper:
        return "no limits"
    return f"{high} or less" if no_lower else f"{low} or more" if no_upper else f"{low} to {high}"


def missingness(result: StudyResult) -> PageTable:
    """Where gaps differ by subtype."""
    table = result.missingness
    if len(table):
        table = table[table["q"] <= 0.05].sort_values("q", kind="stable")
    rows = [
        [figure(r["subtype"], f"{r['subtype']:.0f}"), text(r["column"]), figure(r["inside"], percent(r["inside"])),
         figure(r["outside"], percent(r["outside"])), figure(r["q"], probability(r["q"]))]
        for r in _records(table)
    ]  # fmt: skip
    word = parts_of(result.facts)
    heads = (word.one.capitalize(), "Column", "Gaps in it", "Gaps in the others", "q")
    return _cut(PageTable("missingness", f"Columns with more or fewer gaps in a {word.one}.", heads, rows))


def predictions(result: StudyResult) -> PageTable:
    """Held-out prediction by column."""
    table = result.predictions.sort_values("gain", ascending=False, kind="stable")
    rows = [
        [text(r["column"]), text(kind(r["kind"])), figure(r["cells"], f"{r['cells']:,.0f}"),
         figure(r["gain"], signed(r["gain"], 3)), figure(r["se"], number(r["se"], 2))]
        for r in _records(table)
    ]  # fmt: skip
    heads = ("Column", "Kind", "Hidden cells", "Gain (nats per cell)", "Standard error")
    return _cut(PageTable("predictions", "How well each column is predicted from the others.", heads, rows))


def risks(result: StudyResult) -> PageTable:
    """Risk by subtype, a column per horizon."""
    times, word = sorted(set(result.risks["time"])), parts_of(result.facts)
    found = {(r["subtype"], r["time"]): r for r in _records(result.risks)}
    rows = [
        [text(word.number(k) if k else "everybody"), *(_risk(found.get((k, time))) for time in times)]
        for k in dict.fromkeys(result.risks["subtype"])
    ]
    heads = ("Patients", *(f"within {horizon(result.facts, time)}" for time in times))
    return PageTable("risks", f"Risk of the outcome by {word.one}, with 95% intervals.", heads, rows)


def _risk(line: dict[str, Any] | None) -> Cell:
    if line is None:
        return figure(math.nan, "–")
    if not math.isfinite(line["risk"]):
        return figure(math.nan, NOT_FOLLOWED)
    low, risk, high = (percent(line[name], 1) for name in ("low", "risk", "high"))
    return figure(line["risk"], f"{risk} ({low} to {high})")


def clusterings(result: StudyResult) -> PageTable:
    """Stability by number of groups."""
    rows = [
        [figure(r["n_clusters"], f"{r['n_clusters']:.0f}"), figure(r["stability"], fixed(r["stability"])),
         figure(r["reference_mean"], fixed(r["reference_mean"])), figure(r["gain"], signed(r["gain"])),
         text("yes" if r["chosen"] else "no")]
        for r in _records(result.clusterings)
    ]  # fmt: skip
    heads = ("Groups", "Stability", "Structureless mean", "Gain", "Chosen")
    return PageTable("clusterings", "Stability by number of groups.", heads, rows)


def selection(result: StudyResult) -> PageTable:
    """Held-out score by number of dimensions."""
    rows = [
        [figure(r["n_components"], f"{r['n_components']:.0f}"), figure(r["score"], signed(r["score"], 3)),
         figure(r["gap"], number(r["gap"], 2)), figure(r["gap_se"], number(r["gap_se"], 2)),
         text("yes" if r["chosen"] else "no")]
        for r in _records(result.selection)
    ]  # fmt: skip
    heads = ("Dimensions", "Score (nats per hidden cell)", "Behind the best", "Standard error of that", "Chosen")
    return PageTable("selection", "Prediction of hidden cells by number of dimensions.", heads, rows)


def _records(frame: pd.DataFrame) -> Iterable[dict[str, Any]]:
    return frame.to_dict("records")  # type: ignore[return-value]  # the stubs allow any key; column names are text


def _cut(table: PageTable) -> PageTable:
    """At most so many lines."""
    most = MOST_LINES
    kept, groups = table.rows[:most], table.groups[:most]
    return PageTable(table.name, table.caption, table.heads, kept, groups, len(table.rows) - len(kept))
