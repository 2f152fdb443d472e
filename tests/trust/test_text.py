"""Hostile text from a table: no formula in a CSV file, no escape sequence on a terminal."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.core.files import without_formulas

FORMULAS = [
    "=1+1", "=cmd|'/c calc'!A0", "+1+cmd", "-2+3+cmd", "@SUM(1)", "\t=1+1", "\r=1", "\n=1", " =1+1",
    "＝1+1", "＋1+1", "－1+1", "＠SUM(1)", '=HYPERLINK("http://evil")', "=IMPORTXML(A1)", "-cmd", "+x", "@x", "  @x",
    "=\n1",
]  # fmt: skip
NUMBERS = ["-5", "+5", "-5.5", "-.5", "-1e-3", "+1E5", "-5%", " -5 ", "5", "−5"]
PAYLOADS = json.loads((Path(__file__).parents[1] / "report" / "hostile.json").read_text(encoding="utf-8"))
STARTS = tuple("=+-@＝＋－＠\t\r\n")


def cells(frame: pd.DataFrame) -> list[list[str]]:
    return list(csv.reader(io.StringIO(without_formulas(frame).to_csv(index=False), newline="")))


def with_newlines(text: str) -> str:
    """A carriage return would start a row of its own."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize("text", [*FORMULAS, *PAYLOADS, "x\r=1+1"])
def test_no_cell_and_no_name_starts_a_formula(text):
    (name,), (cell,) = cells(pd.DataFrame({text: [text]}))
    for written in (name, cell):
        assert not (written.strip().startswith(STARTS) and len(written.strip()) > 1), written
        assert written in (with_newlines(text), f"'{with_newlines(text)}")


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_stay_numbers(text):
    assert cells(pd.DataFrame({"x": [text]}))[1] == [text]
    assert cells(pd.DataFrame({"x": [-5.0]}))[1] == ["-5.0"]


@given(st.text(max_size=12))
def test_any_text_is_kept_behind_at_most_an_apostrophe(text):
    written = without_formulas(pd.DataFrame({"x": [text]}, dtype=object)).iloc[0, 0]
    assert written in (with_newlines(text), f"'{with_newlines(text)}")


def test_no_escape_sequence_reaches_the_terminal(tmp_path):
    """In a name, in a level, in the name of a file, and in an error about any of them."""
    evil = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"a{evil}": rng.normal(size=30), "b": rng.choice([f"x{evil}", "y", "z"], 30)})
    path = tmp_path / f"t{evil.replace('/', '')}.csv"
    table.to_csv(path, index=False)
    for verb in (["check", str(path)], ["check", str(path), "--json"], ["check", str(path), "--missing", f"c{evil}=1"],
                 ["transform", str(path), str(path), "--out", str(tmp_path / f"{evil}.csv")]):  # fmt: skip
        ran = CliRunner().invoke(app, verb)
        for said in (ran.output, ran.stderr):
            assert not any(mark in said for mark in "\x1b\x07\x9b\u202e"), verb[0]
        assert "Traceback" not in ran.output
