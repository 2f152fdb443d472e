"""Cells put into columns: one row per patient, and the schema that a study takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.cohort.counts import PresentColumn
from plurigp.cohort.engines import Columns, Engine
from plurigp.cohort.population import COHORT, shown_count
from plurigp.cohort.specification import Feature, Outcome, Specification
from plurigp.cohort.values import ValueCells
from plurigp.core.text import at, show
from plurigp.core.types import DataError
from plurigp.data import ASIDE, KINDS, Column, Schema, infer_schema
from plurigp.data.censoring import write_bounds
from plurigp.data.kinds import Origin

PATIENT = "patient"
Kind = dict[str, Any]  # what is declared of a column
NewColumn = tuple[str, Any, Kind | None]  # name, cells, declaration


@dataclass(frozen=True)
class Cells:
    """Everything that leaves the database, by feature."""

    people: Columns  # person, patient, age, sex, index_year, death_days, observed_days
    present: list[PresentColumn]
    counts: dict[str, Columns]
    values: dict[str, ValueCells]
    events: dict[str, Columns]


def fetch_people(engine: Engine) -> Columns:
    """The cohort's rows, in the order of their ids whatever the collation of the database."""
    people = engine.fetch(
        "the patients of the table",
        "SELECT person, patient, age, sex, CAST(extract(year FROM index_date) AS INTEGER) AS index_year, "
        f"death - index_date AS death_days, observed_to - index_date AS observed_days FROM {COHORT}",
    )
    ids = plain_ids(people[PATIENT])
    order = np.argsort(ids, kind="stable")
    return {name: cells[order] for name, cells in (people | {PATIENT: ids}).items()}


def plain_ids(ids: np.ndarray) -> np.ndarray:
    """Whole numbers where all ids are such, else text."""
    texts = [str(one) for one in ids.tolist()]
    if all(t.isascii() and t.isdigit() and len(t) < 19 and (t == "0" or t[0] != "0") for t in texts):
        return np.array([int(t) for t in texts], dtype=np.int64)
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def assemble_table(spec: Specification, cells: Cells) -> tuple[pd.DataFrame, Schema]:
    """The table and its schema."""
    n_rows = len(cells.people["person"])
    if n_rows == 0:
        raise DataError("no patient is left after all rules; look at the attrition and loosen a rule.")
    rows = row_numbers(cells)
    columns: dict[str, Any] = {}
    declared: dict[str, Any] = {}

    def add(name: str, content: Any, kind: dict[str, Any] | None) -> None:
        if name in columns:
            raise DataError(f"two columns of the table are named {show(name, 80)}; rename a feature.")
        columns[name] = content
        if kind is not None:
            declared[name] = kind

    if spec.patient_ids:
        ids = cells.people[PATIENT]
        add(PATIENT, ids if ids.dtype != object else pd.array(ids, dtype="str"),
            {"kind": ASIDE, "reason": "the patient's id"})  # fmt: skip
    for feature in spec.features:
        for name, content, kind in _columns_of(spec, feature, cells, rows, n_rows):
            add(name, content, kind)
    for outcome in spec.outcomes:
        for name, content, kind in _outcome_columns(outcome, cells, rows):
            add(name, content, kind)
    frame = pd.DataFrame(columns)
    schema = infer_schema(frame, declared)
    return frame, schema.override(_measured_all_the_same(spec, frame, schema))


def _measured_all_the_same(spec: Specification, frame: pd.DataFrame, schema: Schema) -> dict[str, Kind]:
    """Values that look like ids to inference: they were measured."""
    names = [f.name for f in spec.measured("value") if f.kind is None and schema[f.name].kind == ASIDE]
    made = Origin.MEASUREMENT, Origin.MEASUREMENT_WITH_LIMITS
    number, limits = ({"kind": origin.value, "reason": "measured values"} for origin in made)
    return {name: limits if frame[name].dtype == "str" else number for name in names if frame[name].nunique() > 1}


def _columns_of(
    spec: Specification, feature: Feature, cells: Cells, rows: np.ndarray, n_rows: int
) -> Iterator[NewColumn]:
    """(name, cells, declaration) of every column of a feature."""
    kind = None if feature.kind is None else {"kind": feature.kind}
    if feature.measure == "demographic":
        yield feature.name, _demographic(spec, feature, cells.people), kind
    elif feature.measure == "count":
        counts = np.zeros(n_rows, dtype=np.int64)
        place, own = _placed(rows, cells.counts[feature.name]["person"])
        counts[place] = cells.counts[feature.name]["n"][own]
        yield feature.name, counts, kind
    elif feature.measure == "value":
        yield feature.name, *_value_column(feature, cells.values[feature.name], rows, n_rows)
    else:
        for column in cells.present:
            if column.feature is feature and not _too_few(spec, column.n_patients, n_rows):
                present = np.zeros(n_rows, dtype=bool)
                present[_placed(rows, column.persons)[0]] = True
                constant = present.all() or not present.any()
                reason = {"kind": ASIDE, "reason": f"{'every' if present.any() else 'no'} patient has it"}
                yield column.name, present, reason if constant else kind


