import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp import PluriGP
from plurigp.study.findings.assess import predictive_scores
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.tasks import held_out, held_out_rows, training_rows


@pytest.fixture(scope="module")
def scored():
    """A map, the table whose held-out rows lie elsewhere than the others, and the rows it was learned from."""
    rng, config = np.random.default_rng(0), StudyConfig(hidden_share=0.5)
    factor = rng.normal(size=200)
    frame = pd.DataFrame(
        {"lab": factor + 0.3 * rng.normal(size=200), "other": factor + 0.3 * rng.normal(size=200),
         "sick": np.where(factor > 0, "yes", "no"), "stage": rng.choice(["a", "b", "c"], 200)}
    )  # fmt: skip
    rows = training_rows(200, config)
    frame.loc[held_out_rows(200, rows, config), ["lab", "other"]] += 2.0
    model = PluriGP(1, n_inducing=8, max_epochs=20, calibrate=False, random_state=0).fit(frame.iloc[rows])
    return model, frame, rows, config


def scores(model, frame, rows, config):
    return predictive_scores(model, model.coder_.table(frame.iloc[rows]), *held_out(frame, model.coder_, rows, config))


def test_the_marginal_is_fitted_to_the_rows_the_map_was_learned_from(scored):
    model, frame, rows, config = scored
    predictions = scores(*scored)[0].set_index("column")
    shown, complete = held_out(frame, model.coder_, rows, config)
    hidden = (complete.seen & ~shown.seen)[:, 0]
    y, new = frame["lab"].iloc[rows], frame["lab"].iloc[held_out_rows(200, rows, config)][hidden]
    expected = stats.t.logpdf(new, len(y), y.mean(), y.std(ddof=0)).mean()
    assert predictions.loc["lab", "marginal"] == pytest.approx(expected, abs=1e-3)
    assert predictions.loc["lab", "cells"] == hidden.sum()


def test_calibration_counts_every_hidden_cell_with_levels(scored):
    predictions, calibration = scores(*scored)
    cells = calibration.groupby("column")["cells"].sum()
    assert cells["sick"] == predictions.set_index("column").loc["sick", "cells"]
    assert cells["stage"] == 3 * predictions.set_index("column").loc["stage", "cells"]
    assert set(calibration["column"]) == {"sick", "stage"}
    own = calibration[calibration["column"] == "stage"]
    assert (own["observed"] * own["cells"]).sum() == pytest.approx(cells["stage"] / 3)
