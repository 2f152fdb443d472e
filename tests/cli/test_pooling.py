"""`plurigp pool` on files of estimates."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp import pool
from plurigp.cli.app import app


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def estimates(tmp_path, rng):
    lines = pd.DataFrame(
        {"term": ["dose", "age"] * 4, "estimate": rng.normal(1, 0.2, 8), "se": rng.uniform(0.1, 0.2, 8)}
    )
    lines.to_csv(tmp_path / "estimates.csv", index=False)
    return tmp_path / "estimates.csv", lines


def test_the_verb_pools_as_the_library_does(estimates, tmp_path):
    path, lines = estimates
    result = run("pool", path, "--df", 50, "--out", tmp_path / "pooled.csv")
    assert result.exit_code == 0, result.output
    assert "pooled 2 terms over 4 completed tables" in result.output
    Q, se = (lines[name].to_numpy().reshape(4, 2) for name in ("estimate", "se"))
    expected = pool(Q, se**2, df_complete=50, names=["dose", "age"]).frame
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "pooled.csv", index_col="term"), expected)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (lambda lines: lines.drop(columns="se"), "has no column 'se'"),
        (lambda lines: lines.iloc[:-1], "term 'age' is not there for every completed table"),
        (lambda lines: lines.iloc[:2], "at least 2 completed tables"),
        (lambda lines: lines.assign(se=np.nan), "not finite"),
    ],
)
def test_files_that_cannot_be_pooled_are_refused_in_one_line(estimates, tmp_path, change, finding):
    path, lines = estimates
    change(lines).to_csv(path, index=False)
    result = run("pool", path, "--out", tmp_path / "pooled.csv")
    assert result.exit_code == 1
    assert finding in result.output
    assert not (tmp_path / "pooled.csv").exists()
