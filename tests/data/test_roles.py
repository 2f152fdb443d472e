"""Roles of columns: weights by name and by view, in a schema's every form, and refused where they make no sense."""

import pytest

from plurigp import DataError
from plurigp.data import Column, Schema
from plurigp.data.roles import balanced_weights, with_roles

SCHEMA = Schema((*(Column(name, "gaussian") for name in "abcdef"), Column("id", "aside")))


def weights(schema: Schema) -> dict[str, float]:
    return {column.name: column.weight for column in schema if column.weight != 1}


def test_views_count_alike_and_no_weight_exceeds_one():
    views = {"labs": ["a", "b"], "dx": ["c", "d", "e", "f", "id"]}
    assert balanced_weights(SCHEMA, views) == {"a": 1, "b": 1, "c": 0.5, "d": 0.5, "e": 0.5, "f": 0.5}
    given = with_roles(SCHEMA, {"views": views, "column_weights": {"c": 0.2, "b": 3}})
    assert weights(given) == {"b": 3, "c": 0.1, "d": 0.5, "e": 0.5, "f": 0.5}
    assert with_roles(given, {"views": views, "column_weights": {"c": 0.2, "b": 3}}) == given
    assert with_roles(SCHEMA, {}) is SCHEMA


def test_weights_are_written_and_read_again():
    given = with_roles(SCHEMA, {"column_weights": {"c": 0.25}})
    assert "weight = 0.25" in given.to_toml()
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
    ],
)
def test_roles_that_make_no_sense_are_refused(roles, message):
    with pytest.raises(DataError, match=message):
        with_roles(SCHEMA, roles)
