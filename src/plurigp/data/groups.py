"""Which rows belong together, such as the visits of one patient: read and checked at the door."""

from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.text import at
from plurigp.core.types import DataError
from plurigp.data.frames import check_named


def row_groups(given: Any, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The group 0, 1, … of every row [N] and the groups' labels, in order of appearance.

    given: the name of the column that holds the labels, or one label per row.
    """
    if isinstance(given, str):
        check_named("groups", given, frame.columns)
        place, labels = at(given), frame[given]
    else:
        place, labels = "groups", pd.Series(given)
        if len(labels) != len(frame):
            raise DataError(f"groups has {len(labels)} labels where the table has {len(frame)} rows; give one per row.")
    ids, known = pd.factorize(labels)
    if (ids < 0).any():
        raise DataError(f"{place}, row {int(np.argmin(ids))}: a row without its group; fill it or drop the row.")
    return ids, np.asarray(known)
