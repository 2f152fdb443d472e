"""What the data layer knows of each kind of column. A new kind is one more entry in KINDS."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
from plurigp.data.wording import at, nearest, show
from plurigp.types import DataError


@dataclass(frozen=True)
class Kind:
    """Named functions that take a column of this kind from raw cells to coded numbers and back."""

    name: str
    about: str  # one line for the people who edit a schema
    settle: Callable[[Column, Cells], Column]  # completes a declaration from the training cells
    read: Callable[[Column, Cells, Cells | None], np.ndarray]  # checked raw numbers [N R], NaN at gaps
    units: Callable[[Column, np.ndarray], Units]  # from the seen training numbers [n R]
    code: Callable[[Column, np.ndarray, Units], np.ndarray]  # raw numbers [N R] -> coded [N W]
    decode: Callable[[np.ndarray, Units], np.ndarray]  # coded [N] -> raw numbers [N], or places of levels
    settings: tuple[str, ...] = ()  # the fields of Column that belong to this kind
    stand_in: tuple[float, ...] = (0.0,)  # what a gap holds, one number per slot
    own_units: bool = False  # a cell's last slot holds its log unit: its log density is in raw units already

    @property
    def n_slots(self) -> int:
        """W: how many numbers one cell takes in a Table."""
        return len(self.stand_in)


_ANY_NUMBER = (-FARTHEST, FARTHEST, 0.0)  # a gap is a cell whose bounds say nothing
_ANY_POSITIVE = (1e-30, 1e30, 0.0)
_LIMITS = 'some of them known up to a limit ("<0.5", ">200", "1-3"; or upper = the column of the upper bounds)'

_ENTRIES = (
    Kind(
        name="gaussian",
        about="numbers of any size",
        settle=keep,
        read=read_numbers,
        units=standard_units,
        code=standardise,
        decode=unstandardise,
    ),
    Kind(
        name="gaussian_hetero",
        about="numbers whose noise differs from row to row",
        settle=keep,
        read=read_numbers,
        units=standard_units,
        code=standardise,
        decode=unstandardise,
    ),
    Kind(
        name="student_t",
        about="numbers with heavy tails or outliers",
        settle=keep,
        read=read_numbers,
        units=standard_units,
        code=standardise,
        decode=unstandardise,
    ),
    Kind(
        name="gamma",
        about="numbers above zero, skewed, whose sd grows with their mean",
        settle=keep,
        read=read_positive,
        units=geometric_units,
        code=in_units,
        decode=unstandardise,
        stand_in=(1.0,),
    ),
    Kind(
        name="lognormal",
        about="numbers above zero with a long right tail: lab values, costs, durations",
        settle=keep,
        read=read_positive,
        units=geometric_units,
        code=in_units,
        decode=unstandardise,
        stand_in=(1.0,),
    ),
    Kind(
        name="zero_lognormal",
        about="amounts of which many are exactly zero, the others with a long right tail: costs, doses, gains",
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
        settle=keep,
        read=read_bounds,
        units=bounded_units,
        code=standardise_bounds,
        decode=unstandardise,
        settings=("upper",),
        stand_in=_ANY_NUMBER,
        own_units=True,
    ),
    Kind(
        name="censored_lognormal",
        about=f"positive numbers with a long right tail, {_LIMITS}",
        settle=keep,
        read=read_positive_bounds,
        units=geometric_bounded_units,
        code=bounds_in_units,
        decode=unstandardise,
        settings=("upper",),
        stand_in=_ANY_POSITIVE,
        own_units=True,
    ),
    Kind(
        name="censored_gamma",
        about=f"positive numbers whose sd grows with their mean, {_LIMITS}",
        settle=keep,
        read=read_positive_bounds,
        units=geometric_bounded_units,
        code=bounds_in_units,
        decode=unstandardise,
        settings=("upper",),
        stand_in=_ANY_POSITIVE,
        own_units=True,
    ),
    Kind(
        name="weibull",
        about="times to an event; event = the column that holds 1 where it happened, 0 where the time is a lower bound",
        settle=keep,
        read=read_times,
        units=geometric_bounded_units,
        code=bounds_in_units,
        decode=unstandardise,
        settings=("event",),
        stand_in=_ANY_POSITIVE,
        own_units=True,
    ),
    Kind(
        name="bernoulli",
        about="two values; levels = [no, yes]",
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
        settle=keep,
        read=read_proportions,
        units=proportion_units,
        code=squeeze,
        decode=unsqueeze,
        settings=("bounds",),
        stand_in=(0.5,),
    ),
    Kind(
        name="zero_one_beta",
        about="proportions of which some are exactly 0 or 1, for reasons of their own; bounds as for beta",
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
        settle=keep,
        read=read_counts,
        units=plain_units,
        code=same,
        decode=whole,
    ),
    Kind(
        name="negative_binomial",
        about="counts with more spread than a Poisson",
        settle=keep,
        read=read_counts,
        units=plain_units,
        code=same,
        decode=whole,
    ),
    Kind(
        name="zero_inflated_poisson",
        about="counts with more zeros than a Poisson",
        settle=keep,
        read=read_counts,
        units=plain_units,
        code=same,
        decode=whole,
    ),
    Kind(
        name="ordinal",
        about="one of several levels in an order; levels = [lowest, ..., highest]",
        settle=settle_ordinal,
        read=read_levels,
        units=plain_units,
        code=same,
        decode=nearest_level,
        settings=("levels",),
    ),
    Kind(
        name="categorical",
        about="one of several levels, in no order; levels = [...]",
        settle=settle_categorical,
        read=read_levels,
        units=plain_units,
        code=same,
        decode=nearest_level,
        settings=("levels",),
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
