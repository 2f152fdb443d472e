"""Kinds whose cells are numbers: their domain, reading, units, coding and decoding."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from plurigp.core.text import amount, at, show
from plurigp.core.types import DataError
from plurigp.data.cells import ColumnCells, as_numbers, refuse
from plurigp.data.column import Column

PROPORTION_MARGIN = 1e-6  # coded proportions stay this far inside (0, 1), so that float32 keeps them there
MAX_DEVIATIONS = 1e9  # standard deviations from the mean: a value beyond is a mistake, and float32 would overflow
SMALLEST_RATIO, LARGEST_RATIO = 1e-30, 1e30  # to the geometric mean, within float32


class Units(NamedTuple):
    """How raw numbers become coded ones: raw = shift + scale * coded, proportions squeezed by `squeeze` cells."""

    shift: float = 0.0
    scale: float = 1.0
    squeeze: float = 0.0


class Domain(NamedTuple):
    """Which rows of raw numbers [N R] lie outside a kind's domain, and how a message says so."""

    outside: Callable[[np.ndarray], np.ndarray]
    finding: str


def _not_positive(numbers: np.ndarray) -> np.ndarray:
    return numbers[:, -1] <= 0  # the value, or its upper bound


def _negative(numbers: np.ndarray) -> np.ndarray:
    return numbers[:, 0] < 0


def _not_count(numbers: np.ndarray) -> np.ndarray:
    first = numbers[:, 0]
    return (first < 0) | (first != np.floor(first)) & ~np.isnan(first)


POSITIVE = Domain(_not_positive, "is not above zero")
NOT_NEGATIVE = Domain(_negative, "is below zero")
COUNT = Domain(_not_count, "is not a whole number from 0 up")


def check_domain(name: object, numbers: np.ndarray, domain: Domain, kind: str) -> None:
    """Raises for the first row outside the domain."""
    finding = f"the value {domain.finding}, which {kind} does not allow"
    refuse(domain.outside(numbers), name, f"{finding}; correct it, make it a gap", misfit="value")


def read_numbers(column: Column, cells: ColumnCells, companion: ColumnCells | None) -> np.ndarray:
    """Finite numbers."""
    return as_numbers(cells, column.name)[:, None]


def read_binomial(column: Column, cells: ColumnCells, trials: ColumnCells | None) -> np.ndarray:
    """Successes and trials side by side; every observed success needs its trials, and enough of them."""
    successes = as_numbers(cells, column.name)
    if trials is None:
        limits = np.full(len(successes), float(column.trials or 0))  # a column's name comes with its cells
    else:
        limits = as_numbers(trials, column.trials)
        check_domain(column.trials, limits[:, None], COUNT, column.kind)
    without = f"successes without trials; fill column {show(column.trials, 80)}, or make both gaps."
    refuse(~np.isnan(successes) & np.isnan(limits), column.name, without)
    refuse(successes > limits, column.name, "more successes than trials; correct one of the two.")
    return np.stack([successes, limits], axis=1)


def settle_binomial(column: Column, cells: ColumnCells) -> Column:
    """A binomial column must say where its trials are."""
    if column.trials is None or column.trials == column.name:
        raise DataError(f"{at(column.name)}: {column.kind} needs trials; give a number, or the name of another column.")
    return column


def proportion_range(column: Column) -> tuple[float, float]:
    """The declared bounds of a column of proportions, 0 and 1 without them."""
    return column.bounds or (0.0, 1.0)


def read_proportions(column: Column, cells: ColumnCells, companion: ColumnCells | None) -> np.ndarray:
    """Numbers between the bounds, ends included."""
    numbers = as_numbers(cells, column.name)
    low, high = proportion_range(column)
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        percent = column.bounds is None and np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 100
        percent = bool(percent and np.nanmedian(numbers) > 1)
        remedy = "if these are percent, declare bounds = [0, 100]" if percent else "correct it, or declare other bounds"
        refuse(outside, column.name, f"the proportion lies outside {amount(low)} to {amount(high)}; {remedy}.")
    return numbers[:, None]


