"""What the quality page says: columns recognised, units seen, values left out, gaps; small counts hidden if asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from plurigp.cohort.engines import Columns, Engine
from plurigp.cohort.matching import Matching
from plurigp.cohort.population import COHORT, AttritionStep, shown_count
from plurigp.cohort.sources import Records
from plurigp.cohort.specification import Specification
from plurigp.cohort.values import MEASURED, Status
from plurigp.core.text import amount, listing, printable, show
from plurigp.core.types import DataError
from plurigp.data import Schema

NO_UNIT = 'without a unit (convert = { "" = 1 } takes them)'
LEFT_OUT = {
    Status.EMPTY: "without a value",
    Status.UNREADABLE: "neither a number nor a limit",
    Status.OTHER_UNIT: "of a unit that is not converted",
    Status.OUT_OF_RANGE: "outside the plausible range",
    Status.LIMIT_DROPPED: "limits, dropped as asked",
}
MAX_UNITS = 200  # lines of the table of units
MIN_FOR_MEAN = 10  # values behind a mean that is shown


@dataclass
class Quality:
    """Tables of text for the page, and the notes that a person must read."""

    attrition: pd.DataFrame
    columns: pd.DataFrame  # kind, gaps
    units: pd.DataFrame
    recognised: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def shares(self) -> list[float]:
        """Patients left in percent of all, from the counts as they are shown."""
        shown = [0.0 if n.startswith("<") else float(n.replace(",", "")) for n in self.attrition["patients left"]]
        return [100 * n / max(1.0, shown[0]) for n in shown]


def attrition_table(steps: Sequence[AttritionStep], fewest: int) -> pd.DataFrame:
    """Rule, patients left, patients removed."""
    before = [steps[0].n_left, *(step.n_left for step in steps)]
    rows = [
        (step.rule, shown_count(step.n_left, fewest), shown_count(n - step.n_left, fewest) if place else "")
        for place, (step, n) in enumerate(zip(steps, before, strict=False))
    ]
    return pd.DataFrame(rows, columns=["rule", "patients left", "removed"])


def check_units(spec: Specification, seen: Columns, fewest: int) -> None:
    """Values of several units without a declared one cannot be put together."""
    for feature in spec.measured("value"):
        own = (seen["list"] == spec.number_of(feature)) & (seen["status"] == Status.USED)
        units = {str(unit): int(n) for unit, n in zip(seen["unit"][own], seen["n"][own], strict=True)}
        if feature.unit is None and len(units) > 1 and feature.statistic != "count":
            spelled = [
                f"{show(u) if u else 'no unit'} ({shown_count(n, fewest)} values)"
                for u, n in sorted(units.items(), key=lambda p: -p[1])
            ]
            raise DataError(
                f"feature {show(feature.name, 60)}: its values have several units: {listing(spelled, 6)}; "
                'declare unit = "..." and convert = { ... } for the others ("" = 1 takes values without a unit).'
            )


def limited_lists(seen: Columns) -> set[int]:
    """The lists in which usable limits were seen."""
    return {
        int(n) for n, s, k in zip(seen["list"], seen["status"], seen["limits"], strict=True) if s == Status.USED and k
    }


def quality_tables(
    engine: Engine, spec: Specification, records: Records, matching: Matching, seen: Columns,
    steps: Sequence[AttritionStep], table: pd.DataFrame, schema: Schema,
) -> Quality:  # fmt: skip
    """Everything for the page."""
    fewest = spec.suppress_below
    lines = _unit_lines(spec, seen)
    notes = [f"{name}: no code of the source fits {pattern}" for name, pattern in matching.unmatched]
    notes += _values_left_out(spec, lines) + _duplicates(engine, spec, seen) + _births(engine, spec)
    if spec.needs_observation and not records.has_periods:
        notes.append("the source has no periods of observation: they reach from each patient's first event to the last")
    return Quality(
        attrition_table(steps, fewest),
        _column_table(table, schema, fewest),
        _unit_table(lines, fewest),
        pd.DataFrame(records.recognised, columns=["table", "column for", "found as"]),
        [printable(note, 300) for note in notes],
    )


class _UnitLine(NamedTuple):
    """The values of one feature that came in one unit and met one fate."""

    feature: str
    unit: str
    status: Status
    n: int
    limits: int
    mean: float

    @property
    def why(self) -> str:
        """Why they were left out."""
        return NO_UNIT if self.status is Status.OTHER_UNIT and not self.unit else LEFT_OUT[self.status]


def _unit_lines(spec: Specification, seen: Columns) -> list[_UnitLine]:
    names = {spec.number_of(feature): feature.name for feature in spec.measured("value")}
    rows = zip(*(seen[key].tolist() for key in ("list", "unit", "status", "n", "limits", "mean")), strict=True)
    lines = [
        (int(number), _UnitLine(names[int(number)], str(unit), Status(int(status)), int(n), int(limits), float(mean)))
        for number, unit, status, n, limits, mean in rows
    ]
    return [line for _, line in sorted(lines, key=lambda pair: (pair[0], pair[1].status, -pair[1].n, pair[1].unit))]


def _unit_table(lines: list[_UnitLine], fewest: int) -> pd.DataFrame:
    rows = []
    for line in lines[:MAX_UNITS]:
        fate = "used" if line.status is Status.USED else f"left out: {line.why}"
        enough = line.status is Status.USED and line.n - line.limits >= max(MIN_FOR_MEAN, fewest)
        mean = amount(float(f"{line.mean:.3g}")) if enough else ""
        counts = (shown_count(n, fewest) for n in (line.n, line.limits))
        rows.append((line.feature, printable(line.unit, 60) or "(none)", fate, *counts, mean))
    heads = ["feature", "unit", "what became of them", "values", "limits", "mean after conversion"]
    return pd.DataFrame(rows, columns=heads)


def _values_left_out(spec: Specification, lines: list[_UnitLine]) -> list[str]:
    notes, fewest = [], spec.suppress_below
    for feature in spec.measured("value"):
        own = [line for line in lines if line.feature == feature.name]
        n_all = shown_count(sum(line.n for line in own), fewest)
        reasons: Counter[str] = Counter()
        for line in own:
            if line.status is not Status.USED:
                reasons[line.why] += line.n
        if reasons:
            told = ", ".join(f"{shown_count(n, fewest)} {why}" for why, n in reasons.items())
            notes.append(f"{feature.name}: of {n_all} values are left out {told}")
        if not any(line.status is Status.USED for line in own):
            notes.append(f"{feature.name}: no value is usable; the column is empty")
    return notes


def _column_table(table: pd.DataFrame, schema: Schema, fewest: int) -> pd.DataFrame:
    rows = []
    for column in schema:
        n = int(table[column.name].isna().sum())
        share = "" if 0 < n < fewest else f"{n / len(table):.0%}" if fewest else f"{n / len(table):.1%}"
        rows.append((printable(column.name, 80), column.kind, column.reason, shown_count(n, fewest), share))
    return pd.DataFrame(rows, columns=["column", "kind", "reason", "gaps", "share"])


def _duplicates(engine: Engine, spec: Specification, seen: Columns) -> list[str]:
    if spec.source.duplicates != "drop" or not spec.measured("value"):
        return []
    kept = int(engine.fetch("values after duplicates", f"SELECT count(*) AS n FROM {MEASURED}")["n"][0])
    usable = int(sum(seen["n"][seen["status"] == Status.USED]))
    if usable == kept:
        return []
    n, of = (shown_count(number, spec.suppress_below) for number in (usable - kept, usable))
    return [f"{n} of {of} usable values repeat another (same patient, feature, time and value) and count once"]


def _births(engine: Engine, spec: Specification) -> list[str]:
    asks = spec.eligibility.age or any(f.statistic == "age" for f in spec.measured("demographic"))
    if not asks:
        return []
    found = engine.fetch(
        "birth dates",
        f"SELECT count(*) FILTER (WHERE birth IS NULL) AS unknown, count(*) FILTER (WHERE NOT birth_exact AND birth IS "
        f"NOT NULL) AS by_year FROM {COHORT}",
    )
    unknown, by_year = (int(found[name][0]) for name in ("unknown", "by_year"))
    fewest = spec.suppress_below
    notes = [f"{shown_count(unknown, fewest)} patients have no date of birth"] if unknown else []
    return notes + (
        [f"{shown_count(by_year, fewest)} patients have a year of birth only; 1 July is taken"] if by_year else []
    )
