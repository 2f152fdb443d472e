"""Valleys between clusters: places along a curve, intervals, counts, their p-value, and groups made of it."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from plurigp.study.findings.cluster import Starts, fit_mixture
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.valley import (
    FEWEST_ROWS,
    FLANKS,
    HISTOGRAM,
    LEVEL_GROUND,
    MIDDLES,
    Cloud,
    Counts,
    along_curve,
    combine_counts,
    count_between,
    lay_intervals,
    null_share,
    reorder,
    separate_groups,
)


def two_gaussians(means, covariances) -> Mixture:
    return Mixture(np.full(2, 0.5), np.asarray(means, float), np.asarray(covariances, float), np.array([1, 2]))


def some_covariance(rng, Q):
    root = rng.normal(size=(Q, Q))
    return root @ root.T + 0.3 * np.eye(Q)


# --- the place of a row ---


def everybody(x):
    return np.ones(len(x), dtype=bool)


@pytest.mark.parametrize("Q", [1, 2, 5])
def test_a_straight_cloud_is_placed_on_the_discriminant_axis(rng, Q):
    """In whitened units: the rows lie on the axis and beside it evenly, so that no bend is seen."""
    covariance = some_covariance(rng, Q)
    means = rng.normal(size=(2, Q)) * 2
    root = np.linalg.cholesky(covariance)
    axis = np.linalg.solve(root, means[1] - means[0])
    axis /= np.linalg.norm(axis)
    t, aside = rng.uniform(-3, 3, 400), rng.normal(size=(400, Q))
    aside -= np.outer(aside @ axis, axis)
    white = np.concatenate([np.outer(t, axis) + aside, np.outer(t, axis) - aside])
    found = along_curve(white @ root.T, two_gaussians(means, [covariance] * 2), 0, 1, everybody(white))
    expected = white @ axis
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-6)


def test_places_on_a_parabola_are_its_arc_length(rng):
    t = np.sort(rng.uniform(-2, 2, 500))
    x = np.column_stack([t, 0.6 * t**2])
    mixture = two_gaussians([[-1, 0.6], [1, 0.6]], [np.eye(2)] * 2)
    found = along_curve(x, mixture, 0, 1, everybody(x))
    fine = np.linspace(-2, 2, 200_001)
    lengths = np.concatenate([[0], np.cumsum(np.hypot(np.diff(fine), 0.6 * np.diff(fine**2)))])
    expected = np.interp(t, fine, lengths)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=2e-3)


def test_only_the_rows_seen_bend_the_curve(rng):
    x = rng.normal(size=(300, 2))
    seen = np.arange(300) < 150
    other = x.copy()
    other[~seen, 1] += 5 * other[~seen, 0] ** 2
    mixture = two_gaussians([[-1, 0], [1, 0]], [np.eye(2)] * 2)
    np.testing.assert_allclose(*(along_curve(part, mixture, 0, 1, seen) for part in (x, other)), atol=1e-9)


def test_rows_beyond_those_seen_go_straight_on(rng):
    x = np.concatenate([rng.uniform(-2, 2, (200, 2)), [[-50.0, 0], [-30, 0], [30, 0], [50, 0]]])
    place = along_curve(x, two_gaussians([[-1, 0], [1, 0]], [np.eye(2)] * 2), 0, 1, np.arange(204) < 200)
    far = place[200:]
    assert far[1] - far[0] == pytest.approx(far[3] - far[2], rel=0.2)
    assert far[0] < far[1] < place[:200].min()
    assert place[:200].max() < far[2] < far[3]


def test_the_way_back_is_the_same_way(rng):
    mixture = two_gaussians(rng.normal(size=(2, 3)) * 3, [some_covariance(rng, 3) for _ in range(2)])
    x = rng.normal(size=(200, 3)) * 2
    there, back = (along_curve(x, mixture, *pair, everybody(x)) for pair in ((0, 1), (1, 0)))
    np.testing.assert_allclose(there + back, (there + back)[0], rtol=1e-6)


def test_places_do_not_depend_on_the_units_of_the_map(rng):
    mixture = two_gaussians(rng.normal(size=(2, 2)) * 3, [some_covariance(rng, 2) for _ in range(2)])
    x, turn = rng.normal(size=(200, 2)) * 2, rng.normal(size=(2, 2))
    turned = two_gaussians(mixture.means @ turn.T, turn @ mixture.covariances @ turn.T)
    expected = along_curve(x, mixture, 0, 1, everybody(x))
    np.testing.assert_allclose(along_curve(x @ turn.T, turned, 0, 1, everybody(x)), expected, rtol=1e-6)


def arc_rows(n, span, noise, rng):
    angle = rng.uniform(0, span, n)
    return 2 * np.column_stack([np.cos(angle), np.sin(angle)]) + noise * rng.normal(size=(n, 2)), angle


def halved(x, along, at=0.5) -> Mixture:
    """The moments of the rows before and after a quantile of `along`: two clusters without a fit."""
    before = along < np.quantile(along, at)
    parts = [x[before], x[~before]]
    covariances = [np.cov(part.T).reshape(x.shape[1], -1) + 1e-3 * np.eye(x.shape[1]) for part in parts]
    return two_gaussians([part.mean(0) for part in parts], covariances)


@pytest.mark.parametrize(
    ("span", "noise"), [(1.0, 0.15), (1.6, 0.15), (1.6, 0.05), (2.1, 0.05), (2.1, 0.15), (np.pi, 0.05), (np.pi, 0.15)]
)
def test_a_uniform_arc_stays_uniform_along_the_curve(span, noise):
    """Between the two centres, in eight equal parts."""
    rng = np.random.default_rng(0)
    x, angle = arc_rows(8000, span, noise, rng)
    mixture = halved(x, angle)
    place = along_curve(x, mixture, 0, 1, everybody(x))
    assert np.corrcoef(place, angle)[0, 1] > 0.9
    start, end = (place[part].mean() for part in (angle < span / 2, angle >= span / 2))
    parts = np.histogram(place, np.linspace(start, end, 9))[0]
    assert parts.min() / parts.mean() > 0.75
    assert parts.max() / parts.mean() < 1.35


# --- intervals ---


@pytest.mark.parametrize("apart", [0.0, 0.5, 0.79, -3.0])
def test_overlapping_clouds_have_no_intervals(apart):
    assert lay_intervals(Cloud(100, 0.0, 1.0), Cloud(80, apart, 1.0)) is None


CLOUDS = [
    (Cloud(100, 0.0, 1.0), Cloud(100, 5.0, 1.0)),
    (Cloud(300, -1.0, 0.5), Cloud(30, 2.0, 1.5)),
    (Cloud(50, 0.0, 1.0), Cloud(500, 1.2, 0.3)),
    (Cloud(9, 0.0, 1.0), Cloud(7, 2.5, 1.0)),
]


@pytest.mark.parametrize(("first", "second"), CLOUDS)
def test_the_middle_lies_between_the_flanks(first, second):
    middle, flanks = lay_intervals(first, second)
    for (low, high), cloud in zip(flanks, (first, second), strict=True):
        assert (low + high) / 2 == pytest.approx(cloud.mean)
        assert any((high - low) / 2 == pytest.approx(width * cloud.sd) for width in FLANKS)
    assert flanks[0][1] - 1e-9 <= middle[0] < middle[1] <= flanks[1][0] + 1e-9


def expected_z(first, second, middle, flanks):
    """Of two normal clouds: the smaller of both flanks' z, written out."""

    def n(interval):
        return sum(c.n * (norm.cdf(interval[1], c.mean, c.sd) - norm.cdf(interval[0], c.mean, c.sd)) for c in clouds)

    clouds, found = (first, second), []
    for flank in flanks:
        widths = (middle[1] - middle[0]) / (flank[1] - flank[0])
        share = widths / (1 + widths)
        total = n(middle) + n(flank)
        found.append((share * total - n(middle)) / np.sqrt(total * share * (1 - share)))
    return min(found)


