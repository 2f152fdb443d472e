"""The second stage: trees as arrays, stacking weights, the law of residuals, one corrected predictive behind all."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.tree import ExtraTreeRegressor

import plurigp
from plurigp import DataError, PluriGP
from plurigp.answers.corrected import draw_gaps_given, expected_gaps
from plurigp.answers.forest import (
    LEAF,
    MAX_FEATURES,
    N_PARTS,
    grow_out_of_bag,
    grow_tree,
    join_forests,
    left_out_parts,
)
from plurigp.answers.heldout import hide_cells
from plurigp.answers.map_view import completed_features, feature_owners, view_table
from plurigp.answers.pit import KNOTS
from plurigp.answers.ridge import cross_fitted_ridge, fit_ridge
from plurigp.answers.second_stage import fit_second_stage
from plurigp.answers.stacking import SIMPLEX, residual_law, stack_numbers, weight_of_levels
from plurigp.data import KINDS
from plurigp.estimator.saved_stage import stage_arrays, stage_from_arrays
from plurigp.likelihoods.registry import LIKELIHOODS

# --- trees as arrays ---


def test_a_tree_of_arrays_predicts_what_scikit_learn_does():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)).astype(np.float32), rng.normal(size=(300, 2))
    new = rng.normal(size=(50, 5)).astype(np.float32)
    ours, unseen = grow_tree(X, y, y, new, min_leaf=3, seed=4)
    theirs = ExtraTreeRegressor(min_samples_leaf=3, max_features=MAX_FEATURES, random_state=4).fit(X, y)
    np.testing.assert_allclose(ours.mean(new), theirs.predict(new), atol=1e-6)
    np.testing.assert_allclose(ours.mean(X, chunk=32), theirs.predict(X), atol=1e-6)
    np.testing.assert_array_equal(unseen, ours.by_tree(new)[0])


def test_joined_forests_predict_the_mean_of_their_trees():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 3)).astype(np.float32), rng.normal(size=(80, 1))
    parts = [grow_tree(X, y, y, X, 2, seed)[0] for seed in (0, 1)]
    joined = join_forests(parts)
    np.testing.assert_allclose(joined.mean(X), (parts[0].mean(X) + parts[1].mean(X)) / 2, atol=1e-6)
    assert joined.mean(X[:0]).shape == (0, 1)


def test_leaves_hold_means_of_the_statistics_and_not_of_the_target():
    X, y = np.arange(8, dtype=np.float32)[:, None], np.repeat([[0.0], [1.0]], 4, axis=0)
    forest, _ = grow_tree(X, y, np.hstack([y, 10 * y**2]), X, 1, 0)
    np.testing.assert_allclose(forest.mean(X), np.hstack([y, 10 * y]))


def test_a_row_is_predicted_by_the_trees_that_left_it_out_and_by_no_other():
    rng = np.random.default_rng(2)
    X, other, y = rng.normal(size=(60, 3)), rng.normal(size=(60, 3)), rng.normal(size=(60, 1))
    forest, unseen, excess_var = grow_out_of_bag(X, other, y, y, 4 * N_PARTS, 1, 7)
    by_tree = forest.by_tree(other).reshape(4, N_PARTS, 60)
    parts = left_out_parts(60, 4 * N_PARTS, 7)
    of_row = by_tree[np.arange(4)[:, None], parts, np.arange(60)]
    np.testing.assert_allclose(unseen[:, 0], of_row.mean(0), rtol=1e-5, atol=1e-6)
    assert excess_var == pytest.approx(of_row.var(0, ddof=1).mean() / 4 * (1 - 1 / N_PARTS), rel=1e-4)
    moved = grow_out_of_bag(X, other, y + 1e3 * (np.arange(60) == 5)[:, None], y, 4 * N_PARTS, 1, 7).unseen
    assert abs(moved[5, 0] - unseen[5, 0]) < 1e-5  # its own value changes nothing of what is said of it


# --- ridge ---


def test_ridge_with_little_noise_is_least_squares_and_with_none_of_the_signal_the_mean():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)) * [1, 10, 0.1, 1] + 5
    signal = 2 + X @ [1.0, 0.2, -3.0, 0.0]
    y = signal + 1e-3 * rng.normal(size=200)
    least_squares = np.linalg.lstsq(np.column_stack([np.ones(200), X]), y, rcond=None)[0]
    found = fit_ridge(X, y)
    np.testing.assert_allclose([found.intercept, *found.coef], least_squares, atol=5e-3)
    assert np.ptp(fit_ridge(X, rng.normal(size=200)).predict(X)) < 0.6
    assert found.predict(X + 1e3).max() == y.min()  # far outside, the end of the range
    constant = fit_ridge(np.column_stack([X, np.ones(200)]), y)
    np.testing.assert_allclose(constant.predict(np.column_stack([X, np.zeros(200)])), found.predict(X), atol=1e-9)


def test_a_cross_fitted_ridge_reads_the_unseen_inputs_and_not_the_cell():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=100)
    _, unseen = cross_fitted_ridge(X, X, y, np.random.default_rng(0))
    moved = y.copy()
    moved[7] += 50.0
    _, again = cross_fitted_ridge(X, X, moved, np.random.default_rng(0))
    assert again[7] == unseen[7]
    assert (again != unseen).sum() > 50
    _, without = cross_fitted_ridge(X, np.zeros_like(X), y, np.random.default_rng(0))
    assert np.ptp(without) < 0.2


# --- stacking ---


def test_the_map_keeps_its_weight_where_it_is_right_and_loses_it_where_it_is_not():
    rng = np.random.default_rng(2)
    y = rng.normal(size=500)
    good, bad, alike = y + 0.1 * rng.normal(size=500), rng.normal(size=500), np.ones(500)
    assert stack_numbers(y, good, bad, bad, alike).weights == (0.0, 0.0)
    assert stack_numbers(y, bad, good, bad, alike).weights[0] > 0.9
    assert stack_numbers(y, bad, bad, good, alike).weights[1] > 0.9
    assert stack_numbers(y, good, good, good, alike).weights == (0.0, 0.0)
    few = stack_numbers(y[:10], bad[:10], good[:10], bad[:10], alike[:10]).weights[0]
    assert 0.3 < few < 0.6  # as if ten more cells had spoken for the map


def test_a_ridge_that_does_not_help_is_left_out_and_three_that_are_alike_share_the_least_error():
    rng = np.random.default_rng(5)
    y = rng.normal(size=2000)
    map_, trees = (y + rng.normal(size=2000) for _ in range(2))
    noise, alike = rng.normal(size=2000), np.ones(2000)
    assert stack_numbers(y, map_, trees, y + 20 * noise, alike).weights[1] == 0.0
    found = stack_numbers(y, map_, trees, y + noise, alike)
    np.testing.assert_allclose(found.weights, (1 / 3, 1 / 3), atol=0.08)
    every = [np.mean((np.stack([map_, trees, y + noise], 1) @ w - y) ** 2) for w in SIMPLEX]
    assert found.error == pytest.approx(min(every), rel=0.01)
    assert found.error == pytest.approx(np.mean((found.mean - y) ** 2))


def test_trees_that_will_vary_less_get_a_larger_weight_and_leave_less():
    rng = np.random.default_rng(6)
    y = rng.normal(size=3000)
    map_, trees = (y + rng.normal(size=3000) for _ in range(2))
    now, later = (stack_numbers(y, map_, trees, map_, np.ones(3000), excess) for excess in (0.0, 0.4))
    assert now.later_error == now.error
    assert later.weights[0] > now.weights[0] + 0.05
    w = later.weights[0]
    assert later.later_error == pytest.approx(later.error - w**2 * 0.4)


def test_levels_are_weighted_by_their_log_score():
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([1, 1, 1], 800)
    y = np.array([rng.choice(3, p=p) for p in truth])
    flat = np.full((800, 3), 1 / 3)
    assert weight_of_levels(y, truth, flat, np.ones(800)) < 0.2
    assert weight_of_levels(y, flat, truth, np.ones(800)) > 0.8


def test_no_residual_is_drawn_far_beyond_those_seen():
    """Amounts of skewed columns are e to the residual: a Student t with two degrees would draw them without bound."""
    r = np.random.default_rng(0).standard_t(2, 80)
    law = residual_law(r, np.ones(80), np.ones(80))
    ends = law.quantile(np.array([1e-12, 1 - 1e-12]), np.ones(2))
    assert np.abs(ends - law.centre).max() <= 1.5 * np.abs(r - law.centre).max() * (1 + 1e-9)


def test_residuals_follow_their_law():
    rng = np.random.default_rng(4)
    var = rng.gamma(2.0, 1.0, 4000)
    r = 0.5 + np.sqrt(var) * rng.standard_t(5, 4000)
    law = residual_law(r[:2000], var[:2000], np.ones(2000))
    assert kstest(law.cdf(r[2000:], var[2000:]), "uniform").pvalue > 0.01
    assert law.local >= 0.75
    constant = residual_law(r[:2000] / np.sqrt(var[:2000]), var[:2000], np.ones(2000))
    assert constant.local <= 0.25


def test_a_law_has_one_cdf_quantile_and_density():
    rng = np.random.default_rng(5)
    law = residual_law(rng.exponential(size=600) - 1, np.ones(600), np.ones(600))
    u, one = np.linspace(0.01, 0.99, 25), np.ones(25)
    np.testing.assert_allclose(law.cdf(law.quantile(u, one), one), u, atol=1e-9)
    grid = np.linspace(-1, 2, 20_001)
    below = law.cdf(np.array([-1.0, 2.0]), np.ones(2))
    inside = np.trapezoid(np.exp(law.log_density(grid, np.ones_like(grid))), grid)
    assert inside == pytest.approx(below[1] - below[0], abs=1e-3)


@pytest.mark.parametrize(
    "kind", [k for k, like in LIKELIHOODS.items() if like.scale is not None and not KINDS[k].often_zero]
)
def test_the_scale_of_a_number_is_that_of_its_feature(kind):
    like, y = LIKELIHOODS[kind], np.array([0.2, 0.4, 0.9])
    features = np.array([float(like.features(np.array([v]), 1)[0]) for v in y])
    np.testing.assert_allclose(like.scale.forward(y), features, rtol=1e-5)
    np.testing.assert_allclose(like.scale.back(like.scale.forward(y)), y, rtol=1e-6)
    slope = (like.scale.forward(y + 1e-6) - like.scale.forward(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(like.scale.log_slope(y), np.log(slope), atol=1e-5)


# --- a table that the map cannot learn alone ---


def _table(n: int = 500, seed: int = 6) -> pd.DataFrame:
    """Columns that hang together by steps and products, which a map of two dimensions misses."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n))
    step = np.where((np.floor(2 * a) + np.floor(2 * b)) % 2 == 0, 2.0, -2.0)
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "c": c,
            "step": step + 0.2 * rng.normal(size=n),
            "cost": np.exp(0.8 * np.sign(a * b) + 0.2 * rng.normal(size=n)),
            "visits": rng.poisson(np.where(step > 0, 9.0, 2.0)),
            "ill": np.where(rng.random(n) < np.where(step > 0, 0.95, 0.05), "yes", "no"),
            "dose": np.where(step > 0, np.exp(0.2 * rng.normal(size=n)), 0.0),
            "group": np.array(["u", "v", "w"])[np.where(step > 0, 0, np.where(rng.random(n) < 0.9, 1, 2))],
        }
    )


