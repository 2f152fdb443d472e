"""Explained dimensions: the parts sum to the whole, the right columns are named, rotation changes no prediction."""

import re

import jax
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp import PluriGP, explain
from plurigp.answers.dimensions import linear_loadings, shapley_gains, varimax
from plurigp.answers.latent import log_probs_at
from plurigp.answers.predictor import schema_order
from plurigp.cli.app import app
from plurigp.core.types import DataError
from plurigp.estimator.explaining import Explanation
from plurigp.inference.compiling import jax_runtime
from plurigp.likelihoods.layout import arrange
from plurigp.report.explained import explanation_figures, render_explanation, write_explanation

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def case():
    """Two factors: one behind a0, a1 (falling) and stage, one behind b0, b1, a yes/no, a count; and noise."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=(200, 2))
    frame = pd.DataFrame(z[:, [0, 0, 1, 1]] * [1, -1, 1, 1], columns=["a0", "a1", "b0", "b1"])
    frame += 0.4 * rng.normal(size=(200, 4))
    frame["ill"] = np.where(2 * z[:, 1] + rng.logistic(size=200) > 0, "yes", "no")
    stage = np.digitize(z[:, 0] + 0.5 * rng.normal(size=200), [-0.6, 0.6])
    frame["stage"] = np.array(["early", "middle", "late"])[stage]
    frame["visits"] = rng.poisson(np.exp(0.5 + 0.5 * z[:, 1])).astype(float)
    frame[HOSTILE] = rng.normal(size=200)
    shown = frame.mask(rng.random(frame.shape) < 0.05)
    return shown, PluriGP(2, random_state=0, max_epochs=40, calibrate=False).fit(shown)


@pytest.fixture(scope="module")
def explained(case) -> Explanation:
    shown, model = case
    return explain(model, shown, rotate=True)


def test_the_right_columns_are_named_for_each_dimension(explained):
    first = {frozenset(columns) for columns in explained.dimensions["columns"]}
    assert first == {frozenset({"a0", "a1", "stage"}), frozenset({"b0", "b1", "ill"})} or first == {
        frozenset({"a0", "a1", "stage"}), frozenset({"b0", "b1", "visits"}),
    }  # fmt: skip
    of = explained.parts.set_index(["column", "dimension"])["share"].unstack()
    for name in ("a0", "a1", "b0", "b1", "ill", "stage", "visits"):
        assert of.loc[name].max() > 0.9
    assert of.loc["a0"].idxmax() == of.loc["stage"].idxmax() != of.loc["b0"].idxmax() == of.loc["visits"].idxmax()
    noise = explained.totals.set_index("column").loc[HOSTILE]
    assert noise["r2"] < 0.1


def test_directions_follow_the_factors(explained):
    parts = explained.parts.set_index(["column", "dimension"])["direction"]
    a = explained.parts.query("column == 'a0'").sort_values("deviance")["dimension"].iloc[-1]
    b = explained.parts.query("column == 'b0'").sort_values("deviance")["dimension"].iloc[-1]
    assert {parts["a0", a], parts["a1", a]} == {"higher", "lower"}
    assert parts["b0", b] == parts["b1", b] == parts["visits", b]
    assert parts["ill", b] == ("more yes" if parts["b0", b] == "higher" else "less yes")
    assert parts["stage", a] == ("more late" if parts["a0", a] == "higher" else "more early")


@pytest.fixture(scope="module")
def densities(case):
    """log p(y | x) of all cells [N D] at given positions, the slow and obvious way; NaN at gaps."""
    shown, model = case
    table, layout = model.coder_.table(shown), model.predictor_.layout
    values, seen = arrange(layout, table)
    compiled = jax.jit(log_probs_at)

    def at(x: np.ndarray) -> np.ndarray:
        with jax_runtime():
            cells = np.asarray(compiled(model.predictor_, values, seen, x)[0])
        return np.where(table.seen, schema_order(layout, cells), np.nan)

    return table, model.transform(shown), at


def mean_density(at, own, references, known) -> np.ndarray:
    logs = [at(np.where(known, own, reference)) for reference in references]
    return np.log(np.exp(logs).mean(0))


def test_shapley_values_are_those_of_their_definition(case, densities):
    _, model = case
    table, own, at = densities
    references = np.concatenate([own[:4]] * 16)  # as many as `explain` takes, so that one program serves both
    found = shapley_gains(model.predictor_, table, own, references, np.eye(2))
    nothing, first, second = (mean_density(at, own, own[:4], known) for known in ([0, 0], [1, 0], [0, 1]))
    by_hand = (first - nothing + at(own) - second) / 2
    np.testing.assert_allclose(found[:, :, 0], by_hand, atol=1e-6)
    np.testing.assert_allclose(found.sum(2), at(own) - nothing, atol=1e-6)


def test_parts_sum_to_the_total_that_the_model_s_own_densities_give(explained, densities):
    """Within the error that is printed: the null of `explain` is a mean over 64 positions, here over all rows'."""
    table, own, at = densities
    sums = explained.parts.groupby("column")["deviance"].sum()
    totals = explained.totals.set_index("column")
    assert sums[totals.index].to_numpy() == pytest.approx(totals["deviance"].to_numpy(), rel=1e-9)
    by_all = 2 * np.nanmean(at(own) - mean_density(at, own, own, [0, 0]), axis=0)
    for column, expected in zip(table.schema, by_all, strict=True):
        assert abs(totals.loc[column.name, "deviance"] - expected) < 2 * totals.loc[column.name, "se"], column.name


