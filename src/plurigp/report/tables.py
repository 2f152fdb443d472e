"""The tables of the page: cells as they are read, each with a plain value to sort by."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.estimator.sensitivity import Sensitivity
from plurigp.report import verdict, words
from plurigp.report.summary import confirmed, horizon
from plurigp.study import StudyResult

MOST_LINES = 400  # of one table on the page; the file has them all


@dataclass(frozen=True)
class Cell:
    """What is read and what is sorted by."""

    text: str
    sort: float | str


@dataclass(frozen=True)
class PageTable:
    """A table with a caption; `groups` holds the subtype of each line where the page offers a menu over them."""

    name: str
    caption: str
    heads: Sequence[str]
    rows: list[list[Cell]]
    groups: Sequence[int] = ()
    left_out: int = 0

    def numeric(self) -> list[bool]:
        """Which columns are numbers, aligned right and sorted as such."""
        return [all(isinstance(row[place].sort, float) for row in self.rows) for place in range(len(self.heads))]


Reader = Callable[[dict[Any, Any]], Cell]  # from a line of a frame to a cell


def _text(key: str, limit: int = 120, say: Callable[[Any], object] = str) -> Reader:
    def read(line: dict[Any, Any]) -> Cell:
        text = words.shown(say(line[key]), limit)
        return Cell(text, text.casefold())

    return read


def _number(key: str, say: Callable[[Any], str] = "{:,.0f}".format) -> Reader:
    return lambda line: _numeric(line[key], say(line[key]))


def _numeric(value: words.Number, text: str) -> Cell:
    """A number; an unknown one sorts below all others."""
    return Cell(text, float(value) if value is not None and math.isfinite(value) else -1e300)


def _yes_or_no(value: object) -> str:
    return "yes" if value else "no"


def _short(value: float) -> str:
    return words.number(value, 2)


def _span(low: float, high: float) -> str:
    return f"{words.signed(low, 3)} to {words.signed(high, 3)}"


def _same(agree: bool) -> Cell:
    text = "the same for all" if agree else "depends on delta"
    return Cell(text, text)


COLUMNS = {
    "Column": _text("column"),
    "Kind": _text("kind", say=words.kind_label),
    "Detail": _text("detail"),
    "Observed": _number("n_observed"),
    "Missing": _number("gap_share", words.percent),
    "Reason": _text("reason", 200),
}
PREDICTIONS = {
    "Column": _text("column"),
    "Kind": _text("kind", say=words.kind_label),
    "Held-out cells": _number("cells"),
    "Gain (nats per cell)": _number("gain", lambda gain: words.signed(gain, 3)),
    "Standard error": _number("se", _short),
}
CLUSTERINGS = {
    "Clusters": _number("n_clusters"),
    "Gain over one cluster (nats per patient)": _number("gain", lambda gain: words.signed(gain, 3)),
    "Shrinkage of covariances": _number("shrinkage", _short),
    "Chosen": _text("chosen", say=_yes_or_no),
}
SELECTION = {
    "Dimensions": _number("n_components"),
    "Gain of groups (nats)": _number("group_gain", _short),
    "Score (nats per held-out cell)": _number("score", lambda score: words.signed(score, 3)),
    "Loss against the best": _number("gap", _short),
    "Standard error of the loss": _number("gap_se", _short),
    "Chosen": _text("chosen", say=_yes_or_no),
}
SENSITIVITY = {
    "Conclusion about": _text("term", 160),
    "Estimates": lambda line: _numeric(line["estimate_min"], _span(line["estimate_min"], line["estimate_max"])),
    "All 95% intervals within": lambda line: _numeric(line["low"], _span(line["low"], line["high"])),
    "Intervals without 0": lambda line: _numeric(line["n_outside"], f"{line['n_outside']} of {line['n_settings']}"),
    "Conclusion": lambda line: _same(line["same_conclusion"]),
}

VALLEY = {  # of two strata
    "Separation (sd)": _number("separation", lambda sds: words.number(sds, 2)),
    "Density between": _number("depth", words.percent),
}
POPULATION = {  # where rows are weighted, or repeated
    "Of the population (95% interval)": lambda line: _numeric(
        line["population_share"],
        f"{words.percent(line['population_share'])} ({words.percent(line['population_low'])} to "
        f"{words.percent(line['population_high'])})",
    )
}


def page_tables(result: StudyResult, sensitivity: Sensitivity | None = None) -> dict[str, PageTable]:
    """Every table by name; empty ones are left out."""
    predictions = result.predictions.sort_values("gain", ascending=False, kind="stable")
    made = (
        _table("columns", "Every column, its kind and its missing values.", result.columns, COLUMNS),
        subtypes_table(result),
        separations_table(result),
        consensus_table(result),
        characteristics_table(result),
        missingness_table(result),
        *([] if sensitivity is None else [sensitivity_table(sensitivity)]),
        _table("predictions", "Gain over each column’s marginal distribution.", predictions, PREDICTIONS),
        risks_table(result),
        _table("clusterings", "Evidence by number of clusters.", result.clusterings, CLUSTERINGS),
        _table("selection", "Held-out score by number of dimensions.", result.selection, SELECTION),
    )
    return {table.name: table for table in made if table.rows}


def _table(name: str, caption: str, frame: pd.DataFrame, columns: dict[str, Reader]) -> PageTable:
    """The frame line by line through the columns' readers, cut after MOST_LINES."""
    lines = frame.head(MOST_LINES).to_dict("records")
    rows = [[read(line) for read in columns.values()] for line in lines]
    groups = [int(line["subtype"]) for line in lines] if "subtype" in frame else []
    return PageTable(name, caption, list(columns), rows, groups, len(frame) - len(rows))


