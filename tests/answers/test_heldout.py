"""Hidden cells: what is hidden, and that scores say what they claim."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp import PluriGP, infer_schema
from plurigp.answers.baseline import Marginals
from plurigp.answers.heldout import cell_scores, density_scores, hide_cells, ratio_se, reconstruction_scores, scores_by
from plurigp.data import Coder


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    factor = rng.normal(size=80)
    frame = pd.DataFrame(
        {
            "patient": [f"P{i:04d}" for i in range(80)],
            "lab": 10 + 2 * factor + 0.5 * rng.normal(size=80),
            "other": -3 + factor + 0.3 * rng.normal(size=80),
            "sick": np.where(factor + 0.5 * rng.normal(size=80) > 0, "yes", "no"),
        }
    )
    frame.loc[::9, "lab"] = np.nan
    return frame


def test_a_share_of_the_used_cells_is_hidden_and_nothing_else(frame):
    schema = infer_schema(frame)
    shown = hide_cells(frame, schema, 0.3, seed=1)
    assert (shown["patient"] == frame["patient"]).all()  # set aside: not touched
    for name in ("lab", "other", "sick"):
        hidden = shown[name].isna() & frame[name].notna()
        assert 0.1 < hidden.mean() < 0.5
        assert (shown[name][~hidden].dropna() == frame[name][~hidden].dropna()).all()
    pd.testing.assert_frame_equal(shown, hide_cells(frame, schema, 0.3, seed=1))
    assert not shown.equals(hide_cells(frame, schema, 0.3, seed=2))
    pd.testing.assert_frame_equal(hide_cells(frame, schema, 0.0, seed=1), frame)


SPREAD = {"low": {"kind": "censored_gaussian", "upper": "high"}, "days": {"kind": "weibull", "event": "died"},
          "hits": {"kind": "binomial", "trials": "shots"}}  # fmt: skip


@pytest.fixture
def spread_cells(rng) -> pd.DataFrame:
    """Cells that are spread over two columns: two bounds, a time and its event, successes and their trials."""
    low, shots = rng.normal(size=50), rng.integers(3, 9, 50)
    return pd.DataFrame(
        {
            "low": low,
            "high": low + rng.choice([0.0, 1.0], 50),
            "days": rng.exponential(30, 50),
            "died": rng.integers(0, 2, 50).astype(float),
            "hits": rng.binomial(shots, 0.4).astype(float),
            "shots": shots,
            "lab": rng.normal(size=50),
        }
    )


def test_nothing_of_a_hidden_cell_stays_in_the_other_column(spread_cells):
    schema = infer_schema(spread_cells, SPREAD)
    shown = hide_cells(spread_cells, schema, 0.4, seed=1)
    for name, other in (("low", "high"), ("days", "died")):
        assert shown[name].isna().any()
        assert shown[name].isna().equals(shown[other].isna())
    assert shown["shots"].equals(spread_cells["shots"])
    elsewhere = spread_cells.assign(low=7.0, high=9.0, days=1.0, died=1.0 - spread_cells["died"])
    changed = spread_cells.where(shown.notna(), elsewhere)
    pd.testing.assert_frame_equal(hide_cells(changed, schema, 0.4, seed=1), shown)
    coder = Coder.fit(spread_cells, schema)
    hidden = ~coder.table(shown).seen
    np.testing.assert_array_equal(coder.table(changed).hidden(hidden).values, coder.table(shown).values)


def test_the_event_of_several_times_stays_with_those_that_are_shown(spread_cells):
    frame = spread_cells.assign(later=spread_cells["days"] + 1.0)
    schema = infer_schema(frame, SPREAD | {"later": SPREAD["days"]})
    shown = hide_cells(frame, schema, 0.4, seed=1)
    assert shown["died"].isna().equals(shown["days"].isna() & shown["later"].isna())
    Coder.fit(frame, schema).table(shown)


def test_scores_list_the_hidden_cells_once(frame):
    schema = infer_schema(frame)
    shown = hide_cells(frame, schema, 0.3, seed=1)
    model = PluriGP(1, schema=schema, n_inducing=8, max_epochs=3, batch_size=40, random_state=0).fit(shown)
    coded = model.coder_.table(shown)
    scores = cell_scores(model.predictor_, model.coder_, Marginals.fit(coded), coded, model.coder_.table(frame))
    np.testing.assert_allclose(scores["model"], model.score_cells(shown, frame).stack().dropna())
    hidden = shown.isna() & frame.notna()
    assert len(scores) == hidden.to_numpy().sum()
    for name in ("lab", "other", "sick"):
        assert scores["row"][scores["column"] == name].tolist() == np.flatnonzero(hidden[name]).tolist()
    # The marginal of a real column is its own normal over the cells it is fitted to, in the column's own units.
    lab = scores[scores["column"] == "lab"]
    mean, sd = shown["lab"].mean(), shown["lab"].std(ddof=0)
    np.testing.assert_allclose(lab["marginal"], stats.norm.logpdf(frame["lab"].iloc[lab["row"]], mean, sd), atol=0.05)


def test_the_other_scores_have_their_marginals_too(frame):
    """What every cell of a row adds up to is the row's; a reconstruction is at most the log of the mean it is of."""
    model = PluriGP(1, n_inducing=8, max_epochs=60, batch_size=40, random_state=0).fit(frame)
    table = model.coder_.table(frame)
    marginals = Marginals.fit(table)
    cells, rows = (
        reconstruction_scores(model.predictor_, model.coder_, marginals, table),
        density_scores(model.predictor_, model.coder_, marginals, table),
    )
    assert len(cells) == frame[["lab", "other", "sick"]].notna().to_numpy().sum()
    assert rows["row"].tolist() == list(range(len(frame)))
    np.testing.assert_allclose(cells.groupby("row")["marginal"].sum(), rows["marginal"])
    np.testing.assert_allclose(rows["model"], model.score_samples(frame))
    assert (scores_by(cells, "kind")["gain"] > 0).all()
    assert scores_by(cells, "row")["cells"].tolist() == frame[["lab", "other", "sick"]].notna().sum(axis=1).tolist()
    assert rows["model"].mean() < cells.groupby("row")["model"].sum().mean()  # which pays nothing for x


