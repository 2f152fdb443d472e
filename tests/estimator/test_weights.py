"""Row weights at the estimator: a column or an array, one optimum with repeated rows, kept out of the model."""

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError, PluriGP, load
from plurigp.datasets import simulate
from plurigp.inference import batches as batches_module
from plurigp.inference import bound as bound_module

SETTINGS = {"n_inducing": 8, "max_epochs": 60, "calibrate": False, "random_state": 0, "dtype": "float64"}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    frame = simulate(60, 2, {"gaussian": 3, "bernoulli": 2}, missing=0.1, random_state=3).table
    return frame.assign(w=np.random.default_rng(2).integers(1, 4, 60))


@pytest.fixture(scope="module")
def weighted(table) -> PluriGP:
    return PluriGP(schema={"w": "poisson"}, **SETTINGS).fit(table, sample_weight="w")


def test_a_named_column_is_set_aside_and_counts_as_the_array_does(table, weighted):
    assert weighted.schema_["w"].kind == "aside"
    assert weighted.schema_["w"].reason == "row weights"
    given = PluriGP(schema={"w": "aside"}, **SETTINGS).fit(table, sample_weight=table["w"])
    assert given.elbo_ == weighted.elbo_
    np.testing.assert_array_equal(given.transform(table), weighted.transform(table))


def test_whole_weights_reach_the_optimum_of_repeated_rows(table, weighted):
    """Draws of x differ, so the optimum is compared: bound, noise and positions, which an unweighted fit misses."""
    repeated = table.loc[table.index.repeat(table["w"])].reset_index(drop=True)
    apart, plain = (PluriGP(schema={"w": "aside"}, **SETTINGS).fit(rows) for rows in (repeated, table))
    assert weighted.elbo_ == pytest.approx(apart.elbo_, rel=0.01)
    assert abs(plain.elbo_ - apart.elbo_) > 0.3 * abs(apart.elbo_)
    ours, theirs = (model.transform(table) for model in (weighted, apart))
    centred, target = ours - ours.mean(0), theirs - theirs.mean(0)
    missed = target - centred @ np.linalg.lstsq(centred, target, rcond=None)[0]  # maps are alike up to a rotation
    assert (missed**2).sum() < 0.05 * (target**2).sum()


def test_with_the_same_draws_whole_weights_and_repeated_rows_are_one_run(monkeypatch):
    """Copies of a row share their draw of x, and rows are not shuffled: every epoch has the same bound, and the map is
    the same. So what a fit with weights and one with repeated rows differ by are draws, and nothing else."""
    n = 37  # with this number of rows no other test has compiled a program, or will find this one's
    table = simulate(n, 2, {"gaussian": 2, "bernoulli": 1, "poisson": 1}, missing=0.1, random_state=3).table
    weights = np.random.default_rng(2).integers(1, 4, n)
    copies = np.repeat(np.arange(n), weights)
    drawn = bound_module._normals

    def shared_draws(key, shape, dtype):
        base = drawn(key, (shape[0], n, shape[2]), dtype)
        return base if shape[1] == n else base[:, copies]

    def in_order(n_rows, n_batches, width, rng):
        return np.arange(n_rows, dtype=np.int32)[None], np.ones((1, n_rows), bool)

    monkeypatch.setattr(bound_module, "_normals", shared_draws)
    monkeypatch.setattr(batches_module, "_dealt", in_order)
    settings = SETTINGS | {"batch_size": len(copies)}
    ours = PluriGP(**settings).fit(table, sample_weight=weights)
    theirs = PluriGP(**settings).fit(table.iloc[copies].reset_index(drop=True))
    np.testing.assert_allclose(ours.history_["bound"], theirs.history_["bound"], rtol=1e-8)
    assert ours.elbo_ == pytest.approx(theirs.elbo_, rel=1e-8)
    np.testing.assert_allclose(ours.transform(table), theirs.transform(table), atol=1e-6)


def test_weights_are_for_training_alone_and_a_saved_model_knows_its_column(table, weighted, tmp_path):
    opened = load(weighted.save(tmp_path / "model"))
    np.testing.assert_array_equal(opened.transform(table), weighted.transform(table))
    np.testing.assert_array_equal(opened.transform(table.assign(w=9)), weighted.transform(table))
    assert opened.schema_["w"].reason == "row weights"


def test_a_bad_weight_leaves_the_old_answers_whole(table, weighted):
    before = weighted.transform(table)
    with pytest.raises(DataError, match="column 'w', row 4: a weight must be"):
        weighted.fit(table.assign(w=table["w"].where(table.index != 4, -1)), sample_weight="w")
    np.testing.assert_array_equal(weighted.transform(table), before)