@pytest.fixture(scope="module")
def case():
    frame = _table()
    model = PluriGP(2, max_epochs=40, n_inducing=20, random_state=0, second_stage="trees")
    kinds = {"cost": "lognormal", "visits": "poisson", "dose": "zero_lognormal"}
    schema = plurigp.infer_schema(frame, kinds)
    shown = hide_cells(frame, schema, 0.2, 1)
    return frame, shown, model.set_params(schema=schema).fit(shown)


def _without(model: PluriGP, answer):
    stage = model.second_stage_
    model.second_stage_ = None
    try:
        return answer(model)
    finally:
        model.second_stage_ = stage


def test_corrected_answers_beat_the_maps_own(case):
    frame, shown, model = case
    corrected, own = model.impute(shown), _without(model, lambda m: m.impute(shown))
    hidden = shown.isna()
    for name, most in (("step", 0.8), ("cost", 1.0)):  # a product of two signs is hard to find by single splits
        at = hidden[name]
        error = lambda filled, name=name, at=at: np.mean((filled[name][at] - frame[name][at]) ** 2)  # noqa: E731
        assert error(corrected) < most * error(own), name
    for name in ("ill", "group"):
        at = hidden[name]
        assert (corrected[name] == frame[name])[at].mean() >= (own[name] == frame[name])[at].mean(), name
    gain = model.score_cells(shown, frame) - _without(model, lambda m: m.score_cells(shown, frame))
    names = [model.schema_.used[d].name for d in model.second_stage_.columns]
    assert {"step", "ill", "group"} <= set(names)
    assert gain[names].stack().mean() > 0.1
    rest = [name for name in gain if name not in names]
    assert (gain[rest].fillna(0) == 0).all().all()


