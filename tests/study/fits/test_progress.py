"""What is going on, on a terminal; not a byte anywhere else."""

import io
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


def test_nothing_elsewhere(monkeypatch):
    assert shown(monkeypatch, io.StringIO()) == ""
    assert shown(monkeypatch, Terminal(), verbose=False) == ""
