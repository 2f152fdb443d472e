"""Checkpoints of a fit: it goes on to the same bytes, another fit is refused by name, and damage is found.

SIGKILL at random moments is in `test_killed.py`.
"""

import json
import os
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError, PluriGP
from plurigp.core.sealed import read_sealed_json, sealed_arrays, sealed_json, unsealed_arrays
from plurigp.estimator import checkpoints
from plurigp.estimator.checkpoints import ABOUT, Checkpoint, has_checkpoint, remove_checkpoint
from plurigp.estimator.fitting import as_seed

EPOCHS = 6


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    factor = rng.normal(size=n)
    frame = pd.DataFrame({"lab": factor + rng.normal(size=n), "stage": np.where(factor > 0, "late", "early")})
    return frame.mask(rng.random(frame.shape) < 0.1)


def estimator(**params) -> PluriGP:
    return PluriGP(**{"n_inducing": 5, "max_epochs": EPOCHS, "random_state": 1, **params})


def content(model: PluriGP, folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in model.save(folder).iterdir()}


def stopping(monkeypatch, at: int, stop) -> None:
    """Call `stop` when the fit has had so many epochs, all runs together."""
    keep, epochs = Checkpoint.keep, []

    def kept_until_then(self, snapshot):
        keep(self, snapshot)
        epochs.append(snapshot)
        if len(epochs) == at:
            stop()

    monkeypatch.setattr(Checkpoint, "keep", kept_until_then)


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, bytes]:
    return content(estimator().fit(table()), tmp_path_factory.mktemp("whole") / "model")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Path:
    """The checkpoint of a fit that was stopped in its third epoch."""
    folder = tmp_path_factory.mktemp("stopped") / "running"
    with pytest.MonkeyPatch.context() as patch:
        stopping(patch, 3, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt) as caught:
            estimator().fit(table(), checkpoint=folder)
    assert caught.value.__notes__ == [f"The same call of fit with checkpoint={str(folder)!r} goes on from here."]
    return folder


@pytest.fixture
def folder(stopped, tmp_path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "running"))


def test_a_stopped_fit_goes_on_to_the_same_bytes(whole, folder, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Checkpoint, "keep", lambda self, snapshot: seen.append(len(snapshot.epochs)))
    assert content(estimator().fit(table(), checkpoint=folder), tmp_path / "model") == whole
    assert seen == [4, 5, 6]


def test_a_finished_fit_is_not_trained_again(whole, tmp_path, monkeypatch):
    folder = tmp_path / "running"
    estimator().fit(table(), checkpoint=folder)
    monkeypatch.setattr(Checkpoint, "keep", lambda self, snapshot: pytest.fail("an epoch"))
    assert content(estimator().fit(table(), checkpoint=folder), tmp_path / "model") == whole


@pytest.mark.parametrize("at", [3, EPOCHS + 2])
def test_sigterm_saves_too_in_any_of_several_runs(tmp_path, monkeypatch, at):
    folder, several = tmp_path / "running", {"n_init": 2}
    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        stopping(patch, at, terminate)
        with pytest.raises(SystemExit, match="143"):
            estimator(**several).fit(table(), checkpoint=folder)
    assert signal.getsignal(signal.SIGTERM) is before
    assert len(list(folder.glob(checkpoints.RUNS))) == (1 if at < EPOCHS else 2)
    resumed = content(estimator(**several).fit(table(), checkpoint=folder), tmp_path / "resumed")
    assert resumed == content(estimator(**several).fit(table()), tmp_path / "whole")


def test_a_fit_without_a_seed_goes_on_with_the_one_it_drew(tmp_path, monkeypatch):
    folder = tmp_path / "running"
    with monkeypatch.context() as patch:
        stopping(patch, 2, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            estimator(random_state=None).fit(table(), checkpoint=folder)
    drawn = json.loads((folder / ABOUT).read_text())["seed"]
    resumed = estimator(random_state=None).fit(table(), checkpoint=folder)
    monkeypatch.setattr("plurigp.estimator.fitting.as_seed", lambda state: drawn)
    np.testing.assert_array_equal(resumed.history_, estimator(random_state=None).fit(table()).history_)


def test_it_is_written_after_so_many_seconds(tmp_path, monkeypatch):
    times, writes = iter(range(0, 1000, 4)), []
    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=lambda: next(times)))
    save = Checkpoint.save
    monkeypatch.setattr(Checkpoint, "save", lambda self: (writes.append(self.latest is not None), save(self)))
    estimator().fit(table(), checkpoint=tmp_path / "running", checkpoint_every=7.0)
    assert writes == [
        True,
        True,
        True,
        False,
    ]  # an epoch asks the clock once, a write too


# --- what it is of ---

