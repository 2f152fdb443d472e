"""Counts out of scale with the rest of their column: slips of the keyboard and codes, most of them."""

import warnings

import numpy as np

from plurigp.core.text import at
from plurigp.data.column import Column
from plurigp.data.kinds import kind_of
from plurigp.data.numeric import read_counts

SMALLEST = 1e4  # a count up to this is never out of scale
FEWEST = 4  # other counts above zero that a column must have to tell
MIN_TAIL = 0.5  # least mean of the logarithms' tail: a count must be 1,000 times the rest to stand out
RARITY = 14.0  # −log of the chance that an honest column has such a count: one in a million


class OutOfScaleWarning(UserWarning):
    """A count that is out of scale with the rest of its column."""


def largest_in_scale(numbers: np.ndarray) -> float:
    """The largest count that the others of the column leave room for; NaN is a gap.

    The others are taken to have a Pareto tail, which is longer than that of Poisson, negative binomial or rounded
    lognormal counts: the logarithms of their upper half are exponential. Its mean is measured between the median and
    the ninetieth percentile, and the limit is what the largest of n such counts exceeds once in a million columns.
    """
    logs = np.sort(np.log(numbers[numbers > 0]))[:-1]
    if len(logs) < FEWEST:
        return np.inf
    middle, high = np.quantile(logs, (0.5, 0.9))
    tail = max((high - middle) / np.log(5), MIN_TAIL) * (1 + 2 / np.sqrt(len(logs)))  # few counts tell it poorly
    limit = high + tail * (np.log(max(len(logs) / 10, 1)) + RARITY)
    return max(float(np.exp(min(limit, 700.0))), SMALLEST)


def out_of_scale(numbers: np.ndarray) -> int | None:
    """The row of the largest count [N] if it is out of scale with the others."""
    known = np.where(np.isnan(numbers), -np.inf, numbers)
    row = int(np.argmax(known)) if len(known) else 0
    return row if len(known) and known[row] > largest_in_scale(numbers) else None


def out_of_scale_message(name: object, row: int | None) -> str:
    """Where it is and what to do about it; the value itself is never shown."""
    return (
        f"{at(name, row)}: {'the' if row is not None else 'a'} count is out of scale with the rest of its column; the "
        "model takes it for a slip. Correct the cell or make it a gap; if it is right, declare the column "
        '"lognormal" or "zero_lognormal".'
    )


def out_of_scale_row(column: Column, numbers: np.ndarray) -> int | None:
    """The row of a count out of scale in a column of counts, whatever its family."""
    return out_of_scale(numbers) if kind_of(column).read is read_counts else None


def warn_out_of_scale(column: Column, numbers: np.ndarray) -> None:
    """To whoever has the table in hand, and so by its row."""
    if (row := out_of_scale_row(column, numbers)) is not None:
        warnings.warn(out_of_scale_message(column.name, row), OutOfScaleWarning, stacklevel=2)
