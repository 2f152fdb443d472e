"""A table is read once, its kinds inferred once and its columns parsed once, from the command line too."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp import PluriGP
from plurigp.cli.app import app
from plurigp.data import cells, infer, rows, to_rows

N = 60
COLUMNS = ("age", "lab", "ward", "visits", "sick", "right", "asked")
SCHEMA = '[[column]]\nname = "right"\nkind = "binomial"\ntrials = "asked"\n'


@pytest.fixture
def table(rng) -> pd.DataFrame:
    columns = {
        "age": rng.normal(60, 9, N).round(1),
        "lab": np.exp(rng.normal(size=N)),
        "ward": rng.choice(["a", "b", "c"], N),
        "visits": rng.poisson(2, N),
        "sick": rng.choice(["no", "yes"], N),
        "right": rng.integers(0, 5, N),
    }
    frame = pd.DataFrame(columns)
    return frame.mask(rng.random(frame.shape) < 0.1).assign(asked=9)


@pytest.fixture
def parsed(monkeypatch) -> Counter:
    """How often each column was parsed into cells."""
    counts: Counter = Counter()

    def counted(series, name=None):
        counts[name] += 1
        return cells.cells_of(series, name)

    monkeypatch.setattr(rows, "cells_of", counted)
    return counts


@pytest.fixture
def proposed(monkeypatch) -> Counter:
    """How often a kind was proposed for each column."""
    counts: Counter = Counter()
    propose = infer._propose

    def counted(name, found):
        counts[name] += 1
        return propose(name, found)

    monkeypatch.setattr(infer, "_propose", counted)
    return counts


def run(*words) -> None:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output


def test_fit_and_score_on_the_command_line(table, tmp_path, parsed, proposed):
    table.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    options = ("--epochs", "2", "--inducing", "5", "--schema", tmp_path / "schema.toml", "--exclude", "sick")
    run("fit", tmp_path / "table.csv", "--out", tmp_path / "model", *options)
    assert parsed == dict.fromkeys(COLUMNS, 1)
    assert proposed == {name: 1 for name in COLUMNS if name != "right"}  # which is declared
    parsed.clear()
    run("score", tmp_path / "model", tmp_path / "table.csv")
    assert parsed == {name: 1 for name in COLUMNS if name != "sick"}  # which the model does not use
    parsed.clear()
    run("check", tmp_path / "table.csv", "--schema", tmp_path / "schema.toml")
    assert parsed == dict.fromkeys(COLUMNS, 1)


def test_fit_and_answers_of_the_estimator(table, parsed, proposed):
    declared = {"right": {"kind": "binomial", "trials": "asked"}}
    model = PluriGP(1, schema=declared, n_inducing=5, max_epochs=2, calibrate=False, random_state=0).fit(table)
    assert parsed == dict.fromkeys(COLUMNS, 1)
    assert max(proposed.values()) == 1
    for answer in (model.transform, model.impute, model.score_samples, lambda X: model.impute_draws(X, 3)):
        parsed.clear()
        answer(table)
        assert parsed == dict.fromkeys(COLUMNS, 1)


def test_rows_keep_what_they_parsed(table, parsed):
    kept = to_rows(table)
    assert to_rows(kept) is kept
    assert kept.cells("age") is kept.cells("age")
    assert kept.cells("age").numbers is not None
    assert parsed == {"age": 1}


def test_a_coded_table_is_an_answerable_one(table):
    model = PluriGP(1, n_inducing=5, max_epochs=2, calibrate=False, random_state=0).fit(table)
    np.testing.assert_array_equal(model.score_samples(model.coder_.table(table)), model.score_samples(table))


def test_columns_are_matched_by_name(table):
    schema = infer.infer_schema(table, {"sick": "aside", "right": {"kind": "binomial", "trials": "asked"}})
    given = table[["asked", *COLUMNS[:4], "right"]].assign(more=1)
    matched = schema.matching(given)
    assert tuple(matched.columns) == COLUMNS
    assert matched["sick"].isna().all()
    for name in ("age", "asked"):  # used, and read with one that is
        with pytest.raises(ValueError, match=f"column '{name}' is missing from the table"):
            schema.matching(given.drop(columns=name))
