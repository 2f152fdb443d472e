"""Row weights: read and checked at the door, and the rows as often as they count."""

import warnings
from typing import Any

import numpy as np

from plurigp.core.text import at
from plurigp.core.types import DataError
from plurigp.data.column import Column
from plurigp.data.frames import check_named
from plurigp.data.kinds import PLAIN_NUMBERS
from plurigp.data.rows import Rows

MAX_REPEATED = 2_000_000  # rows that stand for a weighted table where moments are measured, at most
USUAL_MEAN = (0.1, 10.0)  # mean weights outside are likelier to be sampling weights than numbers of rows


def row_weights(given: Any, rows: Rows, warn: bool = True) -> np.ndarray | None:
    """Weights [N] from an array or the name of a column; None stays None. A weight of 2 is a row that occurs twice.

    Warns of a mean that numbers of rows hardly have, unless only the weights' proportions matter.
    """
    if given is None:
        return None
    if isinstance(given, str):
        check_named("weights", given, rows.columns)
        place, weights = at(given), rows.numbers(Column(given, PLAIN_NUMBERS))[:, 0]
    else:
        place, weights = "sample_weight", _as_numbers(given, len(rows))
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"{place}, row {row}: a weight must be finite and at least 0; correct it or drop the row.")
    if np.count_nonzero(weights) < 2:
        raise DataError(f"{place}: fewer than two rows have a weight above zero; give more rows a weight.")
    if warn and not USUAL_MEAN[0] <= weights.mean() <= USUAL_MEAN[1]:
        warnings.warn(
            f"{place}: the weights have mean {weights.mean():.3g}, and a weight counts as so many equal rows; "
            "divide sampling weights by their mean.",
            UserWarning,
            stacklevel=2,
        )
    return weights


def _as_numbers(given: Any, n_rows: int) -> np.ndarray:
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("sample_weight: holds something that is not a number; give one number per row.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight has shape {weights.shape} where the table has {n_rows} rows; give one per row.")
    return weights


def repeated_by_weight(weights: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Row numbers, each as often as its weight says: exactly if weights are whole, to within one row otherwise.

    Systematic resampling: moments of these rows are those of the weighted table, whatever computes them.
    """
    if weights is None:
        return np.arange(n_rows)
    total = float(weights.sum())
    n = min(max(round(total), 2), max(MAX_REPEATED, n_rows))
    ends = np.floor(np.cumsum(weights) * (n / total) + 0.5).astype(np.int64)
    return np.repeat(np.arange(n_rows), np.diff(ends, prepend=0))
