"""Memberships that are as certain as they should be."""

import numpy as np
import pytest

from plurigp.study.findings.certainty import calibrated, flattened
from plurigp.study.findings.cluster import Starts, fit_mixture
from plurigp.study.findings.mixture import Mixture, memberships, responsibilities


@pytest.fixture
def mixture(rng):
    roots = rng.normal(size=(3, 2, 2))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(2)
    return Mixture(np.array([0.5, 0.3, 0.2]), 3 * rng.normal(size=(3, 2)), covariances, np.arange(1, 4))


@pytest.mark.parametrize("power", [1.0, 0.5, 0.1])
def test_flattened_memberships_are_powers(mixture, rng, power):
    x = 3 * rng.normal(size=(50, 2))
    shares = responsibilities(mixture, x) ** power
    np.testing.assert_allclose(responsibilities(flattened(mixture, power), x), shares / shares.sum(1, keepdims=True))


def cut(x, K):
    fitted = fit_mixture(x, K, Starts(x, 0))
    return fitted.mixture, fitted.shrinkage


def certainty_of(mixture, x, sd):
    return memberships(mixture, x, sd)[1].max(1).mean()


def test_groups_that_every_half_finds_stay_certain(rng):
    x = np.repeat([[-6.0, 0.0], [6.0, 0.0]], 100, axis=0) + rng.normal(size=(200, 2))
    sd = np.full(x.shape, 0.1)
    mixture, shrinkage = cut(x, 2)
    assert certainty_of(calibrated(mixture, shrinkage, x, sd, 0), x, sd) > 0.99


def test_a_cut_that_could_be_another_is_uncertain(rng):
    """One round cloud cut into five: halves cut it elsewhere, so that most certainty was for nothing."""
    x, sd = rng.normal(size=(400, 3)), np.full((400, 3), 0.1)
    mixture, shrinkage = cut(x, 5)
    after = calibrated(mixture, shrinkage, x, sd, 0)
    assert certainty_of(after, x, sd) < certainty_of(mixture, x, sd) - 0.1
    np.testing.assert_array_equal(responsibilities(after, x).argmax(1), responsibilities(mixture, x).argmax(1))


def test_the_same_seed_gives_the_same_bytes_and_few_rows_are_left_alone(rng):
    x, sd = rng.normal(size=(60, 2)), np.full((60, 2), 0.1)
    mixture, shrinkage = cut(x, 3)
    once, again = (calibrated(mixture, shrinkage, x, sd, 7) for _ in range(2))
    np.testing.assert_array_equal(once.covariances, again.covariances)
    assert calibrated(mixture, shrinkage, x[:10], sd[:10], 7) is mixture