@pytest.mark.parametrize(("first", "second"), CLOUDS)
def test_no_other_intervals_would_show_more(first, second):
    """Among middles as wide and flanks as wide as are tried, anywhere between the flanks on a fine grid."""
    laid = lay_intervals(first, second)
    best = expected_z(first, second, *laid)
    for width, share in product(FLANKS, MIDDLES):
        low, high = first.mean + width * first.sd, second.mean - width * second.sd
        if high <= low:
            continue
        flanks = tuple((c.mean - width * c.sd, c.mean + width * c.sd) for c in (first, second))
        places = np.linspace(low, high, 41)
        density = sum(c.n * norm.pdf(places, c.mean, c.sd) for c in (first, second))
        half = share * (high - low) / 2
        centre = np.clip(places[np.argmin(density)], low + half, high - half)
        assert expected_z(first, second, (centre - half, centre + half), flanks) <= best + 1e-9


def test_equal_clouds_have_their_middle_in_the_middle_and_others_nearer_the_smaller():
    def centre(n):
        return np.mean(lay_intervals(Cloud(100, 0.0, 1.0), Cloud(n, 4.0, 1.0)).middle)

    assert centre(100) == pytest.approx(2.0, abs=0.05)
    assert centre(10) > 2.1
    assert centre(1000) < 1.9


