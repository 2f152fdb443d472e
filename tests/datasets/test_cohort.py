"""The cohort has the paper's make-up and subtypes that an oracle finds, as far apart as asked."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_score

from plurigp.core.types import DataError
from plurigp.data.table import Coder
from plurigp.datasets import simulate_cohort


@pytest.fixture(scope="module")
def cohort():
    return simulate_cohort()


def test_make_up(cohort):
    assert cohort.table.shape == cohort.truth.shape == cohort.hidden.shape == (1400, 46)
    kinds = pd.Series([column.kind for column in cohort.schema.columns]).value_counts().to_dict()
    assert kinds == {"bernoulli": 20, "gaussian": 20, "beta": 6}
    assert list(cohort.table)[::20] == ["diagnosis_01", "lab_01", "share_01"]
    np.testing.assert_array_equal(cohort.table.isna(), cohort.hidden)
    assert cohort.hidden.mean() == pytest.approx(0.1, abs=0.01)
    shares = cohort.truth.filter(like="share")
    assert shares.min(axis=None) > 0
    assert shares.max(axis=None) < 1
    assert cohort.truth.filter(like="diagnosis").mean().between(0.01, 0.99).all()


def test_separation_is_the_distance_between_centres_in_sd_within():
    cohort = simulate_cohort(8000, 4, 1, 0, 0, separation=5.0)
    centres = np.stack([cohort.x[cohort.subtype == k].mean(0) for k in range(4)])
    within = np.sqrt(np.mean([cohort.x[cohort.subtype == k].var(0) for k in range(4)]))
    distance = np.linalg.norm(centres[:, None] - centres[None], axis=-1)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(distance / within, 5.0, rtol=0.03)
    np.testing.assert_allclose(cohort.x.mean(0), 0.0, atol=0.03)
    assert cohort.x.var(0).mean() == pytest.approx(1.0, abs=0.02)


def test_subtypes_can_be_recovered_from_the_cells(cohort):
    cells = cohort.truth.to_numpy(float)
    cells = (cells - cells.mean(0)) / cells.std(0)
    classifier = LogisticRegression(C=0.1, max_iter=1000)
    assert cross_val_score(classifier, cells, cohort.subtype, cv=3).mean() > 0.95
    mixed = simulate_cohort(separation=0.0)
    cells = mixed.truth.to_numpy(float)
    cells = (cells - cells.mean(0)) / cells.std(0)
    assert cross_val_score(classifier, cells, mixed.subtype, cv=3).mean() < 0.45


def test_all_subtypes_are_sizeable(cohort):
    share = np.bincount(cohort.subtype) / len(cohort.subtype)
    assert len(share) == 4
    assert share.min() > 0.08
    assert share.max() > 1.5 * share.min()


def best_number_of_components(x):
    """By BIC, with a start that needs no k-means, which is slow beside other busy processes."""
    mixtures = {k: GaussianMixture(k, random_state=0, n_init=2, init_params="k-means++") for k in (1, 2, 4, 5)}
    return min(mixtures, key=lambda k: mixtures[k].fit(x).bic(x))


def test_one_subtype_is_one_round_cloud():
    cohort = simulate_cohort(n_subtypes=1)
    assert set(cohort.subtype) == {0}
    np.testing.assert_allclose(np.cov(cohort.x.T), np.eye(cohort.x.shape[1]), atol=0.12)
    assert best_number_of_components(cohort.x) == 1


def test_four_subtypes_are_four_clouds(cohort):
    assert best_number_of_components(cohort.x) == 4


def test_more_subtypes_than_dimensions():
    cohort = simulate_cohort(600, 8, 2, 2, 1)
    assert cohort.x.shape == (600, 7)
    assert set(cohort.subtype) == set(range(8))


def test_data_layer_takes_it(cohort):
    coded = Coder.fit(cohort.table, cohort.schema).table(cohort.table)
    np.testing.assert_array_equal(coded.seen, ~cohort.hidden)


def test_seed(cohort):
    pd.testing.assert_frame_equal(simulate_cohort().table, cohort.table)
    pd.testing.assert_frame_equal(simulate_cohort(missing=0.4, mechanism="self").truth, cohort.truth)
    assert not simulate_cohort(random_state=1).truth.equals(cohort.truth)


def test_bad_requests():
    with pytest.raises(DataError, match="n_subtypes is 0"):
        simulate_cohort(n_subtypes=0)
    with pytest.raises(DataError, match="no column"):
        simulate_cohort(n_binary=0, n_real=0, n_proportion=0)