def subtypes_table(result: StudyResult) -> PageTable:
    """What each is, and how far it is from the one it is least apart from."""
    word = words.parts_of(result.facts)
    columns = {
        word.one.capitalize(): _number("subtype"),
        "Patients": lambda line: _numeric(line["size"], f"{line['size']:,.0f} ({words.percent(line['share'])})"),
        **POPULATION,
        "Finding": lambda line: Cell(verdict.badge(line)[0], line["kind"]),
        "Nearest": _number("nearest"),
        **VALLEY,
        "p": _number("valley_p", words.p_value),
        "Gain": _number("unseen_gain", words.signed),
        "Agreement": _number("agreement", words.percent),
    }
    if "population_share" not in result.subtypes:
        columns = {head: read for head, read in columns.items() if head not in POPULATION}
    caption = "and what separates each from the one it is least apart from, its nearest. p is before correction."
    return _table("subtypes", f"The {word.many}, {caption}", result.subtypes, columns)


def separations_table(result: StudyResult) -> PageTable:
    """What lies between each two."""
    word, K, level = words.parts_of(result.facts), result.clusters.n_strata, result.facts["level"]

    def apart(line: dict[Any, Any]) -> Cell:
        text = "yes" if line["apart"] else "joined by others" if verdict.is_bridged(line, K, level) else "no"
        return Cell(text, text)

    columns = {
        word.one.capitalize(): _number("subtype"),
        "Other": _number("other"),
        **VALLEY,
        "p": _number("p", words.p_value),
        "Apart": apart,
    }
    frame = result.separations
    return _table("separations", f"What lies between each two {word.many}. p is before correction.", frame, columns)


def consensus_table(result: StudyResult) -> PageTable:
    """How firmly the patients of each stay together in refits."""
    word = words.parts_of(result.facts)
    columns = {
        word.one.capitalize(): _number("subtype"),
        "Consensus index": _number("index", words.fixed),
        "Threshold, permuted labels": _number("permutation_threshold", words.fixed),
        "p, permuted labels": _number("permutation_p", words.p_value),
        "Robust": _text("robust", say=_yes_or_no),
    }
    if words.is_continuum(result.facts):
        del columns["Robust"]
    return _table("consensus", f"Consensus of the refits on each {word.one}.", result.subtypes, columns)


