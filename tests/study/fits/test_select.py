import numpy as np
import pytest

from plurigp import PluriGP
from plurigp.answers.latent import positions
from plurigp.data import Coder, infer_schema
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.select import evidence_of, selection_frame, selection_tasks
from plurigp.study.fits.tasks import Finished, Task, held_out, held_out_rows, training_rows


def finished(bound, score, cells, group_gain=0.0):
    arrays = {"row_score": np.asarray(score, float), "row_cells": np.asarray(cells, float)}
    return Finished(arrays, {"bound": bound, "group_gain": group_gain})


@pytest.fixture
def scored(rng):
    """Scores of 200 rows in four dimensions: 2 is clearly worse than the best, 4; 3 and 6 are within its noise."""
    cells = rng.integers(1, 5, size=200)
    best = rng.normal(-2, 1, 200) * cells
    noise = rng.normal(0, 1, (2, 200)) * cells
    noise -= (noise.sum(1) / cells.sum())[:, None] * cells  # of mean 0: the gaps are as given
    return cells, {2: best - cells, 3: best + noise[0] - 0.03 * cells, 4: best, 6: best + noise[1] - 0.05 * cells}


@pytest.mark.parametrize(
    ("bounds", "gains", "chosen"),
    [
        ((0, -50, -60, -70), (0, 0, 0, 0), 3),  # the bound decides; 2 has most of it but predicts worse
        ((0, -50, -60, -70), (0, 0, 20, 0), 4),  # groups are worth it
        ((0, -50, -60, -70), (0, 0, 0, 30), 6),
        ((99, -50, -50, -50), (99, 0, 0, 0), 3),  # the smallest of equals
    ],
)
def test_most_evidence_among_those_within_one_standard_error(scored, bounds, gains, chosen):
    cells, scores = scored
    tasks = [Task(f"select-{Q:02}-0", Q, np.arange(10)) for Q in scores]
    given = zip(bounds, scores.values(), gains, strict=True)
    frame = selection_frame(tasks, [finished(bound, score, cells, gain) for bound, score, gain in given])
    assert frame.loc[frame["best"], "n_components"].tolist() == [4]
    assert frame.loc[frame["chosen"], "n_components"].tolist() == [chosen]
    assert frame["gap"].tolist() == pytest.approx([1.0, 0.03, 0.0, 0.05])
    near = frame["gap"] <= frame["gap_se"] + 1e-12
    assert near.tolist() == [False, True, True, True]
    assert frame["bound"].tolist() == list(bounds)
    assert frame["group_gain"].tolist() == list(gains)


def test_the_restart_with_most_evidence_stands_for_its_dimension():
    """Its bound is smaller, but it shows groups."""
    tasks = [Task(f"select-02-{r}", 2, np.arange(10)) for r in range(3)]
    results = [finished(-10, [0, 0], [1, 1]), finished(-15, [0, 0], [1, 1], 8.0), finished(-30, [9, 9], [1, 1], 8.0)]
    assert [evidence_of(result) for result in results] == [-10, -7, -22]
    assert selection_frame(tasks, results)["fit"].tolist() == ["select-02-1"]


def test_best_evidence_of_the_restarts_and_paired_gaps(rng):
    cells = rng.integers(1, 5, size=200)
    base = rng.normal(-2, 1, 200) * cells
    tasks = [Task(f"select-{Q:02}-{r}", Q, np.arange(10)) for Q in (2, 3) for r in (0, 1)]
    results = [
        finished(-20, base, cells), finished(-10, base - 0.5 * cells, cells),
        finished(-9, base + 0.1 * cells, cells), finished(-12, base, cells),
    ]  # fmt: skip
    frame = selection_frame(tasks, results)
    assert frame["fit"].tolist() == ["select-02-1", "select-03-0"]
    assert frame["chosen"].tolist() == [False, True]
    assert frame["gap"].tolist() == pytest.approx([0.6, 0.0])
    assert frame["gap_se"].tolist() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert frame["score"][1] == pytest.approx((base + 0.1 * cells).sum() / cells.sum())
    assert 0.01 < frame["se"][0] < 0.2


def test_rows_are_held_out_once_and_for_all(mixed_frame):
    config = StudyConfig(random_state=3, n_components=(2, 4), n_restarts=2)
    tasks = selection_tasks(120, config)
    assert [task.name for task in tasks] == ["select-02-0", "select-04-0", "select-02-1", "select-04-1"]
    assert all(np.array_equal(task.rows, training_rows(120, config)) for task in tasks)
    assert len(tasks[0].rows) == 96
    coder = Coder.fit(mixed_frame, infer_schema(mixed_frame))
    shown, complete = held_out(mixed_frame, coder, tasks[0].rows, config)
    assert len(complete.seen) == len(held_out_rows(120, tasks[0].rows, config)) == 24
    assert not (shown.seen & ~complete.seen).any()
    assert 0.05 < 1 - shown.seen.sum() / complete.seen.sum() < 0.4


def test_hidden_cells_leave_no_trace_in_what_is_shown(mixed_frame, rng):
    """Two bounds, and a time with its event: whatever a hidden cell holds, rows are shown and placed the same."""
    config = StudyConfig(random_state=3)
    rows = training_rows(120, config)
    low = rng.normal(size=120)
    frame = mixed_frame.assign(low=low, high=low + 1, days=rng.exponential(9, 120), died=rng.integers(0, 2, 120))
    kinds = {"low": {"kind": "censored_gaussian", "upper": "high"}, "days": {"kind": "weibull", "event": "died"}}
    model = PluriGP(1, schema=kinds, n_inducing=8, max_epochs=2, calibrate=False, random_state=0).fit(frame.iloc[rows])
    shown, complete = held_out(frame, model.coder_, rows, config)
    changed, test = frame.copy(), held_out_rows(120, rows, config)
    for d, column in enumerate(complete.schema):
        if column.name in kinds:
            hidden = test[complete.seen[:, d] & ~shown.seen[:, d]]
            assert len(hidden)
            changed.loc[hidden, column.name] += 5
            changed.loc[hidden, column.companion] = {"high": 99.0, "died": 0}[column.companion]
    again, other = held_out(changed, model.coder_, rows, config)
    assert (other.values != complete.values).any()
    np.testing.assert_array_equal(shown.values, again.values)
    np.testing.assert_array_equal(shown.seen, again.seen)
    for before, after in zip(positions(model.predictor_, shown), positions(model.predictor_, again), strict=True):
        np.testing.assert_array_equal(before, after)


def test_seeds_depend_on_the_name_alone():
    config = StudyConfig()
    assert config.seed_of("refit-001") == StudyConfig(n_refits=4).seed_of("refit-001") != config.seed_of("refit-002")
    assert 0 <= StudyConfig(random_state=1).seed_of("x") < 2**31
