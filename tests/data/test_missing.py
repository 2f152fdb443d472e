"""Values that a column declares missing: checked, kept by every form of a schema, and read as gaps everywhere."""

import json
import tomllib
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp import PluriGP, PluriImputer, load
from plurigp.core.types import DataError
from plurigp.data import Coder, Column, Schema, infer_schema, to_rows
from plurigp.data.cells import cells_of, without_values
from plurigp.data.column import MAX_MISSING, MAX_MISSING_TEXT
from plurigp.data.rows import MAX_STACKED_ROWS
from plurigp.data.schema import load_schema
from plurigp.estimator.compare import candidates

VALUE = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
)


def table(n: int = 60) -> pd.DataFrame:
    """999 and -1 for gaps among counts, 9 among levels, "unknown" among words and numbers."""
    rng = np.random.default_rng(2)
    factor = rng.normal(size=n)
    visits = rng.poisson(np.exp(1 + 0.5 * factor))
    visits[[3, 8]], visits[5] = 999, -1
    stage = np.where(factor > 0, 2, 1)
    stage[::7] = 9
    age = (50 + 10 * factor).round(1).astype(object)
    age[[0, 4]] = "unknown"
    return pd.DataFrame({"visits": visits, "stage": stage, "age": age, "lab": factor + rng.normal(size=n)})


DECLARED = {
    "visits": {"kind": "poisson", "missing": [999, -1]},
    "stage": {"kind": "bernoulli", "missing": [9]},
    "age": {"missing": ["unknown"]},
}


def emptied() -> pd.DataFrame:
    """The same table with gaps where it says so otherwise."""
    frame = table().astype({"visits": float, "stage": float})
    frame.loc[[3, 8, 5], "visits"] = np.nan
    frame.loc[frame["stage"] == 9, "stage"] = np.nan
    return frame.assign(age=frame["age"].replace("unknown", None).astype(float))


@pytest.fixture(scope="module")
def model():
    return PluriGP(2, schema=DECLARED, n_inducing=4, max_epochs=2, calibrate=False, random_state=0).fit(table())


# --- what may be declared ---