def characteristics_table(result: StudyResult) -> PageTable:
    """Every subtype against the rest, largest differences first, with the test on held-back patients."""
    table = confirmed(result.characteristics).sort_values("effect", key=abs, ascending=False, kind="stable")
    word = words.parts_of(result.facts)

    def q(line: dict[Any, Any]) -> Cell:
        q = line["tested_q"]
        return Cell(words.p_value(q), q) if math.isfinite(q) else Cell("not confirmed", 2.0)  # sorts after every q

    columns = {
        word.one.capitalize(): _number("subtype"),
        "Column": _text("column"),
        "Level": _text("level"),
        "Inside": lambda line: _numeric(line["inside"], words.compared_values(line)[0]),
        "Others": lambda line: _numeric(line["outside"], words.compared_values(line)[1]),
        "Standardised difference": _number("effect", words.signed),
        "Tested q": q,
        "Estimate (95% interval)": lambda line: Cell(_estimate(line), line["measure"]),
    }
    caption = f"What distinguishes each {word.one} from the other patients."
    return _table("characteristics", caption, table, columns)


def _estimate(line: dict[Any, Any]) -> str:
    """The effect in its own units with its interval; logarithms as ratios."""
    parts = [line["estimate"], line["low"], line["high"]]
    name = "difference"
    if line["measure"].startswith("log "):
        name = line["measure"].removeprefix("log ")
        with np.errstate(over="ignore"):
            parts = [float(np.exp(v)) for v in parts]
    middle, low, high = (words.number(v, 2 if words.is_share(line["measure"]) else 3) for v in parts)
    no_lower, no_upper = line["low"] == -math.inf, line["high"] == math.inf
    one_sided = f"{high} or less" if no_lower else f"{low} or more" if no_upper else f"{low} to {high}"
    return f"{name} {middle} ({'no limits' if no_lower and no_upper else one_sided})"


def missingness_table(result: StudyResult) -> PageTable:
    """Columns whose share of missing values differs by subtype."""
    table, word = result.missingness, words.parts_of(result.facts)
    if len(table):
        table = table[table["q"] <= 0.05].sort_values("q", kind="stable")
    columns = {
        word.one.capitalize(): _number("subtype"),
        "Column": _text("column"),
        f"Missing in {word.one}": _number("inside", words.percent),
        "Missing in others": _number("outside", words.percent),
        "q": _number("q", words.p_value),
    }
    return _table("missingness", f"Columns missing more or less often in a {word.one}.", table, columns)


def sensitivity_table(found: Sensitivity) -> PageTable:
    """The range of every conclusion over the deltas that were tried."""
    tried = [f"{words.shown(name, 60)} {_tried(found.frame[name])}" for name in found.deltas]
    caption = f"Range of conclusions if values are not missing at random. Deltas tried: {'; '.join(tried)}."
    return _table("sensitivity", caption, found.ranges().reset_index(), SENSITIVITY)


def _tried(amounts: pd.Series) -> str:
    return ", ".join(words.number(amount, 3) for amount in sorted(amounts.unique()))


def risks_table(result: StudyResult) -> PageTable:
    """Risk by subtype, a column per horizon."""
    times, word = sorted(set(result.risks["time"])), words.parts_of(result.facts)
    lines = result.risks.to_dict("records")
    cells = {(line["subtype"], line["time"]): _numeric(line["risk"], words.risk_text(line)) for line in lines}

    def risk(time: float) -> Reader:
        return lambda line: cells.get((line["subtype"], time), _numeric(None, words.UNKNOWN))

    who = _text("subtype", say=lambda k: word.number(k) if k else "all patients")
    columns = {"Patients": who} | {f"Within {horizon(result.facts, time)}": risk(time) for time in times}
    subtypes = result.risks[["subtype"]].drop_duplicates()
    return _table("risks", f"Risk of the outcome by {word.one}, with 95% intervals.", subtypes, columns)
