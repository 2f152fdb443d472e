"""Counts out of scale with the rest of their column, most of them typing errors or codes."""

import warnings

import numpy as np

from plurigp.core.text import at
from plurigp.data.column import Column
from plurigp.data.kinds import kind_of, quoted

ALWAYS_IN_SCALE = 1e4  # a count up to this is never out of scale
MIN_COUNTS = 4  # other counts above zero that a column must have to tell
MIN_TAIL = 0.5  # least mean of the logarithms' tail: a count must be 1,000 times the rest to stand out
RARITY = 14.0  # −log of the probability that a column without errors has such a count: one in a million


class OutOfScaleWarning(UserWarning):
    """A count that is out of scale with the rest of its column."""


def largest_in_scale(numbers: np.ndarray) -> float:
    """The largest count that the others of the column leave room for; NaN is a gap.

    The others are taken to have a Pareto tail, which is longer than that of Poisson, negative binomial or rounded
    lognormal counts: the logarithms of their upper half are exponential. Its mean is measured between the median and
    the ninetieth percentile, and the limit is what the largest of n such counts exceeds once in a million columns.
    """
    logs = np.sort(np.log(numbers[numbers > 0]))[:-1]
    if len(logs) < MIN_COUNTS:
        return np.inf
    middle, high = np.quantile(logs, (0.5, 0.9))
    tail = max((high - middle) / np.log(5), MIN_TAIL) * (1 + 2 / np.sqrt(len(logs)))  # few counts tell it poorly
    limit = high + tail * (np.log(max(len(logs) / 10, 1)) + RARITY)
    return max(float(np.exp(min(limit, 700.0))), ALWAYS_IN_SCALE)


def out_of_scale_row(column: Column, numbers: np.ndarray) -> int | None:
    """The row of the largest count [N] of a column of counts if it is out of scale with the others."""
    if not kind_of(column).for_extreme_counts or np.isnan(numbers).all():
        return None
    row = int(np.nanargmax(numbers))
    return row if numbers[row] > largest_in_scale(numbers) else None


def out_of_scale_message(column: Column, row: int | None) -> str:
    """Where it is and what to do about it; the value itself is never shown."""
    return (
        f"{at(column.name, row)}: {'the' if row is not None else 'a'} count is out of scale with the rest of its "
        "column; the model treats it as an error. Correct the cell or make it a gap; if it is right, declare the "
        f"column {quoted(kind_of(column).for_extreme_counts)}."
    )


def warn_out_of_scale(column: Column, numbers: np.ndarray) -> None:
    """Warns whoever has the table at hand, and so by its row."""
    if (row := out_of_scale_row(column, numbers)) is not None:
        warnings.warn(out_of_scale_message(column, row), OutOfScaleWarning, stacklevel=2)