def test_means_and_errors_by_kind():
    scores = pd.DataFrame(
        {"row": [0, 1, 1], "kind": ["a", "a", "b"], "model": [1.0, 3.0, 0.0], "marginal": [0.0, 1.0, 0.5]}
    )
    table = scores_by(scores, "kind")
    assert table.loc["a"].tolist() == pytest.approx([2, 2.0, 0.5, 1.5, np.std([1, 2], ddof=1) / np.sqrt(2)])
    assert table.loc["b", "gain"] == -0.5
    assert np.isnan(table.loc["b", "se"])  # a single row says nothing of the spread between rows


def test_cells_of_a_row_do_not_count_as_independent(rng):
    """All cells of a row are the same number: the mean varies as if every row had one cell."""
    means, errors = [], []
    for _ in range(300):
        row = np.repeat(np.arange(40), rng.integers(1, 20, 40))
        gain = rng.normal(1, 2, 40)[row]
        found = scores_by(pd.DataFrame({"row": row, "kind": "a", "model": gain, "marginal": 0.0}), "kind")
        means.append(found["gain"].item())
        errors.append(found["se"].item())
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_one_cell_a_row_has_the_usual_standard_error(rng):
    gain = rng.normal(size=30)
    assert ratio_se(gain, np.ones(30)) == pytest.approx(gain.std(ddof=1) / np.sqrt(30))
    assert ratio_se(np.append(gain, 0.0), np.append(np.ones(30), 0.0)) == pytest.approx(ratio_se(gain, np.ones(30)))
