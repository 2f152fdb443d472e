"""Column: what is known of one column of a table, and the check of what people declare about it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from plurigp.core.text import at, listing, nearest, show
from plurigp.core.types import DataError

ASIDE = "aside"
MAX_MISSING, MAX_MISSING_TEXT = 100, 1000  # values that stand for gaps in one column, and characters of one
Level = str | bool | int | float


@dataclass(frozen=True)
class Column:
    """One column: its kind, why, and what that kind needs to know."""

    name: str
    kind: str  # a name in KINDS, or ASIDE
    reason: str = ""  # why this kind, in plain words
    levels: tuple[Level, ...] = ()  # raw values in coding order; bernoulli: (no, yes)
    trials: int | str | None = None  # binomial: the number, or the column that holds it
    bounds: tuple[float, float] | None = None  # beta: the raw range; None = (0, 1)
    upper: str | None = None  # censored kinds: the column that holds the upper bound, this one holding the lower
    event: str | None = None  # weibull: the column that says whether the event happened
    other: str | None = None  # categorical: the level that every level not listed counts as
    dtype: str = "float64"  # the input's dtype, as pandas spells it
    weight: float = 1.0  # how much its cells count in learning the map
    covariate: bool = False  # given, not modelled: the model describes what it does not explain
    missing: tuple[str | int | float, ...] = ()  # raw values that stand for a gap, here and in the companion

    @property
    def used(self) -> bool:
        """Whether the model describes its cells."""
        return self.kind != ASIDE and not self.covariate

    @property
    def companion(self) -> str | None:
        """The column that is read together with this one and has no kind of its own."""
        return self.trials if isinstance(self.trials, str) else self.upper or self.event

    @property
    def reading(self) -> tuple:
        """The name, then all that decides how the cells are read."""
        return (
            self.name,
            self.kind,
            self.levels,
            self.trials,
            self.bounds,
            self.upper,
            self.event,
            self.other,
            self.missing,
        )

    def to_dict(self) -> dict[str, Any]:
        """Its fields; what stands for a gap only where something does, so that files of before stay as they were."""
        return {key: value for key, value in asdict(self).items() if key != "missing" or value}


def checked_settings(name: object, given: Mapping) -> dict[str, Any]:
    """The declared settings of a column in the types `Column` holds; anything else is an error."""
    for key in given:
        if key not in _CHECKS:
            known = listing(_CHECKS)
            raise DataError(f"{at(name)}: unknown setting {show(key)}; known: {known}.{nearest(key, _CHECKS)}")
    return {key: _CHECKS[key](name, key, value) for key, value in given.items()}


def _text(name: object, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise DataError(f"{at(name)}: {key} must be text, not {show(value)}; put it in quotes.")
    return value


def _other_column(name: object, key: str, value: object) -> str | None:
    return None if value is None else _text(name, key, value)


def _levels(name: object, key: str, value: object) -> tuple[Level, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise DataError(f"{at(name)}: levels must be a list, not {show(value)}; write levels = [...].")
    levels = tuple(v.item() if isinstance(v, np.generic) else v for v in value)
    for level in levels:
        if not isinstance(level, Level) or (isinstance(level, float) and not np.isfinite(level)):
            raise DataError(f"{at(name)}: a level must be text, true/false or a finite number, not {show(level)}.")
    if len(set(levels)) < len(levels):
        raise DataError(f"{at(name)}: the levels hold one value twice ({listing(map(show, levels))}); name each once.")
    return levels


def _trials(name: object, key: str, value: object) -> int | str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise DataError(f"{at(name)}: trials must be a whole number above 0 or a column's name, not {show(value)}.")
    return int(value)


def _bounds(name: object, key: str, value: object) -> tuple[float, float] | None:
    if value is None:
        return None
    pair = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else []
    if len(pair) != 2 or not all(isinstance(v, Real) and np.isfinite(float(v)) for v in pair) or not pair[0] < pair[1]:
        raise DataError(f"{at(name)}: bounds must be two numbers, the lower one first, not {show(value)}.")
    return float(pair[0]), float(pair[1])


def _weight(name: object, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        remedy = 'declare the column "aside" to leave it out'
        raise DataError(f"{at(name)}: weight must be a number above 0, not {show(value)}; {remedy}.")
    return float(value)


def _missing(name: object, key: str, value: object) -> tuple[str | int | float, ...]:
    is_list = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim == 1)
    if not is_list or isinstance(value, str | bytes) or len(value) > MAX_MISSING:  # type: ignore[arg-type]
        finding = f"missing must be a list of at most {MAX_MISSING} values, not {show(value)}"
        raise DataError(f"{at(name)}: {finding}; write missing = [999].")
    values = tuple(v.item() if isinstance(v, np.generic) else v for v in value)  # type: ignore[attr-defined]
    for one in values:
        is_text = isinstance(one, str) and one.strip() and len(one) <= MAX_MISSING_TEXT
        is_number = isinstance(one, int | float) and not isinstance(one, bool) and abs(one) <= sys.float_info.max
        if not is_text and not is_number:
            finding = f"a missing value must be text or a finite number, not {show(one)}"
            raise DataError(f"{at(name)}: {finding}; an empty cell is a gap without being declared.")
    return values


def _flag(name: object, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"{at(name)}: {key} must be true or false, not {show(value)}; correct it.")
    return value


ROLES = ("weight", "covariate", "missing")  # what is said of a column whatever its kind
SETTINGS = ("levels", "trials", "bounds", "upper", "event", "other")  # what a kind may ask for
_CHECKS: dict[str, Callable[[object, str, object], Any]] = {
    "kind": _text,
    "reason": _text,
    "levels": _levels,
    "trials": _trials,
    "bounds": _bounds,
    "upper": _other_column,
    "event": _other_column,
    "weight": _weight,
    "covariate": _flag,
    "missing": _missing,
    "other": _other_column,
}
