"""What the data layer knows of each kind of column. A new kind is one more entry in KINDS."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from plurigp.core.text import at, nearest, show
from plurigp.core.types import DataError
from plurigp.data.cells import Cells, cells_of
from plurigp.data.column import ASIDE, Column
from plurigp.data.levels import nearest_level, read_levels, settle_bernoulli, settle_categorical, settle_ordinal
from plurigp.data.limits import (
    bounded_units,
    bounds_in_units,
    geometric_bounded_units,
    read_bounds,
    read_positive_bounds,
    read_times,
    standardise_bounds,
)
from plurigp.data.numeric import (
    FARTHEST,
    Units,
    amounts_in_units,
    geometric_units,
    in_units,
    keep,
    plain_units,
    positive_units,
    proportion_units,
    proportions_and_ends,
    range_units,
    read_amounts,
    read_binomial,
    read_counts,
    read_numbers,
    read_positive,
    read_proportions,
    same,
    settle_binomial,
    squeeze,
    standard_units,
    standardise,
    unsqueeze,
    unstandardise,
    whole,
)
from plurigp.data.parquet import Rows


class EffectMeasure(StrEnum):
    """How the cells of two groups of rows are compared."""

    ODDS = "odds of yes"
    LEVEL_ODDS = "odds of each level"
    RATE = "mean count"
    MEAN = "mean"
    MEAN_LEVEL = "mean level"
    LOG_MEAN = "geometric mean"
    ANY_AND_AMOUNT = "odds of any, and geometric mean of what is above zero"
    CENSORED_MEAN = "mean of cells known up to limits"
    CENSORED_LOG_MEAN = "geometric mean of cells known up to limits"
    HAZARD = "hazard"


@dataclass(frozen=True)
class Kind:
    """What the package knows of a kind: functions from raw cells to coded numbers and back, and facts for all who ask.

    A kind from outside inherits everything from the one it reads like.
    """

    name: str
    about: str  # one line for the people who edit a schema
    label: str  # a few words for the readers of a report
    effect_measure: EffectMeasure
    settle: Callable[[Column, Cells], Column]  # completes a declaration from the training cells
    read: Callable[[Column, Cells, Cells | None], np.ndarray]  # checked raw numbers [N R], NaN at gaps
    units: Callable[[Column, np.ndarray], Units]  # from the seen training numbers [n R]
    code: Callable[[Column, np.ndarray, Units], np.ndarray]  # raw numbers [N R] -> coded [N W]
    decode: Callable[[np.ndarray, Units], np.ndarray]  # coded [N] -> raw numbers [N], or places of levels
    settings: tuple[str, ...] = ()  # the fields of Column that belong to this kind
    stand_in: tuple[float, ...] = (0.0,)  # what a gap holds, one number per slot
    own_units: bool = False  # a cell's last slot holds its log unit: its log density is in raw units already
    has_bounds: bool = False  # a cell is a lower and an upper bound, raw and in its first two slots
    positive: bool = False  # every value is above zero
    rivals: tuple[str, ...] = ()  # kinds whose densities are on the same scale, the simpler ones first
    safer: tuple[str, ...] = ()  # what it becomes at the edge of its parameters, or what keeps to the column's range
    needs_zeros: bool = False  # a rival only where the column has zeros

    @property
    def n_slots(self) -> int:
        """W: how many numbers one cell takes in a Table."""
        return len(self.stand_in)

    @property
    def has_levels(self) -> bool:
        """Whether a cell is one of the column's levels."""
        return "levels" in self.settings


_ANY_NUMBER = (-FARTHEST, FARTHEST, 0.0)  # a gap is a cell whose bounds say nothing
_ANY_POSITIVE = (1e-30, 1e30, 0.0)
_LIMITS = 'some of them known up to a limit ("<0.5", ">200", "1-3"; or upper = the column of the upper bounds)'
_NUMBERS = ("gaussian", "student_t", "lognormal", "gamma")
_COUNTS = ("poisson", "negative_binomial", "zero_inflated_poisson")
_LIMITED = ("censored_gaussian", "censored_lognormal", "censored_gamma")

