"""Spans of calendar time, and the windows around the index date that they bound."""

import re
from dataclasses import dataclass

SPAN = re.compile(r"\s*([+-]?)\s*([0-9]{1,5})\s*(day|week|month|year)s?\s*")
EVER = "ever"  # the open end of a window


@dataclass(frozen=True)
class Span:
    """A signed number of days, weeks, months or years."""

    count: int
    unit: str

    def after(self, date: str) -> str:
        """SQL: the date so much later. The 31st plus a month is the last day of that month, as in both dialects."""
        sign = "-" if self.count < 0 else "+"
        return f"CAST({date} {sign} INTERVAL '{abs(self.count)} {self.unit}s' AS DATE)"

    def __str__(self) -> str:
        return f"{self.count} {self.unit}{'' if abs(self.count) == 1 else 's'}"

    @property
    def days(self) -> float:
        """About how many days, to compare two spans."""
        return self.count * {"day": 1.0, "week": 7.0, "month": 30.4375, "year": 365.25}[self.unit]


@dataclass(frozen=True)
class Window:
    """From one day to another, both included, counted from the index date; None is an open end."""

    start: Span | None
    end: Span | None

    def __str__(self) -> str:
        return f"{self.start or EVER} to {self.end or EVER}"


def parse_span(text: object) -> Span:
    """`"6 months"`, `"-2 weeks"`, `"0 days"`."""
    found = SPAN.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError('must be a time such as "6 months", "-14 days" or "1 year"')
    return Span(int(found[1] + found[2]), found[3])


def parse_length(text: object) -> Span:
    """A span that is not negative."""
    span = parse_span(text)
    if span.count < 0:
        raise ValueError('must not be negative; write it as a length, such as "6 months"')
    return span


def parse_window(pair: object) -> Window:
    """`["-6 months", "42 months"]`; either end may be "ever"."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise ValueError('must be two times, such as ["-6 months", "6 months"]; an open end is "ever"')
    start, end = (None if edge == EVER else parse_span(edge) for edge in pair)
    if start is not None and end is not None and start.days > end.days:
        raise ValueError("must begin before it ends; exchange the two times")
    return Window(start, end)