def test_corrected_levels_of_new_rows_have_better_scores(case):
    _, _, model = case
    new = _table(4000, seed=7)
    shown = hide_cells(new, model.schema_, 0.2, 2)
    gain = model.score_cells(shown, new) - _without(model, lambda m: m.score_cells(shown, new))
    for name in ("ill", "group"):
        assert shown[name].isna().sum() > 700
        assert gain[name].mean() > 0, name


def test_observed_cells_are_untouched_and_no_gap_is_left(case):
    _, shown, model = case
    for filled in (model.impute(shown), *model.impute_draws(shown, 2, random_state=0)):
        assert not filled.isna().any().any()
        for name in shown:
            seen = shown[name].notna()
            assert filled[name][seen].tolist() == shown[name][seen].tolist()
        assert (filled["cost"] > 0).all()
        assert (filled["visits"] >= 0).all()
        assert (filled["dose"] >= 0).all()


def test_counts_are_filled_by_whole_numbers_or_by_their_mean(case):
    _, shown, model = case
    gaps = shown["visits"].isna()
    whole, expected = (model.impute(shown, expected_levels=asked)["visits"] for asked in (False, True))
    assert (whole[gaps] % 1 == 0).all()
    assert (expected[gaps] % 1 > 0).mean() > 0.9
    assert (expected - whole)[gaps].abs().max() <= 0.5 + 1e-6
    assert expected[~gaps].tolist() == shown["visits"][~gaps].tolist()


