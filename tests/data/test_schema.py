"""Schema: changes, dict and TOML round trips, the printed form."""

import json
import tomllib

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.core.types import DataError
from plurigp.data import ASIDE, Column, Schema
from plurigp.data.schema import load_schema

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
LEVEL = TEXT | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
NASTY = [
    'a"b',
    "a\\b",
    "a\nb",
    "\t",
    "\x00\x1f\x7f\x85",
    "é€😀",
    "\u2028\ufeff",
    "#x",
    "[[column]]",
    "'''",
    '"""',
    " = ",
]


@st.composite
def entries(draw):
    """Fields of some columns; the columns themselves are built in the tests, outside hypothesis' drawing."""
    names = draw(st.lists(TEXT.filter(str.strip), min_size=1, max_size=5, unique=True))
    return [{"name": name, "reason": draw(st.just("") | TEXT), **draw(fields())} for name in names]


@st.composite
def fields(draw):
    kind = draw(st.sampled_from(["gaussian", "poisson", "beta", "bernoulli", "categorical", "binomial", ASIDE]))
    if kind == "beta":
        low = draw(st.none() | st.floats(-1e6, 1e6))
        return {"kind": kind, "bounds": None if low is None else (low, low + 7.25)}
    if kind == "binomial":
        return {"kind": kind, "trials": draw(st.integers(1, 10**9))}
    n = {"bernoulli": 2, "categorical": 4}.get(kind, 0)
    return {"kind": kind, "levels": tuple(draw(st.lists(LEVEL, min_size=n, max_size=n, unique=True)))}


def build(drawn):
    return Schema(tuple(Column(**entry) for entry in drawn))


@given(entries())
def test_toml_gives_back_every_name_and_level(drawn):
    schema = build([entry | {"reason": ""} for entry in drawn])
    assert Schema.from_toml(build(drawn).to_toml()) == schema
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    for old, new in zip(schema, again, strict=True):
        assert [type(level) for level in old.levels] == [type(level) for level in new.levels]


@given(entries())
def test_dict_gives_back_the_schema_through_json(drawn):
    schema = build(drawn)
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@pytest.mark.parametrize("text", NASTY)
def test_toml_survives_hostile_text(text):
    schema = Schema((Column(text + "!", "bernoulli", text, levels=(text, "other")),))
    written = schema.to_toml()
    assert Schema.from_toml(written)[text + "!"].levels == (text, "other")
    assert tomllib.loads(written)["column"][0]["levels"][0] == text


def test_text_that_no_file_can_hold_is_an_error():
    with pytest.raises(DataError, match="not valid Unicode"):
        Schema((Column("\ud800", "gaussian"),)).to_toml()


def test_dtype_goes_through_the_dict_and_not_through_toml():
    schema = Schema((Column("a", "gaussian", dtype="Int64"),))
    assert Schema.from_dict(schema.to_dict()) == schema
    assert "dtype" not in schema.to_toml()


def test_toml_holds_only_what_belongs_to_the_kind():
    text = Schema((Column("a", "poisson"), Column("b", "beta", bounds=(0.0, 100.0)))).to_toml()
    first, second = tomllib.loads(text)["column"]
    assert first == {"name": "a", "kind": "poisson"}
    assert second == {"name": "b", "kind": "beta", "bounds": [0.0, 100.0]}
    assert "# " in text


def test_used_aside_and_lookup():
    schema = Schema((Column("id", ASIDE), Column("age", "gaussian"), Column("sex", "bernoulli")))
    assert schema.names == ("id", "age", "sex")
    assert [c.name for c in schema.used] == ["age", "sex"]
    assert [c.name for c in schema.aside] == ["id"]
    assert len(schema) == 3
    assert schema["age"].kind == "gaussian"
    assert "age" in schema
    assert "weight" not in schema
    with pytest.raises(KeyError, match="Did you mean 'age'"):
        schema["agee"]


def test_override_drops_what_the_new_kind_does_not_have():
    schema = Schema((Column("a", "bernoulli", "two values", levels=("n", "y"), dtype="str"), Column("b", "poisson")))
    as_real = schema.override({"a": "gaussian"})["a"]
    assert as_real == Column("a", "gaussian", "declared", dtype="str")
    assert schema.override({"a": "categorical"})["a"].levels == ("n", "y")
    assert schema.override({"a": {"levels": ["y", "n"]}})["a"].levels == ("y", "n")
    assert schema.override({}) == schema
    assert schema["a"].levels == ("n", "y")


