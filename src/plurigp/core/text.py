"""Values, names, files and lists as one short line of a message, and as JSON. Names come from tables: hostile text."""

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any


def printable(text: object, limit: int | None = None) -> str:
    """The text in one line: control characters, line breaks and direction marks as escapes, cut where too long."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def jsonable(value: Any) -> Any:
    """As JSON keeps it: NumPy's numbers become Python's, arrays and tuples lists, and what is not finite null."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's, without importing it: the command line starts without NumPy
        return jsonable(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(value: Any, width: int = 40) -> str:
    """The value as `repr` spells it, on one line, control characters escaped, cut to `width` characters."""
    is_numpy_scalar = hasattr(value, "tolist") and getattr(value, "ndim", 1) == 0
    text = " ".join(repr(value.tolist() if is_numpy_scalar else value).splitlines())
    return text if len(text) <= width else text[: width - 3] + "..."


def bare(value: object) -> str:
    """A level without quotes where they would only be noise."""
    text = str(value)
    return text if text.isprintable() and text.strip() == text != "" and len(text) <= 40 else show(value)


def listing(spelled: Iterable[str], limit: int = 8) -> str:
    """A short comma-separated list; what does not fit is counted."""
    words = list(spelled)
    more = f", ... ({len(words) - limit} more)" if len(words) > limit else ""
    return ", ".join(words[:limit]) + more


def nearest(name: object, known: Iterable[object]) -> str:
    """' Did you mean ...?' when a known name is close to this one, else nothing."""
    close = difflib.get_close_matches(str(name), [str(other) for other in known], n=1)
    return f" Did you mean {show(close[0], 80)}?" if close else ""


def amount(value: float) -> str:
    """A number for people: whole ones without a decimal point, others in short form."""
    return f"{value:.0f}" if abs(value) < 1e15 and value == math.floor(value) else f"{value:.4g}"


def at(name: object, row: int | None = None) -> str:
    """The place in a table that a message speaks of."""
    return f"column {show(name, 80)}" + ("" if row is None else f", row {row}")


def file_name(path: str | os.PathLike) -> str:
    """A path as given, control characters escaped."""
    text = os.fspath(path)
    return text if text.isprintable() else show(text, 200)
