"""Who is in: the index event, what is known of each patient, and the rules, with how many each rule removed."""

from collections.abc import Iterable
from dataclasses import dataclass

from plurigp.cohort.engines import Engine
from plurigp.cohort.matching import Matching, in_windows
from plurigp.cohort.sources import Records
from plurigp.cohort.specification import Feature, Specification
from plurigp.cohort.sql import literal
from plurigp.cohort.windows import Window
from plurigp.core.text import amount, listing, show
from plurigp.core.types import DataError

PATIENTS, EVERY_INDEX, INDEX, CANDIDATES, EXCLUDED, COHORT = (
    f"plurigp_{name}" for name in ("patients", "every_index", "index", "candidates", "excluded", "cohort")
)
EARLIEST, LATEST = "DATE '0001-01-01'", "DATE '9999-12-31'"


@dataclass(frozen=True)
class AttritionStep:
    """A rule and how many patients are left after it."""

    rule: str
    n_left: int


def shown_count(n: int, fewest: int) -> str:
    """A count for people; where small ones are hidden, all are rounded, so that no difference betrays one."""
    if fewest and 0 < n < fewest:
        return f"<{fewest}"
    return f"{round(n / fewest) * fewest:,}" if fewest else f"{n:,}"


def window_name(spec: Specification, window: Window) -> str:
    """What its two columns in the cohort's table begin with; empty for a window that is open at both ends."""
    return "" if window.start is None and window.end is None else f"w{spec.windows.index(window)}"


def windows_of(spec: Specification, features: Iterable[Feature]) -> list[tuple[int, str]]:
    """The number of each feature's code list with the name of its window."""
    return [(spec.number_of(f), window_name(spec, f.window)) for f in features if f.window is not None]


def in_cohort(spec: Specification, features: Iterable[Feature]) -> str:
    """What follows the FROM of events `e` that lie in the windows of these features, of patients `c` of the cohort."""
    inside = in_windows(windows_of(spec, features))
    return f"JOIN {COHORT} c ON c.patient = e.patient WHERE {inside}"


def find_candidates(engine: Engine, records: Records, spec: Specification, matching: Matching) -> list[AttritionStep]:
    """The patients with an index event, what is known of them, and the exclusions that hit them."""
    number = spec.number_of(spec.index)
    if not matching.any_events([number]):
        listed = ", ".join(str(pattern) for pattern in spec.index.patterns[:5])
        starts = matching.vocabularies()
        there = f" (its codes begin with {listing(map(show, starts))})" if starts else ""
        raise DataError(f"index, codes: the source has no code that fits {listed}{there}; correct them.")
    engine.run("the patients of the source", f"CREATE TEMP TABLE {PATIENTS} AS {records.patients}")
    days = "count(DISTINCT CAST(time AS DATE))" if spec.index.min_days > 1 else "1"
    events = matching.events([number], "e.patient, e.time", "")
    engine.run(
        "the index event: first day with any of its codes",
        f"CREATE TEMP TABLE {EVERY_INDEX} AS SELECT patient, min(CAST(time AS DATE)) AS index_date, {days} AS n_days, "
        f"count(*) AS n_events, count(*) - count(time) AS n_untimed\nFROM ({events}) events GROUP BY patient",
    )
    engine.run("with a time", f"CREATE TEMP TABLE {INDEX} AS SELECT * FROM {EVERY_INDEX} WHERE index_date IS NOT NULL")
    engine.run("what is known of each", f"CREATE TEMP TABLE {CANDIDATES} AS {_candidates(records, spec)}")
    _find_excluded(engine, spec, matching)
    counted = engine.fetch(
        "patients in the source, and with an index event",
        f"SELECT (SELECT count(*) FROM {PATIENTS}) + (SELECT count(*) FROM {INDEX} i WHERE NOT EXISTS "
        f"(SELECT 1 FROM {PATIENTS} p WHERE p.patient = i.patient)) AS everyone, "
        f"(SELECT count(*) FROM {INDEX}) AS with_index",
    )
    return [
        AttritionStep("patients in the source", int(counted["everyone"][0])),
        AttritionStep("with an index event", int(counted["with_index"][0])),
    ]


def untimed_index_events(engine: Engine) -> list[str]:
    """A note on index events without a readable time; if all are, an error."""
    found = engine.fetch(
        "index events without a time", f"SELECT sum(n_events) AS n, sum(n_untimed) AS untimed FROM {EVERY_INDEX}"
    )
    n, untimed = (int(found[name][0] or 0) for name in ("n", "untimed"))
    if n and n == untimed:
        remedy = 'write time_format under [source] if they are not ISO 8601 ("2020-12-31"), or name the column'
        raise DataError(f"source: none of the index events has a readable time; {remedy}.")
    return [f"index events without a readable time are left out: {untimed / n:.1%} of all"] if untimed else []