# --- counts ---


@pytest.fixture
def counted():
    """Seen rows of three clusters on a line, at 0, 6 and 12; unseen rows at places that are known."""
    spread = np.linspace(-1.5, 1.5, 21)
    seen_x = np.concatenate([spread, 6 + spread, 12 + spread])
    unseen = {0: [0.1] * 20 + [0.05] * 5, 1: [5.9] * 30, 2: [12.0] * 3}
    middle = {0: [2.98] * 3, 1: [3.02] * 4, 2: [3.01] * 9}
    x = np.concatenate([seen_x, *(unseen[k] + middle[k] for k in range(3))])
    labels = np.repeat([0, 1, 2, 0, 1, 2], [21, 21, 21, 28, 34, 12])
    seen = np.arange(len(x)) < 63
    mixture = Mixture(np.full(3, 1 / 3), np.array([[0.0], [6.0], [12.0]]), np.ones((3, 1, 1)), np.arange(1, 4))
    return mixture, x[:, None], labels, seen


def test_only_unseen_rows_of_the_two_clusters_are_counted(counted):
    counts = count_between(*counted)
    assert counts.middle[0, 1] == counts.middle[1, 0] == 3 + 4
    assert (counts.flank[0, 1], counts.flank[1, 0]) == (25, 30)
    assert counts.histogram[0, 1].sum() == 28 + 34
    np.testing.assert_array_equal(counts.histogram, counts.histogram.swapaxes(0, 1)[:, :, ::-1])
    at_own, between = (np.searchsorted(HISTOGRAM, place) - 1 for place in (0.01, 0.5))
    assert counts.histogram[0, 1][at_own] == 25
    assert counts.histogram[1, 0][at_own] == 30
    assert counts.histogram[0, 1][between - 1 : between + 2].sum() == 7
    for part in counts:
        assert not part[np.arange(3), np.arange(3)].any()


def test_widths_and_separations_are_those_of_the_rows_seen(counted):
    mixture, x, labels, seen = counted
    counts = count_between(mixture, x, labels, seen)
    sd = np.linspace(-1.5, 1.5, 21).std()
    laid = lay_intervals(Cloud(21, 0.0, sd), Cloud(21, 6.0, sd))
    ratios = [np.diff(laid.middle)[0] / np.diff(flank)[0] for flank in laid.flanks]
    np.testing.assert_allclose([counts.widths[0, 1], counts.widths[1, 0]], ratios, rtol=1e-6)
    np.testing.assert_allclose(counts.separation[0], [0, 6 / sd, 12 / sd], rtol=1e-6)
    np.testing.assert_array_equal(counts.separation, counts.separation.T)
    moved = x.copy()
    moved[~seen] += 100
    again = count_between(mixture, moved, labels, seen)
    np.testing.assert_array_equal(again.widths, counts.widths)
    np.testing.assert_array_equal(again.separation, counts.separation)
    assert not again.middle.any()


