"""SQL that makes local times of whatever a source holds: dates, timestamps with and without a zone, text."""

import re

from plurigp.cohort.sql import Dialect, literal
from plurigp.core.text import show
from plurigp.core.types import DataError

DAY = (
    r"[0-9]{4}-(?:(?:0?[13578]|1[02])-(?:0?[1-9]|[12][0-9]|3[01])|(?:0?[469]|11)-(?:0?[1-9]|[12][0-9]|30)"
    r"|0?2-(?:0?[1-9]|1[0-9]|2[0-8]))"
)
LEAP_DAY = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-0?2-29"
CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
ZONE = r" ?(?:Z|UTC|[+-][01][0-9](?::?[0-5][0-9])?)"
LOCAL = rf"(?:{DAY}|{LEAP_DAY})(?:[T ]{CLOCK})?"
FIELDS = {
    "%Y": "[0-9]{4}",
    "%m": "[0-9]{1,2}",
    "%d": "[0-9]{1,2}",
    "%H": "[0-9]{1,2}",
    "%M": "[0-9]{2}",
    "%S": "[0-9]{2}",
}
DATES = ("date", "timestamp")


def local_time(dialect: Dialect, column: str, kind: str, zone: str, written: str | None = None) -> str:
    """The time on the clocks of the zone, NULL where the cell holds none; what has no zone of its own is local.

    `written` is the format of times in text that are not ISO 8601, such as "%d.%m.%Y %H:%M".
    """
    if kind in DATES:
        return f"CAST({column} AS TIMESTAMP)"
    if kind == "timestamptz":
        return f"({column} AT TIME ZONE {literal(zone)})"
    text = f"trim(CAST({column} AS VARCHAR))"
    if written is not None:
        text = _as_iso(dialect, text, written)
    local = dialect.cast(text, "TIMESTAMP")
    zoned = dialect.cast(text, "TIMESTAMP WITH TIME ZONE")
    return (
        f"CASE WHEN {dialect.matches(text, LOCAL)} THEN {local} "
        f"WHEN {dialect.matches(text, LOCAL + ZONE)} THEN {zoned} AT TIME ZONE {literal(zone)} END"
    )


def _as_iso(dialect: Dialect, text: str, written: str) -> str:
    """The text rearranged to ISO 8601 by the fields of the format."""
    parts = re.split(r"(%[A-Za-z%])", written)
    fields = [part for part in parts if part.startswith("%")]
    wrong = [part for part in fields if part not in FIELDS]
    if wrong or len(set(fields)) < len(fields) or not {"%Y", "%m", "%d"} <= set(fields):
        raise DataError(
            f"source, time_format: {show(written, 60)} must hold %Y, %m and %d and may hold %H, %M and %S, each once; "
            "correct it."
        )
    pattern = "".join(f"({FIELDS[part]})" if part in FIELDS else re.escape(part) for part in parts)
    pattern = pattern.replace(r"\ ", " ")
    padded = {
        field: f"lpad({dialect.extract(text, pattern, 1 + fields.index(field))}, {4 if field == '%Y' else 2}, '0')"
        for field in fields
    }
    clock = [padded.get(field, "'00'") for field in ("%H", "%M", "%S")]
    day = " || '-' || ".join(padded[field] for field in ("%Y", "%m", "%d"))
    time = " || ':' || ".join(clock)
    return f"({day} || ' ' || {time})"