def test_rotation_leaves_predictions_as_they_are(case, explained):
    shown, model = case
    R = explained.rotation
    assert pytest.approx(np.eye(2), abs=1e-9) == R.T @ R
    back = model.inverse_transform(explained.positions @ R.T)
    pd.testing.assert_frame_equal(back, model.inverse_transform(model.transform(shown)))
    plain = explain(model, shown)
    assert (plain.rotation == np.eye(2)).all()
    both = [made.totals.set_index("column")["deviance"].sort_index() for made in (plain, explained)]
    assert both[0].to_numpy() == pytest.approx(both[1].to_numpy(), abs=0.02)


def test_varimax_finds_simple_structure_again():
    simple = np.array([[2.0, 0.0], [1.5, 0.1], [0.0, 1.0], [0.1, -1.2]])
    angle = 0.6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    found = np.abs((simple @ turn) @ varimax(simple @ turn))
    found = found if found[0, 0] > found[0, 1] else found[:, ::-1]
    assert found == pytest.approx(np.abs(simple), abs=0.1)


def test_loadings_are_slopes(case):
    shown, model = case
    loadings = linear_loadings(model.predictor_, model.transform(shown))
    assert loadings.shape == (model.predictor_.layout.n_functions, 2)
    assert np.isfinite(loadings).all()


def test_curves_are_in_the_column_s_own_units_within_their_intervals(case, explained):
    curves = explained.curves
    assert (curves["low"] <= curves["high"]).all()
    inside = (curves["low"] <= curves["mean"] + 1e-9) & (curves["mean"] <= curves["high"] + 1e-9)
    assert inside.mean() > 0.98
    visits = curves[curves["column"] == "visits"]["mean"]
    assert visits.min() > 0
    assert (visits != visits.round()).any()
    stage = curves[curves["column"] == "stage"].groupby(["dimension", "position"])["mean"].sum()
    assert stage.to_numpy() == pytest.approx(1.0, abs=1e-3)
    assert set(curves.loc[curves["column"] == "ill", "level"]) == {"yes"}


def test_many_dimensions_are_explained_by_sampled_orders(case):
    shown, _ = case
    numbers = shown[["a0", "a1", "b0", "b1"]]
    model = PluriGP(5, random_state=0, max_epochs=3, n_inducing=8, calibrate=False).fit(numbers)
    found = explain(model, numbers.iloc[:16])
    assert found.parts["dimension"].nunique() == 5
    sums = found.parts.groupby("column")["deviance"].sum()
    assert sums.to_numpy() == pytest.approx(found.totals.set_index("column")["deviance"][sums.index].to_numpy())


