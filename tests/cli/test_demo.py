"""`plurigp demo` from end to end: on a few hundred of the patients, and (slow) as it is."""

from dataclasses import replace

import pandas as pd
import pytest

import plurigp
from plurigp.cli.demo import OVERRIDES, demo
from plurigp.data import Schema
from plurigp.datasets import load_support

FEW = [*OVERRIDES, "sex"]  # each further kind of column takes long to compile


@pytest.mark.filterwarnings("ignore:.*effective draws:RuntimeWarning")  # of a map that has hardly been trained
def test_it_prints_and_writes_what_it_promises(tmp_path, capsys, monkeypatch):
    support = load_support()
    few = replace(support, table=support.table[FEW], schema=Schema(tuple(support.schema[name] for name in FEW)))
    monkeypatch.setattr("plurigp.datasets.load_support", lambda: few)
    out = tmp_path / "out"
    demo(out, rows=150, epochs=2, refits=2)
    said = capsys.readouterr().out
    for words in ("150 of 9,105 seriously ill hospital patients", "binomial", "marginal", "report.html"):
        assert words in said
    assert len(pd.read_csv(out / "latent.csv")) == 150
    filled = pd.read_csv(out / "filled.csv")
    assert len(filled) == 150
    assert filled.notna().all(axis=None)
    assert (out / "report.html").stat().st_size > 10**6
    assert 'href="explorer.html"' in (out / "report.html").read_text(encoding="utf-8")
    assert "explorer.html" in said.splitlines()[-1]
    assert 10**5 < (out / "explorer.html").stat().st_size < 8 * 10**6
    result = plurigp.load_study(out)
    assert result.config["time"] == "follow_up_days"
    assert set(result.columns.loc[~result.columns["used"], "column"]) == {"follow_up_days", "died"}
    assert set(result.risks["time"]) == {180.0}
    assert result.config["n_references"] == 0


@pytest.mark.slow
def test_every_family_beats_its_marginal_and_strata_differ_in_mortality(tmp_path):
    demo(tmp_path / "out")
    result = plurigp.load_study(tmp_path / "out")
    gain = (result.predictions["gain"] * result.predictions["cells"]).groupby(result.predictions["kind"]).sum()
    assert len(gain) == 9
    assert (gain > 0).all(), gain
    if result.facts["n_strata"] > 1:
        assert result.survival_tests["p"].min() < 0.05
