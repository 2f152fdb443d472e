from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from plurigp.study.findings import cluster, em
from plurigp.study.findings.cluster import (
    SHRINKAGES,
    STARTING_ROWS,
    Clusters,
    Starts,
    by_size,
    evidence_ladder,
    fit_mixture,
    informative_part,
    paper_mixture,
    refit_mixture,
)
from plurigp.study.findings.em import RIDGE
from plurigp.study.findings.mixture import Mixture, log_densities, memberships, responsibilities

SIZES = [200, 100, 60, 4]
PARTS = ("weights", "means", "covariances", "subtype")


@pytest.fixture
def cloud(rng):
    """Three clusters of 200, 100 and 60 rows, and 4 rows far away."""
    centres = np.repeat([[0, 0], [8, 0], [0, 8], [30, 30]], SIZES, axis=0)
    return centres + rng.normal(size=centres.shape)


@pytest.fixture
def overlapping(rng):
    """Two clusters in three dimensions, of different covariances, 300 and 150 rows; and their labels."""
    x = np.concatenate([rng.normal(size=(300, 3)) * [1.5, 1, 0.5], rng.normal(size=(150, 3)) * 0.7 + [3, 2.5, 0]])
    return x, np.repeat([0, 1], [300, 150])


class Given(Starts):
    """A single start, known beforehand."""

    def __init__(self, x: np.ndarray, labels: np.ndarray) -> None:
        super().__init__(x, 0)
        self.labels = labels

    def partitions(self, K: int) -> list[np.ndarray]:
        return [self.labels]


# --- one mixture ---


def test_the_log_density_is_scipys(overlapping):
    x, _ = overlapping
    fitted = fit_mixture(x, 3, Starts(x, 0))
    own = fitted.mixture
    by_component = [
        np.log(w) + stats.multivariate_normal(mean, covariance).logpdf(x)
        for w, mean, covariance in zip(own.weights, own.means, own.covariances, strict=True)
    ]
    np.testing.assert_allclose(log_densities(own, x), np.transpose(by_component), rtol=1e-10)
    assert fitted.log_density == pytest.approx(logsumexp(by_component, axis=0).sum(), rel=1e-12)
    assert own.weights.sum() == pytest.approx(1)
    assert fitted.n_clusters == 3


@pytest.mark.parametrize(("kind", "shrinkage"), [("full", 1e-9), ("tied", 1e9)])
def test_the_ends_of_the_family_are_scikit_learns(overlapping, monkeypatch, kind, shrinkage):
    """Covariances of their own and a common one, from the same start; the evidence is −BIC / 2 of that model."""
    x, labels = overlapping
    monkeypatch.setattr(cluster, "MOST_STEPS", 3000)
    for name, value in {"WEIGHT_ROWS": 0.0, "TOLERANCE": 1e-13}.items():
        monkeypatch.setattr(em, name, value)
    fitted = fit_mixture(x, 2, Given(x, labels), (shrinkage,))
    groups = [x[labels == k] for k in (0, 1)]
    within = np.stack([np.cov(own.T, bias=True) for own in groups])
    start = within + RIDGE * np.eye(3) if kind == "full" else np.average(within, 0, [300, 150]) + RIDGE * np.eye(3)
    theirs = GaussianMixture(
        2, covariance_type=kind, tol=1e-13, max_iter=3000, reg_covar=RIDGE, weights_init=[2 / 3, 1 / 3],
        means_init=[own.mean(0) for own in groups], precisions_init=np.linalg.inv(start),
    ).fit(x)  # fmt: skip
    np.testing.assert_allclose(fitted.mixture.weights, theirs.weights_, atol=1e-4)
    np.testing.assert_allclose(fitted.mixture.means, theirs.means_, atol=1e-3)
    expected = theirs.covariances_ if kind == "full" else np.stack([theirs.covariances_] * 2)
    np.testing.assert_allclose(fitted.mixture.covariances, expected, atol=1e-3)
    assert fitted.log_density == pytest.approx(theirs.score_samples(x).sum(), abs=1e-3)
    n_parameters = 1 + 2 * 3 + (2 if kind == "full" else 1) * 6
    assert fitted.evidence == pytest.approx(fitted.log_density - np.log(450) / 2 * n_parameters, abs=1e-5)
    assert fitted.evidence == pytest.approx(-theirs.bic(x) / 2, abs=1e-3)


