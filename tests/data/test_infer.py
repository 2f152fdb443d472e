"""The kind of each column, its reason, and declarations that win over it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import ASIDE, Column, Schema, infer_schema

N = 200


def guess(values, name="c", dtype=None):
    return infer_schema(pd.DataFrame({name: pd.Series(values, dtype=dtype)}))[name]


def cycle(*values):
    return [values[i % len(values)] for i in range(N)]


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([True, False, None, True], (False, True)),
        (["yes", "no", "yes", None], ("no", "yes")),
        (["Y", "N", "Y"], ("N", "Y")),
        (["positive", "negative", "negative"], ("negative", "positive")),
        (["male", "female", "male"], ("female", "male")),
        (["case", "control", "case"], ("control", "case")),
        (["+", "-", "+"], ("-", "+")),
        (["abnormal", "normal", "normal"], ("normal", "abnormal")),
        (["high", "low", "low"], ("low", "high")),
        (["a", "b", "a"], ("a", "b")),
        (["Ch", "No", "No"], ("No", "Ch")),
        (["no", "Steady", "no"], ("no", "Steady")),
        ([2, 1, 1, 2], (1, 2)),
        ([0.0, 1.0, np.nan, 1.0], (0, 1)),
        ([10, 9, 9], (9, 10)),
        (["10", "9", "9"], ("9", "10")),
        ([0.25, 0.75, 0.75], (0.25, 0.75)),
    ],
)
def test_two_values_are_bernoulli_with_the_yes_second(values, levels):
    column = guess(values)
    assert column.kind == "bernoulli"
    assert column.levels == levels
    assert [type(level) for level in column.levels] == [type(level) for level in levels]
    assert column.reason.startswith("two values: ")


def test_reasons_name_the_values_in_plain_words():
    assert guess(["yes", "no", "no"]).reason == "two values: no, yes"
    assert guess(cycle(*range(10))).reason.startswith("whole numbers, 10 distinct values, few and small")


def test_an_ordered_category_of_two_keeps_its_order():
    values = pd.Categorical(["yes", "no", "no"], categories=["yes", "no"], ordered=True)
    assert guess(values).levels == ("yes", "no")


def test_two_lone_numbers_are_not_yet_a_yes_or_no():
    assert guess([3.5, 7.25]).kind == "gaussian"
    assert guess([0, 1]).kind == "bernoulli"


@pytest.mark.parametrize("dtype", ["str", "category", "object", "string"])
def test_repeated_text_is_categorical(dtype):
    column = guess(cycle("c", "a", "b"), dtype=dtype)
    assert (column.kind, column.levels) == ("categorical", ("a", "b", "c"))
    assert column.reason == "3 levels: a, b, c"
    assert column.dtype == dtype


def test_ordered_categories_are_ordinal_in_their_order():
    values = pd.Categorical(cycle("mild", "severe", "none"), categories=["none", "mild", "severe"], ordered=True)
    column = guess(values)
    assert column.levels == ("none", "mild", "severe")
    assert column.kind == "ordinal"
    assert column.reason == "3 levels in order: none, mild, severe"


def test_ordinal_needs_an_order_and_three_levels():
    words = pd.DataFrame({"stage": cycle("mild", "severe", "none")})
    with pytest.raises(DataError, match="ordinal needs an order; give levels"):
        infer_schema(words, {"stage": "ordinal"})
    given = infer_schema(words, {"stage": {"kind": "ordinal", "levels": ["none", "mild", "severe"]}})
    assert given["stage"].levels == ("none", "mild", "severe")
    assert infer_schema(pd.DataFrame({"grade": cycle(3, 1, 2)}), {"grade": "ordinal"})["grade"].levels == (1, 2, 3)
    with pytest.raises(DataError, match="ordinal needs at least 3 levels"):
        infer_schema(pd.DataFrame({"grade": cycle(3, 1)}), {"grade": "ordinal"})


def test_a_category_of_numbers_is_categorical():
    assert guess(pd.Categorical(cycle(3, 1, 20))).levels == (1, 3, 20)


def test_counts_are_poisson(rng):
    for values in (rng.poisson(2, N), rng.poisson(2, N).astype(float), cycle(*range(10)), rng.poisson(20, 2000)):
        assert guess(values).kind == "poisson"
    few = guess(cycle(0, 1, 2))
    assert few.kind == "poisson"
    assert 'declare it "categorical"' in few.reason


def test_a_long_tail_of_counts_is_still_poisson(rng):
    counts = np.append(rng.poisson(3, N), 76)
    assert guess(counts).kind == "poisson"


@pytest.mark.parametrize("low_high", [(18, 95), (40, 65), (50, 140), (-3, 3)])
def test_whole_numbers_that_are_no_counts_are_gaussian(rng, low_high):
    column = guess(rng.integers(*low_high, N))
    assert column.kind == "gaussian"
    assert column.reason.startswith("whole numbers, ")


def test_codes_that_are_not_counts_say_how_to_declare_them():
    column = guess(cycle(1, 2, 3, 4, 5, 3, 3, 3))
    assert column.kind == "gaussian"
    assert 'declare it "categorical"' in column.reason


def test_proportions_are_beta_and_other_numbers_gaussian(rng):
    assert guess(rng.uniform(size=N)).kind == "beta"
    assert guess(np.append(rng.uniform(size=N), [0.0, 1.0])).kind == "beta"
    assert guess(rng.beta(2, 30, size=N)).kind == "beta"
    assert guess(rng.uniform(size=N) + 0.01 + (np.arange(N) == 5)).kind == "gaussian"
    assert guess(rng.normal(size=N)).kind == "gaussian"
    assert guess(cycle(0.0, 0.25, 0.5, 1.0)).kind == "gaussian"


def test_many_zeros_and_a_long_tail_are_amounts(rng):
    amounts = np.exp(2 * rng.normal(size=10 * N) + 3) * (rng.random(10 * N) < 0.3)
    assert guess(amounts).kind == "zero_lognormal"
    assert guess(np.rint(amounts)).kind == "zero_lognormal"


def test_small_amounts_with_a_long_tail_are_no_proportions(rng):
    assert guess(np.minimum(0.05 * np.exp(0.6 * rng.normal(size=N)), 0.9)).kind == "lognormal"


def test_percent_by_name_hints_at_bounds(rng):
    assert "bounds = [0, 100]" in guess(rng.uniform(0, 100, N), name="sat_pct").reason
    assert "bounds" not in guess(rng.uniform(0, 100, N), name="weight").reason


def test_a_long_right_tail_is_lognormal_with_or_without_zeros(rng):
    skewed = np.exp(rng.normal(size=N))
    assert guess(skewed).kind == "lognormal"
    assert guess(np.round(100 * np.exp(2 * rng.normal(size=N))) + 1).kind == "lognormal"
    column = guess(np.append(np.exp(2 * rng.normal(size=10 * N)), 0.0))
    assert column.kind == "zero_lognormal"
    assert "a few of the cells zero" in column.reason
    assert guess(5 + rng.normal(size=N) / 2).kind == "gaussian"
    assert guess(np.append(np.abs(2 + rng.normal(size=N)), 0.0)).kind == "gaussian"


def test_a_heap_of_zeros_is_no_gaussian(rng):
    scores = rng.choice([0, 9, 26, 37, 41, 44, 55, 61, 89, 94, 100], N, p=[0.6, *[0.04] * 10])
    assert guess(scores).kind == "zero_lognormal"
    assert "of the cells zero" in guess(scores).reason


def test_values_far_out_are_student_t(rng):
    heavy = rng.standard_t(2.2, size=40 * N)
    assert guess(heavy).kind == "student_t"
    assert guess(np.rint(100 * heavy)).kind == "student_t"
    assert guess(np.where(rng.random(40 * N) < 0.6, 1.5, heavy)).kind == "gaussian"  # a heap, not a tail
    assert guess(rng.standard_t(20, size=40 * N)).kind == "gaussian"


def test_numbers_stored_as_text(rng):
    column = guess([f"{v:.3f}" for v in rng.normal(size=N)])
    assert column.kind == "gaussian"
    assert column.reason.startswith("numbers stored as text")
    assert guess([str(v) for v in rng.poisson(2, N)]).kind == "poisson"
    assert guess(cycle("01", "02", "03")).kind == "categorical"


@pytest.mark.parametrize(
    ("name", "values", "word"),
    [
        ("c", [None] * N, "no observed cell"),
        ("c", [np.nan] * N, "no observed cell"),
        ("c", ["  "] * N, "no observed cell"),
        ("c", [7] * N, "constant"),
        ("c", ["x", None] * (N // 2), "constant"),
        ("c", [f"P{i:03d}" for i in range(N)], "ids"),
        ("c", range(1000, 1000 + N), "ids"),
        ("c", range(N, 0, -1), "ids"),
        ("patient_id", np.random.default_rng(0).permutation(N) * 37, "ids"),
        ("PatientID", np.random.default_rng(0).permutation(N) + 0.0, "ids"),
        ("S.No", [4, 9, 2, 7], "ids"),
        ("Unnamed: 0", [0, 1, 2], "ids"),
        ("patient_nbr", np.append(np.arange(150) * 31, np.arange(50) * 31), "ids"),
        ("c", [f"seen on ward {i}, stable" for i in range(N)], "free text"),
        ("c", pd.date_range("2020-01-01", periods=N), "dates"),
        ("c", [f"2020-01-{i % 28 + 1:02d}" for i in range(N)], "dates"),
        ("c", [f"2020-01-{i % 28 + 1:02d} 08:30:00" for i in range(N)], "dates"),
        ("c", [f"{i % 28 + 1}.{i % 12 + 1}.2020" for i in range(N)], "dates"),
        ("c", [f"{i % 28 + 1} Mar 2020" for i in range(N)], "dates"),
        ("c", pd.to_timedelta(range(N), unit="h"), "dates or times"),
        ("c", [f"level {i % 60}" for i in range(600)], "60 levels, more than 50"),
        ("c", [f"{i},5" for i in range(N)], "decimal comma"),
        ("c", [f"{i}%" for i in range(N)], "% sign"),
        ("c", [*(str(i / 7) for i in range(N)), "n.d."], "the first in row 200"),
    ],
)
def test_columns_that_no_model_can_use_are_set_aside(name, values, word):
    column = guess(values, name)
    assert column.kind == ASIDE
    assert word in column.reason


def test_a_short_rising_column_is_not_an_id():
    assert guess([150, 160, 171, 180]).kind == "gaussian"


def test_an_integer_column_named_like_a_count_is_not_an_id(rng):
    assert guess(rng.poisson(3, N), name="number_of_visits").kind == "poisson"
    assert guess(rng.poisson(3, N), name="ward_id").kind == "poisson"


def test_one_reason_for_each_column_and_the_tables_order(mixed_frame):
    schema = infer_schema(mixed_frame)
    assert schema.names == tuple(mixed_frame.columns)
    assert [c.kind for c in schema] == [ASIDE, "gaussian", "bernoulli", "poisson", "beta", "categorical"]
    assert all(column.reason for column in schema)


def test_polars_and_pandas_infer_alike(mixed_frame):
    pl = pytest.importorskip("polars")
    other = pl.DataFrame(
        {
            name: mixed_frame[name].astype(object).where(mixed_frame[name].notna(), None).tolist()
            for name in mixed_frame.columns
        },
        strict=False,
    )
    strip = lambda schema: [(c.name, c.kind, c.levels, c.reason) for c in schema]  # noqa: E731
    assert strip(infer_schema(other)) == strip(infer_schema(mixed_frame))


def test_arrays_are_inferred_too(rng):
    schema = infer_schema(np.column_stack([rng.normal(size=N), rng.poisson(2, N), rng.integers(0, 2, N)]))
    assert [c.kind for c in schema] == ["gaussian", "poisson", "bernoulli"]


# -- declarations ------------------------------------------------------------------------------------------------------


def test_declared_kinds_win_in_every_form(tmp_path, rng):
    frame = pd.DataFrame(
        {"stage": rng.integers(1, 5, N), "sat": rng.uniform(50, 100, N), "age": rng.integers(18, 90, N)}
    )
    declared = {"stage": "categorical", "sat": {"kind": "beta", "bounds": [0, 100]}}
    schema = infer_schema(frame, declared)
    assert schema["stage"].levels == (1, 2, 3, 4)
    assert schema["sat"].bounds == (0.0, 100.0)
    assert schema["age"].kind == "gaussian"
    assert schema["stage"].reason == "declared"
    assert schema["stage"].dtype == "int64"
    path = tmp_path / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8")
    for form in (schema, {c.name: c for c in schema}):
        assert infer_schema(frame, form) == schema
    for form in (path, str(path)):
        again = infer_schema(frame, form)
        assert [replace(c, reason="") for c in again] == [replace(c, reason="") for c in schema]
        assert {c.reason for c in again} == {"declared"}


def test_settings_alone_keep_the_inferred_kind():
    frame = pd.DataFrame({"c": ["a", "b", "a", None]})
    assert infer_schema(frame, {"c": {"levels": ["b", "a"]}})["c"].levels == ("b", "a")


def test_an_override_as_aside_spares_the_column_any_check():
    frame = pd.DataFrame({"bad": pd.Series([{}, [1], np.inf], dtype=object), "ok": [1.5, 2.5, 4.0]})
    schema = infer_schema(frame, {"bad": ASIDE})
    assert schema["bad"].kind == ASIDE
    assert schema["ok"].kind == "gaussian"


def test_a_declared_column_without_any_cell_is_set_aside():
    frame = pd.DataFrame({"a": [1.5, 2.0], "b": [np.nan, np.nan]})
    column = infer_schema(frame, {"b": "gaussian"})["b"]
    assert (column.kind, column.reason) == (ASIDE, "no observed cell")


def test_trials_from_another_column_set_that_column_aside(rng):
    frame = pd.DataFrame({"hits": rng.binomial(10, 0.3, N), "shots": np.full(N, 10)})
    schema = infer_schema(frame, {"hits": {"kind": "binomial", "trials": "shots"}})
    assert schema["shots"].reason == "holds the trials of 'hits'"
    assert [c.name for c in schema.used] == ["hits"]
    assert infer_schema(frame, {"hits": {"kind": "binomial", "trials": 10}})["hits"].trials == 10


def test_zero_alone_may_be_declared_bernoulli():
    frame = pd.DataFrame({"zero": [0, 0], "flag": [True, True]})
    schema = infer_schema(frame, {"zero": "bernoulli", "flag": "bernoulli"})
    assert schema["zero"].levels == (0, 1)
    assert schema["flag"].levels == (False, True)


def test_a_schema_can_be_built_by_hand():
    schema = Schema((Column("a", "categorical", levels=("x", "y", "z")),))
    assert infer_schema(pd.DataFrame({"a": ["x", "y", None]}), schema)["a"].levels == ("x", "y", "z")


@pytest.mark.parametrize("overrides", [3, ["a"], ("a", "b")])
def test_overrides_of_another_type_are_refused(overrides):
    with pytest.raises(DataError, match="a schema is a mapping"):
        infer_schema(pd.DataFrame({"a": [1.5, 2.0]}), overrides)


def test_setting_a_column_aside_in_a_file_may_leave_its_levels_behind(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text('[[column]]\nname = "a"\nkind = "aside"\nlevels = ["x", "y"]\n', encoding="utf-8")
    schema = infer_schema(pd.DataFrame({"a": ["x", "y", "x"], "b": [1.5, 2.5, 9.0]}), path)
    assert schema["a"] == Column("a", ASIDE, "declared", dtype="str")


def test_columns_with_numbers_for_names_are_declared_by_them():
    assert infer_schema(pd.DataFrame({0: [1, 2, 3, 1], 1: [1.5, 2, 9, 4]}), {0: "categorical"})["0"].levels == (1, 2, 3)


@pytest.mark.parametrize(
    ("cells", "finding"),
    [
        (["900", "1,200", "1,350", "12,000"], "thousands separators (the first in row 1)"),
        (["$900", "$1,200.50", "$15", "$7"], "currency sign (the first in row 0)"),
        (["900", "12 EUR", "13 EUR", "14"], "currency sign (the first in row 1)"),
        (["yes", "no", "Yes", "1"], "yes and no in several spellings (the first in row 2)"),
        (["1", "0", "true", "no"], "yes and no in several spellings (the first in row 2)"),
    ],
)
def test_numbers_and_truth_values_written_otherwise_are_no_levels(cells, finding):
    column = guess(cells * 10)
    assert column.kind == ASIDE
    assert finding in column.reason
    assert "to use" in column.reason


@pytest.mark.parametrize("cells", [["yes", "no"], ["a", "no", "yes"], ["y", "n", "2"], ["10", "20 x", "$"]])
def test_ordinary_levels_stay_levels(cells):
    assert guess(cells * 10).kind != ASIDE


def test_a_level_that_spells_a_gap_is_named():
    assert "if n/a is a gap, leave the cell empty" in guess(["yes", "no", "n/a"] * 10).reason
