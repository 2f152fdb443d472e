"""MEDS: Parquet shards of subject_id, time, code and numeric_value; birth, sex and death are codes among others."""

from plurigp.cohort.columns import Aliases, Reader, recognise
from plurigp.cohort.sources.base import (
    Dictionary,
    EventColumns,
    Records,
    as_recognised,
    first_to_last,
    sex_of,
    stream_of,
)
from plurigp.cohort.sources.long import PATIENT
from plurigp.cohort.specification import Source
from plurigp.cohort.sql import literal
from plurigp.cohort.stores import Store
from plurigp.core.text import listing
from plurigp.core.types import DataError

EVENTS: Aliases = {
    "patient": PATIENT,
    "time": ("timestamp", "datetime", "date"),
    "code": (),
    "value": ("numeric_value", "value_as_number"),
    "text": ("text_value", "string_value"),
    "unit": ("units", "valueuom", "unit_source_value"),
}
STANDARD = {"patient": "subject_id", "value": "numeric_value", "text": "text_value"}
BIRTHS = ("MEDS_BIRTH", "META_BIRTH", "BIRTH", "SNOMED/3950001")  # the first is the standard's, the others older
DEATHS = ("MEDS_DEATH", "META_DEATH", "DEATH", "SNOMED/419620001")
SEX = r"(?:meds_|meta_|demographics?/{1,2})?(?:gender|sex)/{1,2}(.+)"
ROLES = "plurigp_meds_roles"


def meds_records(store: Store, source: Source) -> Records:
    """One stream; patients from their own codes. A MEDS dataset has no periods of observation."""
    events = store.find("data") or store.find("events") or store.find("meds")
    if events is None:
        events = store.shards(without=("metadata", "codes", "subject_splits", "dataset"))
    if events is None:
        there = listing(store.known())
        raise DataError(
            f'source: there is no folder "data" of shards (there are: {there}); name it: tables = {{ data = "..." }}.'
        )
    dialect = store.engine.dialect
    table = recognise(events, EVENTS, ("patient", "time", "code"), source.columns,
                      Reader(dialect, source.time_zone, source.time_format), STANDARD)  # fmt: skip
    code, time = table.raw("code"), table.time("time")
    value_is_text = "value" in table and table.kind("value") == "text"
    value_text = f"coalesce({table.text('text')}, {table.text('value')})" if value_is_text else table.text("text")
    known = f"SELECT DISTINCT {code} AS code FROM {table.item}"
    births, deaths = (", ".join(map(literal, codes)) for codes in (BIRTHS, DEATHS))
    word = dialect.extract("lower(code)", SEX, 1)
    sex = f"CASE WHEN {dialect.matches('lower(code)', SEX)} THEN {sex_of(word)} END"
    roles = (
        f"CREATE TEMP TABLE {ROLES} AS SELECT code, code IN ({births}) AS is_birth, code IN ({deaths}) AS is_death, "
        f"{sex} AS sex FROM ({known}) known WHERE code IN ({births}, {deaths}) OR {dialect.matches('lower(code)', SEX)}"
    )
    patients = (
        "SELECT e.patient, min(CASE WHEN r.is_birth THEN CAST(e.time AS DATE) END) AS birth, "
        "TRUE AS birth_exact, min(r.sex) AS sex, min(CASE WHEN r.is_death THEN CAST(e.time AS DATE) END) AS death "
        f"FROM (SELECT {table.patient()} AS patient, {code} AS key, {time} AS time FROM {table.item}) e "
        f"LEFT JOIN {ROLES} r ON r.code = e.key WHERE e.patient IS NOT NULL GROUP BY e.patient"
    )
    event = EventColumns(code, time, table.number("value"), value_text, table.text("unit"))
    return Records(
        streams=(stream_of("events", table, event, "codes"),),
        dictionaries={"codes": Dictionary(f"SELECT code AS key, code FROM ({known}) known")},
        patients=patients,
        periods=first_to_last([(table, time)], where=f" WHERE {code} NOT IN ({births})"),
        preparations=(("codes of birth, death and sex", roles),),
        recognised=as_recognised(table),
    )
