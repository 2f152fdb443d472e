"""A disk that is full, fails or writes only half, at every call that writes: what was there before stays whole, what is
there afterwards is whole, and the error names the file."""

import builtins
import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import plurigp
from plurigp import DataError, PluriGP
from plurigp.cli.app import app
from plurigp.cli.files import write_table

FAULTS = {"full": errno.ENOSPC, "fails": errno.EIO, "writes half": None}


class Disk:
    """Counts opening, writing, flushing and renaming within a folder, and fails at one of these calls.

    A full disk stays full, an input/output error comes once, and after half a write the rest is asked for again.
    """

    def __init__(self, folder: Path, fault: str, at: int) -> None:
        self.folder, self.fault, self.at, self.calls = str(folder.resolve()), fault, at, 0

    @property
    def failed(self) -> bool:
        return self.calls >= self.at

    def call(self, path: object, names: bool = False) -> bool:
        """Whether this call writes only half; it raises where it fails, and the system names the file or does not."""
        if not os.path.realpath(os.fspath(path)).startswith(self.folder):
            return False
        self.calls += 1
        number = FAULTS[self.fault]
        strikes = self.calls == self.at or (self.fault == "full" and self.failed)
        if strikes and number is not None:
            raise OSError(number, os.strerror(number), *([os.fspath(path)] if names else []))
        return strikes


