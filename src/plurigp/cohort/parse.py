"""Specification files: every key checked, every error with its line."""

import os
import zoneinfo
from collections import Counter
from datetime import date, datetime
from pathlib import Path

from plurigp.cohort.names import Names
from plurigp.cohort.parse_features import parse_feature, parse_outcome
from plurigp.cohort.secrets import SecretError, looks_like_address
from plurigp.cohort.specification import FORMS, Eligibility, Exclusion, Index, Source, Specification
from plurigp.cohort.toml_lines import Section, TomlText, a_list, a_range, one_of, some_text, whole_from, yes_or_no
from plurigp.cohort.windows import parse_length
from plurigp.core.text import file_name, nearest, show
from plurigp.core.types import DataError

TOP = ("source", "sets", "windows", "index", "eligibility", "feature", "outcome", "output")
SOURCE = ("form", "path", "connect", "connect_env", "schema", "tables", "columns", "time_zone", "time_format",
          "duplicates")  # fmt: skip
MAX_BYTES = 1_000_000


def read_specification(path: str | os.PathLike) -> Specification:
    """The specification in a TOML file; relative paths in it are relative to the file."""
    source, place = file_name(path), Path(path)
    try:
        if place.stat().st_size > MAX_BYTES:
            raise DataError(f"{source}: is larger than a specification can be; check the path.")
        text = place.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{source}: not UTF-8 text; save the specification as UTF-8.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        why = getattr(error, "strerror", None) or "not a path"
        raise DataError(f"{source}: cannot be read as a specification ({why}); check the path.") from None
    return parse_specification(text, source, place.resolve().parent)


def parse_specification(text: str, source: str = "specification", folder: Path | None = None) -> Specification:
    """The specification in a text; `source` names it in errors, `folder` is where relative paths start."""
    file = TomlText(text, source)
    Section(file, (), TOP)
    for needed in ("source", "index", "feature"):
        if needed not in file.data:
            spelled = "[[feature]]" if needed == "feature" else f"[{needed}]"
            raise DataError(f"{source}: the part {spelled} is missing; add it.")
    named = Names(file)
    features = tuple(parse_feature(place, named) for place in named.places("feature"))
    output = Section(file, ("output",), ("suppress_below", "patient_ids"))
    made = Specification(
        source=_source(file, folder or Path()),
        index=_index(file, named),
        eligibility=_eligibility(file, named, [f.name for f in features if f.measure == "value"]),
        features=features,
        outcomes=tuple(parse_outcome(place, named) for place in named.places("outcome")),
        suppress_below=output.get("suppress_below", whole_from(2), 0),
        patient_ids=output.get("patient_ids", yes_or_no, True),
    )
    twice = [name for name, n in Counter([f.name for f in features] + [o.name for o in made.outcomes]).items() if n > 1]
    if twice:
        raise DataError(f"{source}: two columns are named {show(twice[0], 60)}; name each once.")
    return made


def _source(file: TomlText, folder: Path) -> Source:
    section = Section(file, ("source",), SOURCE)
    given = [key for key in ("path", "connect", "connect_env") if key in section]
    if len(given) != 1:
        said = "none of them is given" if not given else f"{' and '.join(given)} are given"
        raise section.error(
            given[-1] if given else None, f"say where the records are by path, connect or connect_env; {said}."
        )
    path = section.get("path", _path, None)
    connect: str | None = section.get("connect", _address, None)
    if "connect_env" in section:
        variable = section.get("connect_env", some_text)
        connect = os.environ.get(variable, "")
        if not connect:
            raise section.error("connect_env", f"the environment variable {show(variable, 60)} is not set; set it.")
    return Source(
        form=section.get("form", one_of(*FORMS)),
        path=None if path is None else folder / path,
        connect=connect,
        schema=section.get("schema", some_text, None),
        tables=_texts(section, "tables"),
        columns=_texts(section, "columns"),
        time_zone=section.get("time_zone", _zone, "UTC"),
        time_format=section.get("time_format", some_text, None),
        duplicates=section.get("duplicates", one_of("drop", "keep"), "drop"),
    )


def _path(value: object) -> Path:
    text = some_text(value)
    if looks_like_address(text):
        raise ValueError("must be a path on this machine; servers go under connect, other addresses are not read")
    return Path(text).expanduser()


def _address(value: object) -> str:
    try:
        text = some_text(value)
    except ValueError:
        raise SecretError('must be text such as "postgresql://host/database"') from None
    return text


def _texts(section: Section, key: str) -> dict[str, str]:
    inner = Section(section.file, (*section.place, key), section.settings.get(key, {}))
    return {name.lower(): inner.get(name, some_text) for name in inner.settings}


def _zone(value: object) -> str:
    name = some_text(value)
    if name not in zoneinfo.available_timezones():
        hint = nearest(name, zoneinfo.available_timezones())
        raise ValueError(f'must be a time zone such as "Europe/Helsinki";{hint or " correct it"}')
    return name


def a_date(value: object) -> date:
    """A TOML date, or its text."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("must be a date such as 2015-01-31") from None


def _index(file: TomlText, named: Names) -> Index:
    section = Section(file, ("index",), ("codes", "from", "until", "washout", "min_days"))
    return Index(
        patterns=named.patterns(section),
        since=section.get("from", a_date, None),
        until=section.get("until", a_date, None),
        washout=section.get("washout", parse_length, None),
        min_days=section.get("min_days", whole_from(1), 1),
    )


def _eligibility(file: TomlText, named: Names, with_values: list[str]) -> Eligibility:
    known = ("age", "observed_before", "observed_after", "required", "min_values", "exclude")
    section = Section(file, ("eligibility",), known)
    places = [("eligibility", "exclude", n) for n in range(len(section.get("exclude", a_list, [])))]
    required = section.each("required", some_text, [])
    for number, name in enumerate(required):
        if name not in with_values:
            place = ("eligibility", "required", number)
            hint = nearest(name, with_values)
            raise file.error(place, f"there is no feature with values named {show(name, 60)}.{hint}")
    return Eligibility(
        age=section.get("age", a_range, None),
        observed_before=section.get("observed_before", parse_length, None),
        observed_after=section.get("observed_after", parse_length, None),
        exclude=tuple(_exclusion(Section(file, place, ("name", "codes", "window")), named) for place in places),
        required=required,
        min_values=section.get("min_values", whole_from(1), 0),
    )


def _exclusion(section: Section, named: Names) -> Exclusion:
    return Exclusion(section.get("name", some_text), named.patterns(section), named.window(section))
