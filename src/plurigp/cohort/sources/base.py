"""What every form of records gives: queries with the same columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from plurigp.cohort.columns import Reader, SourceTable

FEMALE, MALE = ("f", "female", "woman", "w"), ("m", "male", "man")


@dataclass(frozen=True)
class Stream:
    """Events of one make: patient, key, time, value, text and unit, and whose codes the keys are."""

    name: str
    columns: str
    item: str
    where: str
    key: str
    dictionary: str
    is_text: bool  # every reading of a cell is costly: better read once

    def events(self) -> str:
        """The query of all events."""
        return f"SELECT {self.columns} FROM {self.item} WHERE {self.where}"

    def matched(self, codes: str) -> str:
        """The query of the events whose keys are in a table; no other row is read further than its key."""
        inner = f"SELECT * FROM {self.item} WHERE {self.where} AND {self.key} IN (SELECT key FROM {codes})"
        return f"SELECT {self.columns} FROM ({inner}) matched"


class Dictionary(NamedTuple):
    """The codes of a stream's keys: a query of key and code, and how a pattern must begin to be looked up in it."""

    query: str
    scope: str = ""


@dataclass(frozen=True)
class Records:
    """The queries of a source, all columns of the same types whatever its form."""

    streams: tuple[Stream, ...]
    dictionaries: Mapping[str, Dictionary]
    patients: str  # patient, birth, birth_exact, sex, death
    periods: str  # patient, start_date, end_date
    has_periods: bool = False  # in the source; else they reach from the first to the last event
    ancestors: str | None = None  # ancestor, key: OMOP's concept_ancestor
    preparations: tuple[tuple[str, str], ...] = ()  # titles and statements to run first
    recognised: tuple[tuple[str, str, str], ...] = field(
        default=()
    )  # (table, our column, its name there), for the page


def same_patients(reader: Reader, *tables: SourceTable | None) -> Reader:
    """The reader, with ids as text where tables disagree on their type."""
    kinds = {table.kind("patient") for table in tables if table is not None}
    return replace(reader, patient_as_text=len(kinds) > 1)


class EventColumns(NamedTuple):
    """The SQL of what an event holds."""

    key: str
    time: str
    value: str
    text: str
    unit: str


def stream_of(name: str, table: SourceTable, event: EventColumns, dictionary: str, where: str = "") -> Stream:
    """The events of a table."""
    columns = ", ".join(f"{sql} AS {column}" for column, sql in event._asdict().items())
    present = f"{table.raw('patient')} IS NOT NULL" + (f" AND {where}" if where else "")
    selected = f"{table.patient()} AS patient, {columns}"
    return Stream(name, selected, table.item, present, event.key, dictionary, table.relation.is_text)


def first_to_last(tables: Iterable[tuple[SourceTable, str]], more: str = "", where: str = "") -> str:
    """Periods of observation where the source has none: from a patient's first event to the last."""
    days = " UNION ALL ".join(
        f"SELECT {table.patient()} AS patient, CAST({time} AS DATE) AS day FROM {table.item}{where}"
        for table, time in tables
    )
    return f"SELECT patient, min(day) AS start_date, max(day) AS end_date FROM ({days}{more}) days GROUP BY patient"


def sex_of(text: str) -> str:
    """SQL: female or male from the words in use for them; other words stay."""
    word = f"lower({text})"
    female, male = (", ".join(f"'{w}'" for w in words) for words in (FEMALE, MALE))
    return f"CASE WHEN {word} IN ({female}) THEN 'female' WHEN {word} IN ({male}) THEN 'male' ELSE {word} END"


def as_recognised(*tables: SourceTable | None) -> tuple[tuple[str, str, str], ...]:
    """For the page: which column was taken for what."""
    return tuple((t.relation.name, role, name) for t in tables if t is not None for role, name in t.found.items())
