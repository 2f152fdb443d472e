"""What runs in the background of the fits, and into how many clusters a map is cut."""

import threading

import numpy as np
import pytest

from plurigp.study.findings.cluster import FittedMixture, by_size
from plurigp.study.findings.mixture import Mixture
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.learn import (
    VERY_STRONG,
    cut_map,
    enough_clusters,
    in_background,
    reference_tasks,
    rows_to_fit,
)


def test_a_call_in_the_background_hands_over_its_result_and_its_error():
    go = threading.Event()

    def slow():
        assert go.wait(10)
        return "found"

    result = in_background(slow)
    assert not result.done()
    go.set()
    assert result.result(10) == "found"
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0).result(10)


def test_it_does_not_keep_a_stopped_process_alive():
    before = set(threading.enumerate())
    go = threading.Event()
    in_background(lambda: go.wait(10))
    (own,) = set(threading.enumerate()) - before
    assert own.daemon
    go.set()


def cut_of(x, n_paper=3, **settings):
    """Of a map whose mixture by the paper has so many clusters, and one of outliers."""
    subtype = np.arange(n_paper + 1)
    paper = Mixture(np.ones(n_paper + 1), np.zeros((n_paper + 1, 2)), np.zeros((n_paper + 1, 2, 2)), subtype)
    return cut_map(x, np.full(x.shape, 0.1), StudyConfig(max_subtypes=4, **settings), in_background(lambda: paper))


@pytest.fixture
def three(rng):
    return 8 * np.array([[0, 0], [1, 0], [0, 1.0]])[np.arange(150) % 3] + rng.normal(size=(150, 2))


def test_a_map_is_cut_by_evidence(three, rng):
    ladder, cut = cut_of(three)
    assert [rung.n_clusters for rung in ladder] == [1, 2, 3, 4]
    assert cut.n_clusters == 3
    assert ladder[2].evidence == max(rung.evidence for rung in ladder)
    ladder, cut = cut_of(rng.normal(size=(150, 2)))
    assert max(ladder, key=lambda rung: rung.evidence) is ladder[0]
    assert cut.n_clusters >= 2  # at least


def test_groups_that_are_not_gaussian_are_not_cut_to_pieces(rng):
    """Two strips far apart: evidence goes on to grow with components within them, by little."""
    strips = np.column_stack([rng.uniform(-3, 3, 800), 0.3 * rng.normal(size=800) + np.repeat([0.0, 9.0], 400)])
    ladder, cut = cut_of(strips)
    assert ladder[3].evidence > ladder[1].evidence + 2 * VERY_STRONG
    assert cut.n_clusters == 2


@pytest.mark.parametrize(
    ("gains", "K"),
    [
        ([80, 100, 110], 3),  # nine tenths of all
        ([95, 100, 105], 2),
        ([31, 34, 27], 3),  # a tenth is little: the one with most
        ([34, 32, 27], 3),  # or another that the evidence is not strongly against
        ([34, 30, 30], 2),
        ([-4, -9, -12], 2),  # no evidence for groups at all
        ([-4, -5, -6], 4),
    ],
)
def test_how_many_clusters_are_enough(gains, K):
    assert enough_clusters([float(gain) for gain in gains]) == K


def test_outliers_do_not_count_for_the_two(rng):
    """One cloud and three rows far away: the second cluster would be an outlier, so there is a third."""
    x = np.concatenate([rng.normal(size=(150, 2)), rng.normal(size=(3, 2)) + 60])
    ladder, cut = cut_of(x)
    assert max(ladder, key=lambda rung: rung.evidence) is ladder[1]
    kept = by_size(cut.mixture, x, None, 0.05)
    assert kept.subtype.max() == 2
    assert cut.n_clusters > 2


@pytest.mark.parametrize(("settings", "K"), [({"n_subtypes": 2}, 2), ({"n_subtypes": 1}, 1), ({"n_subtypes": 6}, 6)])
def test_or_into_the_number_asked_for(three, settings, K):
    ladder, cut = cut_of(three, **settings)
    assert cut.n_clusters == K
    assert len(ladder) == max(4, K)


def test_the_cut_knows_how_uncertain_positions_are(rng):
    """Two groups of which half of the rows are placed badly: the ladder is of means, the cut of what is behind them."""
    sd = np.repeat([0.1, 0.6], 200)[:, None] * np.ones(2)
    x = np.where(np.arange(400) % 2, 0.7, -0.7)[:, None] * np.array([1.0, 0]) + 0.1 * rng.normal(size=(400, 2))
    mean = (1 - sd**2) * (x + sd / np.sqrt(1 - sd**2) * rng.normal(size=x.shape))
    ladder, cut = cut_map(mean, sd, StudyConfig(n_subtypes=2), in_background(lambda: None))
    assert cut.shrinkage == ladder[1].shrinkage
    widths = [rung.mixture.covariances[:, 0, 0].max() for rung in (cut, ladder[1])]
    assert widths[0] < 0.5 * widths[1]


@pytest.mark.parametrize("n_paper", [1, 3, 5])
def test_or_into_as_many_as_the_papers_rule_finds(three, n_paper):
    """Outliers' clusters do not count; there may be more than the evidence was asked about."""
    ladder, cut = cut_of(three, n_paper, n_subtypes="paper")
    assert cut.n_clusters == n_paper
    assert len(ladder) == max(4, n_paper)


def test_every_structureless_table_has_two_halves():
    config = StudyConfig(n_references=2, n_refits=4, n_components=(2,), n_restarts=1)
    mixture = Mixture(np.ones(3) / 3, np.zeros((3, 3)), np.stack([np.eye(3)] * 3), np.arange(1, 4))
    cut = FittedMixture(mixture, 64.0, 0.0, 0.0)
    tasks = reference_tasks(101, config, 3, cut)
    assert [task.name for task in tasks] == ["reference-000-0", "reference-000-1", "reference-001-0", "reference-001-1"]
    assert [task.table for task in tasks] == [0, 0, 1, 1]
    assert {(task.n_clusters, task.shrinkage, task.n_components, len(task.rows)) for task in tasks} == {
        (3, 64.0, 3, 50)
    }
    assert not set(tasks[0].rows) & set(tasks[1].rows)
    assert rows_to_fit(101, config) == 81 + 101 + 4 * 50 + 2 * 2 * 50
