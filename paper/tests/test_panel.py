import numpy as np
import pytest

from plurigp.answers.density import cell_log_density
from plurigp_paper.families import NoiseModel
from plurigp_paper.panel import (
    APPROACHES,
    Fit,
    approach_table,
    comparisons,
    fit_and_score,
    halves,
    held_out_tables,
    task_name,
)
from plurigp_paper.scores import DRAWS, score

FIT = Fit(2, 3, 20, model={"n_inducing": 8})


def test_halves_are_disjoint_and_the_same_every_time():
    train, test = halves(81, 3)
    assert len(train) == 40
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(81))
    np.testing.assert_array_equal(halves(81, 3)[0], train)
    assert not np.array_equal(halves(81, 4)[0], train)


def test_the_same_cells_are_hidden_for_every_approach(small):
    test = halves(80, 0)[1]
    gaps = {}
    for approach in APPROACHES:
        frame, schema = approach_table(small, approach, NoiseModel(0.01))
        assert set(schema.names) == ({"c", "d"} if approach == 1 else {"a", "b", "c", "d"})
        gaps[approach] = held_out_tables(small, test, 0, frame)[1].isna()
    assert gaps[2].to_numpy().any()
    assert gaps[2].equals(gaps[3])
    assert gaps[2][["c", "d"]].equals(gaps[1])


def test_hidden_cells_are_scored_as_the_library_does(small):
    frame, schema = approach_table(small, 2, NoiseModel(0.01))
    train, test = halves(80, 0)
    model = FIT.estimator(schema, 0).fit(frame.iloc[train].reset_index(drop=True))
    truth, shown = held_out_tables(small, test, 0, frame)
    found = score(model, truth, shown, small.groups)
    tables = [model.coder_.table(part) for part in (shown, truth)]
    cells = cell_log_density(model.predictor_, *tables, n_draws=DRAWS) - model.coder_.log_units
    hidden = ~tables[0].seen
    for group, columns in (("levels", [0, 1]), ("real", [2, 3])):
        expected = cells[:, columns][hidden[:, columns]]
        assert found["hidden"][group] == len(expected)
        assert found["cells"][group] == pytest.approx(expected.mean(), abs=1e-3)


@pytest.mark.parametrize("shared", [False, True])
def test_gaussian_for_all_is_scored_by_mass_too(small, shared):
    found = fit_and_score(small, FIT, 0, 3, NoiseModel(0.01, shared))["scores"]
    assert found["mass"]["cells"]["levels"] < 0
    assert found["mass"]["cells"]["levels"] != pytest.approx(found["raw"]["cells"]["levels"], abs=1e-3)
    assert found["mass"]["cells"]["real"] == pytest.approx(found["raw"]["cells"]["real"], abs=1e-3)
    assert found["mass"]["density"]["real"] == pytest.approx(found["raw"]["density"]["real"], abs=1e-2)


def test_comparisons_are_paired():
    def fit(level: float) -> dict:
        by_group = {"levels": level, "real": 2 * level}
        scores = {"reconstruction": by_group, "cells": by_group, "hidden": {"levels": 1, "real": 3},
                  "density": {"all": level, "real": level}}  # fmt: skip
        return {"scores": {"raw": scores, "mass": scores}}

    levels = {1: (1.0, 5.0), 2: (2.0, 4.0), 3: (1.0, 1.0)}
    found = {task_name("own", a, s): fit(levels[a][s]) for a in APPROACHES for s in (0, 1)}
    pairs = comparisons(found, "own", range(2))
    assert pairs["real/reconstruction/1"]["wins"] == 1
    assert pairs["real/reconstruction/3"]["wins"] == 2
    assert pairs["all/reconstruction/raw"]["values"][0] == [6.0, 12.0]
    assert pairs["all/cells/mass"]["values"][0] == [3.5, 7.0]
    assert pairs["all/density/raw"]["median"] == 2.0
