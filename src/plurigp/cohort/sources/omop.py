"""The OMOP common data model, 5.3 and 5.4: a stream per table for its standard, its source and its verbatim codes."""

from dataclasses import dataclass

from plurigp.cohort.columns import Aliases, Reader, SourceTable
from plurigp.cohort.sources.base import (
    Dictionary,
    EventColumns,
    Records,
    Stream,
    as_recognised,
    first_to_last,
    same_patients,
    sex_of,
    stream_of,
)  # fmt: skip
from plurigp.cohort.sources.long import birth_query, optional_table, periods_query
from plurigp.cohort.specification import Source
from plurigp.cohort.sql import literal
from plurigp.cohort.stores import Store
from plurigp.cohort.times import local_time
from plurigp.core.text import listing
from plurigp.core.types import DataError

VERBATIM = "source/"  # what comes before a code that is the text of a *_source_value column
OPERATORS = {4171756: "<", 4171754: "<=", 4172704: ">", 4171755: ">="}
VALUE_COLUMNS = ("value_as_number", "value_source_value", "value_as_string", "unit_concept_id", "unit_source_value",
                 "operator_concept_id")  # fmt: skip
GENDERS = {8532: "female", 8507: "male"}


@dataclass(frozen=True)
class EventTable:
    """A table of events: how its columns begin, and when its events start."""

    table: str
    prefix: str
    start: str
    has_values: bool = False


DOMAINS = (
    EventTable("condition_occurrence", "condition", "condition_start"),
    EventTable("measurement", "measurement", "measurement", has_values=True),
    EventTable("observation", "observation", "observation", has_values=True),
    EventTable("drug_exposure", "drug", "drug_exposure_start"),
    EventTable("procedure_occurrence", "procedure", "procedure"),
    EventTable("visit_occurrence", "visit", "visit_start"),
    EventTable("device_exposure", "device", "device_exposure_start"),
)
CONCEPT: Aliases = {"concept_id": (), "vocabulary_id": (), "concept_code": ()}
ANCESTOR: Aliases = {"ancestor_concept_id": (), "descendant_concept_id": ()}
PERSON: Aliases = {
    "patient": ("person_id",),
    "birth_datetime": (),
    "year_of_birth": (),
    "month_of_birth": (),
    "day_of_birth": (),
    "gender_concept_id": (),
    "gender_source_value": (),
}
DEATH: Aliases = {"patient": ("person_id",), "death_date": (), "death_datetime": ()}
PERIOD: Aliases = {"patient": ("person_id",), "observation_period_start_date": (), "observation_period_end_date": ()}


def _aliases(domain: EventTable) -> Aliases:
    ours: dict[str, tuple[str, ...]] = {
        "patient": ("person_id",),
        "date": (f"{domain.start}_date",),
        "datetime": (f"{domain.start}_datetime",),
        "concept": (f"{domain.prefix}_concept_id",),
        "source_concept": (f"{domain.prefix}_source_concept_id",),
        "source_value": (f"{domain.prefix}_source_value",),
    }
    if domain.has_values:
        ours |= dict.fromkeys(VALUE_COLUMNS, ())
    return ours


def omop_records(store: Store, source: Source) -> Records:
    """Every table of events that is there; person is required, concept is for all codes but concept ids."""
    reader = Reader(store.engine.dialect, source.time_zone, source.time_format)
    person = optional_table(store, "person", PERSON, ("patient",), source, reader)
    if person is None:
        there = listing(store.known())
        raise DataError(f'source: there is no table "person" (there are: {there}); check path or schema.')
    death = optional_table(store, "death", DEATH, ("patient",), source, reader)
    periods = optional_table(store, "observation_period", PERIOD, tuple(PERIOD), source, reader)
    concept = optional_table(store, "concept", CONCEPT, tuple(CONCEPT), source, reader)
    ancestor = optional_table(store, "concept_ancestor", ANCESTOR, tuple(ANCESTOR), source, reader)
    events = _event_tables(store, source, reader)
    reader = same_patients(reader, person, death, periods, *(table for _, table in events))
    person, death, periods = (
        person.read_by(reader),
        death and death.read_by(reader),
        periods and periods.read_by(reader),
    )
    events = [(domain, table.read_by(reader)) for domain, table in events]
    units, unit_table = _units(concept)
    all_days = first_to_last((table, table.time("datetime", "date")) for _, table in events)
    return Records(
        streams=tuple(stream for domain, table in events for stream in _streams(domain, table, units)),
        dictionaries={"concepts": Dictionary(_concepts(concept))}
        | {f"verbatim {d.table}": Dictionary(_verbatim(t), VERBATIM) for d, t in events},
        patients=_patients(person, death),
        periods=all_days if periods is None else periods_query(periods, *tuple(PERIOD)[1:]),
        has_periods=periods is not None,
        ancestors=None if ancestor is None else _ancestors(ancestor),
        preparations=unit_table,
        recognised=as_recognised(person, death, periods, concept, *(table for _, table in events)),
    )


def _event_tables(store: Store, source: Source, reader: Reader) -> list[tuple[EventTable, SourceTable]]:
    found = []
    for domain in DOMAINS:
        table = optional_table(store, domain.table, _aliases(domain), ("patient", "concept"), source, reader)
        if table is not None and "date" not in table and "datetime" not in table:
            expected = f"{domain.start}_date nor {domain.start}_datetime"
            raise DataError(f"table {domain.table}: has neither {expected}; add one.")
        if table is not None:
            found.append((domain, table))
    if not found:
        known = listing(domain.table for domain in DOMAINS)
        raise DataError(f"source: none of the tables {known} is there; check path or schema.")
    return found


