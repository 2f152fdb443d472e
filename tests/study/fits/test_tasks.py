"""Batches that all fits of a study share, and how long they train."""

import numpy as np
import pytest

from plurigp.inference.schedule import enough_epochs
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.tasks import PASSES, common_batch, fitting_batch, training_rows

CONFIG = StudyConfig()


@pytest.mark.parametrize("n_rows", [60, 61, 700, 1001, 1400, 3000, 9105, 9106, 123_457])
def test_halves_and_table_share_a_batch_that_they_fill(n_rows):
    batch = common_batch(n_rows, CONFIG)
    assert batch <= CONFIG.batch_size + 1
    for n in (n_rows, n_rows // 2):
        assert fitting_batch(n, batch) == batch
        n_batches = -(-n // batch)
        assert n > (n_batches - 1) * batch  # the last batch is there
        assert n_batches * batch - n <= max(2, n_batches)  # and lacks a row or so per batch at most


@pytest.mark.parametrize(("n", "batch", "expected"), [(10, 500, 10), (560, 350, 280), (2400, 300, 300), (7, 3, 3)])
def test_other_numbers_of_rows_are_cut_evenly(n, batch, expected):
    assert fitting_batch(n, batch) == expected


def test_selection_learns_from_whole_batches_of_a_large_table():
    batch = common_batch(9105, CONFIG)
    rows = training_rows(9105, CONFIG)
    assert len(rows) % batch == 0
    assert 0.9 * 0.8 * CONFIG.selection_rows < len(rows) <= 0.8 * CONFIG.selection_rows
    assert len(np.unique(rows)) == len(rows)
    assert len(training_rows(700, CONFIG)) == 560


def test_passes_are_fewer_where_each_has_many_steps():
    assert [enough_epochs(500 * n, 500, PASSES) for n in (1, 6, 10, 20, 200)] == [100, 100, 60, 50, 50]
