"""Roles of columns on the command line: names, patterns and what is neither."""

import pytest

from plurigp.cli.errors import CommandError
from plurigp.cli.roles import as_column_weights, as_covariates, as_views

COLUMNS = ["crp", "albumin", "dx_1", "dx_2", "a=b"]


def test_weights_and_views_are_read():
    assert as_column_weights(["crp=0.5", "a=b=2"]) == {"crp": 0.5, "a=b": 2.0}
    assert as_column_weights(None) is None
    views = as_views(["labs=crp,albumin", "dx=dx_*", "dx=dx_1,a*b"], COLUMNS)
    assert views == {"labs": ["crp", "albumin"], "dx": ["dx_1", "dx_2", "a=b"]}
    assert as_views([], COLUMNS) is None


@pytest.mark.parametrize("text", ["crp", "crp=", "crp=half", "=1"])
def test_a_weight_needs_a_column_and_a_number(text):
    with pytest.raises(CommandError, match="write COLUMN=W"):
        as_column_weights([text])


@pytest.mark.parametrize(("text", "message"), [("labs", "write NAME="), ("labs=x*", "no column is called or fits 'x")])
def test_a_view_needs_a_name_and_columns(text, message):
    with pytest.raises(CommandError, match=message):
        as_views([text], COLUMNS)


def test_values_of_covariates_are_read():
    assert as_covariates(["site=B", "note=a=b"]) == {"site": "B", "note": "a=b"}
    assert as_covariates(None) is None
    with pytest.raises(CommandError, match="write COLUMN=VALUE"):
        as_covariates(["site"])
