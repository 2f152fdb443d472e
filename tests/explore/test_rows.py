"""The points of the map: views, regions, bins; and the shares of the dimensions."""

import equinox as eqx
import numpy as np
import pytest

from plurigp.explore.explain import dimension_shares
from plurigp.explore.rows import (
    MIN_REGION,
    RowPoints,
    binned,
    in_populated_regions,
    points_content,
    principal_view,
    view_of_study,
)
from plurigp.study.findings.view import two_dimensions


def points_at(x: np.ndarray) -> RowPoints:
    n = len(x)
    view = principal_view(x)
    flat = (x - view.centre) @ view.axes
    return RowPoints(x, flat, np.zeros(n, int), np.ones(n), np.zeros(n), np.ones(n, int), np.arange(n))


@pytest.fixture
def cloud():
    return np.random.default_rng(0).normal(size=(500, 3))


def test_a_lonely_row_is_not_drawn_whichever_plane_shows_it(cloud):
    x = np.concatenate([cloud, [[9.0, 0, 0], [0, 0, -8.0]]])
    kept = in_populated_regions(x, points_at(x).flat)
    assert not kept[-2:].any()
    assert kept[:-2].mean() > 0.8


def test_four_rows_together_are_still_too_few(cloud):
    few, enough = (np.concatenate([cloud, np.full((n, 3), 7.0)]) for n in (MIN_REGION - 1, MIN_REGION))
    assert not in_populated_regions(few, points_at(few).flat)[500:].any()
    assert in_populated_regions(enough, points_at(enough).flat)[500:].all()


def test_a_linear_view_is_recognised(cloud):
    flat = two_dimensions(cloud)
    view = view_of_study(cloud, flat)
    np.testing.assert_allclose((cloud - view.centre) @ view.axes, flat, atol=1e-9)
    assert view_of_study(cloud, np.tanh(3 * flat)).axes is None


def test_one_dimension_has_a_view_too():
    view = principal_view(np.random.default_rng(0).normal(size=(30, 1)))
    assert view.axes.shape == (1, 2)
    assert not view.axes[:, 1].any()


def test_bins_are_means_of_their_rows(cloud):
    points = points_at(cloud)
    bins = binned(points, 6)
    assert bins.count.min() >= MIN_REGION
    place = np.clip(((points.flat - points.flat.min(0)) / np.ptp(points.flat, axis=0) * 6).astype(int), 0, 5)
    cells = {tuple(cell): cloud[(place == cell).all(1)] for cell in np.unique(place, axis=0)}
    wanted = sorted(rows.mean(0).tolist() for rows in cells.values() if len(rows) >= MIN_REGION)
    np.testing.assert_allclose(sorted(bins.x.tolist()), wanted)


def test_positions_are_rounded_and_sorted(cloud):
    content = points_content(points_at(cloud), principal_view(cloud), 500)
    assert content["count"] is None
    assert content["n_shown"] == 500


def test_shares_follow_what_the_functions_do(model, simulation):
    """A dimension that no function sees has no share: with its lengthscale far out, nothing changes along it."""
    predictor, x = model.predictor_, model.transform(simulation.table)
    shares = dimension_shares(predictor, x)
    assert shares.sum() == pytest.approx(1)
    assert (shares > 0).all()
    long = np.array(predictor.model.gp.kernel.log_lengthscales)
    long[:, 1] = 12.0
    blind = eqx.tree_at(lambda p: p.model.gp.kernel.log_lengthscales, predictor, long)
    assert dimension_shares(blind, x)[1] < 1e-6
