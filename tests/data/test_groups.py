"""Which rows belong together."""

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data.groups import row_groups

FRAME = pd.DataFrame({"patient": ["p7", "p1", "p7"]})


def test_by_a_column_or_by_labels():
    for given in ("patient", ["p7", "p1", "p7"], FRAME["patient"]):
        ids, labels = row_groups(given, FRAME)
        np.testing.assert_array_equal(ids, [0, 1, 0])
        assert list(labels) == ["p7", "p1"]


def test_what_is_refused():
    with pytest.raises(DataError, match=r"groups = 'patients': is not a column .* Did you mean 'patient'"):
        row_groups("patients", FRAME)
    with pytest.raises(DataError, match="groups has 2 labels where the table has 3 rows"):
        row_groups([1, 2], FRAME)
    with pytest.raises(DataError, match="groups, row 1: a row without its group"):
        row_groups([1.0, np.nan, 2.0], FRAME)