def test_intervals_cover_and_draws_have_the_filled_values_as_their_means(case):
    frame, shown, model = case
    gaps = model.describe_gaps(shown, levels=(0.1, 0.9), n_draws=300)
    numbers = gaps[gaps["mean"].notna()]
    truth = np.array([frame.at[row, name] for row, name in zip(numbers["row"], numbers["column"], strict=True)], float)
    inside = (truth >= numbers["q10"]) & (truth <= numbers["q90"])
    assert abs(inside.mean() - 0.8) < 0.07
    step = gaps[gaps["column"] == "step"]
    np.testing.assert_allclose(step["mean"].mean(), model.impute(shown)["step"][step["row"]].mean(), atol=0.15)


def test_level_probabilities_are_those_of_the_draws(case):
    _, shown, model = case
    gaps = np.flatnonzero(shown["group"].isna())
    shares = model.level_probabilities(shown, "group").to_numpy()[gaps]
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-3)
    drawn = model.impute_draws(shown, 200, random_state=1)
    counted = np.mean([table["group"].to_numpy()[gaps][:, None] == ["u", "v", "w"] for table in drawn], axis=0)
    assert np.abs(counted - shares).mean() < 0.03


def test_densities_of_numbers_and_masses_of_counts_add_up_to_one(case):
    _, shown, model = case
    row = int(np.flatnonzero(shown["step"].isna())[0])
    grid = np.linspace(-8, 8, 801)
    rows = pd.concat([shown.iloc[[row]]] * len(grid), ignore_index=True)
    density = np.exp(model.score_cells(rows, rows.assign(step=grid))["step"])
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=0.02)
    row = int(np.flatnonzero(shown["visits"].isna())[0])
    counts = np.arange(120)
    rows = pd.concat([shown.iloc[[row]]] * len(counts), ignore_index=True)
    assert np.exp(model.score_cells(rows, rows.assign(visits=counts))["visits"]).sum() == pytest.approx(1, abs=0.03)


def test_zeros_among_amounts_have_a_mass_and_the_rest_a_density(case):
    _, shown, model = case
    assert "dose" in [model.schema_.used[d].name for d in model.second_stage_.columns]
    row = int(np.flatnonzero(shown["dose"].isna())[0])
    grid = np.concatenate([[0.0], np.linspace(0.001, 8, 800)])
    rows = pd.concat([shown.iloc[[row]]] * len(grid), ignore_index=True)
    scores = np.exp(model.score_cells(rows, rows.assign(dose=grid))["dose"].to_numpy())
    least = shown["dose"][shown["dose"] > 0].min() / 2
    above = grid > least
    assert scores[0] + np.trapezoid(scores[above], grid[above]) == pytest.approx(1, abs=0.05)


