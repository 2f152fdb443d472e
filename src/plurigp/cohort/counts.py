"""Codes present in a window, events counted in it, and the first event after the index date."""

from dataclasses import dataclass

import numpy as np

from plurigp.cohort.engines import Columns, Engine
from plurigp.cohort.matching import LABELS, Matching
from plurigp.cohort.population import COHORT, in_cohort
from plurigp.cohort.specification import Feature, Specification
from plurigp.cohort.sql import values

PRESENT = "plurigp_present"


@dataclass(frozen=True)
class PresentColumn:
    """A yes/no column: whose patients have a code of the label."""

    name: str
    feature: Feature
    n_patients: int
    persons: np.ndarray


def find_present(engine: Engine, spec: Specification, matching: Matching) -> list[PresentColumn]:
    """The columns of features that are present or not; of groups those that are frequent enough."""
    features = spec.measured("present")
    if not features:
        return []
    numbers = [spec.number_of(f) for f in features]
    counts: Columns = {"list": np.array([]), "label": np.array([]), "name": np.array([]), "n": np.array([])}
    if matching.any_events(numbers):
        events = matching.events(numbers, "c.person, k.label", in_cohort(spec, features))
        engine.run(
            "codes present", f"CREATE TEMP TABLE {PRESENT} AS SELECT DISTINCT person, label FROM ({events}) events"
        )
        counts = engine.fetch(
            "how many patients have which",
            f"SELECT l.list, p.label, l.name, count(*) AS n FROM {PRESENT} p JOIN {LABELS} l ON l.label = p.label "
            "GROUP BY l.list, p.label, l.name",
        )
    n_cohort = int(engine.fetch("patients in the cohort", f"SELECT count(*) AS n FROM {COHORT}")["n"][0])
    chosen: list[tuple[Feature, str, int, int]] = []
    for feature in features:
        own = counts["list"] == spec.number_of(feature)
        found = [
            (str(name), int(label), int(n))
            for name, label, n in zip(*(counts[k][own] for k in ("name", "label", "n")), strict=True)
        ]
        chosen += [(feature, *one) for one in choose(feature, found, n_cohort, spec.suppress_below)]
    return _with_persons(engine, chosen)


def choose(
    feature: Feature, found: list[tuple[str, int, int]], n_cohort: int, fewest: int
) -> list[tuple[str, int, int]]:
    """(name, label, patients) of the columns that a feature gets; -1 is the label of what nobody has."""
    if feature.group is None:
        return [found[0] if found else ("", -1, 0)]
    known = {name: (name, label, n) for name, label, n in found}
    if feature.only:
        return [known.get(name, (name, -1, 0)) for name in feature.only]
    least = max(feature.min_prevalence * n_cohort, 1, fewest)
    frequent = sorted((one for one in found if one[2] >= least), key=lambda one: (-one[2], one[0]))[: feature.top]
    return sorted(frequent)


def _with_persons(engine: Engine, chosen: list[tuple[Feature, str, int, int]]) -> list[PresentColumn]:
    labels = [(label,) for _, _, label, _ in chosen if label >= 0]
    persons, order = np.array([], dtype=np.int64), np.array([], dtype=np.int64)
    if labels:
        asked = values(labels, "a", ("label",))
        found = engine.fetch(
            "cells: present", f"SELECT p.person, p.label FROM {PRESENT} p JOIN {asked} ON a.label = p.label"
        )
        by_label = np.argsort(found["label"], kind="stable")
        persons, order = found["person"][by_label], found["label"][by_label]
    columns = []
    for feature, name, label, n in chosen:
        start, end = np.searchsorted(order, [label, label + 1])
        title = feature.name if feature.group is None else f"{feature.name}_{name}"
        columns.append(PresentColumn(title, feature, n, persons[start:end]))
    return columns


def count_events(engine: Engine, spec: Specification, matching: Matching) -> dict[str, Columns]:
    """Person and number of events, or of days with any, of every feature that counts; who is missing has none."""
    cells: dict[str, Columns] = {}
    for what in dict.fromkeys(f.statistic for f in spec.measured("count")):
        features = [f for f in spec.measured("count") if f.statistic == what]
        numbers = [spec.number_of(f) for f in features]
        found: Columns = {"person": np.array([], dtype=np.int64), "list": np.array([]), "n": np.array([])}
        if matching.any_events(numbers):
            moment = "CAST(e.time AS DATE) AS moment, '' AS key"
            if what == "events":
                moment = "e.time AS moment, CAST(e.key AS VARCHAR) AS key"
            events = matching.events(
                numbers, f"c.person, k.list, {moment}", f"{in_cohort(spec, features)} AND e.time IS NOT NULL"
            )
            distinct = "DISTINCT " if what == "days" or spec.source.duplicates == "drop" else ""
            found = engine.fetch(
                f"cells: {what}",
                f"SELECT person, list, CAST(count(*) AS INTEGER) AS n FROM (SELECT {distinct}person, list, moment, key "
                f"FROM ({events}) events) counted GROUP BY person, list",
            )
        for feature in features:
            own = found["list"] == spec.number_of(feature)
            cells[feature.name] = {"person": found["person"][own], "n": found["n"][own]}
    return cells


def first_events(engine: Engine, spec: Specification, matching: Matching) -> dict[str, Columns]:
    """Person and days from the index date to the first event after it, of every outcome with codes."""
    numbers = [spec.number_of(outcome) for outcome in spec.outcomes]
    found: Columns = {"person": np.array([], dtype=np.int64), "list": np.array([]), "days": np.array([])}
    if matching.any_events(numbers):
        where = f"JOIN {COHORT} c ON c.patient = e.patient WHERE CAST(e.time AS DATE) > c.index_date"
        events = matching.events(numbers, "c.person, k.list, CAST(e.time AS DATE) - c.index_date AS days", where)
        found = engine.fetch(
            "cells: days to the first event of an outcome",
            f"SELECT person, list, min(days) AS days FROM ({events}) events GROUP BY person, list",
        )
    cells = {}
    for outcome in spec.outcomes:
        own = found["list"] == spec.number_of(outcome)
        cells[outcome.name] = {"person": found["person"][own], "days": found["days"][own]}
    return cells
