"""Generic long tables: one row per event, with patients and periods of observation beside them where there are any."""

from plurigp.cohort.columns import Aliases, Reader, SourceTable, recognise
from plurigp.cohort.sources.base import (
    Dictionary,
    EventColumns,
    Records,
    as_recognised,
    first_to_last,
    same_patients,
    sex_of,
    stream_of,
)  # fmt: skip
from plurigp.cohort.specification import Source
from plurigp.cohort.stores import Store
from plurigp.core.text import listing
from plurigp.core.types import DataError

PATIENT = ("patient_id", "subject_id", "person_id", "pid", "subject", "person", "patient_number", "patnr")
EVENTS: Aliases = {
    "patient": PATIENT,
    "time": ("datetime", "timestamp", "date", "event_time", "event_date", "event_datetime", "charttime", "start_time"),
    "code": ("event_code", "concept_code", "concept", "item", "itemid"),
    "vocabulary": ("code_system", "coding_system", "vocabulary_id", "system"),
    "value": ("numeric_value", "value_as_number", "value_num", "valuenum", "value_number", "result"),
    "text": ("text_value", "value_text", "value_as_string", "value_source_value"),
    "unit": ("units", "unit_source_value", "valueuom", "unit_code"),
}
PATIENTS: Aliases = {
    "patient": PATIENT,
    "birth": ("birth_date", "birthdate", "date_of_birth", "dob", "birth_datetime"),
    "birth_year": ("year_of_birth", "yob"),
    "sex": ("gender",),
    "death": ("death_date", "date_of_death", "dod", "deathdate", "death_datetime"),
}
PERIODS: Aliases = {
    "patient": PATIENT,
    "start": ("start_date", "observation_start", "period_start", "observation_period_start_date"),
    "end": ("end_date", "observation_end", "period_end", "observation_period_end_date"),
}


def long_records(store: Store, source: Source) -> Records:
    """Tables `events`, and optionally `patients` and `periods`."""
    events = store.find("events")
    if events is None:
        there = listing(store.known())
        raise DataError(
            f'source: there is no table "events" (there are: {there}); name it under tables: events = "...".'
        )
    reader = Reader(store.engine.dialect, source.time_zone, source.time_format)
    table = recognise(events, EVENTS, ("patient", "time", "code"), source.columns, reader)
    patients = optional_table(store, "patients", PATIENTS, ("patient",), source, reader)
    periods = optional_table(store, "periods", PERIODS, ("patient", "start", "end"), source, reader)
    reader = same_patients(reader, table, patients, periods)
    table = table.read_by(reader)
    patients = patients and patients.read_by(reader)
    periods = periods and periods.read_by(reader)
    code = f"{table.text('vocabulary')} || '/' || {table.text('code')}" if "vocabulary" in table else table.text("code")
    key = code if "vocabulary" in table or table.kind("code") != "text" else table.raw("code")
    value_text = table.text("text") if "text" in table else table.text("value")
    if "text" in table and "value" in table and table.kind("value") == "text":
        value_text = f"coalesce({value_text}, {table.text('value')})"
    event = EventColumns(key, table.time("time"), table.number("value"), value_text, table.text("unit"))
    return Records(
        streams=(stream_of("events", table, event, "codes"),),
        dictionaries={"codes": Dictionary(f"SELECT DISTINCT {key} AS key, {code} AS code FROM {table.item}")},
        patients=_patients(table, patients),
        periods=_first_to_last(table, patients) if periods is None else periods_query(periods, "start", "end"),
        has_periods=periods is not None,
        recognised=as_recognised(table, patients, periods),
    )


def periods_query(periods: SourceTable, start: str, end: str) -> str:
    """The query of periods of observation."""
    return (
        f"SELECT {periods.patient()} AS patient, CAST({periods.time(start)} AS DATE) AS start_date, "
        f"CAST({periods.time(end)} AS DATE) AS end_date FROM {periods.item}"
    )


def birth_query(exact: str, year: str) -> tuple[str, str]:
    """SQL of the date of birth and of whether it is known to the day; a year alone stands for its first of July."""
    middle = f"CAST(CASE WHEN {year} BETWEEN 1800 AND 2200 THEN CAST({year} AS VARCHAR) || '-07-01' END AS DATE)"
    return f"coalesce(CAST({exact} AS DATE), {middle})", f"({exact} IS NOT NULL)"


def _patients(events: SourceTable, patients: SourceTable | None) -> str:
    if patients is None:
        return (
            f"SELECT DISTINCT {events.patient()} AS patient, CAST(NULL AS DATE) AS birth, FALSE AS birth_exact, "
            f"CAST(NULL AS VARCHAR) AS sex, CAST(NULL AS DATE) AS death FROM {events.item} "
            f"WHERE {events.raw('patient')} IS NOT NULL"
        )
    birth, exact = birth_query(patients.time("birth"), patients.whole("birth_year"))
    return (
        f"SELECT {patients.patient()} AS patient, min({birth}) AS birth, bool_and({exact}) AS birth_exact, "
        f"min({sex_of(patients.text('sex'))}) AS sex, min(CAST({patients.time('death')} AS DATE)) AS death "
        f"FROM {patients.item} WHERE {patients.raw('patient')} IS NOT NULL GROUP BY {patients.patient()}"
    )


def _first_to_last(events: SourceTable, patients: SourceTable | None) -> str:
    """From the first to the last event, or to death."""
    if patients is None or "death" not in patients:
        return first_to_last([(events, events.time("time"))])
    deaths = f" UNION ALL SELECT {patients.patient()}, CAST({patients.time('death')} AS DATE) FROM {patients.item}"
    return first_to_last([(events, events.time("time"))], deaths)


def optional_table(
    store: Store, name: str, aliases: Aliases, needed: tuple[str, ...], source: Source, reader: Reader
) -> SourceTable | None:
    """A table that may be missing."""
    relation = store.find(name)
    return None if relation is None else recognise(relation, aliases, needed, source.columns, reader)
