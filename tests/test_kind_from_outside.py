"""A kind from outside: one entry (`register`) and one file (the how-to's own), taken the whole way."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import plurigp
from plurigp.cli.app import app
from plurigp.data import KINDS
from plurigp.likelihoods import registry
from plurigp.report import write_report

PAGE = Path(__file__).parents[1] / "docs" / "how-to-likelihood.md"
FILE = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
N = 80


@pytest.fixture
def family(tmp_path, monkeypatch):
    """The file on the path; everything as before afterwards."""
    (tmp_path / "laplace_family.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("laplace_family")
    for table in (KINDS, registry.LIKELIHOODS, registry.OUTSIDE):
        table.pop("laplace", None)
    sys.modules.pop("laplace_family", None)


@pytest.fixture
def table(rng) -> pd.DataFrame:
    x = rng.normal(size=N)
    columns = {"lab": 5 + x + rng.laplace(0, 0.3, N), "other": x + rng.normal(size=N), "sick": rng.random(N) < 0.5}
    return pd.DataFrame(columns).mask(rng.random((N, 3)) < 0.1)


def test_check_fit_impute_study_and_report(family, table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "schema.toml").write_text('[[column]]\nname = "lab"\nkind = "laplace"\n')
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "table.csv"), "--schema", str(tmp_path / "schema.toml")])
    assert checked.exit_code == 0, checked.output
    assert re.search(r"lab\s+laplace", checked.output)
    model = plurigp.PluriGP(1, schema={"lab": "laplace"}, n_inducing=5, max_epochs=3, random_state=0).fit(table)
    assert np.isfinite(model.impute(table)["lab"]).all()
    result = plurigp.Study(
        schema={"lab": "laplace"}, n_components=[1], n_refits=2, n_references=0, n_restarts=1, n_permutations=0,
        max_epochs=3, n_subtypes=2, n_jobs=0,
    ).fit(table)  # fmt: skip
    assert set(result.characteristics.loc[result.characteristics["column"] == "lab", "kind"]) == {"laplace"}
    write_report(result, tmp_path / "report.html")
    assert KINDS["laplace"].label in (tmp_path / "report.html").read_text(encoding="utf-8")