OTHERS = {
    "a setting": ({"max_epochs": 7}, lambda t: t, r"another max_epochs \(6 there, 7 here\)"),
    "a seed": ({"random_state": 2}, lambda t: t, "another random_state"),
    "a kind": ({"schema": {"stage": "categorical"}}, lambda t: t, "another schema of column 'stage'"),
    "a cell": ({}, lambda t: t.assign(lab=t["lab"].where(t.index != 3, 0.5)), "another table"),
    "a gap": ({}, lambda t: t.assign(lab=t["lab"].where(t.index != 2)), "another table"),
    "an order": ({}, lambda t: t[["stage", "lab"]], "another order of the columns"),
    "a column": ({}, lambda t: t.assign(age=t["lab"] * 2), "another schema of column 'age'"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_fit_is_refused_by_name(folder, other):
    params, change, pattern = OTHERS[other]
    with pytest.raises(DataError, match=f"{pattern}; give the same, or name a new folder") as caught:
        estimator(**params).fit(change(table()), checkpoint=folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_version_is_refused(folder, monkeypatch):
    monkeypatch.setattr("plurigp.__version__", "99.0")
    with pytest.raises(DataError, match=r"another plurigp \('.+' there, '99\.0' here\)"):
        estimator().fit(table(), checkpoint=folder)


def test_a_run_of_another_fit_is_refused(folder, tmp_path):
    estimator(max_epochs=5).fit(table(), checkpoint=tmp_path / "other")
    shutil.copy(tmp_path / "other" / "run-1.safetensors", folder)
    with pytest.raises(DataError, match=r"run-1.safetensors: is of another fit than checkpoint\.json"):
        estimator().fit(table(), checkpoint=folder)


# --- damage ---


@pytest.mark.parametrize("name", ["run-1.safetensors", ABOUT])
def test_damage_is_found_and_named(folder, name):
    path = folder / name
    whole = path.read_bytes()
    for at in (0, 9, len(whole) // 3, len(whole) // 2, len(whole) - 20):
        flipped = bytearray(whole)
        flipped[at] ^= 1
        for broken in (bytes(flipped), whole[:at]):
            path.write_bytes(broken)
            with pytest.raises(DataError, match=f"{name}: (was|is not|holds no) .*; delete the checkpoint's folder"):
                estimator().fit(table(), checkpoint=folder)


WRONG_FACTS = {
    "steps": {"n_steps": "many"},
    "another generator": {"rng": {"bit_generator": "MT19937", "state": {}}},
    "no state": {"rng": {}},
    "a state out of range": {"rng": {"bit_generator": "PCG64", "state": {"state": -1, "inc": 1}}},
}


@pytest.mark.parametrize("wrong", WRONG_FACTS)
def test_facts_with_the_right_hash_are_checked_all_the_same(folder, wrong):
    path = folder / "run-1.safetensors"
    arrays, facts = unsealed_arrays(path.read_bytes())
    path.write_bytes(sealed_arrays(arrays, {**facts, **WRONG_FACTS[wrong]}))
    with pytest.raises(DataError, match=r"run-1\.safetensors: was changed or cut short"):
        estimator().fit(table(), checkpoint=folder)


@pytest.mark.parametrize("change", [{"seed": "one"}, {"settings": 3}, {"columns": [1]}, {"table": None}])
def test_what_the_folder_is_of_is_checked_though_its_hash_is_right(folder, change):
    path = folder / ABOUT
    path.write_text(sealed_json(read_sealed_json(path, 1, "") | change))
    with pytest.raises(DataError, match=re.escape(str(folder))) as caught:
        estimator().fit(table(), checkpoint=folder)
    assert "\n" not in str(caught.value)


def test_another_number_of_shards_or_devices_is_refused_by_name(tmp_path, monkeypatch):
    """Shards decide which rows share a batch, and sums over devices round otherwise than on one."""
    folder, shards = tmp_path / "running", {"n_shards": 2}
    with monkeypatch.context() as patch:
        stopping(patch, 3, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            estimator(**shards).fit(table(), checkpoint=folder)
    about = folder / ABOUT
    held = read_sealed_json(about, 1, "")
    assert "devices" not in held  # one
    for n_shards in (1, 3):
        with pytest.raises(DataError, match=rf"another n_shards \(2 there, {n_shards} here\); give the same, or name"):
            estimator(n_shards=n_shards).fit(table(), checkpoint=folder)
    on_two = SimpleNamespace(size=2)
    with monkeypatch.context() as patch:
        patch.setattr("plurigp.inference.batches.TrainingTable.mesh", on_two)
        with pytest.raises(DataError, match=r"another number of devices \(1 there, 2 here\); give the same, or name"):
            bound(folder, shards)
    about.write_text(sealed_json({**held, "devices": 2}))
    with pytest.raises(DataError, match=r"another number of devices \(2 there, 1 here\); give the same, or name"):
        estimator(**shards).fit(table(), checkpoint=folder)
    about.write_text(sealed_json(held))
    resumed = content(estimator(**shards).fit(table(), checkpoint=folder), tmp_path / "resumed")
    assert resumed == content(estimator(**shards).fit(table()), tmp_path / "whole")


def bound(folder: Path, params: dict) -> int:
    """What a fit with these parameters asks of the folder before it computes anything."""
    model = estimator(**params)
    rows, coder = model._coded(table(), None)
    return Checkpoint(folder).bind(model.get_params(deep=False), coder, rows, as_seed(1))


def test_other_peoples_files_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="holds other files and no checkpoint; name an empty or a new folder"):
        estimator().fit(table(), checkpoint=tmp_path)
    with pytest.raises(DataError, match="is a file; a checkpoint needs a folder of its own"):
        estimator().fit(table(), checkpoint=tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_nothing_but_its_own_files_is_removed(folder):
    assert has_checkpoint(folder)
    (folder / "notes.txt").write_text("mine")
    remove_checkpoint(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    remove_checkpoint(folder)
    assert not folder.exists()
    assert not has_checkpoint(folder)


def test_no_cell_is_kept(folder):
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    for value in table()["lab"].dropna():
        assert np.float64(value).tobytes() not in kept
        assert repr(float(value)).encode() not in kept


def test_seconds_are_a_number():
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=r"checkpoint_every=.* must be a number of seconds, at least 0"):
            estimator().fit(table(), checkpoint="nowhere", checkpoint_every=wrong)
