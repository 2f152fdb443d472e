"""Everything a kind of column is, in one table. A new kind is one more entry here and one family in `likelihoods`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np

from plurigp.core.text import at, nearest, show
from plurigp.core.types import DataError
from plurigp.data import levels, limits, numeric
from plurigp.data.cells import ColumnCells, MisfitError
from plurigp.data.column import ASIDE, Column
from plurigp.data.numeric import Domain, Units


class EffectMeasure(StrEnum):
    """How the cells of two groups of rows are compared, and so how a report prints them."""

    ODDS = "odds of yes"
    LEVEL_ODDS = "odds of each level"
    RATE = "mean count"
    MEAN = "mean"
    MEAN_LEVEL = "mean level"
    LOG_MEAN = "geometric mean"
    ANY_AND_AMOUNT = "odds of any, and geometric mean of what is above zero"
    CENSORED_MEAN = "mean, allowing for censoring"
    CENSORED_LOG_MEAN = "geometric mean, allowing for censoring"
    HAZARD = "hazard"


def keep(column: Column, cells: ColumnCells) -> Column:
    """Nothing to complete in a declaration of this kind."""
    return column


@dataclass(frozen=True)
class Kind:
    """One kind: functions from raw cells to coded numbers and back, and the facts that other modules ask for.

    A kind from outside copies the entry of the one it reads like.
    """

    name: str
    about: str  # one line for the people who edit a schema
    label: str  # a few words for the readers of a report
    effect_measure: EffectMeasure
    settle: Callable[[Column, ColumnCells], Column] = keep  # completes a declaration from the training cells
    read: Callable[[Column, ColumnCells, ColumnCells | None], np.ndarray] = numeric.read_numbers  # [N R], NaN at gaps
    domain: Domain | None = None  # which raw numbers it takes; None = all of them
    units: Callable[[Column, np.ndarray], Units] = numeric.plain_units  # from the observed training numbers [n R]
    code: Callable[[Column, np.ndarray, Units], np.ndarray] = numeric.same  # raw numbers [N R] -> coded [N W]
    decode: Callable[[np.ndarray, Units], np.ndarray] = numeric.unstandardise  # coded [N] -> raw, or places of levels
    settings: tuple[str, ...] = ()  # the fields of Column that belong to this kind
    stand_in: tuple[float, ...] = (0.0,)  # what a gap holds, one number per slot
    unit_per_cell: bool = False  # a cell's last slot holds its log unit: its log density is in raw units already
    has_bounds: bool = False  # a cell is a lower and an upper bound, raw and in its first two slots
    rivals: tuple[str, ...] = ()  # kinds to compare it with: densities on one scale, simpler ones first
    preferred_on_tie: tuple[str, ...] = ()  # preferred unless clearly worse: limiting cases, or confined to the range
    needs_zeros: bool = False  # a rival only where the column has zeros
    fallback: str = ""  # the kind that takes what its domain refuses
    for_extreme_counts: tuple[str, ...] = ()  # kinds to declare where a count far above all others is right

    @property
    def n_slots(self) -> int:
        """W: how many numbers one cell takes in a Table."""
        return len(self.stand_in)

    @property
    def has_levels(self) -> bool:
        """Whether a cell is one of the column's levels."""
        return "levels" in self.settings

    @property
    def positive(self) -> bool:
        """Whether every value is above zero."""
        return self.domain is numeric.POSITIVE

    @property
    def whole(self) -> bool:
        """Whether every value is a whole number of at least zero."""
        return self.domain is numeric.COUNT

    @property
    def often_zero(self) -> bool:
        """Whether exact zeros are a part of their own among its amounts."""
        return self.domain is numeric.NOT_NEGATIVE

    @property
    def yes_or_no(self) -> bool:
        """Whether the column is binary, so that one probability describes it."""
        return self.effect_measure is EffectMeasure.ODDS


_NUMBERS = ("gaussian", "student_t", "lognormal", "gamma")
_COUNTS = ("poisson", "negative_binomial", "zero_inflated_poisson")
_CENSORED_KINDS = ("censored_gaussian", "censored_lognormal", "censored_gamma")
_CENSORED = 'some of them censored ("<0.5", ">200", "1-3"; or upper = the column of the upper bounds)'
_Measure = EffectMeasure