def test_override_moves_trials_aside():
    schema = Schema((Column("hits", "poisson"), Column("shots", "poisson", dtype="int64")))
    changed = schema.override({"hits": {"kind": "binomial", "trials": "shots"}})
    assert changed["shots"] == Column("shots", ASIDE, "holds the trials of 'hits'", dtype="int64")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agee": "gaussian"}, "column 'agee', which is not in the table.*Did you mean 'age'"),
        ({"age": "gausian"}, "unknown kind 'gausian'; known: gaussian, .*Did you mean 'gaussian'"),
        ({"age": {"kind": "beta", "bound": [0, 1]}}, "unknown setting 'bound'.*Did you mean 'bounds'"),
        ({"age": {"kind": "beta", "bounds": [1, 0]}}, "bounds must be two numbers, the lower one first"),
        ({"age": {"kind": "beta", "bounds": [0, float("inf")]}}, "bounds must be two numbers"),
        ({"age": {"kind": "beta", "bounds": "0-1"}}, "bounds must be two numbers"),
        ({"age": {"kind": "binomial", "trials": 0}}, "trials must be a whole number above 0"),
        ({"age": {"kind": "binomial", "trials": True}}, "trials must be a whole number above 0"),
        ({"age": {"kind": "binomial", "trials": "n"}}, "trials are in column 'n', which is not in the table"),
        ({"age": {"kind": "categorical", "levels": "abc"}}, "levels must be a list"),
        ({"age": {"kind": "categorical", "levels": ["a", "a"]}}, "one value twice"),
        ({"age": {"kind": "categorical", "levels": ["a", None]}}, "a level must be text"),
        ({"age": {"kind": "categorical", "levels": [float("nan")]}}, "a level must be text"),
        ({"age": {"kind": "gaussian", "levels": ["a", "b"]}}, "levels does not belong to kind 'gaussian'"),
        ({"age": {"kind": 3}}, "kind must be text"),
        ({"age": 3}, "declare it as a kind or as a mapping"),
    ],
)
def test_wrong_declarations_are_named(changes, message):
    with pytest.raises(DataError, match=message) as caught:
        Schema((Column("age", "gaussian"),)).override(changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[column]\nname = 3", r"s\.toml: not valid TOML: .*line 1"),
        ('[[column]]\nname = "a"\nkind = "x', r"s\.toml: not valid TOML: .*end of document"),
        ("[[column]]\nkind = 'gaussian'", r"s\.toml: a column of the schema has no name"),
        ("[[column]]\nname = 'a'", r"s\.toml: column 'a': has no kind"),
        ("[[column]]\nname = 'a'\nkind = 'real'", r"s\.toml: column 'a': unknown kind 'real'; known: "),
        ("[[column]]\nname = 'a'\nkind = 'beta'\nlevel = []", r"unknown setting 'level'"),
        ("[[columns]]\nname = 'a'", r"s\.toml: 'columns' is not expected here"),
        ("column = 3", r"s\.toml: 'column' is not expected"),
        ("[[column]]\nname = 'a'\nkind = 'beta'\n" * 2, r"s\.toml: the schema names column 'a' twice"),
    ],
)
def test_a_toml_file_that_is_wrong_is_named_with_its_fault(tmp_path, text, message):
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        load_schema(path)
    assert "\n" not in str(caught.value)


def test_a_schema_file_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot be read as a schema"):
        load_schema(tmp_path / "none.toml")
    with pytest.raises(DataError, match="cannot be read as a schema"):
        load_schema(tmp_path)
    with pytest.raises(DataError, match="cannot be read as a schema"):
        load_schema("a\0b")
    (tmp_path / "latin.toml").write_bytes("name = 'é'".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        load_schema(tmp_path / "latin.toml")


@pytest.mark.parametrize("saved", [{}, {"columns": 3}, {"columns": [3]}, {"columns": [{"name": "a"}]}])
def test_a_saved_schema_that_is_broken(saved):
    with pytest.raises(DataError):
        Schema.from_dict(saved)


def test_names_must_differ():
    with pytest.raises(DataError, match="names column 'a' twice"):
        Schema((Column("a", "gaussian"), Column("a", "beta")))


def test_summary_is_a_table_to_print():
    schema = Schema(
        (
            Column("a", "bernoulli", "two values", levels=("no", "yes")),
            Column("b", "beta", bounds=(0.0, 100.0)),
            Column("c", "binomial", trials="n"),
            Column("n", ASIDE, "holds the trials of 'c'"),
        )
    )
    table = schema.summary()
    assert table["column"].tolist() == ["a", "b", "c", "n"]
    assert table["detail"].tolist() == ["'no', 'yes'", "from 0 to 100", "out of 'n'", ""]
    frame = pd.DataFrame({"a": ["yes", None], "b": [1.0, 2.0], "c": [1, 2], "n": [3, 3]})
    assert schema.summary(frame)["observed %"].tolist() == [50.0, 100.0, 100.0, 100.0]


def test_summary_prints_every_kind_within_80_characters():
    words = "levels such as " + "much, " * 30
    schema = Schema(
        (
            Column("physician_survival_2_months_" + "long" * 10, "zero_inflated_poisson", words),
            Column("b\nc", "beta", "declared", bounds=(0.0, 100.0)),
            Column("n", ASIDE, "constant"),
        )
    )
    frame = pd.DataFrame({column.name: [1.0, None] for column in schema})
    for table in (schema.summary(), schema.summary(frame)):
        lines = str(table).splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[0].split()[:2] == ["column", "kind"]
        for column in schema:
            assert any(column.kind in line for line in lines)
        text = " ".join(" ".join(lines).split())
        assert words.strip() in text
        assert "b\\nc" in text
        assert "declared: from 0 to 100" in text
    assert str(schema.summary()[["column", "kind"]]).startswith(" ")  # a part of it prints as pandas does


def test_a_deeply_nested_or_huge_schema_is_refused_in_one_line(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 20_000 + "]" * 20_000)
    with pytest.raises(DataError, match=r"deep\.toml: nested too deeply"):
        load_schema(path)
    with path.open("wb") as file:
        file.truncate(60_000_000)
    with pytest.raises(DataError, match=r"deep\.toml: is larger than 50 MB"):
        load_schema(path)