def test_one_gaussian_is_that_of_all_rows(overlapping):
    x, _ = overlapping
    fitted = fit_mixture(x, 1, Starts(x, 0))
    np.testing.assert_allclose(fitted.mixture.means[0], x.mean(0))
    np.testing.assert_allclose(fitted.mixture.covariances[0], np.cov(x.T, bias=True) + RIDGE * np.eye(3))
    assert fitted.evidence == pytest.approx(fitted.log_density - np.log(450) / 2 * (3 + 6))


def test_effective_parameters_lie_between_the_ends(overlapping):
    """Of one covariance and of two; the more it is shrunk, the fewer."""
    x, labels = overlapping
    fits = [fit_mixture(x, 2, Given(x, labels), (s,)) for s in (1e-9, *SHRINKAGES, 1e9)]
    n_parameters = [2 * (fit.log_density - fit.evidence) / np.log(450) for fit in fits]
    assert n_parameters[0] == pytest.approx(7 + 12, abs=1e-4)
    assert n_parameters[-1] == pytest.approx(7 + 6, abs=1e-4)
    assert all(more > fewer + 0.1 for more, fewer in pairwise(n_parameters))


def test_the_best_start_and_shrinkage_are_taken(overlapping):
    x, _ = overlapping
    starts = Starts(x, 0)
    alone = [fit_mixture(x, 3, Given(x, labels), (s,)) for s in SHRINKAGES for labels in starts.partitions(3)]
    assert len(alone) == 9
    assert len({round(fit.evidence, 3) for fit in alone}) > 3
    best = fit_mixture(x, 3, starts)
    assert best.evidence == pytest.approx(max(fit.evidence for fit in alone), abs=0.01)  # tried for a few steps only
    assert best.shrinkage in SHRINKAGES


def test_shrinkage_follows_the_table(rng):
    """A common covariance where clusters have one; their own where rows are many and covariances differ."""
    centres = np.repeat([[0, 0, 0], [5, 0, 0]], 60, axis=0)
    alike = rng.normal(size=(120, 3)) + centres
    unlike = np.repeat(np.concatenate([alike[:60] * [0.3, 3, 1], alike[60:] * [1, 1, 0.2]]), 10, axis=0)
    unlike += 0.3 * rng.normal(size=unlike.shape)
    assert fit_mixture(alike, 2, Starts(alike, 0)).shrinkage == max(SHRINKAGES)
    assert fit_mixture(unlike, 2, Starts(unlike, 0)).shrinkage == min(SHRINKAGES)


# --- how many ---


@pytest.mark.parametrize("seed", range(4))
def test_three_planted_groups_and_one_gaussian(seed):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(3, 2, 2)) * 0.5 + np.eye(2)
    own = np.repeat([0, 1, 2], [150, 90, 60])
    planted = (
        np.einsum("nij,nj->ni", roots[own], rng.normal(size=(300, 2))) + 7 * np.array([[0, 0], [1, 0], [0, 1]])[own]
    )
    one = rng.normal(size=(300, 2)) @ roots[0]
    for x, K in ((planted, 3), (one, 1)):
        ladder = evidence_ladder(x, 5, seed)
        assert [rung.n_clusters for rung in ladder] == [1, 2, 3, 4, 5]
        assert max(ladder, key=lambda rung: rung.evidence).n_clusters == K