# fmt: off
_number = partial(Kind, effect_measure=_Measure.MEAN, units=numeric.standard_units, code=numeric.standardise)
_positive = partial(Kind, label="positive number", effect_measure=_Measure.LOG_MEAN, domain=numeric.POSITIVE,
                    fallback="gaussian", units=numeric.geometric_units, code=numeric.in_units, stand_in=(1.0,),
                    rivals=_NUMBERS)
_bounded = partial(Kind, has_bounds=True, unit_per_cell=True)
_positive_bounds = partial(_bounded, domain=numeric.POSITIVE, fallback="censored_gaussian",
                           units=limits.geometric_bounded_units, code=limits.bounds_in_units,
                           stand_in=(numeric.SMALLEST_RATIO, numeric.LARGEST_RATIO, 0.0))
_censored_positive = partial(_positive_bounds, label="positive number, partly censored",
                             effect_measure=_Measure.CENSORED_LOG_MEAN, read=limits.read_positive_bounds,
                             settings=("upper",), rivals=_CENSORED_KINDS)
_proportion = partial(Kind, effect_measure=_Measure.MEAN, read=numeric.read_proportions, decode=numeric.unsqueeze,
                      settings=("bounds",))
_count = partial(Kind, effect_measure=_Measure.RATE, domain=numeric.COUNT, fallback="gaussian",
                 decode=numeric.nearest_count, rivals=_COUNTS, for_extreme_counts=("lognormal", "zero_lognormal"))
_leveled = partial(Kind, read=levels.read_levels, decode=numeric.nearest_count, settings=("levels",))

_ENTRIES = (
    # numbers
    _number(name="gaussian", label="number", rivals=_NUMBERS, preferred_on_tie=("beta",),
            about="numbers of any size"),
    _number(name="gaussian_hetero", label="number of uneven spread",
            about="numbers whose noise differs from row to row"),
    _number(name="student_t", label="number with outliers", rivals=_NUMBERS, preferred_on_tie=("gaussian",),
            about="numbers with heavy tails or outliers"),
    _positive(name="gamma",
              about="numbers above zero, skewed, whose sd grows with their mean"),
    _positive(name="lognormal",
              about="numbers above zero with a long right tail: lab values, costs, durations"),
    Kind(name="zero_lognormal", label="amount, often zero", effect_measure=_Measure.ANY_AND_AMOUNT,
         about="amounts of which many are exactly zero, the others with a long right tail: costs, doses, gains",
         domain=numeric.NOT_NEGATIVE, fallback="gaussian", units=numeric.geometric_units,
         code=numeric.amounts_in_units, stand_in=(0.0, 0.0), unit_per_cell=True),
    # censored numbers; a gap is a cell whose bounds say nothing
    _bounded(name="censored_gaussian", label="number, partly censored", effect_measure=_Measure.CENSORED_MEAN,
             about=f"numbers, {_CENSORED}",
             read=limits.read_bounds, units=limits.bounded_units, code=limits.standardise_bounds,
             stand_in=(-numeric.MAX_DEVIATIONS, numeric.MAX_DEVIATIONS, 0.0), settings=("upper",),
             rivals=_CENSORED_KINDS),
    _censored_positive(name="censored_lognormal",
                       about=f"positive numbers with a long right tail, {_CENSORED}"),
    _censored_positive(name="censored_gamma",
                       about=f"positive numbers whose sd grows with their mean, {_CENSORED}"),
    _positive_bounds(name="weibull", label="time to an event", effect_measure=_Measure.HAZARD,
                     about="times to an event; event = the column that holds 1 where it happened, "
                           "0 where the time is a lower bound",
                     read=limits.read_times, settings=("event",)),
    # proportions
    _proportion(name="beta", label="proportion", rivals=("beta", "gaussian"),
                about="proportions between two bounds; bounds = [0, 100] for percent, [0, 1] if left out",
                units=numeric.squeezed_range_units, code=numeric.squeeze, stand_in=(0.5,)),
    _proportion(name="zero_one_beta", label="proportion, often 0 or 1",
                about="proportions of which some are exactly 0 or 1, for reasons of their own; bounds as for beta",
                units=numeric.range_units, code=numeric.proportions_and_ends, stand_in=(0.5, 0.0), unit_per_cell=True),
    Kind(name="binomial", label="successes out of trials", effect_measure=_Measure.MEAN,
         about="successes out of trials; trials = a number, or the name of the column that holds it",
         settle=numeric.settle_binomial, read=numeric.read_binomial, domain=numeric.COUNT, fallback="gaussian",
         decode=numeric.nearest_count, settings=("trials",), stand_in=(0.0, 1.0)),
    # counts
    _count(name="poisson", label="count",
           about="counts: 0, 1, 2, ..."),
    _count(name="negative_binomial", label="count", preferred_on_tie=("poisson",),
           about="counts with more spread than a Poisson"),
    _count(name="zero_inflated_poisson", label="count with many zeros", preferred_on_tie=("poisson",), needs_zeros=True,
           about="counts with more zeros than a Poisson"),
    # levels
    _leveled(name="bernoulli", label="yes/no", effect_measure=_Measure.ODDS, settle=levels.settle_two_levels,
             about="two values; levels = [no, yes]"),
    _leveled(name="ordinal", label="ordered category", effect_measure=_Measure.MEAN_LEVEL,
             about="one of several levels in an order; levels = [lowest, ..., highest]",
             settle=levels.settle_ordered_levels, rivals=("ordinal", "categorical")),
    _leveled(name="categorical", label="category", effect_measure=_Measure.LEVEL_ODDS,
             about="one of several levels, in no order; levels = [...]; other = the level that all others count as",
             settle=levels.settle_levels, settings=("levels", "other"),
             rivals=("ordinal", "categorical"), preferred_on_tie=("ordinal",)),
)
# fmt: on

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ENTRIES}
PLAIN_NUMBERS, PLAIN_LEVELS, TIMES_TO_EVENT = (
    "gaussian",
    "categorical",
    "weibull",
)  # what a column can be read as at will