@pytest.mark.parametrize(
    "missing",
    [999, "999", None, True, {"a": 1}, {999}, b"999", [True], [None], [float("nan")], [float("inf")], [10**400], [[1]],
     [""], [" "], ["x" * (MAX_MISSING_TEXT + 1)], [{}], [pd.Timestamp("1900-01-01")], list(range(MAX_MISSING + 1)),
     np.array(999), np.array([[999]]), [1j]],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_anything_but_a_short_list_of_texts_and_numbers_is_refused(missing):
    with pytest.raises(DataError, match=r"column 'visits': (missing must be a list|a missing value must be)") as caught:
        infer_schema(table(), {"visits": {"missing": missing}})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "[true]",
        "[nan]",
        "[inf]",
        "[[999]]",
        "[1900-01-01]",
        '[""]',
        "{a = 1}",
        "999",
        f"[{'9' * 400}]",
        "[1e999]",
    ],
)
def test_a_hostile_schema_file_is_refused_by_name(text, tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(f'[[column]]\nname = "visits"\nkind = "poisson"\nmissing = {text}\n')
    with pytest.raises(DataError, match=r"schema\.toml: column 'visits': .*missing") as caught:
        load_schema(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("levels", "missing"), [((1, 2, 9), [9]), (("a", "b", "9"), [9]), (("a", "b", "?"), ["?"])])
def test_a_level_cannot_be_missing_too(levels, missing):
    declared = {"name": "x", "kind": "categorical", "levels": levels, "missing": missing}
    with pytest.raises(DataError, match=r"column 'x': .* is both a level and missing; remove it from one of the two"):
        Schema.from_dict({"columns": [declared]})


# --- kept ---


@given(st.lists(VALUE, max_size=5), st.sampled_from(["gaussian", "poisson", "categorical"]))
def test_every_form_of_a_schema_keeps_it(values, kind):
    schema = Schema((Column("x", kind, missing=tuple(values)), Column("y", "gaussian")))
    for again in (
        Schema.from_toml(schema.to_toml()),
        Schema.from_dict(json.loads(json.dumps(schema.to_dict()))),
        schema.override({"y": "student_t"}),
        Schema.from_toml(schema.to_toml()).override({"y": schema["y"]}),
    ):
        assert again["x"].missing == schema["x"].missing
        assert list(map(type, again["x"].missing)) == list(map(type, values))


def test_files_without_it_stay_as_they_were():
    schema = Schema((Column("x", "gaussian"),))
    assert "missing" not in schema.to_toml()
    assert "missing" not in schema.to_dict()["columns"][0]


def test_a_saved_model_keeps_it_and_reads_by_it(model, tmp_path):
    again = load(model.save(tmp_path / "model"))
    assert again.schema_ == model.schema_
    assert again.schema_["visits"].missing == (999, -1)
    np.testing.assert_array_equal(again.transform(table()), model.transform(emptied()))


def test_a_suspected_code_is_a_hint_that_only_its_mark_keeps_from_being_a_declaration():
    frame = table().drop(columns=["age"])
    text = infer_schema(frame).to_toml({"visits": [999.0, -1.0]})
    assert "# missing = [999, -1]  # remove the first #" in text
    assert "missing" not in tomllib.loads(text)["column"][0]
    assert Schema.from_toml(text.replace("# missing", "missing"))["visits"].missing == (999, -1)


# --- read as gaps ---


def test_a_table_with_declared_values_is_coded_as_one_with_gaps():
    schema = infer_schema(table(), DECLARED)
    assert {c.name: c.kind for c in schema} == {"visits": "poisson", "stage": "bernoulli", "age": "gaussian",
                                                "lab": "gaussian"}  # fmt: skip
    assert schema["stage"].levels == (1, 2)
    coder = Coder.fit(table(), schema)
    plain = infer_schema(emptied(), {"visits": "poisson", "stage": "bernoulli"})
    expected = Coder.fit(emptied(), plain).table(emptied())
    coded = coder.table(table())
    np.testing.assert_array_equal(coded.seen, expected.seen)
    np.testing.assert_array_equal(coded.values, expected.values)
    few = table().head(MAX_STACKED_ROWS)
    np.testing.assert_array_equal(coder.table(few).seen, expected.seen[: len(few)])


def test_a_kind_is_proposed_from_the_other_cells():
    kinds = {"visits": {"missing": [999, -1]}}
    with warnings.catch_warnings(action="error"):
        coder = Coder.fit(table(), infer_schema(table(), kinds))
    assert coder.schema["visits"].kind == "poisson"
    assert infer_schema(table())["visits"].kind != "poisson"


def test_the_column_read_together_with_it_has_the_same():
    frame = pd.DataFrame({"k": [1.0, 2.0, -9.0, 3.0], "n": [4.0, 5.0, -9.0, 6.0]})
    with pytest.raises(DataError, match="is not a whole number from 0 up"):
        infer_schema(frame, {"k": {"kind": "binomial", "trials": "n"}})
    schema = infer_schema(frame, {"k": {"kind": "binomial", "trials": "n", "missing": [-9]}})
    assert Coder.fit(frame, schema).table(frame).seen.ravel().tolist() == [True, True, False, True]
    assert schema.with_gaps(frame).isna().to_numpy().tolist()[2] == [True, True]
    with pytest.raises(DataError, match=r"column 'n': holds the trials of 'k' and .*; declare these values there"):
        infer_schema(frame, {"k": {"kind": "binomial", "trials": "n"}, "n": {"kind": "aside", "missing": [-9]}})


def test_limits_beside_a_declared_value():
    cells = ["<0.5", "1.5", "999", "2.5", ">9", "3"]
    schema = infer_schema(pd.DataFrame({"crp": cells}), {"crp": {"kind": "censored_gaussian", "missing": [999]}})
    assert to_rows(pd.DataFrame({"crp": cells})).observed(schema["crp"]).seen.tolist() == [
        True,
        True,
        False,
        *[True] * 3,
    ]


def test_a_covariate_with_a_declared_value_has_a_gap():
    schema = infer_schema(table(), {**DECLARED, "stage": {**DECLARED["stage"], "covariate": True}})
    with pytest.raises(DataError, match="column 'stage', row 0: a covariate has a gap"):
        Coder.fit(table(), schema).table(table())


def test_other_kinds_are_compared_without_the_declared_values():
    rows, schema = to_rows(table()), infer_schema(table(), DECLARED)
    assert set(candidates(schema["visits"], rows)) >= {"poisson", "negative_binomial"}


@pytest.mark.parametrize("dtype", ["int64", "float64", "object", "str", "Int64", "category", "Float32"])
def test_a_number_is_found_in_any_dtype(dtype):
    cells = cells_of(pd.Series([1, 999, 2, -1], name="x").astype(dtype))
    assert without_values(cells, (999, "-1")).seen.tolist() == [True, False, True, False]
    assert without_values(cells, ()) is cells


def test_gaps_are_filled_and_nothing_else_is_touched(model):
    filled = model.impute(table())
    was = emptied()
    assert not filled.isin([999, "unknown"]).any(axis=None)
    assert (filled["visits"] >= 0).all()
    assert set(filled["stage"]) == {1, 2}
    for name in was:
        seen = was[name].notna()
        assert (filled[name][seen].astype(float) == was[name][seen]).all()
    assert table()["visits"][3] == 999


def test_an_imputer_marks_them(model):
    imputer = PluriImputer(2, schema=DECLARED, second_stage="none", max_epochs=2, add_indicator=True, random_state=0)
    out = imputer.fit_transform(table())
    assert out["missingindicator_visits"].sum() == 3


def test_what_the_command_line_counts_are_gaps(model):
    schema = model.schema_
    assert schema.matching(table()).isna().sum().tolist() == emptied().isna().sum().tolist()
    assert schema.with_gaps(table()).isna().sum().tolist() == emptied().isna().sum().tolist()
    shares = schema.summary(table()).set_index("column")["observed %"]
    assert shares["visits"] == 95.0
    assert "missing 999, -1" in schema.summary().set_index("column")["detail"]["visits"]
