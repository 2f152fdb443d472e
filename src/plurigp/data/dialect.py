"""How a text file writes a table: what separates its cells, and its decimal mark."""

import re
from typing import NamedTuple

from plurigp.core.text import show
from plurigp.core.types import DataError

MIN_LINES = 3  # with names; fewer do not show what separates the cells
MAX_SEEN = 1_000_000  # bytes in which a separator and a decimal mark are looked for
SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


class TextDialect(NamedTuple):
    """Of a text file."""

    sep: str
    decimal: str = "."


def dialect_of(raw: bytes, usual: str, sep: str | None, decimal: str | None, source: str) -> TextDialect:
    """As declared; else semicolons where every line has as many of them and the names no comma, and decimal commas
    where cells between semicolons have them."""
    found = _checked_sep(sep) if sep is not None else _recognised_sep(raw, usual)
    if decimal is not None:
        if decimal not in (".", ",") or decimal == found:
            raise DataError(f"decimal {show(decimal)} with sep {show(found)}: give '.' or ',', and not the separator.")
        return TextDialect(found, decimal)
    return TextDialect(found, _recognised_decimal(raw[:MAX_SEEN], source) if found == ";" else ".")


def _checked_sep(sep: str) -> str:
    sep = SEPARATOR_NAMES.get(sep, sep)
    if len(sep) != 1 or not sep.isascii() or sep.isalnum() or sep in '"\r\n .-+':
        raise DataError(f"sep {show(sep)} cannot separate cells; give one mark such as ',', ';', '|' or 'tab'.")
    return sep


def _recognised_sep(raw: bytes, usual: str) -> str:
    lines = [line for line in raw[:MAX_SEEN].splitlines()[:1000] if line.strip()]
    lines = lines[:-1] if len(raw) > MAX_SEEN else lines
    if usual != "," or len(lines) < MIN_LINES or b"," in lines[0] or b";" not in lines[0]:
        return usual
    unquoted = [re.sub(rb'"[^"]*"', b"", line) for line in lines]
    return ";" if len({line.count(b";") for line in unquoted}) == 1 else usual


def _recognised_decimal(raw: bytes, source: str) -> str:
    start, end = rb'(?:^|;)[ "]*[+-]?\d+', rb'\d+[ "]*(?=;|\r?$)'
    comma, point = (re.search(start + dot + end, raw, re.MULTILINE) for dot in (rb",", rb"\."))
    if comma and point:
        lines = " and ".join(str(raw.count(b"\n", 0, found.start() + 1) + 1) for found in (comma, point))
        raise DataError(
            f"{source}, lines {lines}: a decimal comma in one, a decimal point in the other; write all numbers alike, "
            "or say which is the decimal mark (--decimal , or decimal=',')."
        )
    return "," if comma else "."