def _candidates(records: Records, spec: Specification) -> str:
    observed = (
        f"SELECT i.patient, min(p.start_date) AS start_date, max(p.end_date) AS end_date FROM {INDEX} i "
        f"JOIN ({records.periods}) p ON p.patient = i.patient AND i.index_date BETWEEN p.start_date AND p.end_date "
        "GROUP BY i.patient"
    )
    from_to, join = "CAST(NULL AS DATE) AS observed_from, CAST(NULL AS DATE) AS observed_to", ""
    if spec.needs_observation:
        from_to, join = (
            "o.start_date AS observed_from, o.end_date AS observed_to",
            f"LEFT JOIN ({observed}) o ON o.patient = i.patient",
        )
    edges = []
    for window in spec.windows:
        start = EARLIEST if window.start is None else window.start.after("i.index_date")
        end = LATEST if window.end is None else window.end.after("i.index_date")
        if name := window_name(spec, window):
            edges += [f"{start} AS {name}_from", f"{end} AS {name}_to"]
    month_day = "extract(month FROM {0}) * 100 + extract(day FROM {0})"
    before = f"({month_day.format('i.index_date')}) < ({month_day.format('a.birth')})"
    age = f"extract(year FROM i.index_date) - extract(year FROM a.birth) - CASE WHEN {before} THEN 1 ELSE 0 END"
    columns = [
        "CAST(row_number() OVER (ORDER BY i.patient) AS INTEGER) AS person", "i.patient", "i.index_date", "i.n_days",
        "a.birth", "a.birth_exact", "a.sex", "a.death", f"CAST({age} AS INTEGER) AS age", from_to, *edges,
    ]  # fmt: skip
    return f"SELECT {', '.join(columns)}\nFROM {INDEX} i LEFT JOIN {PATIENTS} a ON a.patient = i.patient {join}"


def _find_excluded(engine: Engine, spec: Specification, matching: Matching) -> None:
    rules = [(spec.number_of(rule), window_name(spec, rule.window)) for rule in spec.eligibility.exclude]
    if not matching.any_events(number for number, _ in rules):
        query = "SELECT 0 AS person, 0 AS list WHERE FALSE"
    else:
        where = f"JOIN {CANDIDATES} c ON c.patient = e.patient WHERE {in_windows(rules)}"
        events = matching.events((number for number, _ in rules), "c.person, k.list", where)
        query = f"SELECT DISTINCT person, list FROM ({events}) events"
    engine.run("events that exclude", f"CREATE TEMP TABLE {EXCLUDED} AS {query}")


def apply_rules(engine: Engine, spec: Specification) -> list[AttritionStep]:
    """The cohort: the candidates whom no rule removes."""
    rules = _rules(spec)
    kept = " AND ".join(condition for _, condition in rules) or "TRUE"
    engine.run(
        "those whom no rule removes", f"CREATE TEMP TABLE {COHORT} AS SELECT c.* FROM {CANDIDATES} c WHERE {kept}"
    )
    if not rules:
        return []
    so_far = [" AND ".join(condition for _, condition in rules[: n + 1]) for n in range(len(rules))]
    counts = ", ".join(f"count(*) FILTER (WHERE {condition}) AS n{n}" for n, condition in enumerate(so_far))
    found = engine.fetch("how many each rule leaves", f"SELECT {counts} FROM {CANDIDATES} c")
    return [AttritionStep(name, int(found[f"n{n}"][0])) for n, (name, _) in enumerate(rules)]


def _rules(spec: Specification) -> list[tuple[str, str]]:
    """Names and conditions on a candidate `c`; an unknown fact fails its rule."""
    index, rules, made = spec.index, spec.eligibility, []
    if index.since or index.until:
        since, until = (literal(str(day)) for day in (index.since, index.until))
        inside = [f"c.index_date >= CAST({since} AS DATE)"] * bool(index.since)
        inside += [f"c.index_date <= CAST({until} AS DATE)"] * bool(index.until)
        made.append((f"index date from {index.since or 'ever'} until {index.until or 'ever'}", " AND ".join(inside)))
    if index.min_days > 1:
        made.append((f"index codes on at least {index.min_days} days", f"c.n_days >= {index.min_days}"))
    if rules.age:
        low, high = rules.age
        made.append((f"age {amount(low)} to {amount(high)} years at index", f"c.age BETWEEN {low!r} AND {high!r}"))
    for name, span in (("washout", index.washout), ("observed", rules.observed_before)):
        if span is not None:
            back = type(span)(-span.count, span.unit).after("c.index_date")
            made.append((f"{name} at least {span} before index", f"c.observed_from <= {back}"))
    if rules.observed_after is not None:
        ahead = rules.observed_after.after("c.index_date")
        made.append((f"observed at least {rules.observed_after} after index", f"c.observed_to >= {ahead}"))
    for rule in rules.exclude:
        hit = f"SELECT 1 FROM {EXCLUDED} x WHERE x.person = c.person AND x.list = {spec.number_of(rule)}"
        made.append((f"without {rule.name}", f"NOT EXISTS ({hit})"))
    return [(name, f"coalesce({condition}, FALSE)") for name, condition in made]


def keep_with_values(engine: Engine, spec: Specification, measured: str) -> list[AttritionStep]:
    """The rules on required values, once values are known."""
    rules = []
    for name in spec.eligibility.required:
        number = next(spec.number_of(f) for f in spec.features if f.name == name)
        rules.append((f"with a value of {name}", f"SELECT person FROM {measured} WHERE list = {number}"))
    if spec.eligibility.min_values:
        least = spec.eligibility.min_values
        enough = f"SELECT person FROM {measured} GROUP BY person HAVING count(DISTINCT list) >= {least}"
        rules.append((f"with at least {least} of the values", enough))
    steps = []
    for name, persons in rules:
        engine.run(f"only patients {name}", f"DELETE FROM {COHORT} WHERE person NOT IN ({persons})")
        left = engine.fetch("how many are left", f"SELECT count(*) AS n FROM {COHORT}")
        steps.append(AttritionStep(name, int(left["n"][0])))
    return steps