class FaultyFile(io.FileIO):
    """A file on that disk."""

    def __init__(self, disk: Disk, path: object, mode: str) -> None:
        disk.call(path, names=True)
        self.disk, self.path = disk, path
        super().__init__(path, mode)

    def write(self, data) -> int:
        half = self.disk.call(self.path)
        return super().write(memoryview(data).cast("B")[: len(data) // 2 + 1] if half else data)


@contextmanager
def faulty_disk(folder: Path, fault: str, at: int) -> Iterator[Disk]:
    """Inside, everything that Python writes to the folder goes to such a disk."""
    disk, opened, flushed, replaced = Disk(folder, fault, at), io.open, os.fsync, os.replace

    def open_file(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        if not isinstance(file, str | os.PathLike) or not set(mode) & set("wxa+"):
            return opened(file, mode, buffering, encoding, errors, newline, closefd, opener)
        buffered = io.BufferedWriter(FaultyFile(disk, file, mode.replace("b", "").replace("t", "")))
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    def flush(number):
        disk.call(os.readlink(f"/proc/self/fd/{number}"))
        flushed(number)

    def rename(source, target):
        disk.call(source, names=True)
        replaced(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", open_file)
        patch.setattr(builtins, "open", open_file)
        patch.setattr(os, "fsync", flush)
        patch.setattr(os, "replace", rename)
        yield disk


def at_every_call(folder: Path, fault: str, write: Callable[[], object], check: Callable[[], None]) -> int:
    """`write` with the fault at its first call, its second, … until none is left; `check` after each. How many."""
    for at in range(1, 10_000):
        with faulty_disk(folder, fault, at) as disk:
            try:
                write()
                raised = None
            except OSError as error:
                raised = error
        if raised is not None:
            assert str(folder) in str(raised.filename), raised
            assert raised.errno == FAULTS[fault]
        check()
        assert list(folder.rglob("*.part")) == []
        if not disk.failed:
            assert raised is None
            return at - 1
    raise AssertionError("it never came to an end")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def frame(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"lab": rng.normal(size=n), "stage": rng.choice(["early", "late"], n)})
    return table.mask(rng.random(table.shape) < 0.1)


@pytest.fixture(scope="module")
def models() -> list[PluriGP]:
    """Two of one table."""
    return [PluriGP(n_inducing=4, max_epochs=2, random_state=seed).fit(frame()) for seed in (1, 2)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_is_the_old_one_or_the_new_one(models, tmp_path, fault):
    old, new = models
    bounds, folder = {model.elbo_ for model in models}, tmp_path / "model"
    old.save(folder)

    def check() -> None:
        assert plurigp.load(folder).elbo_ in bounds
        shutil.rmtree(folder)
        old.save(folder)

    assert at_every_call(folder, fault, lambda: new.save(folder), check) >= 8


@pytest.mark.parametrize("fault", FAULTS)
def test_a_first_save_leaves_a_model_or_none_and_can_be_repeated(models, tmp_path, fault):
    folder = tmp_path / "model"
    folder.mkdir()

    def check() -> None:
        try:
            assert plurigp.load(folder).elbo_ == models[0].elbo_
        except DataError as error:
            assert "is missing, so this is not a complete model" in str(error)
        models[1].save(folder)
        assert plurigp.load(folder).elbo_ == models[1].elbo_
        shutil.rmtree(folder)
        folder.mkdir()

    assert at_every_call(folder, fault, lambda: models[0].save(folder), check) >= 8


def test_a_save_killed_between_any_two_of_its_steps_leaves_a_model(models, tmp_path, monkeypatch):
    """The old one until the manifest takes its place, from then on the new one."""
    old, new = models
    replaced = os.replace
    for last, expected in ((0, old), (1, old), (2, new), (3, new)):
        folder, done = old.save(tmp_path / f"killed-{last}"), []

        def rename(source, target, last=last, done=done):
            if len(done) == last:
                raise KeyboardInterrupt
            done.append(target)
            replaced(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", rename)
            try:
                new.save(folder)
            except KeyboardInterrupt:
                assert len(done) == last
        assert plurigp.load(folder).elbo_ == expected.elbo_
        new.save(folder)
        assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["filled.csv", "filled.tsv.gz", "filled.parquet"])
def test_a_table_is_the_old_one_or_the_new_one(tmp_path, fault, name):
    write_table(frame(30), tmp_path / name)
    old = content(tmp_path)
    write_table(frame(31), tmp_path / name)
    new = content(tmp_path)

    def check() -> None:
        assert content(tmp_path) in (old, new)
        write_table(frame(30), tmp_path / name)

    assert at_every_call(tmp_path, fault, lambda: write_table(frame(31), tmp_path / name), check) >= 3


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fit_that_cannot_keep_its_checkpoint_goes_on_from_the_last_one(tmp_path, fault):
    """Each attempt gets as far as its disk, and the model is the one of a fit without a fault."""
    model = PluriGP(n_inducing=4, max_epochs=2, random_state=1)
    whole, folder = content(model.fit(frame()).save(tmp_path / "whole")), tmp_path / "running"
    folder.mkdir()

    def check() -> None:
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        assert content(model.fit(frame(), checkpoint=folder).save(tmp_path / "model")) == whole
        shutil.rmtree(folder)
        folder.mkdir()

    def fit() -> None:
        model.fit(frame(), checkpoint=folder, checkpoint_every=0.0)

    assert at_every_call(folder, fault, fit, check) >= 12


# --- the verbs, from end to end ---


def run(*arguments: object) -> None:
    """A verb of the command line, in this process; an error of the system comes out as it is."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exit_code:
        line = done.stderr.strip().splitlines()[-1]
        known = [number for number in FAULTS.values() if number and line.endswith(os.strerror(number))]
        assert known, done.stderr
        path = line.removeprefix("error: ").removesuffix(f": {os.strerror(known[0])}")
        raise OSError(known[0], os.strerror(known[0]), path)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    frame(120).to_csv(folder / "table.csv", index=False)
    return folder


FIT = ("--epochs", 2, "--inducing", 4, "--force")


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FAULTS)
def test_fit_and_impute_from_the_command_line(home, tmp_path, fault):
    out, table = tmp_path / "out", home / "table.csv"
    out.mkdir()
    (model, filled), fit = (out / "model", out / "filled.csv"), ("fit", table, *FIT, "--out")
    run(*fit, model)
    old = content(out)
    n_calls = at_every_call(out, fault, lambda: run(*fit, model), lambda: plurigp.load(model))
    assert content(out) == old
    run("impute", model, table, "--out", filled)
    new = content(out)

    def check() -> None:
        assert content(out) == new

    n_calls += at_every_call(out, fault, lambda: run("impute", model, table, "--out", filled, "--force"), check)
    assert n_calls >= 12


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", ["full", "fails"])
def test_a_study_goes_on_after_every_fault_and_so_does_its_report(home, tmp_path, fault, monkeypatch):
    """One folder for all attempts: each goes on from what the last has finished."""
    monkeypatch.setenv("PLURIGP_BROWSER", "nowhere")  # its pictures are files like the others, and take minutes
    options = ("--components", 2, "--refits", 2, "--epochs", 2, "--jobs", 0, "--subtypes", 2)
    whole, out = tmp_path / "whole", tmp_path / "run"
    run("study", home / "table.csv", *options, "--out", whole)
    for at in range(1, 10_000):
        with faulty_disk(out, fault, at) as disk:
            try:
                run("study", home / "table.csv", *options, "--out", out)
            except OSError as error:
                assert str(out) in str(error.filename), error
        if not disk.failed:
            break
    assert at > 20
    assert content(out) == content(whole)
    run("report", out)
    written = content(out)

    def check() -> None:
        assert content(out) == written

    assert at_every_call(out, fault, lambda: run("report", out), check) >= 8
