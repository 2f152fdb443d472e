"""The columns of a source's table, found under the names they have in the wild, and as SQL of the right type."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from plurigp.cohort.sql import Dialect, identifier
from plurigp.cohort.stores import Relation
from plurigp.cohort.times import local_time
from plurigp.core.text import listing, nearest, show
from plurigp.core.types import DataError

Aliases = Mapping[str, tuple[str, ...]]  # our name of a column -> its names elsewhere
NOTHING = "NULL"
HUGE = "1e50"  # what is beyond is no measurement


@dataclass(frozen=True)
class Reader:
    """What decides how cells are read, the same for all tables of a source."""

    dialect: Dialect
    time_zone: str = "UTC"
    time_format: str | None = None
    patient_as_text: bool = False  # tables that disagree on the type of the patient's id


@dataclass(frozen=True)
class SourceTable:
    """A table with its columns by our names."""

    relation: Relation
    found: Mapping[str, str]
    reader: Reader

    def __contains__(self, role: str) -> bool:
        return role in self.found

    def read_by(self, reader: Reader) -> "SourceTable":
        """The same table under another reader."""
        return replace(self, reader=reader)

    @property
    def item(self) -> str:
        """The item of FROM."""
        return self.relation.item

    def kind(self, role: str) -> str:
        """The kind of the column's type."""
        return self.relation.columns[self.found[role]]

    def raw(self, role: str) -> str:
        """The column as it is."""
        return identifier(self.found[role]) if role in self.found else NOTHING

    def patient(self) -> str:
        """The patient's id."""
        as_text = self.reader.patient_as_text or self.kind("patient") not in ("text", "integer")
        return self.text("patient") if as_text else self.raw("patient")

    def text(self, role: str) -> str:
        """The column as text, NULL where empty."""
        if role not in self.found:
            return "CAST(NULL AS VARCHAR)"
        column = self.raw(role) if self.kind(role) == "text" else f"CAST({self.raw(role)} AS VARCHAR)"
        return f"nullif(trim({column}), '')"

    def number(self, role: str) -> str:
        """The column as a number, NULL where it holds none. Of a short float 7.3 is 7.3, not 7.30000019."""
        if role not in self.found:
            return "CAST(NULL AS DOUBLE PRECISION)"
        column, kind = self.raw(role), self.kind(role)
        if kind == "text":
            number = self.reader.dialect.number(column)
            return f"CASE WHEN abs({number}) < {HUGE} THEN {number} END"
        if kind == "float32":
            column = f"CAST({column} AS VARCHAR)"
        number = f"CAST({column} AS DOUBLE PRECISION)"
        return number if kind == "integer" else f"CASE WHEN abs({number}) < {HUGE} THEN {number} END"

    def whole(self, role: str) -> str:
        """The column as a whole number."""
        if role not in self.found:
            return "CAST(NULL AS BIGINT)"
        if self.kind(role) == "text":
            return self.reader.dialect.whole(self.raw(role))
        return self.raw(role) if self.kind(role) == "integer" else f"CAST({self.raw(role)} AS BIGINT)"

    def time(self, *roles: str) -> str:
        """The local time in the first of these columns that holds one."""
        reader = self.reader
        times = [
            local_time(reader.dialect, self.raw(role), self.kind(role), reader.time_zone, reader.time_format)
            for role in roles
            if role in self.found
        ]
        if not times:
            return "CAST(NULL AS TIMESTAMP)"
        return times[0] if len(times) == 1 else f"coalesce({', '.join(times)})"


def recognise(
    relation: Relation,
    aliases: Aliases,
    needed: Collection[str],
    own: Mapping[str, str],
    reader: Reader,
    standard: Mapping[str, str] | None = None,
) -> SourceTable:
    """The table with every column that goes by a declared name, the standard's, our own, or one known elsewhere."""
    by_lower: dict[str, list[str]] = {}
    for column in relation.columns:
        by_lower.setdefault(column.lower(), []).append(column)
    found = {}
    for role, others in aliases.items():
        declared = own.get(role)
        if declared is not None and declared not in relation.columns and role in needed:
            hint = nearest(declared, relation.columns)
            raise DataError(f"source, columns: table {show(relation.name)} has no column {show(declared)}.{hint}")
        if declared in relation.columns:
            found[role] = str(declared)
            continue
        known = [name for alias in (role, *others) for name in by_lower.get(alias, [])]
        exact = by_lower.get((standard or {}).get(role, role), [])
        if len(exact) == 1:
            known = exact
        if len(known) > 1:
            listed = " and ".join(map(show, known))
            raise DataError(
                f"table {show(relation.name)}: {listed} could all be the {role}; name one under [source.columns]."
            )
        if known:
            found[role] = known[0]
    for role in needed:
        if role not in found:
            tried = listing(map(show, (role, *aliases[role])), 20)
            there = listing(map(show, relation.columns), 20)
            raise DataError(
                f"table {show(relation.name)}: no column for the {role} (looked for {tried}); it has {there}. "
                f'Name it under [source.columns]: {role} = "...".'
            )
    return SourceTable(relation, found, reader)
