"""[[feature]] and [[outcome]] of a specification."""

from collections.abc import Mapping
from typing import Any

from plurigp.cohort.names import Names
from plurigp.cohort.specification import COUNTED, DEMOGRAPHICS, STATISTICS, Feature, Outcome
from plurigp.cohort.toml_lines import (
    Place,
    Section,
    a_number,
    a_range,
    a_share,
    one_of,
    some_text,
    whole_from,
)  # fmt: skip
from plurigp.core.text import listing, nearest
from plurigp.data import ASIDE, KINDS
from plurigp.data.kinds import Origin

COMMON = ("name", "codes", "window", "kind")
KEYS = {
    "present": (*COMMON, "group", "only", "top", "min_prevalence"),
    "value": (*COMMON, "value", "unit", "convert", "range", "limits", "bounds"),
    "count": (*COMMON, "count"),
    "demographic": ("name", "demographic", "kind"),
}
ALL_KEYS = tuple(dict.fromkeys(key for keys in KEYS.values() for key in keys))
DEFAULT_KINDS = {"present": Origin.PRESENCE.value, "count": Origin.COUNT.value}


def parse_feature(place: Place, named: Names) -> Feature:
    """One [[feature]]: what it measures follows from its keys."""
    section = Section(named.file, place, ALL_KEYS)
    measure = next((key for key in ("value", "count", "demographic") if key in section), "present")
    for key in section.settings:
        if key not in KEYS[measure]:
            what = "a feature that is present or not" if measure == "present" else f"a feature with {measure} = ..."
            raise section.error(key, f"does not belong to {what}; its keys: {', '.join(KEYS[measure])}.")
    name = section.get("name", some_text)
    kind = section.get("kind", a_kind, DEFAULT_KINDS.get(measure))
    if measure == "demographic":
        which = section.get("demographic", one_of(*DEMOGRAPHICS))
        return Feature(name, measure, statistic=which, kind=kind)
    patterns, window = named.patterns(section), named.window(section)
    if measure == "count":
        return Feature(name, measure, patterns, window, section.get("count", one_of(*COUNTED)), kind=kind)
    if measure == "present":
        return _present(section, Feature(name, measure, patterns, window, kind=kind))
    return _value(section, Feature(name, measure, patterns, window, kind=kind))


def _present(section: Section, plain: Feature) -> Feature:
    group: int | str | None = section.get("group", _group, None)
    if group is None:
        for key in ("only", "top", "min_prevalence"):
            if key in section:
                raise section.error(key, f"belongs to a group of codes; add group = 3, or leave {key} out.")
    if group == "ancestor" and any(pattern.kind != "ancestor" for pattern in plain.patterns):
        raise section.error("codes", 'group = "ancestor" makes a column per "ancestor/ID"; name only such codes.')
    return Feature(
        **_fields(plain, group=group,
                  only=tuple(name.replace(".", "") for name in section.each("only", some_text, [])),
                  top=section.get("top", whole_from(1), None),
                  min_prevalence=section.get("min_prevalence", a_share, 0.0))
    )  # fmt: skip


def _value(section: Section, plain: Feature) -> Feature:
    statistic = section.get("value", one_of(*STATISTICS))
    unit = section.get("unit", some_text, None)
    if "convert" in section and unit is None:
        raise section.error("convert", 'needs the unit that it converts to; add unit = "...".')
    kind = Origin.COUNT.value if statistic == "count" and plain.kind is None else plain.kind
    return Feature(
        **_fields(plain, statistic=statistic, kind=kind, unit=unit,
                  convert=_conversions(section),
                  plausible=section.get("range", a_range, None),
                  bounds=section.get("bounds", a_range, None),
                  keep_limits=section.get("limits", one_of("keep", "drop"), "keep") == "keep")
    )  # fmt: skip


def _fields(plain: Feature, **more: object) -> dict[str, Any]:
    return {**vars(plain), **more}


def _group(value: object) -> int | str:
    return "ancestor" if value == "ancestor" else whole_from(1)(value)


def _conversions(section: Section) -> tuple[tuple[str, float, float], ...]:
    """{"mg/dL" = 88.42} by a factor, {"degF" = [0.5556, -17.78]} by factor and shift; "" is a value without unit."""
    if "convert" not in section:
        return ()
    units = section.settings["convert"]
    if not isinstance(units, Mapping):
        raise section.error("convert", 'must be a table of units, such as { "mg/dL" = 88.42 }.')
    inner = Section(section.file, (*section.place, "convert"), units)
    return tuple((unit.strip(), *inner.get(unit, _factor)) for unit in units)


def _factor(value: object) -> tuple[float, float]:
    factor, shift = (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (value, 0.0)
    if a_number(factor) <= 0:
        raise ValueError("must be a factor above zero, or [factor, shift]")
    return a_number(factor), a_number(shift)


def a_kind(value: object) -> str:
    """The name of a kind of column."""
    known = [*KINDS, ASIDE]
    if value not in known:
        raise ValueError(f"must be a kind: {listing(known, 30)};{nearest(value, known) or ' choose one'}")
    return str(value)


def parse_outcome(place: Place, named: Names) -> Outcome:
    """One [[outcome]]."""
    section = Section(named.file, place, ("name", "codes", "kind"))
    kind = section.get("kind", one_of(Origin.TIME_TO_EVENT.value, ASIDE), Origin.TIME_TO_EVENT.value)
    return Outcome(section.get("name", some_text), named.patterns(section, death=True), kind)