def plain_units(column: Column, numbers: np.ndarray) -> Units:
    """Coded as they are."""
    return Units()


def standard_units(column: Column, numbers: np.ndarray) -> Units:
    """Mean and sd (1 for a constant); an exact scaling by a power of two keeps small numbers from underflowing."""
    if numbers.min() == numbers.max():
        return Units(float(numbers[0, 0]), 1.0)
    power = int(np.frexp(np.abs(numbers).max())[1])
    sd = float(np.ldexp(np.std(np.ldexp(numbers, -power)), power))
    return Units(float(np.mean(numbers)), sd)


def geometric_units(column: Column, numbers: np.ndarray) -> Units:
    """The geometric mean of what is above zero."""
    above = numbers[numbers > 0]
    return Units(0.0, float(np.exp(np.log(above).mean()))) if len(above) else Units()


def range_units(column: Column, numbers: np.ndarray) -> Units:
    """The bounds."""
    low, high = proportion_range(column)
    return Units(low, high - low)


def squeezed_range_units(column: Column, numbers: np.ndarray) -> Units:
    """The bounds, and the number of cells where an exact 0 or 1 asks for squeezing."""
    at_end = bool(np.isin(numbers, proportion_range(column)).any())
    return range_units(column, numbers)._replace(squeeze=float(max(len(numbers), 2)) if at_end else 0.0)


def same(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Coded as they are."""
    return numbers


def standardise(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Standard deviations from the mean of the training cells."""
    coded = (numbers - units.shift) / units.scale
    finding = (
        f"the value lies more than {MAX_DEVIATIONS:.0e} standard deviations from the mean seen in fit (a sentinel?)"
    )
    refuse(np.any(np.abs(coded) > MAX_DEVIATIONS, axis=1), column.name, f"{finding}; correct it or make it a gap.")
    return coded


def in_units(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Multiples of the geometric mean, within float32."""
    return np.clip(numbers / units.scale, SMALLEST_RATIO, LARGEST_RATIO)


def amounts_in_units(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Zeros as they are, other amounts in units, each with the log unit that its density loses."""
    positive = numbers > 0
    amounts = np.where(positive, in_units(column, numbers, units), numbers)  # a gap stays NaN
    return np.concatenate([amounts, positive * np.log(units.scale)], axis=1)


def proportions_and_ends(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """Proportions with exact 0s and 1s as they are, each with the log unit that its density, if it has one, loses."""
    y = np.clip((numbers - units.shift) / units.scale, 0.0, 1.0)
    inside = (y > 0) & (y < 1)
    kept = np.where(inside, np.clip(y, PROPORTION_MARGIN, 1 - PROPORTION_MARGIN), y)
    return np.concatenate([kept, inside * np.log(units.scale)], axis=1)


def squeeze(column: Column, numbers: np.ndarray, units: Units) -> np.ndarray:
    """y' = (y (n - 1) + 1/2) / n where the training cells held exact 0s or 1s (Smithson & Verkuilen, 2006)."""
    y = (numbers - units.shift) / units.scale
    n = units.squeeze
    return np.clip((y * (n - 1) + 0.5) / n if n else y, PROPORTION_MARGIN, 1 - PROPORTION_MARGIN)


def unstandardise(coded: np.ndarray, units: Units) -> np.ndarray:
    """Back to raw units."""
    return units.shift + units.scale * coded


def nearest_count(coded: np.ndarray, units: Units) -> np.ndarray:
    """The nearest count, or place of a level, so that a filled cell is one that could be read again."""
    return np.maximum(np.rint(coded), 0.0)


def unsqueeze(coded: np.ndarray, units: Units) -> np.ndarray:
    """Back to raw units, within the bounds."""
    n = units.squeeze
    y = np.clip((coded * n - 0.5) / (n - 1) if n else coded, 0.0, 1.0)
    return np.clip(units.shift + units.scale * y, units.shift, units.shift + units.scale)