def test_rows_that_explain_nothing_are_refused(case):
    shown, model = case
    with pytest.raises(DataError, match="no observed cell"):
        explain(model, shown.iloc[:3].mask(np.ones((3, shown.shape[1]), bool)))
    with pytest.raises(DataError, match="at least 2 rows"):
        explain(model, shown.iloc[:1])


# --- its page and figures ---


def test_figures_and_page_hold_hostile_names_as_text(explained, tmp_path, monkeypatch):
    monkeypatch.setenv("PLURIGP_BROWSER", "none")
    figures = explanation_figures(explained)
    assert [figure.name for figure in figures] == ["deviance", "dimension-1", "dimension-2"]
    page = render_explanation(explained)
    assert "<img" not in page
    assert "Dimension 2" in page
    assert re.search(r"a0 \((higher|lower), R² 0\.\d\d\)", page)
    written = write_explanation(explained, tmp_path / "out")
    assert [path.name for path in written] == [
        "explanation.html",
        "parts.csv",
        "totals.csv",
        "dimensions.csv",
        "curves.csv",
    ]
    assert all(path.exists() for path in written)
    assert not any(
        "<img" in label for figure in figures for label in figure.layout.get("yaxis", {}).get("ticktext", [])
    )
    assert "deviance" in repr(explained)


def test_pictures_are_inside_the_page(explained, tmp_path):
    (tmp_path / "deviance.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    page = render_explanation(explained, [tmp_path / "deviance.svg"])
    assert page.count("data:image/svg+xml;base64,") == 1


def test_the_verb_explains_a_saved_model(case, tmp_path, monkeypatch):
    monkeypatch.setenv("PLURIGP_BROWSER", "none")
    shown, model = case
    model.save(tmp_path / "model")
    shown.dropna().to_csv(tmp_path / "t.csv", index=False)
    folder = tmp_path / "out"
    arguments = ["explain", str(tmp_path / "model"), str(tmp_path / "t.csv"), "--rotate", "--out", str(folder)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "first columns" in result.output
    assert (tmp_path / "out" / "explanation.html").exists()
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 1
    assert "is not empty" in again.output


def test_views_say_what_each_dimension_explains_of_them(case, explained, tmp_path):
    shown, model = case
    views = {"first": ["a0", "a1", "stage"], HOSTILE: ["b0", "b1"]}
    found = explain(model, shown, rotate=True, views=views)
    observed = shown.notna().mean()
    for view, names in views.items():
        own = found.views[found.views["view"] == view].set_index("dimension")
        parts = found.parts[found.parts["column"].isin(names)]
        due = (parts["deviance"] * parts["column"].map(observed)).groupby(parts["dimension"]).sum()
        np.testing.assert_allclose(own["deviance"], due.loc[own.index], rtol=1e-9)
        assert own["share"].sum() == pytest.approx(1.0)
        assert own["share"].max() > 0.9
        assert (own["columns"] == len(names)).all()
    best = found.views.loc[found.views.groupby("view")["r2"].idxmax(), "dimension"]
    assert best.nunique() == 2
    page = render_explanation(found)
    assert "Mean R² of the columns of a view" in page
    assert HOSTILE not in page
    assert explained.views.empty
    with pytest.raises(DataError, match="view 'labs' names column 'a9', which is not in the table"):
        explain(model, shown, views={"labs": ["a9"]})


def test_a_map_with_covariates_is_explained_at_their_average(case):
    """Deviances are at a row's own covariates, curves at the average: nobody asks an empty row for its covariates."""
    shown, _ = case
    adjusted = shown.assign(age=shown["a1"].fillna(0.0), site=np.where(shown["b1"] > 0, "A", "B"))
    fitted = PluriGP(2, covariates=["age", "site"], random_state=0, max_epochs=4, calibrate=False).fit(adjusted)
    found = explain(fitted, adjusted)
    assert not {"age", "site"} & set(found.totals["column"])
    assert found.curves["mean"].notna().all()
