"""Hidden cells: what is hidden, and that scores say what they claim."""

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP, infer_schema
from plurigp.heldout import by, cell_scores, density_scores, hide_cells, reconstruction_scores


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


def test_scores_list_the_hidden_cells_once(frame):
    schema = infer_schema(frame)
    shown = hide_cells(frame, schema, 0.3, seed=1)
    model = PluriGP(1, schema=schema, n_inducing=8, max_epochs=3, batch_size=40, random_state=0).fit(shown)
    scores = cell_scores(model, shown, frame)
    hidden = shown.isna() & frame.notna()
    assert len(scores) == hidden.to_numpy().sum()
    for name in ("lab", "other", "sick"):
        assert scores["row"][scores["column"] == name].tolist() == np.flatnonzero(hidden[name]).tolist()
    # The marginal of a real column is its own normal over the shown cells, in the column's own units.
    lab = scores[scores["column"] == "lab"]
    mean, sd = shown["lab"].mean(), shown["lab"].std(ddof=0)
    expected = -0.5 * np.log(2 * np.pi * sd**2) - 0.5 * ((frame["lab"].iloc[lab["row"]] - mean) / sd) ** 2
    np.testing.assert_allclose(lab["marginal"], expected, atol=0.05)


def test_the_other_scores_have_their_marginals_too(frame):
    """What every cell of a row adds up to is the row's; a reconstruction is at most the log of the mean it is of."""
    model = PluriGP(1, n_inducing=8, max_epochs=60, batch_size=40, random_state=0).fit(frame)
    cells, rows = reconstruction_scores(model, frame), density_scores(model, frame)
    assert len(cells) == frame[["lab", "other", "sick"]].notna().to_numpy().sum()
    assert rows["row"].tolist() == list(range(len(frame)))
    np.testing.assert_allclose(cells.groupby("row")["marginal"].sum(), rows["marginal"])
    np.testing.assert_allclose(rows["model"], model.score_samples(frame))
    assert (by(cells, "kind")["gain"] > 0).all()
    assert by(cells, "row")["cells"].tolist() == frame[["lab", "other", "sick"]].notna().sum(axis=1).tolist()
    assert rows["model"].mean() < cells.groupby("row")["model"].sum().mean()  # which pays nothing for x


def test_means_and_errors_by_kind():
    scores = pd.DataFrame(
        {"kind": ["a", "a", "b"], "column": ["u", "v", "w"], "model": [1.0, 3.0, 0.0], "marginal": [0.0, 1.0, 0.5]}
    )
    table = by(scores, "kind")
    assert table.loc["a"].tolist() == pytest.approx([2, 2.0, 0.5, 1.5, np.std([1, 2], ddof=1) / np.sqrt(2)])
    assert table.loc["b", "gain"] == -0.5