def test_the_same_seed_gives_the_same_bytes(cloud):
    first, second = (evidence_ladder(cloud, 4, 7) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert (a.evidence, a.log_density, a.shrinkage) == (b.evidence, b.log_density, b.shrinkage)
        assert all(getattr(a.mixture, part).tobytes() == getattr(b.mixture, part).tobytes() for part in PARTS)


# --- starts ---


def purity(found, truth):
    """Share of rows that are in the largest group of their cluster."""
    return sum(np.bincount(truth[found == k]).max() for k in np.unique(found)) / len(truth)


def test_every_start_knows_separate_clusters(cloud):
    truth = np.repeat(range(4), SIZES)
    for labels in Starts(cloud, 0).partitions(4):
        assert set(labels) == {0, 1, 2, 3}
    ward, white, _ = Starts(cloud, 0).partitions(4)
    assert purity(ward, truth) == purity(white, truth) == 1


def test_ward_sees_only_so_many_rows_and_all_get_a_start(rng):
    truth = np.repeat([0, 1, 2], [STARTING_ROWS, 300, 200])
    x = 9.0 * np.array([[0, 0], [1, 0], [0, 1]])[truth] + rng.normal(size=(len(truth), 2))
    starts = Starts(x, 3)
    assert len(starts.rows) == STARTING_ROWS < len(x)
    assert len(set(starts.rows)) == STARTING_ROWS
    for labels in starts.partitions(3):
        assert labels.shape == truth.shape
        assert purity(labels, truth) > 0.99
    subtype = memberships(fit_mixture(x, 3, starts).mixture, x)[0]
    assert purity(subtype, truth) > 0.999


@pytest.mark.parametrize("starting_rows", [2500, 40])
@pytest.mark.parametrize("name", ["duplicates", "all the same", "constant dimension", "one dimension", "two rows"])
def test_tables_without_much_to_see(rng, monkeypatch, name, starting_rows):
    """More clusters than different positions, no spread at all, no spread in one direction."""
    monkeypatch.setattr(cluster, "STARTING_ROWS", starting_rows)
    x = {
        "duplicates": np.tile(rng.normal(size=(3, 2)), (20, 1)),
        "all the same": np.ones((60, 2)),
        "constant dimension": np.column_stack([rng.normal(size=60), np.zeros(60)]),
        "one dimension": rng.normal(size=(60, 1)),
        "two rows": np.tile(rng.normal(size=(2, 2)), (30, 1)),
    }[name]
    for rung in evidence_ladder(x, 5, 0):
        assert np.isfinite(rung.evidence)
        own = rung.mixture
        assert all(np.isfinite(getattr(own, part)).all() for part in PARTS)
        assert min(np.linalg.eigvalsh(covariance)[0] for covariance in own.covariances) >= RIDGE * 0.999
        subtype, probability = memberships(own, x)
        assert subtype.min() >= 1
        np.testing.assert_allclose(probability.sum(1), 1)


# --- numbers of subtypes, and outliers ---


def test_subtypes_by_size_and_outliers(cloud):
    mixture = by_size(fit_mixture(cloud, 4, Starts(cloud, 0)).mixture, cloud, None, 0.05)
    subtype, probability = memberships(mixture, cloud)
    np.testing.assert_array_equal(subtype, np.repeat([1, 2, 3, 0], SIZES))
    assert probability.shape == (364, 3)
    assert (probability[:200, 0] > 0.9).mean() > 0.98
    assert probability[-1].sum() < 0.5
    found = Clusters(subtype, probability, mixture)
    np.testing.assert_array_equal(np.flatnonzero(found.outlier), range(360, 364))
    assert found.n_strata == 3


def test_one_cluster_is_everybody(cloud):
    mixture = by_size(fit_mixture(cloud, 1, Starts(cloud, 0)).mixture, cloud, None, 0.05)
    subtype, probability = memberships(mixture, cloud)
    assert (subtype == 1).all()
    np.testing.assert_allclose(probability, 1)


def test_the_largest_is_never_an_outlier(rng):
    x = np.repeat(100.0 * np.arange(30), 2)[:, None] + rng.normal(size=(60, 1))
    many = Mixture(np.full(30, 1 / 30), 100.0 * np.arange(30)[:, None], np.ones((30, 1, 1)), np.arange(1, 31))
    mixture = by_size(many, x, None, 0.05)
    assert sorted(set(mixture.subtype)) == [0, 1]


def test_the_papers_rule_finds_separate_clusters(cloud):
    mixture = paper_mixture(cloud, 20, 2, 0.05, seed=0)
    assert len(mixture.weights) == 20
    assert mixture.subtype.max() == 3


def test_numbers_follow_the_sizes_of_the_final_labels(rng):
    """Rows beside a narrow cluster belong to the wide one by their means, and to the narrow one if they are vague."""
    x = np.concatenate([rng.normal(0, 0.2, 60), np.full(15, 0.7), rng.normal(4, 1.5, 50)])[:, None]
    sd = np.repeat([0.05, 0.6, 0.05], [60, 15, 50])[:, None]
    fitted = Mixture(np.full(2, 0.5), np.array([[0.0], [4.0]]), np.array([[[0.04]], [[2.25]]]), np.array([1, 2]))
    mixture = by_size(fitted, x, sd, 0.05)
    by_mean, final = (np.bincount(memberships(mixture, x, spread)[0])[1:] for spread in (None, sd))
    assert by_mean[0] < by_mean[1]
    assert final[0] > final[1]


@pytest.mark.parametrize("seed", range(5))
def test_no_subtype_is_smaller_than_an_outlier_may_be(seed):
    rng = np.random.default_rng(seed)
    x, sd = rng.normal(size=(300, 2)), rng.uniform(0.1, 1.0, (300, 2))
    cut = fit_mixture(x, 8, Starts(x, seed)).mixture
    for mixture, own in ((paper_mixture(x, 20, 1, 0.08, seed), None), (by_size(cut, x, sd, 0.08), sd)):
        sizes = np.bincount(memberships(mixture, x, own)[0], minlength=mixture.subtype.max() + 1)[1:]
        assert (sizes[1:] >= 0.08 * 300).all()
        assert (np.diff(sizes) <= 0).all()


# --- dimensions that are switched off ---


def test_the_informative_part_and_back(rng):
    x = np.hstack([cloud_of_two(rng), 0.05 * rng.normal(size=(200, 1))])
    sd = np.tile([0.2, 0.3, 0.97], (200, 1))
    part = informative_part(x, sd)
    np.testing.assert_array_equal(part.kept, [True, True, False])
    np.testing.assert_array_equal(part.x, x[:, :2])
    fitted = fit_mixture(part.x, 2, Starts(part.x, 0))
    whole = part.embed(fitted).mixture
    assert whole.means.shape == (2, 3)
    np.testing.assert_allclose(responsibilities(whole, x), responsibilities(fitted.mixture, part.x), atol=1e-10)
    np.testing.assert_allclose(
        responsibilities(whole, x, sd), responsibilities(fitted.mixture, part.x, sd[:, :2]), atol=1e-10
    )


def test_a_map_without_information_keeps_all_dimensions(rng):
    part = informative_part(rng.normal(size=(20, 2)), np.full((20, 2), 0.99))
    assert part.kept.all()


def cloud_of_two(rng):
    return np.repeat([[0.0, 0.0], [8.0, 0.0]], 100, axis=0) + rng.normal(size=(200, 2))


def test_a_refit_keeps_its_components(rng):
    x = cloud_of_two(rng)
    shares = np.eye(2)[np.repeat([1, 0], 100)]
    mixture = refit_mixture(x, shares, 8.0)
    np.testing.assert_allclose(mixture.means, [x[100:].mean(0), x[:100].mean(0)], atol=0.05)
