"""Gaps filled in one call: PluriImputer in scikit-learn's terms, fit_impute, and n_components="auto"."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import plurigp
from plurigp import PluriGP, PluriImputer
from plurigp.data import Coder, infer_schema, to_rows
from plurigp.estimator.components import choose_components
from plurigp.estimator.tables import training_table
from plurigp.inference.compiling import jax_runtime
from plurigp.likelihoods.layout import make_layout


def _frame(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    f = rng.normal(size=(n, 2))
    frame = pd.DataFrame(f @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(n, 4)), columns=list("abcd"))
    frame["flag"] = (f[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(float)
    frame["site"] = np.where(f[:, 1] > 0, "north", "south")
    frame.loc[frame.index % 7 == 0, ["a", "flag"]] = np.nan
    frame.loc[frame.index % 11 == 0, ["b", "site"]] = np.nan
    return frame


@pytest.fixture(scope="module")
def mixed():
    frame = _frame()
    return frame, PluriImputer(max_epochs=20, random_state=0, add_indicator=True).fit(frame)


def test_a_frame_comes_back_filled_with_its_names_and_indicators(mixed):
    frame, imputer = mixed
    filled = imputer.transform(frame)
    assert filled.columns.tolist() == imputer.get_feature_names_out().tolist()
    names = [f"missingindicator_{name}" for name in ("a", "b", "flag", "site")]
    assert filled.columns.tolist() == [*frame.columns, *names]
    assert not filled.isna().any().any()
    seen = frame.notna()
    for name in frame:
        assert filled[name][seen[name]].tolist() == frame[name][seen[name]].tolist()
    np.testing.assert_array_equal(filled["missingindicator_a"], frame["a"].isna())


def test_levels_that_are_numbers_are_filled_by_their_mean_or_by_one_of_them(mixed):
    frame, imputer = mixed
    gaps = frame["flag"].isna()
    expected = imputer.transform(frame)["flag"][gaps]
    assert expected.between(0, 1).all()
    assert not expected.isin([0, 1]).all()
    imputer.set_params(levels="likeliest")
    likeliest = imputer.transform(frame)["flag"][gaps]
    imputer.set_params(levels="expected")
    assert likeliest.isin([0, 1]).all()
    np.testing.assert_array_equal(likeliest, expected > 0.5)
    shares = imputer.model_.level_probabilities(frame, "flag")[gaps]
    np.testing.assert_allclose(shares @ np.array([0.0, 1.0]), expected)


def test_other_levels_are_an_error():
    with pytest.raises(ValueError, match="levels='best' is not one of expected, likeliest"):
        PluriImputer(levels="best").fit(_frame())


def test_an_array_comes_back_as_an_array_and_a_pipeline_takes_it(mixed):
    frame, _ = mixed
    numbers = frame[list("abcd")].to_numpy()
    line = make_pipeline(PluriImputer(2, max_epochs=5, second_stage="none", random_state=0), LinearRegression())
    line.fit(numbers, np.arange(len(numbers)))
    assert np.isfinite(line.predict(numbers)).all()
    filled = line[0].transform(numbers)
    assert filled.dtype == float
    np.testing.assert_array_equal(filled[~np.isnan(numbers)], numbers[~np.isnan(numbers)])
    frame_out = line[0].set_output(transform="pandas").transform(numbers)
    assert frame_out.columns.tolist() == ["x0", "x1", "x2", "x3"]


def test_fit_impute_sets_what_was_left_at_its_default(monkeypatch):
    frame = _frame()
    model = PluriGP(kernel="rbf", n_components=3, max_epochs=3, random_state=0, calibrate=False)
    monkeypatch.setattr(plurigp.estimator.fitting, "fit_second_stage", lambda *args: None)
    filled = model.fit_impute(frame)
    assert not filled.isna().any().any()
    assert (model.n_components, model.kernel, model.second_stage) == (3, "linear+rbf", "trees")


def test_a_second_stage_that_was_declined_is_not_fitted(monkeypatch):
    def refuse(*args):
        raise AssertionError("a second stage is fitted")

    monkeypatch.setattr(plurigp.estimator.fitting, "fit_second_stage", refuse)
    model = PluriGP(2, max_epochs=10, random_state=0, calibrate=False, second_stage="none")
    assert not model.fit_impute(_frame()).isna().any().any()
    assert model.second_stage == "none"
    assert PluriGP(2, max_epochs=10, random_state=0, calibrate=False).fit(_frame()).second_stage_ is None
    with pytest.raises(AssertionError, match="a second stage is fitted"):
        PluriGP(2, max_epochs=10, random_state=0, calibrate=False).fit_impute(_frame())


# --- n_components="auto" ---


def _chosen(frame: pd.DataFrame) -> int:
    rows = to_rows(frame)
    coder = Coder.fit(rows, infer_schema(rows, None))
    with jax_runtime():
        return choose_components(make_layout(coder.schema), training_table(rows, coder, PluriGP().get_params()), 0)


def test_dimensions_are_as_many_as_the_factors_of_the_table():
    rng = np.random.default_rng(1)

    def table(n_factors: int) -> pd.DataFrame:
        f = rng.normal(size=(400, n_factors)) @ rng.normal(size=(n_factors, 20))
        return pd.DataFrame(f + 0.3 * rng.normal(size=f.shape)).rename(columns=str)

    assert _chosen(table(2)) == 2
    assert _chosen(table(7)) in (8, 16)
    assert _chosen(pd.DataFrame(rng.normal(size=(400, 20))).rename(columns=str)) == 2


def test_dimensions_are_fewer_than_columns():
    rng = np.random.default_rng(2)
    assert _chosen(pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])) == 1


def test_auto_is_kept_as_a_parameter_and_its_choice_shows(mixed):
    _, imputer = mixed
    assert imputer.model_.n_components == "auto"
    assert len(imputer.model_.get_feature_names_out()) == imputer.model_.group_means_.shape[1] in (2, 4)
    with pytest.raises(ValueError, match="n_components='many' must be a whole number"):
        PluriGP("many").fit(_frame())