def test_a_cluster_that_hardly_any_row_seen_is_in_is_left_out(counted):
    mixture, x, labels, seen = counted
    few = seen & ((labels != 1) | (np.cumsum(labels == 1) < FEWEST_ROWS))
    counts = count_between(mixture, x, labels, few)
    assert not counts.widths[1].any()
    assert not counts.flank[:, 1].any()
    assert counts.widths[0, 2] > 0
    assert combine_counts([counts, counts]).p[0, 1] > 0.5


def test_reorder_names_components_anew(counted):
    counts = count_between(*counted)
    order = np.array([2, 0, 1])
    for part, again in zip(counts, reorder(counts, order), strict=True):
        for k, other in product(range(3), repeat=2):
            np.testing.assert_array_equal(again[k, other], part[order[k], order[other]])


# --- the p-value ---


def counts_of_two(middle, flanks, widths, separation=3.0, histogram=0.0) -> Counts:
    """Counts between two clusters."""

    def both(first, second):
        return np.array([[0.0, first], [second, 0.0]])

    parts = both(middle, middle), both(*flanks), both(*widths), both(separation, separation)
    return Counts(*parts, np.full((2, 2, len(HISTOGRAM) - 1), float(histogram)))


def test_one_pair_of_halves_by_hand():
    first = counts_of_two(10, (40, 30), (1.0, 0.5), separation=3.0, histogram=1)
    second = counts_of_two(5, (50, 20), (2.0, 1.5), separation=5.0, histogram=2)
    shares = {width: LEVEL_GROUND * width / (LEVEL_GROUND * width + 1) for width in (1.0, 0.5, 2.0, 1.5)}
    z = []
    for (n_1, w_1), (n_2, w_2) in (((40, 1.0), (50, 2.0)), ((30, 0.5), (20, 1.5))):
        excess = shares[w_1] * (10 + n_1) - 10 + shares[w_2] * (5 + n_2) - 5
        variance = shares[w_1] * (1 - shares[w_1]) * (10 + n_1) + shares[w_2] * (1 - shares[w_2]) * (5 + n_2)
        z.append((excess - 0.5) / np.sqrt(variance))
    found = combine_counts([first, second])
    assert z[0] > z[1]
    assert found.p[0, 1] == found.p[1, 0] == pytest.approx(norm.sf(z[1]), rel=1e-9)
    np.testing.assert_array_equal(np.diag(found.p), 1)
    by_flank = (10 / 1.0 + 5 / 2.0) / (40 + 50), (10 / 0.5 + 5 / 1.5) / (30 + 20)
    assert found.depth[0, 1] == found.depth[1, 0] == pytest.approx(max(by_flank))
    assert found.separation[0, 1] == 4
    assert (found.histogram == 3).all()


def z_of(middle, flank):
    n, share = 2 * (middle + flank), null_share(1.0)
    return (share * n - 2 * middle - 0.5) / np.sqrt(share * (1 - share) * n)


def test_splits_are_averaged_and_divided_by_the_sd_that_is_left():
    seen = [(10, 40), (15, 40), (12, 40)]
    halves = [counts_of_two(m, (f, 10 * f), (1.0, 1.0)) for m, f in seen for _ in range(2)]
    z = np.array([z_of(*pair) for pair in seen])
    left = 1 - z.var(ddof=1) * (1 - 1 / 3)
    assert 0.3 < left < 0.9
    assert combine_counts(halves).p[0, 1] == pytest.approx(norm.sf(z.mean() / np.sqrt(left)), rel=1e-9)


