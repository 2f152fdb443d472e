"""Candidates of a column, and the one that predicts its hidden cells best."""

import numpy as np
import pandas as pd
import pytest

from plurigp.data import Column, infer_schema
from plurigp.datasets import simulate
from plurigp.estimator.compare import Comparison, _compared, candidates, compare_kinds


@pytest.mark.parametrize(
    ("cells", "kind", "expected"),
    [
        ([-1.0, 2.0, 3.5], "gaussian", ["gaussian", "student_t"]),
        ([1.0, 2.0, 3.5], "gaussian", ["gaussian", "student_t", "lognormal", "gamma"]),
        ([1.0, 2.0, 3.0], "poisson", ["poisson", "negative_binomial"]),
        ([0.0, 2.0, 3.0], "poisson", ["poisson", "negative_binomial", "zero_inflated_poisson"]),
        (["1", "<2", "3"], "censored_lognormal", ["censored_gaussian", "censored_lognormal", "censored_gamma"]),
        ([0.5, 2.0, 3.0], "gaussian_hetero", ["gaussian_hetero"]),
    ],
)
def test_candidates_are_what_the_cells_allow(cells, kind, expected):
    assert candidates(Column("a", kind), pd.DataFrame({"a": cells})) == expected


def test_a_wider_family_must_win_clearly(rng):
    same = rng.normal(size=400)
    near = pd.DataFrame({"a: poisson": same, "a: negative_binomial": same + 0.001 + 0.1 * rng.normal(size=400)})
    far = near.assign(**{"a: negative_binomial": same + 0.1 + 0.1 * rng.normal(size=400)})
    kinds = ["poisson", "negative_binomial"]
    assert _compared(Column("a", "poisson"), kinds, near).recommended == "poisson"
    found = _compared(Column("a", "poisson"), kinds, far)
    assert found.recommended == "negative_binomial"
    assert found.gains["poisson"] == pytest.approx(0.1, abs=0.02)
    assert found.gains["negative_binomial"] == 0


def test_a_few_wild_cells_do_not_drown_a_gain(rng):
    """Four cells in five hundred that only the heavy tail explains, and a small gain everywhere else."""
    same, gain = rng.normal(size=500), 0.05 + 0.1 * rng.normal(size=500)
    gain[:4] += 60
    assert gain.mean() < 2.5 * gain.std() / np.sqrt(500)
    scores = pd.DataFrame({"a: gaussian": same, "a: student_t": same + gain})
    assert _compared(Column("a", "gaussian"), ["gaussian", "student_t"], scores).recommended == "student_t"


@pytest.mark.slow
def test_every_column_with_a_choice_is_compared():
    sim = simulate(60, 1, {"lognormal": 2, "poisson": 1, "bernoulli": 1, "binomial": 1}, missing=0.1)
    found = compare_kinds(sim.table, infer_schema(sim.table, sim.schema), n_components=1, n_folds=2, max_epochs=3)
    assert set(found) == {"lognormal_1", "lognormal_2", "poisson_1"}
    for comparison in found.values():
        assert isinstance(comparison, Comparison)
        assert comparison.recommended in comparison.scores
        assert np.isfinite(list(comparison.scores.values())).all()


@pytest.mark.slow
def test_the_generating_family_is_picked():
    """The table of benchmarks/families.py; 28 of 30 were seen."""
    kinds = ("gaussian", "student_t", "lognormal", "gamma")
    columns = {**dict.fromkeys(kinds, 3), "poisson": 6}
    columns |= dict.fromkeys(("negative_binomial", "zero_inflated_poisson", "beta", "ordinal"), 3)
    sim = simulate(500, 2, columns, missing=0.05, random_state=0)
    found = compare_kinds(sim.table, sim.schema)
    assert sum(found[column.name].recommended == column.kind for column in sim.schema) >= 27
