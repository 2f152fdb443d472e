"""Inputs that fuzzing (tools/fuzz.py) started from or once failed on are read, or refused in one line."""

import importlib.util
from pathlib import Path

import pytest

from plurigp import DataError

ROOT = Path(__file__).parents[2]
INPUTS = sorted((ROOT / "tests" / "trust" / "corpus").glob("*/*"))


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", ROOT / "tools" / "fuzz.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_is_read_or_refused(path, fuzz, tmp_path):
    fuzz.read_or_refuse(path.parent.name, tmp_path, path.read_bytes())


@pytest.fixture
def saved(fuzz, model_folder, study_folder, monkeypatch):
    """Those of these tests, which need not be made twice."""
    monkeypatch.setattr(fuzz, "whole_folder", {"model": model_folder, "study": study_folder}.__getitem__)


@pytest.mark.parametrize("target", ["model", "study"])
def test_whole_files_are_taken_and_changed_ones_read_or_refused(target, fuzz, saved, tmp_path, chance):
    """As the fuzzer starts, and as it goes on from there: several changes to one file, by its structure."""
    for raw in fuzz.seeds(target)[-len(fuzz.FILES[target]) :]:
        fuzz.TARGETS[target](tmp_path, raw)
        for _ in range(3):
            name, _, content = raw.partition(b"\n")
            raw = name + b"\n" + fuzz.trust_tests("damage").mutated_content(name.decode(), content, chance)
            fuzz.read_or_refuse(target, tmp_path, raw)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b"[" * 3000, b'{"format": 1e999}', b"\xff\x00", b"null"])
@pytest.mark.parametrize("target", ["model", "study"])
def test_bytes_without_structure_are_refused(target, content, fuzz, saved, tmp_path):
    for name in fuzz.FILES[target]:
        with pytest.raises(DataError, match=f"{tmp_path}/{target}"):
            fuzz.TARGETS[target](tmp_path, f"{name}\n".encode() + content)


def test_other_errors_pass_through(fuzz, tmp_path, monkeypatch):
    monkeypatch.setitem(fuzz.TARGETS, "table", lambda folder, raw: {}["missing"])
    with pytest.raises(KeyError):
        fuzz.read_or_refuse("table", tmp_path, b"")