def _concepts(concept: SourceTable | None) -> str:
    if concept is None:
        return "SELECT CAST(NULL AS BIGINT) AS key, CAST(NULL AS VARCHAR) AS code WHERE FALSE"
    return (
        f"SELECT {concept.whole('concept_id')} AS key, "
        f"{concept.text('vocabulary_id')} || '/' || {concept.text('concept_code')} AS code FROM {concept.item}"
    )


def _ancestors(ancestor: SourceTable) -> str:
    return (
        f"SELECT {ancestor.whole('ancestor_concept_id')} AS ancestor, {ancestor.whole('descendant_concept_id')} AS key "
        f"FROM {ancestor.item}"
    )


def _units(concept: SourceTable | None) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """Units of measurement are concepts too, mostly of UCUM."""
    if concept is None:
        return None, ()
    made = (
        f"CREATE TEMP TABLE plurigp_omop_units AS SELECT {concept.whole('concept_id')} AS id, "
        f"{concept.text('concept_code')} AS unit FROM {concept.item} WHERE {concept.text('vocabulary_id')} = 'UCUM'"
    )
    return "plurigp_omop_units", (("units of measurement among the concepts", made),)


def _streams(domain: EventTable, table: SourceTable, units: str | None) -> list[Stream]:
    """By the standard concept, by the source concept where it is another one, and by the verbatim source value."""
    time = table.time("datetime", "date")
    value, text, unit = "CAST(NULL AS DOUBLE PRECISION)", "CAST(NULL AS VARCHAR)", "CAST(NULL AS VARCHAR)"
    if domain.has_values:
        operator = table.whole("operator_concept_id")
        signs = " ".join(f"WHEN {number} THEN '{sign}'" for number, sign in OPERATORS.items())
        limit = ", ".join(map(str, OPERATORS))
        value = f"CASE WHEN {operator} IN ({limit}) THEN NULL ELSE {table.number('value_as_number')} END"
        number_text = f"CAST({table.number('value_as_number')} AS VARCHAR)"
        text = (
            f"CASE WHEN {operator} IN ({limit}) THEN CASE {operator} {signs} END || {number_text} "
            f"ELSE coalesce({table.text('value_source_value')}, {table.text('value_as_string')}) END"
        )
        unit = table.text("unit_source_value")
        if units is not None:
            by_concept = f"(SELECT min(u.unit) FROM {units} u WHERE u.id = {table.whole('unit_concept_id')})"
            unit = f"coalesce({by_concept}, {unit})"
    concept, other = table.whole("concept"), table.whole("source_concept")
    made = [
        ("standard", concept, "concepts", f"{concept} <> 0"),
        ("source", other, "concepts", f"{other} <> 0 AND {other} <> coalesce({concept}, 0)"),
        ("verbatim", f"{literal(VERBATIM)} || {table.text('source_value')}", f"verbatim {domain.table}", ""),
    ]
    present = [m for m, role in zip(made, ("concept", "source_concept", "source_value"), strict=True) if role in table]
    return [
        stream_of(f"{domain.table}, {name} codes", table, EventColumns(key, time, value, text, unit), dictionary, where)
        for name, key, dictionary, where in present
    ]


def _verbatim(table: SourceTable) -> str:
    if "source_value" not in table:
        return "SELECT CAST(NULL AS VARCHAR) AS key, CAST(NULL AS VARCHAR) AS code WHERE FALSE"
    code = f"{literal(VERBATIM)} || {table.text('source_value')}"
    return f"SELECT DISTINCT {code} AS key, {code} AS code FROM {table.item}"


def _patients(person: SourceTable, death: SourceTable | None) -> str:
    year, month, day = (person.whole(f"{part}_of_birth") for part in ("year", "month", "day"))
    padded = (f"lpad(CAST({part} AS VARCHAR), {n}, '0')" for part, n in ((year, 4), (month, 2), (day, 2)))
    written = " || '-' || ".join(padded)
    exact = f"coalesce({_day_of(person, written)}, {person.time('birth_datetime')})"
    birth, is_exact = birth_query(exact, year)
    cases = " ".join(f"WHEN {number} THEN '{word}'" for number, word in GENDERS.items())
    words = sex_of(person.text("gender_source_value"))
    sex = f"coalesce(CASE {person.whole('gender_concept_id')} {cases} END, {words})"
    deaths = "SELECT NULL AS patient, CAST(NULL AS DATE) AS death WHERE FALSE"
    if death is not None:
        day_of = f"min(CAST({death.time('death_datetime', 'death_date')} AS DATE))"
        deaths = f"SELECT {death.patient()} AS patient, {day_of} AS death FROM {death.item} GROUP BY {death.patient()}"
    return (
        f"SELECT p.patient, p.birth, p.birth_exact, p.sex, d.death FROM (SELECT {person.patient()} AS patient, "
        f"{birth} AS birth, {is_exact} AS birth_exact, {sex} AS sex FROM {person.item} "
        f"WHERE {person.raw('patient')} IS NOT NULL) p LEFT JOIN ({deaths}) d ON d.patient = p.patient"
    )


def _day_of(person: SourceTable, written: str) -> str:
    """The day of birth from its parts, NULL where there is no such day."""
    return local_time(person.reader.dialect, f"({written})", "text", person.reader.time_zone)
