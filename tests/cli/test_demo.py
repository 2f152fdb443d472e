"""`plurigp demo` from end to end on a few hundred of the patients."""

import pandas as pd
import pytest

import plurigp
from plurigp.cli.demo import run_demo


def test_it_prints_and_writes_what_it_promises(tmp_path, capsys):
    run_demo(tmp_path / "out", rows=150, epochs=2)
    said = capsys.readouterr().out
    for words in ("150 seriously ill hospital patients", "levels in order", "categorical", "marginal"):
        assert words in said
    out = tmp_path / "out"
    assert len(pd.read_csv(out / "latent.csv")) == 150
    filled = pd.read_csv(out / "filled.csv")
    assert len(filled) == 150
    assert filled.notna().all(axis=None)
    assert (out / "map.svg").read_text().count("<circle") >= 150
    scores = pd.read_csv(out / "scores_by_column.csv")
    assert {"column", "cells", "model", "marginal", "gain", "se"} <= set(scores)
    assert plurigp.load(out / "model").n_components == 10


@pytest.mark.slow
def test_every_family_beats_its_marginal(tmp_path, capsys):
    run_demo(tmp_path / "out")
    scores = pd.read_csv(tmp_path / "out" / "scores_by_column.csv", index_col="column")
    kinds = {c.name: c.kind for c in plurigp.load(tmp_path / "out" / "model").schema_.used}
    gain = (scores["gain"] * scores["cells"]).groupby(kinds).sum()
    assert len(gain) == 8
    assert (gain > 0).all(), gain
