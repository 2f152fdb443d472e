"""SQL as text: the only functions that turn names and values into SQL, and what two dialects spell differently.

The statements are written in the part of SQL that DuckDB and PostgreSQL share, so that whoever is responsible for the
data can read what was run. Every name goes through `identifier`, every value through `literal`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plurigp.core.text import show
from plurigp.core.types import DataError

NUMBER = r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?"  # always castable
WHOLE = r"[+-]?[0-9]{1,18}(?:\.0{0,10})?"


def identifier(name: str) -> str:
    """A quoted name."""
    if "\x00" in name:
        raise DataError(f"the name {show(name)} holds a zero character, which no database takes; rename it.")
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | float) -> str:
    """A constant; text is quoted, with its quotes doubled, and backslashes mean themselves in both dialects."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return f"CAST({value!r} AS DOUBLE PRECISION)"
    if "\x00" in value:
        raise DataError(f"the text {show(value)} holds a zero character, which no database takes; remove it.")
    return "'" + value.replace("'", "''") + "'"


def values(rows: Iterable[Sequence[str | int | float]], name: str, columns: Sequence[str]) -> str:
    """A table of constants, as an item of FROM."""
    lines = ",\n  ".join(f"({', '.join(map(literal, row))})" for row in rows)
    return f"(VALUES\n  {lines}) AS {name} ({', '.join(columns)})"


def any_of(conditions: Iterable[str]) -> str:
    """The conditions joined by OR; none at all is false."""
    return f"({' OR '.join(conditions) or 'FALSE'})"


def among(column: str, numbers: Iterable[int]) -> str:
    """Whether a column is one of these numbers."""
    listed = ", ".join(map(str, numbers))
    return f"{column} IN ({listed})" if listed else "FALSE"


@dataclass(frozen=True)
class Dialect:
    """What DuckDB and PostgreSQL spell differently."""

    name: str
    match: str  # a template of {text} and {pattern}
    group: str  # and {number}
    try_cast: str  # of {text} to {kind}, after a pattern has let it through
    fence: str  # at the end of a subquery: its columns are computed once, not wherever they are used

    def matches(self, text: str, pattern: str) -> str:
        """Whether the whole text fits the pattern."""
        return self.match.format(text=text, pattern=literal(f"^(?:{pattern})$"))

    def extract(self, text: str, pattern: str, number: int) -> str:
        """What a group of the pattern holds in the text."""
        return self.group.format(text=text, pattern=literal(f"^(?:{pattern})$"), number=number)

    def cast(self, text: str, kind: str) -> str:
        """A cast of text that a pattern has let through."""
        return self.try_cast.format(text=text, kind=kind)

    def number(self, text: str) -> str:
        """The number that a text spells, NULL where it spells none."""
        fits = self.matches(f"trim({text})", NUMBER)
        return f"CASE WHEN {fits} THEN {self.cast(f'trim({text})', 'DOUBLE PRECISION')} END"

    def whole(self, text: str) -> str:
        """The whole number that a text spells, NULL where it spells none."""
        fits = self.matches(f"trim({text})", WHOLE)
        digits = self.extract(f"trim({text})", r"([+-]?[0-9]{1,18})(?:\.0{0,10})?", 1)
        return f"CASE WHEN {fits} THEN {self.cast(digits, 'BIGINT')} END"


DUCKDB = Dialect(
    name="duckdb",
    match="regexp_matches({text}, {pattern})",
    group="regexp_extract({text}, {pattern}, {number})",
    try_cast="TRY_CAST({text} AS {kind})",
    fence="",
)
POSTGRES = Dialect(
    name="postgresql",
    match="({text} ~ {pattern})",
    group="(regexp_match({text}, {pattern}))[{number}]",
    try_cast="CAST({text} AS {kind})",
    fence=" OFFSET 0",
)