_ENTRIES = (
    Kind(
        name="gaussian",
        about="numbers of any size",
        label="number",
        effect_measure=EffectMeasure.MEAN,
        settle=keep,
        read=read_numbers,
        units=standard_units,
        code=standardise,
        decode=unstandardise,
        rivals=_NUMBERS,
        safer=("beta",),
    ),
    Kind(
        name="gaussian_hetero",
        about="numbers whose noise differs from row to row",
        label="number of uneven spread",
        effect_measure=EffectMeasure.MEAN,
        settle=keep,
        read=read_numbers,
        units=standard_units,
        code=standardise,
        decode=unstandardise,
    ),
    Kind(
        name="student_t",
        about="numbers with heavy tails or outliers",
        label="number with outliers",
        effect_measure=EffectMeasure.MEAN,
        settle=keep,
        read=read_numbers,
        units=standard_units,
        code=standardise,
        decode=unstandardise,
        rivals=_NUMBERS,
        safer=("gaussian",),
    ),
    Kind(
        name="gamma",
        about="numbers above zero, skewed, whose sd grows with their mean",
        label="positive number",
        effect_measure=EffectMeasure.LOG_MEAN,
        settle=keep,
        read=read_positive,
        units=geometric_units,
        code=in_units,
        decode=unstandardise,
        stand_in=(1.0,),
        positive=True,
        rivals=_NUMBERS,
    ),
    Kind(
        name="lognormal",
        about="numbers above zero with a long right tail: lab values, costs, durations",
        label="positive number",
        effect_measure=EffectMeasure.LOG_MEAN,
        settle=keep,
        read=read_positive,
        units=geometric_units,
        code=in_units,
        decode=unstandardise,
        stand_in=(1.0,),
        positive=True,
        rivals=_NUMBERS,
    ),
    Kind(
        name="zero_lognormal",
        about="amounts of which many are exactly zero, the others with a long right tail: costs, doses, gains",
        label="amount, often zero",
        effect_measure=EffectMeasure.ANY_AND_AMOUNT,
        settle=keep,
        read=read_amounts,
        units=positive_units,
        code=amounts_in_units,
        decode=unstandardise,
        stand_in=(0.0, 0.0),
        own_units=True,
    ),
    Kind(
        name="censored_gaussian",
        about=f"numbers, {_LIMITS}",
        label="number, some up to a limit",
        effect_measure=EffectMeasure.CENSORED_MEAN,
        settle=keep,
        read=read_bounds,
        units=bounded_units,
        code=standardise_bounds,
        decode=unstandardise,
        settings=("upper",),
        stand_in=_ANY_NUMBER,
        own_units=True,
        has_bounds=True,
        rivals=_LIMITED,
    ),
    Kind(
        name="censored_lognormal",
        about=f"positive numbers with a long right tail, {_LIMITS}",
        label="positive number, some up to a limit",
        effect_measure=EffectMeasure.CENSORED_LOG_MEAN,
        settle=keep,
        read=read_positive_bounds,
        units=geometric_bounded_units,
        code=bounds_in_units,
        decode=unstandardise,
        settings=("upper",),
        stand_in=_ANY_POSITIVE,
        own_units=True,
        has_bounds=True,
        positive=True,
        rivals=_LIMITED,
    ),
    Kind(
        name="censored_gamma",
        about=f"positive numbers whose sd grows with their mean, {_LIMITS}",
        label="positive number, some up to a limit",
        effect_measure=EffectMeasure.CENSORED_LOG_MEAN,
        settle=keep,
        read=read_positive_bounds,
        units=geometric_bounded_units,
        code=bounds_in_units,
        decode=unstandardise,
        settings=("upper",),
        stand_in=_ANY_POSITIVE,
        own_units=True,
        has_bounds=True,
        positive=True,
        rivals=_LIMITED,
    ),
    Kind(
        name="weibull",
        about="times to an event; event = the column that holds 1 where it happened, 0 where the time is a lower bound",
        label="time to an event",
        effect_measure=EffectMeasure.HAZARD,
        settle=keep,
        read=read_times,
        units=geometric_bounded_units,
        code=bounds_in_units,
        decode=unstandardise,
        settings=("event",),
        stand_in=_ANY_POSITIVE,
        own_units=True,
        has_bounds=True,
        positive=True,
    ),
    Kind(
        name="bernoulli",
        about="two values; levels = [no, yes]",
        label="yes/no",
        effect_measure=EffectMeasure.ODDS,
        settle=settle_bernoulli,
        read=read_levels,
        units=plain_units,
        code=same,
        decode=nearest_level,
        settings=("levels",),
    ),
    Kind(
        name="binomial",
        about="successes out of trials; trials = a number, or the name of the column that holds it",
        label="so many out of",
        effect_measure=EffectMeasure.MEAN,
        settle=settle_binomial,
        read=read_binomial,
        units=plain_units,
        code=same,
        decode=whole,
        settings=("trials",),
        stand_in=(0.0, 1.0),
    ),
    Kind(
        name="beta",
        about="proportions between two bounds; bounds = [0, 100] for percent, [0, 1] if left out",
        label="proportion",
        effect_measure=EffectMeasure.MEAN,
        settle=keep,
        read=read_proportions,
        units=proportion_units,
        code=squeeze,
        decode=unsqueeze,
        settings=("bounds",),
        stand_in=(0.5,),
        rivals=("beta", "gaussian"),
    ),
    Kind(
        name="zero_one_beta",
        about="proportions of which some are exactly 0 or 1, for reasons of their own; bounds as for beta",
        label="proportion, often 0 or 1",
        effect_measure=EffectMeasure.MEAN,
        settle=keep,
        read=read_proportions,
        units=range_units,
        code=proportions_and_ends,
        decode=unsqueeze,
        settings=("bounds",),
        stand_in=(0.5, 0.0),
        own_units=True,
    ),
    Kind(
        name="poisson",
        about="counts: 0, 1, 2, ...",
        label="count",
        effect_measure=EffectMeasure.RATE,
        settle=keep,
        read=read_counts,
        units=plain_units,
        code=same,
        decode=whole,
        rivals=_COUNTS,
    ),
    Kind(
        name="negative_binomial",
        about="counts with more spread than a Poisson",
        label="count",
        effect_measure=EffectMeasure.RATE,
        settle=keep,
        read=read_counts,
        units=plain_units,
        code=same,
        decode=whole,
        rivals=_COUNTS,
        safer=("poisson",),
    ),
    Kind(
        name="zero_inflated_poisson",
        about="counts with more zeros than a Poisson",
        label="count with many zeros",
        effect_measure=EffectMeasure.RATE,
        settle=keep,
        read=read_counts,
        units=plain_units,
        code=same,
        decode=whole,
        rivals=_COUNTS,
        safer=("poisson",),
        needs_zeros=True,
    ),
    Kind(
        name="ordinal",
        about="one of several levels in an order; levels = [lowest, ..., highest]",
        label="ordered category",
        effect_measure=EffectMeasure.MEAN_LEVEL,
        settle=settle_ordinal,
        read=read_levels,
        units=plain_units,
        code=same,
        decode=nearest_level,
        settings=("levels",),
        rivals=("ordinal", "categorical"),
    ),
    Kind(
        name="categorical",
        about="one of several levels, in no order; levels = [...]",
        label="category",
        effect_measure=EffectMeasure.LEVEL_ODDS,
        settle=settle_categorical,
        read=read_levels,
        units=plain_units,
        code=same,
        decode=nearest_level,
        settings=("levels",),
        rivals=("ordinal", "categorical"),
        safer=("ordinal",),
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ENTRIES}


_OTHER_NAMES = {  # what people call these kinds elsewhere
    "normal": "gaussian",
    "real": "gaussian",
    "numeric": "gaussian",
    "continuous": "gaussian",
    "binary": "bernoulli",
    "boolean": "bernoulli",
    "proportion": "beta",
    "percent": "beta",
    "count": "poisson",
    "category": "categorical",
    "nominal": "categorical",
    "skip": ASIDE,
    "ignore": ASIDE,
}


def kind_of(column: Column) -> Kind:
    """The kind's entry; an unknown name is an error that lists the known ones."""
    if column.kind not in KINDS:
        known = [*KINDS, ASIDE]
        hint = nearest(_OTHER_NAMES.get(column.kind.lower(), column.kind), known)
        raise DataError(f"{at(column.name)}: unknown kind {show(column.kind)}; known: {', '.join(known)}.{hint}")
    return KINDS[column.kind]


def settled(column: Column, cells: Cells) -> Column:
    """A used column completed from its training cells; one with no observed cell is set aside."""
    if not cells.seen.any():
        return Column(column.name, ASIDE, "no observed cell", dtype=column.dtype)
    return kind_of(column).settle(column, cells)


def cells_in(frame: Rows, name: str) -> Cells:
    """The cells of a column by name; a column that is not there is an error."""
    if name not in frame.columns:
        hint = nearest(name, frame.columns)
        raise DataError(f"{at(name)} is missing from the table; add it (its cells may be gaps).{hint}")
    return cells_of(frame[name], name)


def read_column(column: Column, cells: Cells, frame: Rows) -> np.ndarray:
    """Checked raw numbers [N R] of one column, read together with its companion where it has one."""
    companion = None if column.companion is None else cells_in(frame, column.companion)
    return kind_of(column).read(column, cells, companion)