@pytest.mark.parametrize(("middles", "variances", "left"), [((7, 14), (0.8, 1.0), 0.3), ((0, 30), (2.0, 99.0), 1.0)])
def test_the_sd_that_is_left_has_a_least_and_splits_that_disagree_earn_nothing(middles, variances, left):
    """A z may vary by 1 between splits at most, if nothing but chance makes it vary."""
    seen = [(middle, 40) for middle in middles for _ in range(4)]
    halves = [counts_of_two(m, (f, 10 * f), (1.0, 1.0)) for m, f in seen for _ in range(2)]
    z = np.array([z_of(*pair) for pair in seen])
    assert variances[0] < z.var(ddof=1) < variances[1]
    assert combine_counts(halves).p[0, 1] == pytest.approx(norm.sf(z.mean() / np.sqrt(left)), rel=1e-9)


def test_without_intervals_nothing_is_found():
    nothing = counts_of_two(0, (0, 0), (0, 0))
    clear = counts_of_two(0, (60, 60), (1, 1))
    assert combine_counts([nothing, nothing]).p[0, 1] == pytest.approx(norm.sf(-1))
    assert np.isnan(combine_counts([nothing, nothing]).depth[0, 1])
    assert combine_counts([clear, clear]).p[0, 1] < 1e-9
    one_half = combine_counts([clear, nothing]).p[0, 1]
    assert combine_counts([clear, clear]).p[0, 1] < one_half < 1e-4  # the half that could be counted counts


def test_a_valley_has_to_show_against_both_flanks():
    one_sided = counts_of_two(20, (100, 22), (1, 1))
    assert combine_counts([one_sided] * 2).p[0, 1] > 0.2
    both = counts_of_two(20, (100, 100), (1, 1))
    assert combine_counts([both] * 2).p[0, 1] < 1e-6


@pytest.mark.parametrize(("pairs", "share_counted"), [(1, 1.0), (15, 1.0), (15, 0.5)])
def test_the_level_at_the_edge_of_what_counts_as_a_valley(pairs, share_counted):
    """A middle that is 0.9 times as dense as one flank, the other far denser: as far as "no valley" goes.

    Each split counts a random share of the rows; the less splits have in common, the more their average is worth.
    """
    rng = np.random.default_rng(1)
    draws, n, widths = 1500, 150, 0.8
    rejected = 0
    for _ in range(draws):
        in_middle = rng.random(n) < null_share(widths)
        halves = []
        for _ in range(pairs):
            counted = np.flatnonzero(rng.random(n) < share_counted)
            for rows in np.array_split(rng.permutation(counted), 2):
                middle = int(in_middle[rows].sum())
                halves.append(counts_of_two(middle, (len(rows) - middle, 900), (widths, widths)))
        rejected += combine_counts(halves).p[0, 1] <= 0.05
    error = np.sqrt(0.05 * 0.95 / draws)
    assert rejected / draws <= 0.05 + 3 * error
    assert rejected / draws >= 0.02  # and it is not a test that never finds anything


def split_test(x, along, rng, pairs=1, at=0.5, patient=None, patients_count=True):
    """p-value of a table cut in two at a quantile of `along`: half by half, by the moments of the rows seen."""
    counts, whose = [], np.arange(len(x)) if patient is None else patient
    for _ in range(pairs):
        for part in np.array_split(rng.permutation(whose.max() + 1), 2):
            seen = np.isin(whose, part)
            mixture = halved(x[seen], along[seen], at)
            labels = memberships(mixture, x)[0] - 1
            counts.append(count_between(mixture, x, labels, seen, patient if patients_count else None))
    return combine_counts(counts).p[0, 1]


CONTINUA = {
    "uniform": lambda rng, n: rng.uniform(-2, 2, n),
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "t3": lambda rng, n: rng.standard_t(3, n),
}


def rejections(draw, draws, level=0.05, **settings):
    """Share of tables without groups in which a valley is found, less what chance explains: three standard errors."""
    rng = np.random.default_rng(0)
    p = np.array([split_test(*draw(rng), rng, at=rng.uniform(0.3, 0.7), **settings) for _ in range(draws)])
    return (p <= level).mean() - 3 * np.sqrt(level * (1 - level) / draws)


