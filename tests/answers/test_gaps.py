"""Imputation with its uncertainty: completed tables, quantiles per gap, probabilities per level."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.answers.calibration import MIN_CELLS, Calibration
from plurigp.answers.fill import levels_of_columns
from plurigp.answers.heldout import hide_cells
from plurigp.answers.pit import KNOTS, identity_maps
from plurigp.core.types import DataError
from plurigp.data import Coder, infer_schema
from plurigp.datasets import simulate
from plurigp.likelihoods.layout import arrange, cell_bounds

COLUMNS = {"gaussian": 3, "beta": 1, "bernoulli": 2, "categorical": 1, "poisson": 1}


@pytest.fixture(scope="module")
def case():
    made = simulate(n_rows=400, columns=COLUMNS, missing=0.0, random_state=3)
    shown = hide_cells(made.table, made.schema, 0.3, 1)
    return made.table, shown, PluriGP(2, schema=made.schema, random_state=0, max_epochs=40).fit(shown)


def test_completed_tables_keep_every_observed_cell_and_leave_no_gap(case):
    _, shown, model = case
    tables = model.impute_draws(shown, n_draws=3, random_state=0)
    assert len(tables) == 3
    seen = shown.notna()
    for table in tables:
        assert not table.isna().any().any()
        assert table.dtypes.equals(model.impute(shown).dtypes)
        for name in shown.columns:
            assert table[name][seen[name]].tolist() == shown[name][seen[name]].tolist()
    assert not tables[0].equals(tables[1])


def test_draws_repeat_with_their_seed(case):
    _, shown, model = case
    one, two = (model.impute_draws(shown.iloc[:20], n_draws=2, random_state=5) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(a, b)


def test_draws_spread_around_what_impute_fills_in(case):
    """The mean over many draws of a real column is the filled value, within its Monte Carlo error."""
    _, shown, model = case
    name = next(c.name for c in model.schema_.used if c.kind == "gaussian")
    gaps = shown[name].isna()
    draws = np.stack([t[name][gaps].to_numpy(float) for t in model.impute_draws(shown, n_draws=200, random_state=1)])
    filled = model.impute(shown)[name][gaps].to_numpy(float)
    error = draws.std(0) / np.sqrt(len(draws))
    assert np.mean(np.abs(draws.mean(0) - filled) < 4 * error + 0.05 * draws.std(0)) > 0.95


def test_every_gap_is_described_and_nothing_else(case):
    _, shown, model = case
    lines = model.describe_gaps(shown, n_draws=60)
    described = {(row, column) for row, column in zip(lines["row"], lines["column"], strict=True)}
    gaps = {(int(r), shown.columns[c]) for r, c in np.argwhere(shown.isna().to_numpy())}
    assert described == gaps
    assert len(lines) == len(gaps)
    numeric = lines[lines["level"].isna()]
    assert (numeric["q5"] <= numeric["q50"]).all()
    assert (numeric["q50"] <= numeric["q95"]).all()
    assert (numeric["sd"] >= 0).all()
    named = lines[lines["level"].notna()]
    assert named["probability"].between(0, 1).all()
    assert named["mean"].isna().all()


def test_intervals_cover_what_was_hidden(case):
    """Nominal 90 % within three standard errors of a binomial, on a table the model has learned."""
    truth, shown, model = case
    lines = model.describe_gaps(shown, n_draws=200)
    lines = lines[lines["kind"] == "gaussian"]
    hidden = np.array([truth[c].iloc[r] for r, c in zip(lines["row"], lines["column"], strict=True)], float)
    cover = np.mean((lines["q5"] <= hidden) & (hidden <= lines["q95"]))
    assert abs(cover - 0.9) < 3 * np.sqrt(0.9 * 0.1 / len(lines)) + 0.02


# --- calibration ---


def test_maps_rise_and_those_of_levels_change_nothing(case):
    _, _, model = case
    assert model.pit_maps_.shape == (len(model.schema_.used), len(KNOTS))
    assert (np.diff(model.pit_maps_) > 0).all()
    for column, G in zip(model.schema_.used, model.pit_maps_, strict=True):
        assert np.array_equal(G, KNOTS) or not column.levels


def test_quantiles_are_those_of_the_draws_at_other_levels(case):
    """Mean, sd and draws know nothing of calibration."""
    _, shown, model = case
    rows = shown.iloc[:100]
    name = next(c.name for c in model.schema_.used if c.kind == "gaussian")
    kept, d = model.pit_maps_, [c.name for c in model.schema_.used].index(name)
    bent = identity_maps(len(kept))
    bent[d] = KNOTS**1.3
    try:
        model.pit_maps_ = bent
        calibrated, drawn = model.describe_gaps(rows, n_draws=40), model.impute_draws(rows, 1, random_state=0)[0]
        model.pit_maps_ = identity_maps(len(kept))
        levels = np.interp([0.05, 0.95], bent[d], KNOTS).tolist()
        plain = model.describe_gaps(rows, levels=levels, n_draws=40)
        pd.testing.assert_frame_equal(model.impute_draws(rows, 1, random_state=0)[0], drawn)
    finally:
        model.pit_maps_ = kept
    own = calibrated["column"] == name
    assert own.sum() > 20
    pd.testing.assert_frame_equal(plain[["mean", "sd"]], calibrated[["mean", "sd"]])
    for name, level in zip(("q5", "q95"), levels, strict=True):
        np.testing.assert_allclose(calibrated[own][name], plain[own][f"q{100 * level:g}"])


def calibration_of(model, frame):
    layout = model.predictor_.layout
    return Calibration(layout, *arrange(layout, model.coder_.table(frame)), model.coder_.schema, 0)


def test_wide_draws_are_put_right(case):
    """A decoder that is told of twice the noise there is covers too much; its maps take that back."""
    _, shown, model = case
    layout = model.predictor_.layout
    block = next(b for b, block in enumerate(layout.blocks) if block.likelihood.kind == "gaussian")
    thetas = list(model.predictor_.model.thetas)
    thetas[block] = {name: value + np.log(4.0) for name, value in thetas[block].items()}
    wide = replace(model.predictor_, model=replace(model.predictor_.model, thetas=tuple(thetas)))
    maps = calibration_of(model, shown).maps(wide)
    for column, before, after in zip(model.schema_.used, model.pit_maps_, maps, strict=True):
        if column.kind == "gaussian":
            inside = [np.interp(0.75, KNOTS, G) - np.interp(0.25, KNOTS, G) for G in (before, after)]
            assert inside[1] > inside[0] + 0.05


def test_a_table_of_few_cells_is_not_calibrated(case, monkeypatch):
    """Nothing is computed."""
    _, shown, model = case
    monkeypatch.setattr("plurigp.answers.calibration.draw_given", None)
    calibration = calibration_of(model, shown.iloc[:MIN_CELLS])
    calibration.compile_in_background(model.predictor_)
    assert calibration.compiling is None
    maps = calibration.maps(model.predictor_)
    np.testing.assert_array_equal(maps, identity_maps(len(maps)))


def test_a_hidden_cell_leaves_no_trace(rng):
    """Neither its value nor its bounds; trials, which the row has in any case, stay."""
    frame = pd.DataFrame(
        {
            "lab": ["<0.5", "3", "1-2", "7"],
            "hits": [1, 2, 3, 4],
            "shots": [5, 5, 6, 6],
            "cost": [0.0, 3.0, 0.0, 2.5],
            "ward": ["a", "b", "a", "b"],
        }
    )
    kinds = {
        "lab": "censored_lognormal",
        "hits": {"kind": "binomial", "trials": "shots"},
        "cost": "zero_lognormal",
        "ward": "bernoulli",
    }
    coder = Coder.fit(frame, infer_schema(frame, kinds))
    hidden = rng.random((4, 4)) < 0.5
    shown = frame[["lab", "hits", "cost", "ward"]].astype(object).mask(hidden).assign(shots=frame["shots"])
    ours, theirs = coder.table(frame).hidden(hidden), coder.table(shown)
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_array_equal(ours.seen, theirs.seen)
    low, high = cell_bounds(coder.table(frame))
    assert (low[:, 0] < high[:, 0]).tolist() == [True, False, True, False]
    np.testing.assert_array_equal(low[:, 1:], high[:, 1:])


# --- levels ---


def test_level_probabilities_sum_to_one_and_agree_with_impute(case):
    _, shown, model = case
    filled = model.impute(shown)
    for column in (c for c in model.schema_.used if c.levels):
        shares = model.level_probabilities(shown, column.name)
        assert list(shares.columns) == list(column.levels)
        np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-3)
        gaps = shown[column.name].isna()
        assert (shares[gaps].idxmax(axis=1).to_numpy() == filled[column.name][gaps].to_numpy()).all()


def test_one_sweep_answers_all_columns_as_one_by_one(case):
    _, shown, model = case
    places = [d for d, column in enumerate(model.schema_.used) if column.levels]
    together = levels_of_columns(model.predictor_, model.coder_.table(shown), places)
    for d, shares in zip(places, together, strict=True):
        alone = model.level_probabilities(shown, model.schema_.used[d].name)
        np.testing.assert_array_equal(shares[:, : alone.shape[1]], alone)


def test_a_table_without_gaps_has_nothing_to_describe(case):
    truth, _, model = case
    assert len(model.describe_gaps(truth.iloc[:10])) == 0


def test_what_cannot_be_asked_is_named(case):
    _, shown, model = case
    real = next(c.name for c in model.schema_.used if c.kind == "gaussian")
    with pytest.raises(DataError, match="has no levels"):
        model.level_probabilities(shown, real)
    with pytest.raises(DataError, match="not used by this model"):
        model.level_probabilities(shown, "no such column")
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.describe_gaps(shown, levels=[0.5, 1.0])
    with pytest.raises(ValueError, match="n_draws"):
        model.impute_draws(shown, n_draws=0)
