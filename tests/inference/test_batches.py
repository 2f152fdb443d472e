"""Batches: every row once, sizes as equal as can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.inference.batches import batches


@given(st.integers(1, 500), st.integers(1, 600))
def test_every_row_comes_once_and_sizes_differ_by_one_at_most(n_rows, batch_size):
    rows, real = batches(n_rows, batch_size, np.random.default_rng(0))
    n_batches = -(-n_rows // batch_size)
    assert rows.shape == real.shape == (n_batches, -(-n_rows // n_batches))
    assert (rows.dtype, real.dtype) == (np.int32, bool)
    assert sorted(rows[real].tolist()) == list(range(n_rows))
    assert (rows[~real] == 0).all()
    assert np.ptp(real.sum(axis=1)) <= 1
    assert rows.shape[1] <= batch_size


def test_ten_rows_in_fours():
    _, real = batches(10, 4, np.random.default_rng(0))
    assert real.sum(axis=1).tolist() == [4, 3, 3]


def test_the_generator_decides_the_order():
    one, _ = batches(50, 7, np.random.default_rng(1))
    same, _ = batches(50, 7, np.random.default_rng(1))
    other, _ = batches(50, 7, np.random.default_rng(2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize(("n_rows", "batch_size"), [(0, 3), (3, 0)])
def test_nothing_to_batch_is_an_error(n_rows, batch_size):
    with pytest.raises(ValueError, match="at least 1"):
        batches(n_rows, batch_size, np.random.default_rng(0))
