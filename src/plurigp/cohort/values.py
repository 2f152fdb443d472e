"""Measured values: units converted, implausible ones left out, limits kept, one number per patient and feature."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from plurigp.cohort.engines import Columns, Engine
from plurigp.cohort.matching import Matching
from plurigp.cohort.population import COHORT, in_cohort
from plurigp.cohort.specification import Feature, Specification
from plurigp.cohort.sql import NUMBER, Dialect, among, literal, values

VALUES, MEASURED = "plurigp_values", "plurigp_measured"
LIMIT = rf"\s*(<=|>=|<|>|≤|≥)\s*({NUMBER})\s*"
BETWEEN = rf"\s*({NUMBER})\s*(?:-|–|to)\s*({NUMBER})\s*"
OPEN = 1e100  # stands for an open end while statistics are taken; what they make of it stays beyond IS_OPEN
IS_OPEN = 1e60
DIGITS = 12  # significant digits of medians and means: sums depend on the order of summing, and engines differ in it
DAYS_PER_YEAR = 365.25


class Status(IntEnum):
    """What became of a value, in the order in which it is asked."""

    USED = 0
    EMPTY = 1
    UNREADABLE = 2
    OTHER_UNIT = 3
    OUT_OF_RANGE = 4
    LIMIT_DROPPED = 5


@dataclass(frozen=True)
class ValueCells:
    """One number per patient and feature, or bounds; NaN is a gap, an infinite end is open."""

    person: np.ndarray
    low: np.ndarray
    high: np.ndarray


def collect_values(engine: Engine, spec: Specification, matching: Matching) -> Columns:
    """Fills the tables of values; returns how many have which list, unit and status, for the quality page."""
    features = spec.measured("value")
    numbers = [spec.number_of(f) for f in features]
    if not matching.any_events(numbers):
        number = "CAST(0 AS DOUBLE PRECISION)"
        empty = (
            f"SELECT 0 AS person, 0 AS list, CAST(NULL AS TIMESTAMP) AS time, '' AS unit, {number} AS low, "
            f"{number} AS high, {Status.USED} AS status WHERE FALSE"
        )
        engine.run("no values are asked for", f"CREATE TEMP TABLE {VALUES} AS {empty}")
    else:
        columns = "c.person, k.list, e.time, e.value, e.text, coalesce(e.unit, '') AS unit"
        events = matching.events(numbers, columns, in_cohort(spec, features))
        engine.run("values in their windows", f"CREATE TEMP TABLE {VALUES} AS {_judged(engine.dialect, spec, events)}")
    distinct = "DISTINCT " if spec.source.duplicates == "drop" else ""
    engine.run(
        "usable values, each once" if distinct else "usable values",
        f"CREATE TEMP TABLE {MEASURED} AS SELECT {distinct}person, list, time, low, high FROM {VALUES} "
        f"WHERE status = {Status.USED}",
    )
    seen = engine.fetch(
        "units seen, and what became of the values",
        f"SELECT list, unit, status, count(*) AS n, count(*) FILTER (WHERE low < high) AS limits, "
        f"avg(CASE WHEN low = high THEN low END) AS mean FROM {VALUES} GROUP BY list, unit, status",
    )
    engine.run("room for more", f"DROP TABLE {VALUES}")
    return seen


def _ends(dialect: Dialect, events: str) -> str:
    """The low and the high end of every value: equal for a number, one of them open for a limit."""
    sign, limit = dialect.extract("text", LIMIT, 1), dialect.number(dialect.extract("text", LIMIT, 2))
    numbers = [dialect.number(dialect.extract("text", BETWEEN, n)) for n in (1, 2)]
    columns = []
    for end, number, opened, signs in (
        ("low", numbers[0], -OPEN, "'<', '<=', '≤'"),
        ("high", numbers[1], OPEN, "'>', '>=', '≥'"),
    ):
        of_limit = f"CASE WHEN {sign} IN ({signs}) THEN {literal(opened)} ELSE {limit} END"
        columns.append(
            f"CASE WHEN value IS NOT NULL THEN value WHEN {dialect.matches('text', LIMIT)} THEN {of_limit} "
            f"WHEN {dialect.matches('text', BETWEEN)} THEN {number} ELSE {dialect.number('text')} END AS {end}"
        )
    return f"SELECT person, list, time, unit, text,\n{columns[0]},\n{columns[1]}\nFROM ({events}) events{dialect.fence}"


def _converted(spec: Specification, ends: str) -> str:
    """The ends in the unit of the feature, and whether the unit they came in is known."""
    with_unit = [f for f in spec.measured("value") if f.unit is not None]
    rows = [(spec.number_of(f), *unit) for f in with_unit for unit in ((f.unit or "", 1.0, 0.0), *f.convert)]
    units = values(rows or [(-1, "", 1.0, 0.0)], "u", ("list", "unit", "factor", "shift"))
    known = f"(u.factor IS NOT NULL OR NOT ({among('v.list', map(spec.number_of, with_unit))}))"
    columns = ", ".join(
        f"CASE WHEN u.factor IS NULL OR abs(v.{end}) > {literal(IS_OPEN)} THEN v.{end} "
        f"ELSE v.{end} * u.factor + u.shift END AS {end}"
        for end in ("low", "high")
    )
    return (
        f"SELECT v.person, v.list, v.time, v.unit, v.text, {columns}, {known} AS unit_known\n"
        f"FROM ({ends}) v LEFT JOIN {units} ON u.list = v.list AND u.unit = v.unit"
    )


def _judged(dialect: Dialect, spec: Specification, events: str) -> str:
    """Low and high ends of every value after conversion, with its status."""
    features = spec.measured("value")
    dropped = among("list", [spec.number_of(f) for f in features if not f.keep_limits])
    status = (
        f"CASE WHEN low IS NULL OR high IS NULL OR low > high THEN CASE WHEN text IS NULL THEN {Status.EMPTY} "
        f"ELSE {Status.UNREADABLE} END WHEN NOT unit_known THEN {Status.OTHER_UNIT} "
        f"WHEN {_implausible(spec, features)} THEN {Status.OUT_OF_RANGE} "
        f"WHEN low < high AND {dropped} THEN {Status.LIMIT_DROPPED} ELSE {Status.USED} END"
    )
    converted = _converted(spec, _ends(dialect, events)) + dialect.fence
    return f"SELECT person, list, time, unit, low, high, CAST({status} AS SMALLINT) AS status\nFROM ({converted}) w"


def _implausible(spec: Specification, features: tuple[Feature, ...]) -> str:
    """Whether a known end lies outside the range of its feature."""
    cases = []
    for feature in features:
        if feature.plausible is not None:
            low, high = map(literal, feature.plausible)
            opened = literal(IS_OPEN)
            outside = f"(low > -{opened} AND low < {low}) OR low > {high} OR high < {low} "
            outside += f"OR (high < {opened} AND high > {high})"
            cases.append(f"WHEN {spec.number_of(feature)} THEN {outside}")
    return f"CASE list {' '.join(cases)} ELSE FALSE END" if cases else "FALSE"


def value_cells(engine: Engine, spec: Specification, limited: set[int]) -> dict[str, ValueCells]:
    """The cells of every feature with values; `limited` are the lists in which limits were seen."""
    cells: dict[str, ValueCells] = {}
    for statistic in dict.fromkeys(f.statistic for f in spec.measured("value")):
        features = [f for f in spec.measured("value") if f.statistic == statistic]
        numbers = [spec.number_of(f) for f in features]
        for part, bounds in ((set(numbers) - limited, False), (set(numbers) & limited, True)):
            if part:
                found = engine.fetch(f"cells: {statistic}", _statistic(statistic, sorted(part), bounds))
                by_list = _finished(statistic, found, bounds)
                cells |= {f.name: by_list(spec.number_of(f)) for f in features if spec.number_of(f) in part}
    return cells


AGGREGATES = {
    "median": "percentile_cont(0.5) WITHIN GROUP (ORDER BY {0})",
    "mean": "avg({0})",
    "min": "min({0})",
    "max": "max({0})",
    "count": "CAST(count({0}) AS DOUBLE PRECISION)",
}


def _statistic(statistic: str, numbers: list[int], bounds: bool) -> str:
    """Cells of the patients that are in the cohort; with limits the statistic of the low and of the high ends."""
    inside = f"{among('m.list', numbers)} AND m.person IN (SELECT person FROM {COHORT})"
    ends = ("low", "high") if bounds else ("low",)
    if statistic in AGGREGATES:
        of_ends = ", ".join(f"{AGGREGATES[statistic].format(f'm.{end}')} AS {end}" for end in ends)
        return f"SELECT m.person, m.list, {of_ends} FROM {MEASURED} m WHERE {inside} GROUP BY m.person, m.list"
    if statistic == "slope":
        x = "(CAST(m.time AS DATE) - c.index_date)"
        parts = {"n": "count(*)", "x": f"sum({x})", "xx": f"sum({x} * {x})", "y": "sum(m.low)",
                 "xy": f"sum(m.low * {x})", "size": "max(abs(m.low))"}  # fmt: skip
        sums = ", ".join(f"CAST({part} AS DOUBLE PRECISION) AS {name}" for name, part in parts.items())
        return (
            f"SELECT m.person, m.list, {sums} FROM {MEASURED} m JOIN {COHORT} c ON c.person = m.person "
            f"WHERE {among('m.list', numbers)} AND m.low = m.high AND m.time IS NOT NULL "
            "GROUP BY m.person, m.list"
        )
    order = f"m.time {'DESC' if statistic == 'last' else 'ASC'} NULLS LAST"
    ranked = f"row_number() OVER (PARTITION BY m.person, m.list ORDER BY {order}, m.low, m.high) AS place"
    return (
        f"SELECT person, list, {', '.join(ends)} FROM (SELECT m.person, m.list, m.low, m.high, {ranked} "
        f"FROM {MEASURED} m WHERE {inside}) ranked WHERE place = 1"
    )


def _finished(statistic: str, found: Columns, bounds: bool) -> Callable[[int], ValueCells]:
    """From a statistic of all lists to the cells of one."""
    low = _slopes(found) if statistic == "slope" else found["low"].astype(np.float64)
    high = found["high"].astype(np.float64) if bounds and "high" in found else low
    if statistic in ("median", "mean"):
        low, high = to_digits(low), to_digits(high)
    low, high = np.where(low < -IS_OPEN, -np.inf, low), np.where(high > IS_OPEN, np.inf, high)

    def of_list(number: int) -> ValueCells:
        own = found["list"] == number
        return ValueCells(found["person"][own], low[own], high[own])

    return of_list


POWERS = np.array([float(f"1e{n}") for n in range(23)])  # those that a double holds exactly


def to_digits(numbers: np.ndarray) -> np.ndarray:
    """To DIGITS significant digits."""
    size = np.where((numbers == 0) | ~np.isfinite(numbers), 1.0, np.abs(numbers))
    power = POWERS[np.clip(DIGITS - 1 - np.floor(np.log10(size)), 0, len(POWERS) - 1).astype(int)]
    small = size < POWERS[DIGITS]
    return np.where(small, np.rint(np.where(small, numbers, 0.0) * power) / power, numbers)


def _slopes(sums: Columns) -> np.ndarray:
    """Least squares per year; NaN where all values are of one day. Rounded to DIGITS digits of the largest value."""
    n, x, xx, y, xy, size = (sums[name].astype(np.float64) for name in ("n", "x", "xx", "y", "xy", "size"))
    spread = n * xx - x * x
    slope = np.where(spread > 0, (n * xy - x * y) / np.where(spread > 0, spread, 1.0), np.nan) * DAYS_PER_YEAR
    noise = size * DAYS_PER_YEAR * n * np.sqrt(xx) / np.where(spread > 0, spread, 1.0)
    step = 10.0 ** np.ceil(np.log10(np.maximum(noise, 1e-200)) - DIGITS + 1)
    return to_digits(np.round(slope / step) * step)
