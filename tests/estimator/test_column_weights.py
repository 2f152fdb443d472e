"""Weights of columns at the estimator: many noise columns do not drown a few, and weights survive saving."""

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP, load

N, FEW, MANY = 150, 5, 60
SETTINGS = {"n_inducing": 8, "max_epochs": 40, "calibrate": False, "random_state": 0}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Five columns of one signal, sixty of another that nobody asked for."""
    rng = np.random.default_rng(4)
    signal, other = rng.normal(size=(2, N, 1))
    few = signal * rng.choice([-1, 1], FEW) + 0.5 * rng.normal(size=(N, FEW))
    many = other * rng.choice([-1, 1], MANY) + 0.5 * rng.normal(size=(N, MANY))
    names = [*(f"lab_{d}" for d in range(FEW)), *(f"dx_{d}" for d in range(MANY))]
    return pd.DataFrame(np.concatenate([few, many], 1), columns=names).assign(signal=signal[:, 0])


def explained(model: PluriGP, table: pd.DataFrame) -> float:
    """Share of the signal's variance that the positions explain."""
    x = model.transform(table)
    return float(np.corrcoef(x[:, 0], table["signal"])[0, 1] ** 2)


@pytest.fixture(scope="module")
def balanced(table) -> PluriGP:
    names = {view: [name for name in table if name.startswith(view)] for view in ("lab", "dx")}
    weights = dict.fromkeys(names["dx"], 0.5)
    return PluriGP(1, schema={"signal": "aside"}, views=names, column_weights=weights, **SETTINGS).fit(table)


def test_a_small_view_is_not_drowned(table, balanced):
    plain = PluriGP(1, schema={"signal": "aside"}, **SETTINGS).fit(table)
    assert explained(plain, table) < 0.2
    assert explained(balanced, table) > 0.8


def test_weights_are_saved_with_the_model(table, balanced, tmp_path):
    opened = load(balanced.save(tmp_path / "model"))
    assert opened.schema_["dx_0"].weight == 0.5 * FEW / MANY
    assert opened.schema_["lab_0"].weight == 1
    assert opened.views == balanced.views
    np.testing.assert_array_equal(opened.impute(table.head(5)), balanced.impute(table.head(5)))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"views": ["a"]}, "views=.* must be a mapping such as"),
        ({"views": {"labs": "lab_0"}}, r"views\['labs'\]='lab_0' must be a list of column names"),
        ({"column_weights": 3}, "column_weights=3 must be a mapping such as"),
        ({"column_weights": {"gone": 1.0}}, "column_weights names column 'gone'"),
    ],
)
def test_wrong_roles_are_refused_at_the_door(table, roles, message):
    with pytest.raises(ValueError, match=message):
        PluriGP().set_params(**roles).fit(table)
