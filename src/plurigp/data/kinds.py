"""What the data layer knows of each kind of column. A new kind is one more entry in KINDS."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from plurigp.data.cells import Cells, as_numbers, distinct_levels, first_row, level_codes
from plurigp.data.column import ASIDE, Column, Level
from plurigp.data.wording import amount, at, listing, nearest, show
from plurigp.types import DataError

EDGE = 1e-6  # coded proportions stay this far inside (0, 1), so that float32 keeps them there
FARTHEST = 1e9  # standard deviations from the mean: beyond it a value is a mistake, and float32 would overflow

_NO = {"no", "n", "false", "f", "negative", "neg", "-", "absent", "off", "control", "normal", "healthy", "never", "none"}
_NO |= {"without", "unexposed", "untreated", "placebo", "low", "alive", "inactive"}
_YES = {"yes", "y", "true", "t", "positive", "pos", "+", "present", "on", "case", "abnormal", "sick", "ill", "with"}
_YES |= {"exposed", "treated", "high", "dead", "active"}


class Units(NamedTuple):
    """How raw values become coded ones: raw = shift + scale * coded, proportions squeezed by `squeeze` cells."""

    shift: float = 0.0
    scale: float = 1.0
    squeeze: float = 0.0


@dataclass(frozen=True)
class Kind:
    """Named functions that take a column of this kind from raw cells to coded numbers and back."""

    name: str
    about: str  # one line for the people who edit a schema
    fields: tuple[str, ...]  # the settings that belong to this kind
    settle: Callable[[Column, Cells], Column]  # completes and checks a declaration against training cells
    read: Callable[[Column, Cells, Cells | None], np.ndarray]  # checked raw numbers [N W], NaN at gaps
    units: Callable[[Column, np.ndarray], Units]  # from the seen training numbers
    code: Callable[[Column, np.ndarray, Units], np.ndarray]  # raw numbers [N] -> coded [N]
    decode: Callable[[np.ndarray, Units], np.ndarray]  # coded [N] -> raw numbers [N]
    stand_in: tuple[float, ...] = (0.0,)  # what a gap holds, one number per slot

    @property
    def n_slots(self) -> int:
        """W: how many numbers one cell takes in a Table."""
        return len(self.stand_in)


def kind_of(column: Column) -> Kind:
    """The kind's entry; an unknown name is an error that lists the known ones."""
    if column.kind not in KINDS:
        known = [*KINDS, ASIDE]
        raise DataError(
            f"{at(column.name)}: unknown kind {show(column.kind)}; known: {', '.join(known)}.{nearest(column.kind, known)}"
        )
    return KINDS[column.kind]


def check_kind(column: Column) -> None:
    """Raises unless the kind is known or ASIDE."""
    if column.kind != ASIDE:
        kind_of(column)


# -- numbers -----------------------------------------------------------------------------------------------------------


def _settle_numbers(column: Column, cells: Cells) -> Column:
    kind_of(column).read(column, cells, None)
    return column


