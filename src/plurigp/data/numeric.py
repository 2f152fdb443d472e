"""Kinds whose cells are numbers: reading, units, coding and undoing of gaussian, count and proportion columns."""

from typing import NamedTuple

import numpy as np

from plurigp.core.text import amount, at, show
from plurigp.core.types import DataError
from plurigp.data.cells import Cells, as_numbers
from plurigp.data.column import Column

EDGE = 1e-6  # coded proportions stay this far inside (0, 1), so that float32 keeps them there
FARTHEST = 1e9  # standard deviations from the mean: a value beyond is a mistake, and float32 would overflow


class Units(NamedTuple):
    """How raw numbers become coded ones: raw = shift + scale * coded, proportions squeezed by `squeeze` cells.

    Where columns are stacked, shift and scale are arrays [N 1], one of each per cell.
    """

    shift: float | np.ndarray = 0.0
    scale: float | np.ndarray = 1.0
    squeeze: float = 0.0


def keep(column: Column, cells: Cells) -> Column:
    """Nothing to complete in a declaration of this kind."""
    return column


def plain_units(column: Column, numbers: np.ndarray) -> Units:
    """Coded as they are."""
    return Units()


def same(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Coded as they are."""
    return numbers


# -- gaussian ----------------------------------------------------------------------------------------------------------


def read_numbers(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    """Any finite number."""
    return as_numbers(cells, column.name)[:, None]


def standard_units(column: Column, numbers: np.ndarray) -> Units:
    """Mean and sd (1 for a constant); an exact scaling by a power of two keeps small numbers from underflowing."""
    if numbers.min() == numbers.max():
        return Units(float(numbers[0, 0]), 1.0)
    power = int(np.frexp(np.abs(numbers).max())[1])
    sd = float(np.ldexp(np.std(np.ldexp(numbers, -power)), power))
    return Units(float(np.mean(numbers)), sd)


def standardise(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Standard deviations from the mean of the training cells."""
    coded = (numbers - units.shift) / units.scale
    far = np.abs(coded) > FARTHEST
    if far.any():
        row = int(np.argmax(far.any(axis=1)))
        raise DataError(
            f"{at(column.name, row)}: the value lies more than {FARTHEST:.0e} standard deviations from the mean seen "
            "in fit (a sentinel?); correct it or make it a gap."
        )
    return coded


def unstandardise(coded: np.ndarray, units: Units) -> np.ndarray:
    """Back to raw units."""
    return units.shift + units.scale * coded


# -- lognormal ---------------------------------------------------------------------------------------------------------


def read_positive(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    """Numbers above zero."""
    numbers = as_numbers(cells, column.name)
    wrong = numbers <= 0
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{at(column.name, row)}: the value is not above zero, which {column.kind} needs; "
            'correct it, make it a gap, or declare the column "gaussian".'
        )
    return numbers[:, None]


def geometric_units(column: Column, numbers: np.ndarray) -> Units:
    """The geometric mean."""
    return Units(0.0, float(np.exp(np.log(numbers).mean())))


def in_units(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Multiples of the geometric mean, kept where float32 can hold them."""
    return np.clip(numbers / units.scale, 1e-30, 1e30)


def read_amounts(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    """Numbers from zero up."""
    numbers = as_numbers(cells, column.name)
    if (numbers < 0).any():
        row = int(np.argmax(numbers < 0))
        raise DataError(
            f"{at(column.name, row)}: the value is below zero, which {column.kind} does not allow; "
            'correct it, make it a gap, or declare the column "gaussian".'
        )
    return numbers[:, None]


def positive_units(column: Column, numbers: np.ndarray) -> Units:
    """The geometric mean of what is above zero."""
    above = numbers[numbers > 0]
    return geometric_units(column, above) if len(above) else Units()


def amounts_in_units(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Zeros as they are, other amounts in units, each with the log unit that its density loses."""
    there = numbers > 0
    amounts = np.where(there, in_units(column, numbers, units), numbers)  # a gap stays NaN
    return np.concatenate([amounts, there * np.log(units.scale)], axis=1)


# -- counts ------------------------------------------------------------------------------------------------------------


def read_counts(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    """Whole numbers from 0 up."""
    return _counts(column.name, as_numbers(cells, column.name), column.kind)[:, None]


def _counts(name: object, numbers: np.ndarray, kind: str) -> np.ndarray:
    wrong = (numbers < 0) | (~np.isnan(numbers) & (numbers != np.floor(numbers)))
    if wrong.any():
        row = int(np.argmax(wrong))
        finding = "is negative" if numbers[row] < 0 else "is not a whole number"
        raise DataError(
            f"{at(name, row)}: the count {finding}, which {kind} does not allow; "
            'correct it, or declare the column "gaussian".'
        )
    return numbers


def whole(coded: np.ndarray, units: Units) -> np.ndarray:
    """The nearest count, so that a filled cell is one that could be read again."""
    return np.maximum(np.rint(coded), 0.0)


def settle_binomial(column: Column, cells: Cells) -> Column:
    """A binomial column must say where its trials are."""
    if column.trials is None or column.trials == column.name:
        raise DataError(f"{at(column.name)}: binomial needs trials; give a number, or the name of another column.")
    return column


def read_binomial(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    """Successes and trials side by side; every seen success needs its trials, and enough of them."""
    successes = _counts(column.name, as_numbers(cells, column.name), "binomial")
    limits = trial_counts(column, trials, len(successes))
    lost = ~np.isnan(successes) & np.isnan(limits)
    if lost.any():
        row = int(np.argmax(lost))
        where = show(column.trials, 80)
        raise DataError(f"{at(column.name, row)}: successes without trials; fill column {where}, or make both gaps.")
    short = successes > limits
    if short.any():
        row = int(np.argmax(short))
        raise DataError(f"{at(column.name, row)}: more successes than trials; correct one of the two.")
    return np.stack([successes, limits], axis=1)


def trial_counts(column: Column, trials: Cells | None, n_rows: int) -> np.ndarray:
    """The trials of each row, NaN where they are a gap."""
    if trials is None:
        assert isinstance(column.trials, int)  # a column's name comes with its cells
        return np.full(n_rows, float(column.trials))
    return _counts(column.trials, as_numbers(trials, column.trials), "binomial")


# -- proportions -------------------------------------------------------------------------------------------------------


def read_proportions(column: Column, cells: Cells, trials: Cells | None) -> np.ndarray:
    """Numbers between the bounds, edges included."""
    numbers = as_numbers(cells, column.name)
    low, high = column.bounds or (0.0, 1.0)
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        row = int(np.argmax(outside))
        percent = column.bounds is None and np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 100
        percent = bool(percent and np.nanmedian(numbers) > 1)
        remedy = "if these are percent, declare bounds = [0, 100]" if percent else "correct it, or declare other bounds"
        span = f"{amount(low)} to {amount(high)}"
        raise DataError(f"{at(column.name, row)}: the proportion lies outside {span}; {remedy}.")
    return numbers[:, None]


def proportion_units(column: Column, numbers: np.ndarray) -> Units:
    """The bounds, and the number of cells when an exact 0 or 1 asks for squeezing."""
    low, high = column.bounds or (0.0, 1.0)
    at_edge = bool(((numbers == low) | (numbers == high)).any())
    return Units(low, high - low, float(max(len(numbers), 2)) if at_edge else 0.0)


def range_units(column: Column, numbers: np.ndarray) -> Units:
    """The bounds alone."""
    low, high = column.bounds or (0.0, 1.0)
    return Units(low, high - low)


def proportions_and_ends(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Proportions with exact 0s and 1s as they are, each with the log unit that its density, if it has one, loses."""
    y = np.clip((numbers - units.shift) / units.scale, 0.0, 1.0)
    inside = (y > 0) & (y < 1)
    return np.concatenate([np.where(inside, np.clip(y, EDGE, 1 - EDGE), y), inside * np.log(units.scale)], axis=1)


def squeeze(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """y' = (y (n - 1) + 1/2) / n where the training cells held exact 0s or 1s (Smithson & Verkuilen, 2006)."""
    y = (numbers - units.shift) / units.scale
    n = units.squeeze
    return np.clip((y * (n - 1) + 0.5) / n if n else y, EDGE, 1 - EDGE)


def unsqueeze(coded: np.ndarray, units: Units) -> np.ndarray:
    """Back to raw units, within the bounds."""
    n = units.squeeze
    y = np.clip((coded * n - 0.5) / (n - 1) if n else coded, 0.0, 1.0)
    return np.clip(units.shift + units.scale * y, units.shift, units.shift + units.scale)
