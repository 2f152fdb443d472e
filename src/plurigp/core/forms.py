"""Forms: what a JSON file must hold, declared; a misfit is an error that names the field and the finding."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from plurigp.core.text import listing, nearest, show

Form = Callable[[Any, str], None]  # a value and its place in the file, such as "coder.scale[3]"

MAX_TEXT = 100_000  # characters
MAX_ITEMS = 10_000_000


class FormError(ValueError):
    """A field that does not hold what it must; the message names it."""


def _misfit(place: str, must: str, value: object) -> FormError:
    return FormError(f"field {show(place, 200)} must be {must}, not {show(value)}")


def text_form(most: int = MAX_TEXT) -> Form:
    """Text of at most so many characters."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or len(value) > most:
            raise _misfit(place, f"text of at most {most} characters", value)

    return check


def whole_form(low: int, high: int) -> Form:
    """A whole number from `low` to `high`."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _misfit(place, f"a whole number from {low} to {high}", value)

    return check


def number_form(low: float = -math.inf, high: float = math.inf, above: bool = False) -> Form:
    """A finite number from `low` to `high`; with `above`, greater than `low`."""

    def check(value: Any, place: str) -> None:
        known = isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool))
        if not known or abs(value) > 1.7e308 or value != value or not low <= value <= high or (above and value == low):
            ends = "" if low == -math.inf and high == math.inf else f" {'above' if above else 'of at least'} {low:g}"
            ends += f" and at most {high:g}" if high < math.inf else ""
            raise _misfit(place, f"a finite number{ends}", value)

    return check


def truth_form(value: Any, place: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise _misfit(place, "true or false", value)


def choice_form(*known: object) -> Form:
    """One of a few values of their own types."""

    def check(value: Any, place: str) -> None:
        if not any(type(value) is type(one) and value == one for one in known):
            raise _misfit(place, f"one of {listing(map(show, known))}", value)

    return check


def list_form(item: Form, most: int = MAX_ITEMS, length: int | None = None) -> Form:
    """A list, every item of one form; of a given length where one is given."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) > most:
            raise _misfit(place, f"a list of at most {most} items", value)
        if length is not None and len(value) != length:
            raise _misfit(place, f"a list of {length} items", value)
        for number, entry in enumerate(value):
            item(entry, f"{place}[{number}]")

    return check


def mapping_form(item: Form, most: int = MAX_ITEMS) -> Form:
    """An object with any names, every value of one form."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict) or len(value) > most:
            raise _misfit(place, f"an object of at most {most} entries", value)
        for name, entry in value.items():
            text_form()(name, place)
            item(entry, _inside(place, name))

    return check


def record_form(
    required: Mapping[str, Form], optional: Mapping[str, Form] | None = None, others: Form | None = None
) -> Form:
    """An object with these fields; optional ones may be left out, and others are there only where they have a form."""
    fields = {**required, **(optional or {})}

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _misfit(place, "an object", value)
        for name in value:
            if name not in fields and others is None:
                raise FormError(f"field {show(_inside(place, name), 200)} is not known.{nearest(name, fields)}")
        for name in required:
            if name not in value:
                raise FormError(f"field {show(_inside(place, name), 200)} is missing")
        for name, entry in value.items():
            fields.get(name, others or _anything)(entry, _inside(place, name))

    return check


def either_form(*forms: Form) -> Form:
    """Of one of several forms; the finding is that of the last."""

    def check(value: Any, place: str) -> None:
        for form in forms[:-1]:
            try:
                form(value, place)
            except FormError:
                continue
            return
        forms[-1](value, place)

    return check


def optional_form(form: Form) -> Form:
    """Of this form, or null."""

    def check(value: Any, place: str) -> None:
        if value is not None:
            form(value, place)

    return check


def _anything(value: Any, place: str) -> None:
    """No form at all."""


def _inside(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)