def _read_numbers(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    return as_numbers(cells, column.name)[:, None]


def _standard_units(column: Column, numbers: np.ndarray) -> Units:
    """Mean and sd; the division by the largest keeps very small and very large numbers from under- or overflowing."""
    largest = np.abs(numbers).max() or 1.0
    sd = float(np.std(numbers / largest) * largest)
    return Units(float(np.mean(numbers)), sd if sd > 0 and np.isfinite(1.0 / sd) else 1.0)


def _standardise(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    coded = (numbers - units.shift) / units.scale
    far = np.abs(coded) > FARTHEST
    if far.any():
        row = int(np.argmax(far))
        raise DataError(
            f"{at(column.name, row)}: the value {numbers[row]:.3g} lies {abs(coded[row]):.0e} standard deviations "
            "from the mean of the fit (a sentinel?); correct it or make it a gap."
        )
    return coded


def _unstandardise(coded: np.ndarray, units: Units) -> np.ndarray:
    return units.shift + units.scale * coded


# -- counts ------------------------------------------------------------------------------------------------------------


def _read_counts(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    return _counts(column.name, as_numbers(cells, column.name), column.kind)[:, None]


def _counts(name: object, numbers: np.ndarray, kind: str) -> np.ndarray:
    """Counts as they are; a negative or broken one is an error."""
    wrong = (numbers < 0) | (numbers != np.floor(numbers)) & ~np.isnan(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        finding = "negative" if numbers[row] < 0 else "not a whole number"
        raise DataError(
            f"{at(name, row)}: the count {amount(numbers[row])} is {finding}, which {kind} does not allow; "
            'correct it, or declare the column "gaussian".'
        )
    return numbers


def _plain_units(column: Column, numbers: np.ndarray) -> Units:
    return Units()


def _same(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    return numbers


def _whole(coded: np.ndarray, units: Units) -> np.ndarray:
    return np.maximum(np.rint(coded), 0.0)


def _settle_binomial(column: Column, cells: Cells) -> Column:
    if column.trials is None:
        raise DataError(f'{at(column.name)}: binomial needs trials; give the number, or the column that holds it: trials = "...".')
    if column.trials == column.name:
        raise DataError(f"{at(column.name)}: a column cannot hold its own trials; name another column.")
    _counts(column.name, as_numbers(cells, column.name), "binomial")
    return column


def _read_binomial(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    """Successes and trials side by side; every seen success needs its trials, and enough of them."""
    successes = _counts(column.name, as_numbers(cells, column.name), "binomial")
    if trials is None:
        assert isinstance(column.trials, int)
        limits = np.full(len(successes), float(column.trials))
    else:
        limits = _counts(column.trials, as_numbers(trials, column.trials), "binomial")
    lost = ~np.isnan(successes) & np.isnan(limits)
    if lost.any():
        row = int(np.argmax(lost))
        raise DataError(
            f"{at(column.name, row)}: successes without trials; fill column {show(column.trials, 80)} or make both gaps."
        )
    short = successes > limits
    if short.any():
        row = int(np.argmax(short))
        raise DataError(
            f"{at(column.name, row)}: {amount(successes[row])} successes out of {amount(limits[row])} trials; "
            "correct one of the two."
        )
    return np.stack([successes, limits], axis=1)


# -- proportions -------------------------------------------------------------------------------------------------------


def _bounds(column: Column) -> tuple[float, float]:
    return column.bounds or (0.0, 1.0)


def _read_proportions(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    numbers = as_numbers(cells, column.name)
    low, high = _bounds(column)
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        row = int(np.argmax(outside))
        percent = column.bounds is None and np.nanmin(numbers) >= 0 and 1 < np.nanmax(numbers) <= 100
        remedy = "If these are percent, declare bounds = [0, 100]." if percent else "Correct it or set bounds."
        raise DataError(
            f"{at(column.name, row)}: {amount(numbers[row])} lies outside {amount(low)} to {amount(high)}. {remedy}"
        )
    return numbers[:, None]


def _proportion_units(column: Column, numbers: np.ndarray) -> Units:
    """Bounds, and the number of cells when exact 0s or 1s ask for squeezing (Smithson & Verkuilen 2006)."""
    low, high = _bounds(column)
    at_edge = bool(((numbers == low) | (numbers == high)).any())
    return Units(low, high - low, float(max(len(numbers), 2)) if at_edge else 0.0)


def _squeeze(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """y' = (y (n - 1) + 1/2) / n if the training cells held exact 0s or 1s; never closer to an edge than EDGE."""
    y = (numbers - units.shift) / units.scale
    n = units.squeeze
    return np.clip((y * (n - 1) + 0.5) / n if n else y, EDGE, 1 - EDGE)


def _unsqueeze(coded: np.ndarray, units: Units) -> np.ndarray:
    n = units.squeeze
    y = np.clip((coded * n - 0.5) / (n - 1) if n else coded, 0.0, 1.0)
    return np.clip(units.shift + units.scale * y, units.shift, units.shift + units.scale)


# -- levels ------------------------------------------------------------------------------------------------------------


def two_levels(found: list[Level], ordered: bool = False) -> tuple[Level, ...]:
    """Two levels with the 'yes' second: a known word, else the larger, else the later in the alphabet."""
    if ordered or len(found) != 2 or not all(isinstance(level, str) for level in found):
        return tuple(found)
    first, second = (str(level).strip().lower() for level in found)
    if (first in _YES and second not in _YES) or (second in _NO and first not in _NO):
        return found[1], found[0]
    return tuple(found)


def _settle_bernoulli(column: Column, cells: Cells) -> Column:
    if column.levels:
        if len(column.levels) != 2:
            raise DataError(f"{at(column.name)}: bernoulli needs 2 levels, not {len(column.levels)}: give [no, yes].")
        return _settle_levels(column, cells)
    found = _found_levels(column, cells)
    if len(found) == 1 and found[0] in (0, 1) and not isinstance(found[0], str):
        found = [False, True] if isinstance(found[0], bool) else [0, 1]
    if len(found) != 2:
        many = f"{len(found)} different values ({listing(found)})" if len(found) > 1 else f"one value ({listing(found)})"
        remedy = 'declare it "categorical"' if len(found) > 2 else "give both: levels = [no, yes]"
        raise DataError(f"{at(column.name)}: declared bernoulli, but it holds {many}; {remedy}.")
    return replace(column, levels=two_levels(found, cells.ordered))


def _settle_categorical(column: Column, cells: Cells) -> Column:
    if column.levels:
        if len(column.levels) < 2:
            raise DataError(f"{at(column.name)}: categorical needs at least 2 levels, not 1; set the column aside.")
        return _settle_levels(column, cells)
    found = _found_levels(column, cells)
    if len(found) < 2:
        raise DataError(
            f"{at(column.name)}: declared categorical, but it holds one level ({listing(found)}); "
            "give all its levels, or set it aside."
        )
    return replace(column, levels=tuple(found))


def _found_levels(column: Column, cells: Cells) -> list[Level]:
    if cells.form == "date":
        raise DataError(f'{at(column.name)}: holds dates, which {column.kind} does not take; declare it "aside".')
    if cells.form == "number":
        as_numbers(cells, column.name)
    return distinct_levels(cells)


def _settle_levels(column: Column, cells: Cells) -> Column:
    """Declared levels must cover what the training cells hold."""
    _raise_unknown(column, cells, "is not among the declared levels", "Add it to levels, or recode it.")
    return column


def _read_levels(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    return _raise_unknown(column, cells, "was not seen in fit", "Recode it or refit.")[:, None]


def _raise_unknown(column: Column, cells: Cells, finding: str, remedy: str) -> np.ndarray:
    if cells.form == "date":
        _found_levels(column, cells)
    codes = level_codes(cells, column.levels)
    unknown = codes == -1
    if unknown.any():
        row = int(np.argmax(unknown))
        value = cells.distinct[cells.codes[row]] if cells.codes is not None else _value(cells, row)
        raise DataError(
            f"{at(column.name, row)}: level {show(value)} {finding}; known: {listing(column.levels)}. {remedy}"
        )
    return codes


def _value(cells: Cells, row: int) -> Level:
    assert cells.numbers is not None
    number = float(cells.numbers[row])
    return bool(number) if cells.form == "bool" else int(number) if number == np.floor(number) else number


def _nearest_level(coded: np.ndarray, units: Units) -> np.ndarray:
    return np.maximum(np.rint(coded), 0.0)



_ENTRIES = (
    Kind(
        name="gaussian",
        about="numbers of any size",
        fields=(),
        settle=_settle_numbers,
        read=_read_numbers,
        units=_standard_units,
        code=_standardise,
        decode=_unstandardise,
    ),
    Kind(
        name="gaussian_hetero",
        about="numbers whose noise differs from row to row",
        fields=(),
        settle=_settle_numbers,
        read=_read_numbers,
        units=_standard_units,
        code=_standardise,
        decode=_unstandardise,
    ),
    Kind(
        name="bernoulli",
        about="two values; levels = [no, yes]",
        fields=("levels",),
        settle=_settle_bernoulli,
        read=_read_levels,
        units=_plain_units,
        code=_same,
        decode=_nearest_level,
    ),
    Kind(
        name="binomial",
        about="successes out of trials; trials = a number, or the name of the column that holds it",
        fields=("trials",),
        settle=_settle_binomial,
        read=_read_binomial,
        units=_plain_units,
        code=_same,
        decode=_whole,
        stand_in=(0.0, 1.0),
    ),
    Kind(
        name="beta",
        about="proportions between two bounds; bounds = [0, 100] for percent, [0, 1] if left out",
        fields=("bounds",),
        settle=_settle_numbers,
        read=_read_proportions,
        units=_proportion_units,
        code=_squeeze,
        decode=_unsqueeze,
        stand_in=(0.5,),
    ),
    Kind(
        name="poisson",
        about="counts: 0, 1, 2, ...",
        fields=(),
        settle=_settle_numbers,
        read=_read_counts,
        units=_plain_units,
        code=_same,
        decode=_whole,
    ),
    Kind(
        name="categorical",
        about="one of several levels, in no order; levels = [...]",
        fields=("levels",),
        settle=_settle_categorical,
        read=_read_levels,
        units=_plain_units,
        code=_same,
        decode=_nearest_level,
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ENTRIES}
