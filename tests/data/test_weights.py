"""Row weights: whatever is no weight is refused by its row, and repetition stands for weights."""

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError
from plurigp.data import Coder, infer_schema, to_rows
from plurigp.data.weights import MAX_REPEATED, repeated_by_weight, row_weights

FRAME = pd.DataFrame({"lab": [1.5, 2.0, 4.0, 8.5], "w": [1.0, 2.0, 0.0, 3.0]})


def test_weights_come_from_an_array_a_number_or_a_column():
    rows = to_rows(FRAME)
    assert row_weights(None, rows) is None
    np.testing.assert_array_equal(row_weights("w", rows), FRAME["w"])
    np.testing.assert_array_equal(row_weights(FRAME["w"].tolist(), rows), FRAME["w"])
    np.testing.assert_array_equal(row_weights(2, rows), np.full(4, 2.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2, 3], r"sample_weight has shape \(3,\) where the table has 4 rows"),
        ([1, -2, 3, 1], r"sample_weight, row 1: a weight must be finite and at least 0"),
        ([1, 1, np.nan, 1], r"sample_weight, row 2: a weight must be"),
        ([0, 0, 1, 0], "fewer than two rows have a weight above zero"),
        (["a", "b", "c", "d"], "holds something that is not a number"),
        ("gone", "weights = 'gone': is not a column"),
        ("late", r"column 'late', row 3: a weight must be"),
    ],
)
def test_what_is_no_weight_is_refused(given, message):
    with pytest.raises(DataError, match=message):
        row_weights(given, to_rows(FRAME.assign(late=[1, 1, 1, None])))


def test_sampling_weights_in_persons_are_pointed_out():
    with pytest.warns(UserWarning, match="divide sampling weights by their mean"):
        row_weights([900.0, 1100.0, 1500.0, 40.0], to_rows(FRAME))


def test_whole_weights_repeat_their_rows_and_others_do_within_one():
    np.testing.assert_array_equal(repeated_by_weight(FRAME["w"].to_numpy(), 4), [0, 1, 1, 3, 3, 3])
    np.testing.assert_array_equal(repeated_by_weight(None, 3), [0, 1, 2])
    weights = np.random.default_rng(0).gamma(2.0, 0.5, 500)
    counts = np.bincount(repeated_by_weight(weights, 500), minlength=500)
    assert counts.sum() == round(weights.sum())
    assert (np.abs(counts - weights) < 1).all()
    assert len(repeated_by_weight(np.full(10, 1e6), 10)) == MAX_REPEATED


def test_units_are_those_of_the_repeated_rows():
    schema = infer_schema(FRAME, {"lab": "gaussian", "w": "aside"})
    ours = Coder.fit(FRAME, schema, FRAME["w"].to_numpy())
    theirs = Coder.fit(FRAME.iloc[[0, 1, 1, 3, 3, 3]], schema)
    assert ours.to_dict() == theirs.to_dict()
    assert ours.shift[0] != Coder.fit(FRAME, schema).shift[0]


def test_a_column_known_only_in_rows_of_no_weight_keeps_their_units():
    frame = FRAME.assign(rare=[None, None, 3.0, None], other=[1.0, 2.0, 3.0, 5.0])
    coder = Coder.fit(frame, infer_schema(frame, {"rare": "gaussian"}), frame["w"].to_numpy())
    assert coder.shift[coder.schema.used.index(coder.schema["rare"])] == 3.0
