"""Roles of columns: covariates, weights by name and by view, in all forms of a schema; nonsense is refused."""

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError
from plurigp.data import Coder, Column, Rows, Schema
from plurigp.data import roles as data_roles
from plurigp.data.roles import balanced_weights, covariate_frame

LEVELS = Column("site", "categorical", levels=("A", "B", "C"))
LIMITS = Column("limit", "censored_gaussian")
SCHEMA = Schema((*(Column(name, "gaussian") for name in "abcdef"), Column("id", "aside", "ids"), LEVELS, LIMITS))
FRAME = pd.DataFrame({**{name: [1.0, 2.0, 4.0] for name in "abcdef"}, "id": ["x", "y", "z"]}).assign(
    site=["B", "C", "A"], limit=[1.0, 2.0, 3.0]
)


def with_roles(schema: Schema, roles: dict, frame: pd.DataFrame = FRAME) -> Schema:
    return data_roles.with_roles(schema, roles, Rows(frame))


def weights(schema: Schema) -> dict[str, float]:
    return {column.name: column.weight for column in schema if column.weight != 1}


def test_views_count_alike_and_no_weight_exceeds_one():
    views = {"labs": ["a", "b"], "dx": ["c", "d", "e", "f", "id"]}
    assert balanced_weights(SCHEMA, views) == {"a": 1, "b": 1, "c": 0.5, "d": 0.5, "e": 0.5, "f": 0.5}
    given = with_roles(SCHEMA, {"views": views, "column_weights": {"c": 0.2, "b": 3}})
    assert weights(given) == {"b": 3, "c": 0.1, "d": 0.5, "e": 0.5, "f": 0.5}
    assert with_roles(given, {"views": views, "column_weights": {"c": 0.2, "b": 3}}) == given
    assert with_roles(SCHEMA, {}) == SCHEMA


def test_weights_are_written_and_read_again():
    given = with_roles(SCHEMA, {"column_weights": {"c": 0.25}})
    assert "weight = 0.25" in given.to_toml()
    assert given.summary().set_index("column").loc["c", "detail"] == "weight 0.25"
    assert SCHEMA.to_toml().count("weight") == 0
    assert Schema.from_toml(given.to_toml())["c"].weight == 0.25
    assert Schema.from_dict(given.to_dict()) == given
    assert given.override({"c": "student_t"})["c"].weight == 0.25


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"column_weights": {"a": 0}}, "column 'a': weight must be a number above 0"),
        ({"column_weights": {"a": "much"}}, "column 'a': weight must be a number above 0"),
        ({"column_weights": {"ab": 1}}, "column_weights names column 'ab', which is not in the table"),
        ({"views": {"labs": ["a", "x"]}}, "view 'labs' names column 'x', which is not in the table"),
        ({"views": {"labs": ["a"], "dx": ["b", "a"]}}, "column 'a': is in views 'labs' and 'dx'"),
        ({"views": {"labs": ["a"], "none": ["id"]}}, "view 'none': none of its columns is used"),
        ({"covariates": ["ab"]}, "covariates names column 'ab', which is not in the table"),
        ({"covariates": ["id"]}, r"column 'id': is set aside \(ids\) and no covariate"),
        ({"covariates": ["limit"]}, "column 'limit': is censored_gaussian, whose cells are not single known values"),
    ],
)
def test_roles_that_make_no_sense_are_refused(roles, message):
    with pytest.raises(DataError, match=message):
        with_roles(SCHEMA, roles)


# --- covariates ---


def test_covariates_are_given_and_not_used():
    schema = with_roles(SCHEMA, {"covariates": ["site", "f"]})
    assert [c.name for c in schema.covariates] == ["f", "site"]
    assert [c.name for c in schema.used] == [*"abcde", "limit"]
    assert [c.name for c in schema.aside] == ["id"]
    assert "covariate = true" in schema.to_toml()
    assert schema.summary().set_index("column").loc["site", "detail"] == "covariate; 'A', 'B', 'C'"
    assert Schema.from_toml(schema.to_toml()).covariates == schema.covariates
    with pytest.raises(DataError, match="column 'site': covariate must be true or false"):
        SCHEMA.override({"site": {"covariate": "yes"}})
    with pytest.raises(DataError, match="'site'"):
        schema.matching(FRAME.drop(columns="site"))


def test_covariates_with_gaps_are_an_error_or_a_column():
    gap = FRAME.assign(site=["A", None, "B"])
    assert with_roles(SCHEMA, {"covariates": ["site"], "covariates_missing": "model"}, gap).covariates == ()
    assert with_roles(SCHEMA, {"covariates": ["site"], "covariates_missing": "model"}).covariates != ()
    coder = Coder.fit(FRAME, with_roles(SCHEMA, {"covariates": ["site"]}))
    with pytest.raises(DataError, match="column 'site', row 1: a covariate has a gap"):
        coder.table(gap)
    with pytest.raises(DataError, match="column 'site', row 2"):
        coder.table(FRAME.assign(site=["A", "B", "Z"]))  # a level that was not seen in fit


def test_a_coder_codes_covariates_as_columns_and_remembers_them():
    coder = Coder.fit(FRAME, with_roles(SCHEMA, {"covariates": ["site", "f"]}))
    table = coder.table(FRAME)
    np.testing.assert_allclose(table.covariates[:, 0], Coder.fit(FRAME, SCHEMA).table(FRAME).values[:, 5])
    np.testing.assert_array_equal(table.covariates[:, 1], [1, 2, 0])
    again = Coder.from_dict(coder.to_dict())
    np.testing.assert_array_equal(again.table(FRAME).covariates, table.covariates)
    assert Coder.fit(FRAME, SCHEMA).table(FRAME).covariates is None
    broken = coder.to_dict() | {"covariates": Coder.fit(FRAME, SCHEMA).to_dict()}
    with pytest.raises(DataError, match="units of its covariates"):
        Coder.from_dict(broken)


def test_covariates_are_given_by_frame_or_for_all_rows():
    schema = with_roles(SCHEMA, {"covariates": ["site", "f"]})
    one = covariate_frame(schema, {"site": "B", "f": 2.0}, 2)
    assert one.to_dict("list") == {"f": [2.0, 2.0], "site": ["B", "B"]}
    own = covariate_frame(schema, {"site": ["A", "A", "B"]}, 3, Rows(FRAME))
    assert own.to_dict("list") == {"f": [1.0, 2.0, 4.0], "site": ["A", "A", "B"]}
    assert covariate_frame(schema, FRAME[["f", "site"]], 3).equals(FRAME[["f", "site"]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "this model needs its covariates \\('f', 'site'\\)"),
        ({"site": "B"}, "column 'f': is a covariate of this model without a value"),
        ({"site": ["B"], "f": 1.0}, "column 'site': covariates have 1 rows where 2 are asked"),
        ({"sight": "B"}, "covariates names column 'sight'"),
    ],
)
def test_values_that_are_no_covariates_are_refused(given, message):
    with pytest.raises(DataError, match=message):
        covariate_frame(with_roles(SCHEMA, {"covariates": ["site", "f"]}), given, 2)


def test_a_model_without_covariates_takes_none():
    with pytest.raises(DataError, match="this model has no covariates"):
        covariate_frame(SCHEMA, {"site": "B"}, 2)
