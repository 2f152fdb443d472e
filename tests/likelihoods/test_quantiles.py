"""Quantiles and deviations given f, against SciPy; those of discrete families reach their level and no further."""

import numpy as np
import pytest

from plurigp.likelihoods.registry import LIKELIHOODS

N = 300
LEVELS = (1e-3, 0.025, 0.3, 0.5, 0.9, 0.999)
ORDERED = [kind for kind, like in LIKELIHOODS.items() if like.quantile is not None]
WITH_SD = [kind for kind, like in LIKELIHOODS.items() if like.sd is not None]


def test_only_levels_without_order_have_no_quantile():
    assert set(LIKELIHOODS) - set(ORDERED) == {"categorical"}
    assert set(LIKELIHOODS) - set(WITH_SD) == {"categorical", "ordinal"}


@pytest.mark.parametrize("kind", ORDERED)
def test_quantiles_are_scipys(families, kind, rng):
    cells = families[kind].draw(rng, N)
    law = families[kind].law(cells)
    for level in LEVELS:
        ours = LIKELIHOODS[kind].quantile(cells.theta, cells.y, cells.f, np.full(N, level))
        np.testing.assert_allclose(ours, law.ppf(level), rtol=1e-9, atol=1e-12, err_msg=str(level))


@pytest.mark.parametrize("kind", WITH_SD)
def test_sd_is_scipys(families, kind, rng):
    cells = families[kind].draw(rng, N)
    ours = LIKELIHOODS[kind].sd(cells.theta, cells.y, cells.f)
    assert ours.shape == (N,)
    exact = families[kind].law(cells).std()
    if cells.y.shape[1] == 3:  # bounds: by quantiles, where the mass between them can be told from zero
        close = np.abs(ours - exact) < 0.03 * exact + 1e-6
        assert close.mean() > 0.9
    else:
        np.testing.assert_allclose(ours, exact, rtol=1e-9)


@pytest.mark.parametrize("kind", ORDERED)
def test_a_block_of_cells_at_once(families, kind, rng):
    """Theta has a column axis only; rows and columns of cells come back as they went in."""
    cells = families[kind].draw(rng, 4)
    y, f = (np.broadcast_to(part, (3, *part.shape)) for part in (cells.y, cells.f))
    one = LIKELIHOODS[kind].quantile(cells.theta, cells.y, cells.f, np.full(4, 0.7))
    np.testing.assert_array_equal(LIKELIHOODS[kind].quantile(cells.theta, y, f, np.full((3, 4), 0.7)), [one] * 3)


@pytest.mark.parametrize("kind", ["poisson", "binomial", "negative_binomial", "zero_inflated_poisson"])
def test_level_zero_is_the_smallest_value(families, kind, rng):
    cells = families[kind].draw(rng, N)
    np.testing.assert_array_equal(LIKELIHOODS[kind].quantile(cells.theta, cells.y, cells.f, np.zeros(N)), 0)
