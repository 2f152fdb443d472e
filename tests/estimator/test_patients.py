"""Patients with several visits, from table to expected values."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp import DataError, PluriGP, patient_effects
from plurigp.cli.app import app

N = 120


def visits_of(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """40 patients of three visits each in one dimension; labs, a count and yes/no; and the patients' expected labs."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=40)
    x = np.repeat(u, 3) + 0.4 * rng.normal(size=N)
    slopes = np.array([1.0, -1.5, 0.7, 2.0])
    labs = 10 + np.outer(x, slopes) + 0.4 * rng.normal(size=(N, 4))
    table = pd.DataFrame(labs, columns=list("abcd")).mask(rng.random((N, 4)) < 0.1)
    table["admissions"] = rng.poisson(np.exp(0.5 + 0.4 * x))
    table["ill"] = np.where(rng.random(N) < 1 / (1 + np.exp(-2 * x)), "yes", "no")
    return table.assign(patient=[f"P{n // 3}" for n in range(N)]), 10 + np.outer(u, slopes)


@pytest.fixture(scope="module")
def fitted():
    table, truth = visits_of(0)
    settings = {"max_epochs": 150, "calibrate": False, "n_inducing": 15, "random_state": 0}
    model = PluriGP(1, schema={"patient": "aside", "admissions": "poisson"}, **settings).fit(table)
    return model, table, truth, patient_effects(model, table, "patient")


def test_expected_values_lie_near_the_truth_and_intervals_hold_it(fitted):
    _, _, truth, found = fitted
    lines = found.effects.pivot(index="patient", columns="column").loc[[f"P{n}" for n in range(40)]]
    mean, low, high = (lines[part][list("abcd")].to_numpy() for part in ("mean", "low", "high"))
    for d in range(4):
        assert np.corrcoef(mean[:, d], truth[:, d])[0, 1] > 0.9
    assert 0.85 < ((low <= truth) & (truth <= high)).mean() <= 1
    assert (lines["low"] <= lines["mean"]).all(axis=None)
    assert lines["mean"]["ill"].between(0, 1).all()
    assert lines["mean"]["admissions"].mod(1).ne(0).any()  # expected counts are not rounded


def test_shares_and_positions(fitted):
    model, table, _, found = fitted
    assert found.shares["share_between"].between(0.7, 0.97).all()  # 1 / 1.16 in truth
    assert found.positions["rows"].eq(3).all()
    names = list(model.get_feature_names_out())
    assert list(found.positions) == ["patient", "rows", *names, *(f"{name}_sd" for name in names)]
    alone = patient_effects(model, table.iloc[[0, 1, 2, 3, 4]], "patient")
    assert len(alone.positions) == 2
    by_row = model.transform(table).reshape(40, 3).mean(1)
    assert np.corrcoef(by_row, found.positions[names[0]])[0, 1] > 0.95


def test_labels_may_be_given_and_order_does_not_matter(fitted):
    model, table, _, found = fitted
    shuffled = table.sample(frac=1, random_state=1)
    again = patient_effects(model, shuffled.drop(columns="patient"), shuffled["patient"].to_numpy())
    merged = found.positions.merge(again.positions, on="patient")
    name = model.get_feature_names_out()[0]
    np.testing.assert_allclose(merged[f"{name}_x"], merged[f"{name}_y"], atol=1e-6)


def test_patients_of_one_row_are_refused(fitted):
    model, table, _, _ = fitted
    with pytest.raises(DataError, match="0 of 120 patients have more than one row"):
        patient_effects(model, table, np.arange(N))
    with pytest.raises(ValueError, match="level"):
        patient_effects(model, table, "patient", level=95.0)


def test_on_the_command_line(fitted, tmp_path):
    model, table, _, found = fitted
    model.save(tmp_path / "model")
    table.assign(patient="=" + table["patient"]).to_csv(tmp_path / "visits.csv", index=False)
    asked = ["patients", str(tmp_path / "model"), str(tmp_path / "visits.csv"), "--groups", "patient"]
    result = CliRunner().invoke(app, [*asked, "--spreadsheet-safe", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.stderr
    assert "120 rows of 40 patients" in result.stdout
    assert "P7" not in result.stdout
    written = pd.read_csv(tmp_path / "out" / "positions.csv")
    assert written["patient"].str.startswith("'=P").all()
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out" / "effects.csv")["mean"], found.effects["mean"], rtol=1e-4)
    wrong = CliRunner().invoke(app, [*asked[:-1], "person", "--out", str(tmp_path / "other")])
    assert wrong.exit_code == 1
    assert "groups = 'person': is not a column" in wrong.stderr
