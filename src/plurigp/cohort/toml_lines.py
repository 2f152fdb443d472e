"""A TOML file whose errors name the line, and the nearest key that would have been valid."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import tomlkit

from plurigp.cohort.secrets import SecretError, without_secrets
from plurigp.core.text import nearest, printable, show
from plurigp.core.types import DataError

T = TypeVar("T")
Place = tuple[str | int, ...]  # keys and list positions from the top
MARK = "plurigp-marks-this-line-7f3a"
REQUIRED: Any = object()


@dataclass(frozen=True)
class TomlText:
    """The text of a TOML file and its name in messages."""

    text: str
    source: str

    @cached_property
    def data(self) -> dict[str, Any]:
        """The parsed file."""
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{self.source}: not valid TOML: {printable(error, 200)}; correct it there.") from None
        except RecursionError:
            raise DataError(f"{self.source}: nested too deeply; write it flat.") from None

    def line(self, place: Place) -> int | None:
        """The line on which the value at this place begins: where a mark in its stead turns up."""
        try:
            document: Any = tomlkit.parse(self.text)
            holder = document
            for key in place[:-1]:
                holder = holder[key]
            target = holder[place[-1]]
            if isinstance(target, Mapping) and target:
                return self.line((*place, next(iter(target))))
            if isinstance(target, list) and target and isinstance(target[0], Mapping):
                return self.line((*place, 0))
            holder[place[-1]] = MARK
            before, found, _ = tomlkit.dumps(document).partition(MARK)
            return before.count("\n") + 1 if found else None
        except Exception:  # a message without its line is better than a message about finding the line
            return None

    def error(self, place: Place, finding: str) -> DataError:
        """`cohort.toml, line 12: feature 3 (hb), window: ...`"""
        line = self.line(place) if place else None
        where = self.source if line is None else f"{self.source}, line {line}"
        return DataError(without_secrets(f"{where}: {self._named(place)}{finding}"))

    def _named(self, place: Place) -> str:
        words: list[str] = []
        for key in place:
            if isinstance(key, int) and words:
                words[-1] += f" {key + 1}"
            else:
                words.append(printable(key, 60))
        return f"{', '.join(words)}: " if words else ""


class Section:
    """One table of the file: every key is asked for by name, and a key nobody knows is an error."""

    def __init__(self, file: TomlText, place: Place, known: Iterable[str]) -> None:
        self.file, self.place = file, place
        found: Any = file.data
        for key in place:
            found = found.get(key, {}) if isinstance(found, Mapping) else found[key]
        if not isinstance(found, Mapping):
            raise file.error(place, "must be a table of settings; write it as one.")
        self.settings, names = found, list(known)
        for key in found:
            if key not in names:
                hint = nearest(key, names)
                raise file.error((*place, key), f"there is no such key; known here: {', '.join(names)}.{hint}")

    def __contains__(self, key: str) -> bool:
        return key in self.settings

    def get(self, key: str, parse: Callable[[Any], T], default: Any = REQUIRED) -> T:
        """The parsed setting; what the parser refuses becomes an error with its line."""
        if key not in self.settings:
            if default is REQUIRED:
                raise self.file.error(self.place, f"{key} is missing; add {key} = ....")
            return default
        try:
            return parse(self.settings[key])
        except SecretError as error:
            raise self.file.error((*self.place, key), f"{error}.") from None
        except ValueError as error:
            raise self.file.error((*self.place, key), f"{error}, not {show(self.settings[key], 60)}.") from None

    def each(self, key: str, parse: Callable[[Any], T], default: Any = REQUIRED) -> tuple[T, ...]:
        """A parsed list, whose errors name the entry."""
        entries = self.get(key, a_list, default)
        parsed = []
        for number, entry in enumerate(entries):
            try:
                parsed.append(parse(entry))
            except ValueError as error:
                raise self.file.error((*self.place, key, number), f"{error}, not {show(entry, 60)}.") from None
        return tuple(parsed)

    def error(self, key: str | None, finding: str) -> DataError:
        """An error about one key of this table, or about the table."""
        return self.file.error(self.place if key is None else (*self.place, key), finding)


def a_list(value: object) -> list[Any]:
    """A list of anything."""
    if not isinstance(value, list):
        raise ValueError("must be a list in brackets")
    return value


def some_text(value: object) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be text in quotes")
    if "\x00" in value:
        raise ValueError("must not hold a zero character")
    return value


def one_of(*choices: str) -> Callable[[object], str]:
    """One of a few words."""

    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)};{nearest(value, choices) or ' choose one'}")
        return str(value)

    return parse


def yes_or_no(value: object) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def whole_from(least: int) -> Callable[[object], int]:
    """A whole number that is not too small."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 10**9:
            raise ValueError(f"must be a whole number from {least}")
        return value

    return parse


def a_number(value: object) -> float:
    """A finite number of ordinary size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e100:
        raise ValueError("must be a number")
    return float(value)


def a_share(value: object) -> float:
    """A number from 0 to 1."""
    share = a_number(value)
    if not 0 <= share <= 1:
        raise ValueError("must lie between 0 and 1")
    return share


def a_range(value: object) -> tuple[float, float]:
    """Two numbers, the lower one first."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("must be two numbers in brackets")
    low, high = a_number(value[0]), a_number(value[1])
    if not low <= high:
        raise ValueError("must have its lower number first")
    return low, high