@pytest.mark.parametrize("name", CONTINUA)
def test_a_continuum_has_a_valley_no_more_often_than_the_level_says(name):
    def draw(rng):
        along = CONTINUA[name](rng, 200)
        return np.column_stack([along, 0.3 * rng.normal(size=200)]), along

    assert rejections(draw, 200) <= 0.05


@pytest.mark.parametrize("span", [1.2, 2.1, np.pi])
def test_a_bent_continuum_has_a_valley_no_more_often_than_the_level_says(span):
    assert rejections(lambda rng: arc_rows(400, span, 0.1, rng), 150) <= 0.05


def visits(rng, centres):
    """Twenty visits of each patient near the patient's place; whose they are."""
    patient = np.repeat(np.arange(len(centres)), 20)
    along = centres[patient] + 0.05 * rng.normal(size=len(patient))
    return np.column_stack([along, 0.3 * rng.normal(size=len(patient))]), along, patient


def test_visits_of_patients_leave_holes_that_are_no_valleys():
    """Forty patients of one cloud: counted row by row, holes between them are taken for valleys more often than the
    level says."""
    found = {}
    for patients_count in (True, False):
        rng = np.random.default_rng(0)
        draws = (visits(rng, rng.uniform(-2, 2, 40)) for _ in range(60))
        p = [split_test(x, t, rng, 1, rng.uniform(0.3, 0.7), who, patients_count) for x, t, who in draws]
        found[patients_count] = float((np.array(p) <= 0.05).mean())
    assert found[True] <= 0.05 < 0.1 < found[False]


def test_patients_of_two_groups_are_told_apart():
    rng = np.random.default_rng(3)
    x, t, patient = visits(rng, np.concatenate([rng.normal(-3, 1, 60), rng.normal(3, 1, 60)]))
    assert split_test(x, t, rng, 1, 0.5, patient) < 1e-3


def test_rows_of_a_patient_share_one_count(counted):
    """Every row given twice, as two visits of one patient, counts as the row does once."""
    mixture, x, labels, seen = counted
    once = count_between(mixture, x, labels, seen)
    twice = count_between(
        mixture, *(np.repeat(part, 2, axis=0) for part in (x, labels, seen)), np.repeat(np.arange(len(x)), 2)
    )
    np.testing.assert_allclose(twice.middle, once.middle, atol=1e-9)
    np.testing.assert_allclose(twice.flank, once.flank, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUA)
def test_the_same_for_clusters_that_expectation_maximisation_found(name):
    """Shrunken mixtures of two clusters, in their order along the continuum; two pairs of halves."""
    rng, draws, rejected = np.random.default_rng(2), 60, 0
    for _ in range(draws):
        x = np.column_stack([CONTINUA[name](rng, 300), 0.3 * rng.normal(size=300)])
        rejected += em_test(x, rng, 2) <= 0.05
    assert rejected / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / draws)


def em_test(x, rng, pairs):
    counts = []
    for _ in range(pairs):
        for rows in np.array_split(rng.permutation(len(x)), 2):
            seen = np.isin(np.arange(len(x)), rows)
            mixture = fit_mixture(x[seen], 2, Starts(x[seen], 0), (8.0,)).mixture
            labels = memberships(mixture, x)[0] - 1
            order = np.argsort(mixture.means[:, 0])
            counts.append(reorder(count_between(mixture, x, labels, seen), order))
    return combine_counts(counts).p[0, 1]


