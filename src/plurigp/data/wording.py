"""How values, names and lists are spelled in messages: always one line, never long."""

import difflib
from collections.abc import Iterable

import numpy as np


def show(value: object, width: int = 40) -> str:
    """The value as `repr` spells it, control characters escaped, cut to `width` characters."""
    plain = value.item() if isinstance(value, np.generic) else value
    text = " ".join(repr(plain).split())
    return text if len(text) <= width else text[: width - 3] + "..."


def listing(values: Iterable[object], limit: int = 8) -> str:
    """A short comma-separated list; what does not fit is counted."""
    shown = [show(value) for value in values]
    more = f", ... ({len(shown) - limit} more)" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def nearest(name: object, known: Iterable[object]) -> str:
    """' Did you mean ...?' when a known name is close to this one, else nothing."""
    close = difflib.get_close_matches(str(name), [str(other) for other in known], n=1)
    return f" Did you mean {show(close[0])}?" if close else ""


def amount(value: float) -> str:
    """A number for people: whole ones without a decimal point, others in short form."""
    return f"{value:.0f}" if value == np.floor(value) and abs(value) < 1e15 else f"{value:.4g}"


def at(name: object, row: int | None = None) -> str:
    """The place a message speaks of."""
    return f"column {show(name, 80)}" + ("" if row is None else f", row {row}")
