"""Rare levels count as one, in the fit and for new rows, and their names are not kept."""

import json

import numpy as np
import pandas as pd
import pytest

import plurigp
from plurigp import PluriGP
from plurigp.data import Coder, Schema, infer_schema, to_rows
from plurigp.data.pooling import pooled_schema

N = 40


def frame(**more) -> pd.DataFrame:
    ward = np.array(["north"] * 20 + ["south"] * 16 + ["hospice"] * 3 + ["jail"], dtype=object)
    return pd.DataFrame({"ward": ward, "lab": np.linspace(1.0, 9.0, N) ** 1.1, **more})


def pooled(table: pd.DataFrame, least: int, given: object = None) -> Schema:
    rows = to_rows(table)
    return pooled_schema(rows, infer_schema(rows, given), least)


def test_levels_that_few_rows_have_count_as_one():
    column = pooled(frame(), 5)["ward"]
    assert column.levels == ("north", "south", "other")
    assert column.other == "other"
    assert column.reason == "4 levels, 2 of fewer than 5 rows counted as one"
    assert pooled(frame(), 0)["ward"] == infer_schema(frame())["ward"]
    assert pooled(frame(), 1)["ward"] == infer_schema(frame())["ward"]


def test_a_level_of_that_name_keeps_it():
    table = frame()
    table.loc[:9, "ward"] = "other"
    assert pooled(table, 5)["ward"].levels == ("north", "other", "south", "other_")


def test_a_column_of_rare_levels_alone_is_set_aside():
    assert pooled(frame(), 30)["ward"].kind == "aside"


def test_numbers_as_levels_are_left_alone():
    table = frame(code=np.where(np.arange(N) < 38, np.arange(N) % 3, 7))
    given = {"code": "categorical"}
    assert pooled(table, 5, given)["code"].levels == infer_schema(table, given)["code"].levels


def test_new_rows_with_any_other_level_are_read_as_that_one():
    coder = Coder.fit(frame(), pooled(frame(), 5))
    new = pd.DataFrame({"ward": ["jail", "elsewhere", "north", None], "lab": 2.0})
    coded = coder.table(new)
    np.testing.assert_array_equal(coded.values[:3, 0], [2, 2, 0])
    assert coded.seen[:, 0].tolist() == [True, True, True, False]


def test_the_schema_file_holds_it():
    schema = pooled(frame(), 5)
    assert 'other = "other"' in schema.to_toml()
    again = Schema.from_toml(schema.to_toml())["ward"]
    assert (again.levels, again.other) == (schema["ward"].levels, "other")


def test_a_saved_model_names_no_rare_level(tmp_path):
    table = frame()
    table.loc[3, "ward"] = None
    model = PluriGP(1, pool_rare_levels=5, n_inducing=3, max_epochs=1, calibrate=False, random_state=0).fit(table)
    loaded = plurigp.load(model.save(tmp_path / "model"))
    text = (tmp_path / "model" / "model.json").read_text()
    assert "jail" not in text
    assert "hospice" not in text
    assert json.loads(text)["params"]["pool_rare_levels"] == 5
    filled = loaded.impute(table)
    assert filled["ward"].iloc[-1] == "jail"  # an observed cell stays
    assert filled["ward"].iloc[3] in ("north", "south", "other")
    with pytest.raises(ValueError, match="pool_rare_levels=-1 must be a whole number"):
        PluriGP(pool_rare_levels=-1).fit(table)
