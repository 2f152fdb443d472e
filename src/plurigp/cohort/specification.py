"""The specification of a cohort: where the records are, who is in, and which columns the table has."""

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from plurigp.cohort.patterns import Pattern
from plurigp.cohort.windows import Span, Window
from plurigp.data.kinds import Origin

FORMS = ("long", "omop", "meds")
STATISTICS = ("median", "mean", "first", "last", "min", "max", "slope", "count")
COUNTED = ("events", "days")
DEMOGRAPHICS = ("age", "sex", "index_year")


@dataclass(frozen=True)
class Source:
    """Where the records are and what their columns are called. A connection string is never shown."""

    form: str
    path: Path | None = None  # a file, a folder, a pattern of files, or a DuckDB database
    connect: str | None = field(default=None, repr=False)  # of a PostgreSQL server
    schema: str | None = None  # of the database
    tables: dict[str, str] = field(default_factory=dict)  # our name of a table -> its name there
    columns: dict[str, str] = field(default_factory=dict)  # our name of a column -> its name there
    time_zone: str = "UTC"
    time_format: str | None = None
    duplicates: str = "drop"


@dataclass(frozen=True)
class Index:
    """The event that makes a patient a member, and the day on which all windows hang: its first occurrence."""

    patterns: tuple[Pattern, ...]
    since: date | None = None
    until: date | None = None
    washout: Span | None = None  # observed so long before the first occurrence, which is then a first one indeed
    min_days: int = 1  # with such a code


@dataclass(frozen=True)
class Exclusion:
    """Patients with any of these codes in the window are left out."""

    name: str
    patterns: tuple[Pattern, ...]
    window: Window


@dataclass(frozen=True)
class Eligibility:
    """Who stays, in the order in which the rules are applied."""

    age: tuple[float, float] | None = None
    observed_before: Span | None = None
    observed_after: Span | None = None
    exclude: tuple[Exclusion, ...] = ()
    required: tuple[str, ...] = ()  # features that must have a value
    min_values: int = 0  # how many of the features with values must have one


@dataclass(frozen=True)
class Feature:
    """One column, or for a group of codes one column per code."""

    name: str
    measure: str  # "present", "value", "count" or "demographic"
    patterns: tuple[Pattern, ...] = ()
    window: Window | None = None
    statistic: str = ""  # of values; for counts what is counted; of demographics which
    group: int | str | None = None  # present: one column per so many characters of the code, or per ancestor
    only: tuple[str, ...] = ()
    top: int | None = None
    min_prevalence: float = 0.0
    kind: str | None = None  # None = by the cells
    bounds: tuple[float, float] | None = None  # of a proportion
    unit: str | None = None
    convert: tuple[tuple[str, float, float], ...] = ()  # (unit, factor, shift): value * factor + shift
    plausible: tuple[float, float] | None = None
    keep_limits: bool = True


@dataclass(frozen=True)
class Outcome:
    """The days from the index date to the first such event after it, or to the end of observation."""

    name: str
    patterns: tuple[Pattern, ...]
    kind: str = Origin.TIME_TO_EVENT.value


@dataclass(frozen=True)
class Specification:
    """All of it."""

    source: Source
    index: Index
    eligibility: Eligibility
    features: tuple[Feature, ...]
    outcomes: tuple[Outcome, ...] = ()
    suppress_below: int = 0  # counts under this are not shown, nor are columns with so few patients
    patient_ids: bool = True

    @property
    def windows(self) -> tuple[Window, ...]:
        """Each window once."""
        asked = [f.window for f in self.features if f.window] + [e.window for e in self.eligibility.exclude]
        return tuple(dict.fromkeys(asked))

    @property
    def needs_observation(self) -> bool:
        """Whether anything asks how long a patient was observed."""
        rules = self.eligibility
        return bool(self.outcomes or self.index.washout or rules.observed_before or rules.observed_after)

    @property
    def code_lists(self) -> tuple[tuple[str, tuple[Pattern, ...]], ...]:
        """Every list of codes with its name; its place is the number by which statements call it."""
        lists = [("index", self.index.patterns)]
        lists += [(f"exclude {rule.name}", rule.patterns) for rule in self.eligibility.exclude]
        lists += [(feature.name, feature.patterns) for feature in self.features if feature.patterns]
        return (*lists, *((outcome.name, outcome.patterns) for outcome in self.outcomes))

    def number_of(self, part: Index | Exclusion | Feature | Outcome) -> int:
        """The number of the part's list of codes."""
        with_codes = [self.index, *self.eligibility.exclude, *(f for f in self.features if f.patterns), *self.outcomes]
        return next(number for number, other in enumerate(with_codes) if other is part)

    def measured(self, *measures: str) -> tuple[Feature, ...]:
        """The features of some measures."""
        return tuple(feature for feature in self.features if feature.measure in measures)
