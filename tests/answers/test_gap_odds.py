"""Weights of observed cells by how much they look like gaps."""

import numpy as np
import pytest
from scipy.special import expit

from plurigp.answers.gap_odds import MAX_WEIGHT, MIN_GAPS, effective_cells, gap_odds
from plurigp.answers.pit import KNOTS, pit_maps
from plurigp.answers.stacking import residual_law, stack_numbers


def test_weighted_cells_have_the_distribution_of_the_gaps(rng):
    X = rng.normal(size=(20_000, 3))
    seen = rng.random(20_000) > expit(0.6 * X[:, 0] - 1)
    weights = gap_odds(X, seen)
    assert weights.mean() == pytest.approx(1)
    assert X[seen, 0].mean() < X[~seen, 0].mean() - 0.3
    assert np.average(X[seen, 0], weights=weights) == pytest.approx(X[~seen, 0].mean(), abs=0.04)
    assert weights.max() <= 1.1 * MAX_WEIGHT
    assert effective_cells(weights) < seen.sum()


def test_cells_count_alike_where_gaps_are_few_or_at_random(rng):
    X = rng.normal(size=(2000, 4))
    few = np.arange(2000) >= MIN_GAPS - 1
    np.testing.assert_array_equal(gap_odds(X, few), 1.0)
    assert gap_odds(X, rng.random(2000) > 0.3).std() < 0.25


def test_a_law_of_weighted_residuals_is_that_of_the_repeated_ones(rng):
    r, var = rng.normal(size=300) * np.repeat([0.5, 2.0], 150), np.ones(300)
    times = np.repeat([1, 3], 150)
    weighted = residual_law(r, var, times.astype(float))
    repeated = residual_law(np.repeat(r, times), np.ones(600), np.ones(600))
    assert weighted.centre == pytest.approx(repeated.centre, abs=0.02)
    assert weighted.scale == pytest.approx(repeated.scale, rel=0.02)
    assert weighted.scale > residual_law(r, var, np.ones(300)).scale


def test_weights_decide_which_candidate_is_the_better_one(rng):
    y = rng.normal(size=400)
    here = np.arange(400) < 200
    first, second = np.where(here, y, 0.0), np.where(here, 0.0, y)
    of = lambda weights: stack_numbers(y, np.zeros(400), first, second, weights).weights  # noqa: E731
    assert of(np.where(here, 5.0, 0.2))[0] > 0.8
    assert of(np.where(here, 0.2, 5.0))[1] > 0.8


def test_weighted_pit_values_count_as_many_as_are_effective(rng):
    u = rng.random(500) ** 2
    np.testing.assert_allclose(pit_maps([u]), pit_maps([u], [np.full(500, 3.0)]))
    uneven = pit_maps([u], [np.where(np.arange(500) < 50, 100.0, 1e-6)])
    alone = pit_maps([u[:50]])
    np.testing.assert_allclose(uneven, alone, atol=1e-4)
    assert (np.diff(uneven) >= -1e-12).all()
    assert uneven[0, [0, -1]] == pytest.approx(KNOTS[[0, -1]])