def test_draws_of_one_row_hang_together_as_the_maps_do(case):
    _, shown, model = case
    empty = shown.iloc[:1].copy()
    empty[["a", "b", "c", "step", "cost", "visits", "dose"]] = np.nan
    table = model.coder_.table(empty.assign(ill="yes", group="u"))
    corrected, plain = (
        np.stack([draw[0] for chunk in draw_gaps_given(model.predictor_, stage, table, 400, 0) for draw in chunk.draws])
        for stage in (model.second_stage_, None)
    )
    for d in model.second_stage_.columns:
        if not model.schema_.used[d].levels:
            ranks = [pd.Series(part[:, d]).rank() for part in (corrected, plain)]
            assert np.corrcoef(*ranks)[0, 1] > 0.9


def test_a_cell_is_never_read_by_the_trees_that_score_it(case):
    frame, _, model = case
    table = model.coder_.table(frame)
    view = view_table(model.predictor_, table)
    other = table.hidden(np.eye(9, dtype=bool)[[3] * len(frame)])  # without "step"
    owner, features = feature_owners(model.predictor_.layout), completed_features(model.predictor_, other, view.fills)
    assert set(owner) == set(range(9))
    same = completed_features(model.predictor_, table, view.fills)
    np.testing.assert_array_equal(features[:, owner != 3], same[:, owner != 3])
    assert (features[:, owner == 3] != same[:, owner == 3]).mean() > 0.9


def test_a_single_column_has_no_second_stage():
    one = PluriGP(1, max_epochs=2, n_inducing=4, random_state=0, calibrate=False, second_stage="trees")
    assert one.fit(_table(60)[["a"]]).second_stage_ is None


# --- saved ---


def test_a_saved_second_stage_answers_the_same(case, tmp_path):
    _, shown, model = case
    with pytest.warns(UserWarning, match="values of single training cells"):
        folder = model.save(tmp_path / "model")
    loaded = plurigp.load(folder)
    pd.testing.assert_frame_equal(loaded.impute(shown), model.impute(shown))
    pd.testing.assert_frame_equal(loaded.describe_gaps(shown, n_draws=20), model.describe_gaps(shown, n_draws=20))
    assert (loaded.pit_maps_[loaded.second_stage_.columns] == KNOTS).all()


def test_the_same_seed_gives_the_same_bytes(case, monkeypatch):
    _, shown, model = case
    monkeypatch.setattr("plurigp.answers.second_stage.N_TREES", (5, 10))
    table = model.coder_.table(shown)
    one, two = (stage_arrays(fit_second_stage(model.predictor_, table, 5)) for _ in range(2))
    assert one.keys() == two.keys()
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def test_arrays_that_are_no_trees_are_refused(case):
    _, _, model = case
    arrays = stage_arrays(model.second_stage_)
    layout = model.predictor_.layout
    assert stage_from_arrays({}, layout) is None
    d = model.second_stage_.columns[0]
    path = f"second_stage.3.{d}"
    inner = np.flatnonzero(arrays[f"{path}.feature"] != LEAF)
    looped = arrays[f"{path}.left"].copy()
    looped[inner[0]] = inner[0]
    broken = [
        {f"{path}.left": looped},
        {f"{path}.value": arrays[f"{path}.value"][:-1]},
        {f"{path}.stacking": np.zeros(3)},
        {f"{path}.feature": np.where(arrays[f"{path}.feature"] == LEAF, LEAF, 99).astype(np.int16)},
    ]
    for change in broken:
        with pytest.raises(DataError, match="not those of trees"):
            stage_from_arrays(arrays | change, layout)
    with pytest.raises(DataError, match="not that of a regression"):
        stage_from_arrays(arrays | {f"{path}.ridge": np.array([0.0, 1.0])}, layout)
    with pytest.raises(DataError, match="not whole"):
        stage_from_arrays({k: v for k, v in arrays.items() if k != f"{path}.right"}, layout)
    own = {name.removeprefix(path): array for name, array in arrays.items() if name.startswith(f"{path}.")}
    for place in ("99999999.0", "2.999", "-1.0", "x.0", "2", "2.0.0"):
        with pytest.raises(DataError, match="not whole"):
            stage_from_arrays({f"second_stage.{place}{name}": array for name, array in own.items()}, layout)


def test_expected_gaps_without_a_second_stage_are_the_maps(case):
    _, shown, model = case
    table = model.coder_.table(shown)
    plain, corrected = (expected_gaps(model.predictor_, stage, table) for stage in (None, model.second_stage_))
    for d, (own, other) in enumerate(zip(plain, corrected, strict=True)):
        np.testing.assert_allclose(own[table.seen[:, d]], other[table.seen[:, d]])