_BETTER_FIT = {  # kinds that take what another refuses
    "text": ("categorical", ASIDE),
    "limit": ("censored_gaussian", "censored_lognormal"),
    "more levels": ("categorical",),
    "fewer levels": ("bernoulli",),
}
_OTHER_NAMES = {  # what people call these kinds elsewhere
    **dict.fromkeys(("normal", "real", "numeric", "continuous"), "gaussian"),
    **dict.fromkeys(("binary", "boolean"), "bernoulli"),
    **dict.fromkeys(("proportion", "percent"), "beta"),
    **dict.fromkeys(("category", "nominal"), "categorical"),
    **dict.fromkeys(("skip", "ignore"), ASIDE),
    "count": "poisson",
}


class Origin(StrEnum):
    """How the cells of a column came about, where that says its kind without looking at them; the value is the kind."""

    PRESENCE = "bernoulli"
    COUNT = "poisson"
    MEASUREMENT = "gaussian"
    MEASUREMENT_WITH_LIMITS = "censored_gaussian"
    TIME_TO_EVENT = "weibull"


def kind_of(column: Column) -> Kind:
    """The kind's entry; an unknown name is an error that lists the known ones."""
    if column.kind not in KINDS:
        known = [*KINDS, ASIDE]
        hint = nearest(_OTHER_NAMES.get(column.kind.lower(), column.kind), known)
        raise DataError(f"{at(column.name)}: unknown kind {show(column.kind)}; known: {', '.join(known)}.{hint}")
    return KINDS[column.kind]


def settled(column: Column, cells: ColumnCells) -> Column:
    """A used column completed from its training cells; one with no observed cell is set aside."""
    if not cells.seen.any():
        return Column(column.name, ASIDE, "no observed cell", dtype=column.dtype)
    with _naming_a_better_fit(column):
        return kind_of(column).settle(column, cells)


def read_cells(column: Column, cells: ColumnCells, companion: ColumnCells | None = None) -> np.ndarray:
    """Checked raw numbers [N R] of one column, read together with the cells of its companion where it has one."""
    kind = kind_of(column)
    with _naming_a_better_fit(column):
        numbers = kind.read(column, cells, companion)
        if kind.domain is not None:
            numeric.check_domain(column.name, numbers, kind.domain, kind.name)
    return numbers


@contextmanager
def _naming_a_better_fit(column: Column) -> Iterator[None]:
    """Ends the message about a misfit with the kinds that would take such cells."""
    try:
        yield
    except MisfitError as error:
        kinds = _BETTER_FIT.get(error.misfit, (kind_of(column).fallback,))
        raise DataError(f"{error}, or declare the column {quoted(kinds)}.") from None


def quoted(kinds: tuple[str, ...]) -> str:
    """`"lognormal" or "zero_lognormal"`, for the remedy of a message."""
    return " or ".join(f'"{kind}"' for kind in kinds)
