"""Censoring that does not depend on the rows: limits, times and intervals drawn from a column's own, and written.

Cells are bounds [N 2]: equal where a value is known, infinite where open, NaN at gaps.
"""

from collections.abc import Sequence

import numpy as np

from plurigp.data.column import Column
from plurigp.data.kinds import kind_of
from plurigp.data.limits import text_of_bounds

PAIRS_AT_ONCE = 2**22  # pairs of a value and an interval compared in one go


def censor_like(bounds: np.ndarray, values: np.ndarray, positive: bool, rng: np.random.Generator) -> np.ndarray:
    """The values [N] as bounds [N 2], censored as often and in the ways that the cells in `bounds` are; the same gaps.

    Every row gets an upper and a lower limit from the distributions that Kaplan and Meier estimate from the column
    (time and censoring exchanged, "reverse"), whichever rows they came from; what lies beyond its limit is known up to
    it. Of the others as many rows, at random, as in the column are known to lie in an interval. With values from the
    column's own distribution the shares of the censored cells are, on average, the column's.
    """
    known = ~np.isnan(bounds[:, 0])
    if not known.any():
        return np.full_like(bounds, np.nan)
    low, high = bounds[known].T
    low = np.where(low <= 0, -np.inf, low) if positive else low  # zero is no limit to what is positive
    says = np.isfinite(low) | np.isfinite(high)
    empty = rng.random(len(values)) >= says.mean()
    new = _censored(low[says], high[says], values, positive, rng)
    new[empty] = -np.inf, np.inf
    new[:, 0] = np.maximum(new[:, 0], 0.0 if positive else -np.inf)
    return np.where(np.isnan(bounds[:, :1]), np.nan, new)


def _censored(
    low: np.ndarray, high: np.ndarray, values: np.ndarray, positive: bool, rng: np.random.Generator
) -> np.ndarray:
    """The same, from the bounds of the cells that say something."""
    lower = -draw_limits(-high, -low, len(values), rng)
    upper = np.maximum(draw_limits(low, high, len(values), rng), lower)
    below, above = values < lower, values > upper
    new = np.stack([values, values], axis=1)
    new[below, 0], new[below, 1] = -np.inf, lower[below]
    new[above, 0], new[above, 1] = upper[above], np.inf
    interval = np.isfinite(low) & np.isfinite(high) & (low < high)
    share = interval.sum() / max(1, (interval | (low == high)).sum())
    chosen = np.flatnonzero(~(below | above) & (rng.random(len(values)) < share))
    if len(chosen):
        new[chosen] = coarsen(values[chosen], np.stack([low, high], axis=1)[interval], positive, rng)
    return new


