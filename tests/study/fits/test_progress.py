"""What is going on, on a terminal; not a byte anywhere else."""

import io
import re
import sys

from plurigp.study.fits.progress import StudyProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, verbose=True):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    progress = StudyProgress(100, verbose)
    with progress.bar:
        progress.start_stage("select", 12, 2, 20)
        progress.bar.refresh()
        for _ in range(10):
            progress.fit_done(8)
        assert progress.bar.finished
        progress.say("comparing")
    return stream.getvalue()


def test_the_stage_and_the_number_of_the_fit(monkeypatch):
    text = shown(monkeypatch, Terminal())
    assert "choosing the latent dimension: fit 3 of 12" in text
    assert "comparing" in text


def test_the_first_fit_says_that_it_compiles_and_the_clock_ticks(monkeypatch):
    text = shown(monkeypatch, Terminal())
    assert "fit 3 of 12 (compiling)" in text
    assert "fit 4 of 12 (compiling)" not in text
    assert re.search(r"\d+ s,", text)


def test_no_line_is_longer_than_80_columns(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "80")
    progress = StudyProgress(1000, True)
    with progress.bar:
        progress.start_stage("reference", 100, 0, 0)
        progress.bar.refresh()
        progress.fit_done(8)
        progress.say("all fits done: comparing and describing the subtypes")
        progress.bar.refresh()
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    assert any("structureless tables: fit 1 of 100 (compiling)" in line for line in lines)
    assert any("comparing and describing the subtypes" in line for line in lines)


def test_nothing_elsewhere(monkeypatch):
    assert shown(monkeypatch, io.StringIO()) == ""
    assert shown(monkeypatch, Terminal(), verbose=False) == ""
