"""Splits by groups: no patient is on two sides of any of them, and without groups nothing has changed."""

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.learn import _halves
from plurigp.study.fits.splits import first_rows, group_ids, shuffled_rows
from plurigp.study.fits.tasks import held_out_rows, training_rows

CONFIG = StudyConfig(selection_rows=200, random_state=3)


@pytest.fixture(scope="module")
def patients() -> np.ndarray:
    """400 visits of about 130 patients, in no order."""
    rng = np.random.default_rng(0)
    ids, _ = pd.factorize(rng.integers(0, 130, 400))
    return ids


def test_groups_are_named_by_a_column():
    frame = pd.DataFrame({"patient": ["p7", "p1", "p7", None]})
    assert group_ids(frame, None) is None
    np.testing.assert_array_equal(group_ids(frame.iloc[:3], "patient"), [0, 1, 0])
    with pytest.raises(DataError, match="column 'patient', row 3: a row without its group"):
        group_ids(frame, "patient")
    with pytest.raises(DataError, match="groups = 'person': is not a column"):
        group_ids(frame, "person")


def test_no_patient_is_in_both_halves(patients):
    for pair in range(20):
        one, other = _halves(400, CONFIG, f"refit-{pair}", patients)
        assert not set(patients[one]) & set(patients[other])
        np.testing.assert_array_equal(np.sort(np.concatenate([one, other])), np.arange(400))
        assert abs(len(one) - 200) < 10


def test_no_patient_is_in_training_and_test_rows(patients):
    rows = training_rows(400, CONFIG, patients)
    test = held_out_rows(400, rows, CONFIG, patients)
    assert not set(patients[rows]) & set(patients[test])
    assert abs(len(rows) + len(test) - 200) < 10
    assert 20 < len(test) < 60


def test_without_groups_rows_are_shuffled_as_before():
    expected = np.random.default_rng(CONFIG.seed_of("test")).permutation(400)
    np.testing.assert_array_equal(shuffled_rows(400, CONFIG.seed_of("test")), expected)
    np.testing.assert_array_equal(first_rows(expected, 30), expected[:30])


def test_one_group_cannot_be_split():
    rows = shuffled_rows(5, 0, np.zeros(5, int))
    np.testing.assert_array_equal(first_rows(rows, 2, np.zeros(5, int)), np.arange(5))
    two = np.array([0, 0, 0, 1, 1])
    assert len(set(two[first_rows(shuffled_rows(5, 0, two), 1, two)])) == 1
