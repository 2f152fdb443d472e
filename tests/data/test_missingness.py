"""Missingness indicators: made of gaps, made again for another table, refused by name; they inform filled gaps."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp import DataError, PluriGP, add_missingness, load
from plurigp.cli.app import app


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Gaps of y are commoner in the ill, who have high y and x; illness itself is not a column."""
    rng = np.random.default_rng(0)
    ill = rng.random(300) < 0.5
    y = 3.0 * ill + 0.5 * rng.normal(size=300)
    frame = pd.DataFrame({"y": y, "x": rng.normal(size=300), "z": 2.0 * ill + rng.normal(size=300), "truth": y})
    return frame.assign(y=frame["y"].where(rng.random(300) > np.where(ill, 0.7, 0.05)))


def test_a_column_says_which_cells_are_missing(table):
    made = add_missingness(table)
    assert list(made.columns) == [*table.columns, "y (missing)"]
    np.testing.assert_array_equal(made["y (missing)"] == "yes", table["y"].isna())
    assert list(add_missingness(table, ["y"]).columns) == list(made.columns)


@pytest.mark.parametrize(
    ("columns", "finding"),
    [(["yy"], "'yy', which is not in the table; correct the name. Did you mean 'y'"), (["x"], "'x': has no gaps")],
)
def test_bad_names_are_refused(table, columns, finding):
    with pytest.raises(DataError, match=finding.replace("(", r"\(")):
        add_missingness(table, columns)


def test_it_is_not_made_twice(table):
    with pytest.raises(DataError, match="is in the table already"):
        add_missingness(add_missingness(table), ["y"])


def test_gaps_are_filled_better_where_their_being_gaps_tells(table):
    """Gaps are mostly of the ill: only a model that knows of the gap fills them high enough."""
    gaps = table["y"].isna().to_numpy()
    settings = {"schema": {"truth": "aside"}, "random_state": 0, "calibrate": False, "max_epochs": 60}
    errors = {}
    for name, shown in {"plain": table, "modelled": add_missingness(table, ["y"])}.items():
        filled = PluriGP(2, **settings).fit(shown).impute(shown)
        errors[name] = np.sqrt(((filled["y"] - table["truth"])[gaps] ** 2).mean())
    assert errors["modelled"] < 0.9 * errors["plain"]


def test_the_command_line_makes_it_for_training_and_for_new_rows(table, tmp_path):
    table.drop(columns="truth").to_csv(tmp_path / "t.csv", index=False)
    source, folder = str(tmp_path / "t.csv"), str(tmp_path / "model")
    ran = CliRunner().invoke(app, ["fit", source, "--missingness", "y", "--epochs", "3", "--out", folder])
    assert ran.exit_code == 0, ran.output
    assert load(folder).schema_["y (missing)"].kind == "bernoulli"
    ran = CliRunner().invoke(app, ["impute", folder, source, "--out", str(tmp_path / "filled.csv")])
    assert ran.exit_code == 0, ran.output
    filled = pd.read_csv(tmp_path / "filled.csv")
    assert list(filled.columns) == ["y", "x", "z"]
    assert not filled.isna().any(axis=None)
