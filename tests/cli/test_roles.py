"""Roles of columns on the command line: names, patterns and what is neither."""

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.cli.errors import CommandError
from plurigp.cli.roles import as_column_weights, as_covariates, as_views, check_at

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


def test_a_value_that_the_model_does_not_know_is_told_of_the_option():
    table = pd.DataFrame({"lab": np.arange(8.0) / 3, "site": ["A", "B"] * 4, "age": np.arange(40.0, 56, 2)})
    model = PluriGP(1, covariates=["site", "age"], max_epochs=1, calibrate=False, random_state=0).fit(table)
    check_at(model, {"site": "B", "age": "50"}, table)
    for given, message in (
        ({"site": "C"}, "^--at: column 'site': level 'C' was not seen in fit"),
        ({"lab": "1"}, "^--at: column 'lab': is no covariate of this model; its covariates: 'site', 'age'"),
        ({"sit": "B"}, "^--at: covariates names column 'sit', which is not in the table; .*'site'"),
        ({"age": "old"}, "^--at: column 'age': text in a column of numbers"),
    ):
        with pytest.raises(CommandError, match=message):
            check_at(model, given, table)
