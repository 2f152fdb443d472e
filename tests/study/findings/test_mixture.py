import numpy as np
import pytest
from scipy import stats

from plurigp.study.findings.mixture import Mixture, measured, memberships, responsibilities


@pytest.fixture
def mixture(rng) -> Mixture:
    """Five components in three dimensions: two subtypes, one of two components, and two outliers' components."""
    roots = rng.normal(size=(5, 3, 3))
    covariances = roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(3)
    return Mixture(rng.dirichlet(np.ones(5)), rng.normal(size=(5, 3)), covariances, np.array([1, 2, 0, 1, 0]))


def test_responsibilities_are_scipys(mixture, rng):
    """A component seen through a position's own uncertainty: N(place; centre, covariance + diag(noise))."""
    mean, sd = rng.normal(size=(20, 3)), rng.uniform(0.01, 0.95, (20, 3))
    for spread in (None, sd):
        place, noise = (mean, np.zeros((20, 3))) if spread is None else measured(mean, spread)
        density = np.array(
            [
                [
                    w * stats.multivariate_normal(centre, covariance + np.diag(v)).pdf(x)
                    for w, centre, covariance in zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
                ]
                for x, v in zip(place, noise, strict=True)
            ]
        )
        expected = density / density.sum(1, keepdims=True)
        np.testing.assert_allclose(responsibilities(mixture, mean, spread), expected, atol=1e-12)


def test_the_label_is_the_likeliest_of_the_published_probabilities(mixture, rng):
    mean, sd = 2 * rng.normal(size=(2000, 3)), rng.uniform(0.01, 2, (2000, 3))
    label, probability = memberships(mixture, mean, sd)
    shares = np.column_stack([1 - probability.sum(1), probability])
    np.testing.assert_array_equal(label, shares.argmax(1))
    assert set(label) == {0, 1, 2}
    by_component = mixture.subtype[responsibilities(mixture, mean, sd).argmax(1)]
    assert (label != by_component).any()  # components of one subtype, and the outliers', count together
