"""Population shares: those of the repeated rows, and intervals that cover a population sampled unequally."""

import numpy as np
import pytest

from plurigp.study.findings.shares import population_shares


def test_whole_weights_give_the_shares_of_repeated_rows():
    labels, weights = np.array([1, 1, 2, 3, 2]), np.array([1.0, 3.0, 2.0, 2.0, 4.0])
    found = population_shares(labels, weights).set_index("label")
    repeated = np.repeat(labels, weights.astype(int))
    assert found["share"].to_dict() == pytest.approx({k: (repeated == k).mean() for k in (1, 2, 3)})
    assert found["n_rows"].tolist() == [2, 2, 1]
    assert ((found["low"] < found["share"]) & (found["share"] < found["high"])).all()


def test_intervals_cover_the_population_of_a_survey_with_unequal_sampling():
    """The rare group is sampled five times as often: unweighted shares miss it, weighted ones do not."""
    rng, truth, odds = np.random.default_rng(0), np.array([0.7, 0.2, 0.1]), np.array([1.0, 2.0, 5.0])
    sampled = truth * odds / (truth * odds).sum()
    covered = []
    for _ in range(400):
        labels = rng.choice(3, 500, p=sampled)
        weights = 1 / odds[labels]
        found = population_shares(labels, weights / weights.mean())
        covered.append(((found["low"] <= truth) & (truth <= found["high"])).to_numpy())
        assert abs((labels == 2).mean() - truth[2]) > 0.05
    assert 0.92 < np.mean(covered) < 0.975