@pytest.mark.parametrize(("n", "share"), [(300, 0.5), (900, 1 / 6)])
def test_two_clouds_are_told_apart(n, share):
    """Centres 4.5 sds apart, of equal and of unequal sizes: there the flank of the smaller one has few rows."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(12):
        apart = 4.5 * (np.arange(n) < share * n)
        x = np.column_stack([rng.normal(size=n) + apart, rng.normal(size=n)])
        found.append(split_test(x, x[:, 0], rng, at=1 - share))
    assert (np.array(found) < (0.01 if share == 0.5 else 0.05)).sum() >= 11


def test_a_mixture_that_was_fitted_tells_two_clouds_apart():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(300, 2)) + 4.5 * (np.arange(300) < 150)[:, None] * [1, 0]
    assert em_test(x, rng, 2) < 1e-3


# --- groups ---


def p_matrix(K, pairs, otherwise):
    p = np.full((K, K), float(otherwise))
    np.fill_diagonal(p, 1.0)
    for (k, other), value in pairs.items():
        p[k, other] = p[other, k] = value
    return p


def test_one_stratum_is_one_group():
    group, p = separate_groups(np.ones((1, 1)), 0.05)
    np.testing.assert_array_equal(group, [0])
    assert p == 1


@pytest.mark.parametrize(("p", "n_groups"), [(0.04, 2), (0.06, 1)])
def test_two_strata_need_no_correction(p, n_groups):
    group, found = separate_groups(p_matrix(2, {}, p), 0.05)
    assert len(set(group)) == n_groups
    assert found == pytest.approx(p)


def test_a_chain_is_one_continuum():
    """Each stratum runs into the next, whatever lies between those further apart."""
    group, p = separate_groups(p_matrix(5, {(k, k + 1): 0.7 for k in range(4)}, 1e-8), 0.05)
    assert len(set(group)) == 1
    assert p == pytest.approx(0.7)


def test_one_stratum_apart_from_the_others():
    p = p_matrix(4, {(0, 3): 0.6, (3, 1): 0.5}, 1e-6)  # 2 is apart from 0 — 3 — 1
    group, found = separate_groups(p, 0.05)
    assert group[0] == group[1] == group[3] != group[2]
    assert found == pytest.approx(3e-6)


def test_two_groups_beside_a_continuum_of_two_strata():
    group, found = separate_groups(p_matrix(4, {(1, 3): 0.4}, 1e-4), 0.05)
    assert group[1] == group[3]
    assert len(set(group)) == 3
    assert found == pytest.approx(2e-4)  # the second of three edges in order


def test_one_bridge_is_enough_to_join_two_groups():
    """0 — 1 and 2 — 3 are apart but for 1 and 2."""
    group, _ = separate_groups(p_matrix(4, {(0, 1): 0.9, (2, 3): 0.9, (1, 2): 0.3}, 1e-9), 0.05)
    assert len(set(group)) == 1


@pytest.mark.parametrize(
    ("edges", "n_groups", "p"),
    [
        ((0.02, 0.04), 3, 0.04),  # 2 × 0.02 and 1 × 0.04
        ((0.02, 0.06), 2, 0.04),
        ((0.03, 0.04), 3, 0.04),  # the larger needs no correction, and none is larger than it
        ((0.03, 0.20), 1, 0.06),
    ],
)
def test_hochbergs_correction_is_over_the_edges_of_the_tree(edges, n_groups, p):
    """The third p-value is smaller than both, so it is no edge and does not count."""
    group, found = separate_groups(p_matrix(3, {(0, 1): edges[0], (1, 2): edges[1]}, 1e-5), 0.05)
    assert len(set(group)) == n_groups
    assert found == pytest.approx(p)


def test_all_pairs_across_groups_have_a_valley(rng):
    """In random matrices: no p-value above the level joins two groups, and each group hangs together."""
    for _ in range(50):
        K = int(rng.integers(2, 8))
        p = np.triu(rng.random((K, K)) ** 6, 1)
        p = p + p.T + np.eye(K)
        group, found = separate_groups(p, 0.05)
        across = group[:, None] != group
        assert not (p[across] > 0.05).any()
        assert across.any() == (found <= 0.05)


def test_a_very_small_p_value_is_not_rounded_away():
    assert separate_groups(p_matrix(3, {}, 1e-30), 0.05)[1] == pytest.approx(1e-30, rel=1e-9, abs=0)
