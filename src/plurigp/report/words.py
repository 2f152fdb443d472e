"""Numbers and names as the report prints them. Every name comes from a table and is treated as hostile text."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, SupportsInt

from plurigp.core.text import printable
from plurigp.data import ASIDE, KINDS
from plurigp.study.findings.contrasts import LOG_HAZARD_RATIO, LOG_ODDS_RATIO

Number = float | int | None  # None is how JSON keeps a number that is not known

NOT_USED, NOT_TESTED, NOT_FOLLOWED = "not used", "not tested", "follow-up too short"
UNKNOWN = "–"
OUT_OF_RANGE = "outside the measured range"  # a mean beyond the limits of a group with few values
FEW = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Parts:
    """What the clusters are called."""

    one: str
    many: str

    def number(self, k: SupportsInt) -> str:
        """`Subtype 3`."""
        return f"{self.one.capitalize()} {int(k)}"

    def numbers(self, names: list[str]) -> str:
        """`Subtypes 1 and 2`."""
        return f"{(self.one if len(names) == 1 else self.many).capitalize()} {listed(names)}"


SUBTYPES, STRATA = Parts("subtype", "subtypes"), Parts("stratum", "strata")


def is_continuum(facts: Mapping[str, Any]) -> bool:
    """Whether the study found no subtypes: its clusters then only describe the map."""
    return not facts["structured"]


def parts_of(facts: Mapping[str, Any]) -> Parts:
    """Subtypes, or strata of a continuum."""
    return STRATA if is_continuum(facts) else SUBTYPES


def shown(text: object, limit: int = 120) -> str:
    """The text in one line, as `printable` has it, for the page."""
    return printable(text, limit)


def plot_text(text: object, limit: int = 60) -> str:
    """The same for a figure, where plotly.js would read tags and $formulas$."""
    return escape(shown(text, limit), quote=False).replace("$", "&#36;")


def kind_label(name: str) -> str:
    """The label of a kind; one from outside the package may not be registered here."""
    if name == ASIDE:
        return NOT_USED
    return KINDS[name].label if name in KINDS else shown(name)


def is_share(measure: str) -> bool:
    """Whether a contrast compares two shares of patients."""
    return measure == LOG_ODDS_RATIO


def direction(more: bool, measure: str) -> str:
    """What an effect above or below zero means."""
    if is_share(measure):
        return "more often" if more else "less often"
    if measure == LOG_HAZARD_RATIO:
        return "later" if more else "earlier"
    return "higher" if more else "lower"


def in_words(n: int) -> str:
    """A count, as a word up to ten."""
    return FEW[n] if 0 <= n < len(FEW) else f"{n:,}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """`3 columns`, `1 column`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def percent(share: Number, digits: int | None = None) -> str:
    """Whole percents, with a decimal below 1% and above 99%, unless that would be a zero."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    if digits is None:
        digits = 1 if 0.0005 <= min(share, 1 - share) < 0.01 else 0
    return f"{100 * share:.{digits}f}%"


def number(value: Number, digits: int = 3) -> str:
    """A number to a few significant digits, with thousands separators; an exponent only if it is needed."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size <= 8:
        return f"{value:.{digits - 1}e}"
    text = f"{value:,.{max(0, digits - 1 - size)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def fixed(value: Number) -> str:
    """Two decimals."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.2f}"


def signed(value: Number, digits: int = 2) -> str:
    """A difference with its sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−") if text.strip("+-0.") else text[1:]


def p_value(p: Number) -> str:
    """A p-value as journals print it."""
    if p is None or not math.isfinite(p):
        return UNKNOWN
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_is(p: Number, letter: str = "p") -> str:
    """`p = 0.02`, `p < 0.001` or `not tested`."""
    text = p_value(p)
    if text == UNKNOWN:
        return NOT_TESTED
    return f"{letter} {text}" if text.startswith("<") else f"{letter} = {text}"


def compared_values(line: Mapping[Any, Any]) -> tuple[str, str]:
    """The values of two groups: means in the column's units to the same decimals, shares, or median times."""
    inside, outside, measure = line["inside"], line["outside"], line["measure"]
    unknown = "not reached" if measure == LOG_HAZARD_RATIO else OUT_OF_RANGE
    if is_share(measure):
        return percent(inside), percent(outside)
    largest = max(abs(inside), abs(outside))
    if measure == LOG_HAZARD_RATIO or not (math.isfinite(inside + outside) and 1e-4 <= largest < 1e9):
        first, second = (unknown if math.isnan(v) else number(v) for v in (inside, outside))
        return first, second
    decimals = max(0, 2 - math.floor(math.log10(largest)))
    first, second = (f"{value:,.{decimals}f}".replace("-", "−") for value in (inside, outside))
    return first, second


def trait(column: str, of_level: str, kind_of_column: str) -> str:
    """A column, with its level unless that only means yes."""
    name = shown(column, 60)
    yes_or_no = kind_of_column in KINDS and KINDS[kind_of_column].yes_or_no
    yes = yes_or_no and of_level.lower() in ("true", "yes", "1", "1.0")
    return name if yes or not of_level else f"{name}: {shown(of_level, 40)}"


def listed(parts: list[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def risk_text(line: Mapping[Any, Any], digits: int | None = 1, label: str = "") -> str:
    """A risk with its interval, or that nobody was followed so long."""
    if not math.isfinite(line["risk"]):
        return NOT_FOLLOWED
    risk, low, high = (percent(line[name], digits) for name in ("risk", "low", "high"))
    return f"{risk} ({label}{low} to {high})"