def _too_few(spec: Specification, n_patients: int, n_rows: int) -> bool:
    return min(n_patients, n_rows - n_patients) < spec.suppress_below


def _placed(rows: np.ndarray, persons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of those persons who are in the table, and which of them these are."""
    place = rows[persons.astype(np.int64)] if len(persons) else np.array([], dtype=np.int64)
    return place[place >= 0], place >= 0


def _demographic(spec: Specification, feature: Feature, people: Columns) -> Any:
    content = people[feature.statistic]
    if feature.statistic != "sex":
        return content.astype(np.float64)
    words = pd.Series(content, dtype="str")
    return words.where(words.map(words.value_counts()) >= max(spec.suppress_below, 1)).array


def _value_column(feature: Feature, found: ValueCells, rows: np.ndarray, n_rows: int) -> tuple[np.ndarray, Kind | None]:
    """Numbers, or text where some are limits."""
    place, own = _placed(rows, found.person)
    bounds = np.full((n_rows, 2), np.nan)
    bounds[place, 0], bounds[place, 1] = found.low[own], found.high[own]
    bounds[np.isinf(bounds).all(axis=1)] = np.nan  # limits on both sides say nothing
    kind = Origin.MEASUREMENT_WITH_LIMITS.value if feature.kind in (None, ASIDE) else feature.kind
    if (bounds[:, 0] < bounds[:, 1]).any() and not KINDS[kind].has_bounds:
        fitting = " or ".join(f'"{name}"' for name, one in KINDS.items() if "upper" in one.settings)
        finding = f'some values are limits such as "<5", which the kind {kind} does not take'
        raise DataError(f'feature {show(feature.name, 60)}: {finding}; write kind = {fitting}, or limits = "drop".')
    declared: Kind = {} if feature.kind is None else {"kind": feature.kind}
    if feature.bounds is not None:
        declared["bounds"] = list(feature.bounds)
    if not np.isfinite(bounds).any():
        declared = {"kind": ASIDE, "reason": "no observed cell"}
    return write_bounds(Column(feature.name, kind), bounds)[feature.name], declared or None


def _days_to(outcome: Outcome, cells: Cells, rows: np.ndarray) -> np.ndarray:
    """Days from the index date to the first event after it, NaN where there is none."""
    first = np.full(len(cells.people["person"]), np.nan)
    found = cells.events[outcome.name]
    place, own = _placed(rows, found["person"])
    first[place] = found["days"][own].astype(np.float64)
    if any(pattern.kind == "death" for pattern in outcome.patterns):
        death = cells.people["death_days"].astype(np.float64)
        first = np.fmin(first, np.where(death > 0, death, np.nan))
    return first


def _outcome_columns(outcome: Outcome, cells: Cells, rows: np.ndarray) -> Iterator[NewColumn]:
    """Days to the outcome or to the end of observation, and whether it was the outcome."""
    first, end = _days_to(outcome, cells, rows), cells.people["observed_days"].astype(np.float64)
    happened = first <= end
    days = np.where(happened, first, end)
    known = days > 0
    days_name, event_name = f"{outcome.name}_days", f"{outcome.name}_event"
    kind = {"kind": ASIDE, "reason": "an outcome"}
    if outcome.kind != ASIDE and known.any():
        kind = {"kind": outcome.kind, "event": event_name}
    yield days_name, np.where(known, days, np.nan), kind
    events = np.where(known, happened.astype(float), np.nan)
    yield event_name, events, {"kind": ASIDE, "reason": f"events of {at(days_name)}"}


def outcome_notes(spec: Specification, cells: Cells) -> list[str]:
    """How many patients are not observed at their index date, and how many events come after observation."""
    if not spec.outcomes:
        return []
    rows, end = row_numbers(cells), cells.people["observed_days"].astype(np.float64)
    told = {"are not observed at their index date: their outcomes are gaps": int(np.isnan(end).sum())}
    for outcome in spec.outcomes:
        late = int((_days_to(outcome, cells, rows) > end).sum())
        told[f"have {outcome.name} after the end of their observation, where it does not count"] = late
    return [f"{shown_count(n, spec.suppress_below)} patients {what}" for what, n in told.items() if n]


def row_numbers(cells: Cells) -> np.ndarray:
    """The row of every person's number, -1 for those who are not in the table."""
    persons = cells.people["person"].astype(np.int64)
    rows = np.full(int(persons.max(initial=0)) + 1, -1, dtype=np.int64)
    rows[persons] = np.arange(len(persons))
    return rows
