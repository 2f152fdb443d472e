"""PIT values and the map that corrects levels: known values, known maps, coverage where the draws are wrong."""

import numpy as np
import pytest
from scipy.stats import kstest

from plurigp.answers.pit import CHANCE, KNOTS, calibrated_levels, identity_maps, pit_maps, pit_values

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def ranked(draws, low, high, rng):
    """PIT values of cells that lie between low and high, from their draws."""
    return pit_values((draws < low).sum(0), ((draws >= low) & (draws <= high)).sum(0), len(draws), rng)


def test_the_pit_value_of_a_number_is_the_share_of_draws_below_it(rng):
    draws = np.arange(99.0)[:, None].repeat(3, 1)
    y = np.array([-1.0, 49.5, 200.0])
    u = ranked(draws, y, y, rng)
    assert (np.abs(u - [0.005, 0.505, 0.995]) <= 0.005).all()


def test_pit_values_are_uniform_where_the_draws_are_right(rng):
    """Counts too, whose draws are often equal to the cell, and however few the draws."""
    for draws, y in (
        (rng.normal(size=(9, 20_000)), rng.normal(size=20_000)),
        (rng.poisson(1.5, (40, 20_000)).astype(float), rng.poisson(1.5, 20_000).astype(float)),
    ):
        assert kstest(ranked(draws, y, y, rng), "uniform").statistic < 0.012


def test_a_cell_known_up_to_a_limit_ranks_among_the_draws_within_it(rng):
    draws = rng.normal(size=(200, 20_000))
    y = rng.normal(size=20_000)
    below = y < -0.5
    u = ranked(draws, np.where(below, -1e30, y), np.where(below, -0.5, y), rng)
    assert kstest(u, "uniform").statistic < 0.012
    assert u[below].max() < 0.45


def test_maps_of_known_values():
    """By hand: one column whose values are all 0.26, one whose values lie evenly."""
    n, m = 900, 400
    off = (KNOTS >= 0.26) - KNOTS
    even = (np.arange(m) + 0.5) / m
    beyond = ((off**2).mean() - CHANCE / n - CHANCE / m) / 2
    wrong, right = pit_maps([np.full(n, 0.26), even])
    np.testing.assert_allclose(wrong, KNOTS + beyond / (beyond + CHANCE / n) * off)
    np.testing.assert_allclose(right, KNOTS, atol=1e-12)


def test_chance_is_what_uniform_values_deviate_by(rng):
    u = np.sort(rng.random((2000, 60)), axis=1)
    shares = (u[:, :, None] <= KNOTS).mean(1)
    assert ((shares - KNOTS) ** 2).mean() == pytest.approx(CHANCE / 60, rel=0.1)


def test_right_draws_are_left_nearly_as_they_are(rng):
    """Twenty columns of a hundred cells each: the maps stay far nearer to u than the shares themselves."""
    u = rng.random((20, 100))
    shares = (np.sort(u, axis=1)[:, :, None] <= KNOTS).mean(1)
    assert ((pit_maps(list(u)) - KNOTS) ** 2).mean() < 0.15 * ((shares - KNOTS) ** 2).mean()


def test_the_map_that_changes_nothing():
    np.testing.assert_allclose(calibrated_levels(identity_maps(2)[1], LEVELS), LEVELS)


@pytest.mark.parametrize("ends", [(0.0, 1e-9), (0.999, 1.0), (0.4, 0.41)])
def test_maps_rise_and_undo_themselves(rng, ends):
    """However the PIT values lie."""
    (G,) = pit_maps([rng.uniform(*ends, 5000)])
    assert (np.diff(G) > 0).all()
    np.testing.assert_allclose(np.interp(calibrated_levels(G, LEVELS), KNOTS, G), LEVELS)


def test_wrong_draws_cover_what_they_say_after_the_map(rng):
    """Cells that are shifted, of another shape and less spread than their draws; the map is learned on other cells."""

    def one(n):
        return rng.normal(size=(100, n)), 0.4 + 0.5 * rng.laplace(size=n)

    draws, y = one(2000)
    (G,) = pit_maps([ranked(draws, y, y, rng)])
    draws, y = one(8000)
    for p in (0.5, 0.8, 0.9):
        ends = [(1 - p) / 2, (1 + p) / 2]
        covered = []
        for levels in (ends, calibrated_levels(G, ends)):
            low, high = np.quantile(draws, levels, axis=0, method="weibull")
            covered.append(np.mean((low <= y) & (y <= high)))
        assert abs(covered[1] - p) < 0.03
        assert abs(covered[1] - p) < abs(covered[0] - p)