def draw_limits(low: np.ndarray, high: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Upper limits [n] of a column of cells with these bounds, infinite where there is none.

    A cell open above tells its limit; any other was not above its limit, which is at least the cell's lower bound. A
    value that equals a limit was known before the limit could hide it, so it says nothing of that limit. Where the
    largest cells are open above, no limit is larger than theirs.
    """
    limits, counts = np.unique(low[np.isposinf(high)], return_counts=True)
    at_risk = counts + len(low) - np.searchsorted(np.sort(low), limits, side="right")
    beyond = np.cumprod(1 - counts / at_risk)  # the probability of a larger limit
    return np.append(limits, np.inf)[np.searchsorted(-beyond, -rng.random(n), side="left")]


def coarsen(values: np.ndarray, intervals: np.ndarray, positive: bool, rng: np.random.Generator) -> np.ndarray:
    """An interval [n 2] around every value: one of the column's that holds it, or else one as wide as one of them.

    As wide means the same difference, for positive columns the same ratio.
    """
    around = _around(values, intervals[rng.integers(len(intervals), size=len(values))], positive, rng)
    step = max(1, PAIRS_AT_ONCE // len(intervals))
    for start in range(0, len(values), step):
        part = values[start : start + step, None]
        holds = (intervals[:, 0] <= part) & (part <= intervals[:, 1])
        n_holds = holds.sum(1)
        turn = np.minimum((rng.random(len(part)) * n_holds).astype(int), np.maximum(n_holds - 1, 0))
        chosen = np.argmax(np.cumsum(holds, axis=1) > turn[:, None], axis=1)
        around[start : start + step][n_holds > 0] = intervals[chosen[n_holds > 0]]
    return around


def _around(values: np.ndarray, intervals: np.ndarray, positive: bool, rng: np.random.Generator) -> np.ndarray:
    """An interval of the same width with the value somewhere inside."""
    before = rng.random(len(values))
    if positive:
        ratio = intervals[:, 1] / intervals[:, 0]
        return np.stack([values * ratio**-before, values * ratio ** (1 - before)], axis=1)
    width = intervals[:, 1] - intervals[:, 0]
    return np.stack([values - before * width, values + (1 - before) * width], axis=1)


def with_one_status(bounds: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Times [N 2] of several columns with one status per row: whether it happened, by the row's first known time.

    Where it happened, a time that was cut off at a limit is known as the limit; where it did not, all are lower bounds.
    """
    happened = np.zeros(len(bounds[0]), dtype=bool)
    for own in reversed(bounds):
        happened = np.where(np.isnan(own[:, 0]), happened, np.isfinite(own[:, 1]))
    return [_with_status(own, value, happened) for own, value in zip(bounds, values, strict=True)]


def _with_status(bounds: np.ndarray, values: np.ndarray, happened: np.ndarray) -> np.ndarray:
    low, high = bounds.T
    end = np.where(low > 0, low, values)
    cut = happened & np.isposinf(high)
    new = np.stack([np.where(cut, end, low), np.where(cut, end, np.where(happened, high, np.inf))], axis=1)
    return np.where(np.isnan(bounds), np.nan, new)


def rounded_like(bounds: np.ndarray, new: np.ndarray, positive: bool) -> np.ndarray:
    """New bounds as whole numbers where all of the column's are: values to the nearest, intervals outwards."""
    finite = bounds[np.isfinite(bounds)]
    if (finite != np.rint(finite)).any():
        return new
    exact = new[:, :1] == new[:, 1:]
    whole = np.where(exact, np.rint(new), np.stack([np.floor(new[:, 0]), np.ceil(new[:, 1])], axis=1))
    return np.where(exact & positive, np.maximum(whole, 1.0), whole)


def write_bounds(column: Column, bounds: np.ndarray) -> dict[str, np.ndarray]:
    """Cells of the column, and of the companion that holds its upper bounds, that read as these bounds."""
    low, high = _open_below(column, bounds)
    if column.upper is not None:
        return {column.name: np.where(np.isinf(low), np.nan, low), column.upper: np.where(np.isinf(high), np.nan, high)}
    return {column.name: _spelled(low, high)}


def write_times(columns: Sequence[Column], bounds: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The same for time columns that share an event column, whose status of a row must suit them all."""
    written: dict[str, np.ndarray] = {}
    happened = np.full(len(bounds[0]), np.nan)
    for column, own in zip(columns, bounds, strict=True):
        low, high = _open_below(column, own)
        written[column.name] = _spelled(low, np.where(np.isposinf(high) & (low > 0), low, high))
        happened = np.where(np.isnan(low), happened, np.fmax(happened, np.isfinite(high)))
    return written | {str(columns[0].event): happened}


def _open_below(column: Column, bounds: np.ndarray) -> np.ndarray:
    """Lower and upper bounds [2 N]; a limit to what is above zero anyway has no lower bound."""
    low, high = bounds.T
    below = (low == 0) & np.isfinite(high) & kind_of(column).positive
    return np.stack([np.where(below, -np.inf, low), high])


def _spelled(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Bounds in one column: numbers, or text where some are limits."""
    if not (low < high).any():
        return low
    texts = [None if np.isnan(a) else text_of_bounds(a, b) for a, b in zip(low, high, strict=True)]
    return np.array(texts, dtype=object)
