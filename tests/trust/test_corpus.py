"""Inputs that fuzzing (tools/fuzz.py) started from or once failed on are read, or refused in one line."""

import importlib.util
from pathlib import Path

import pytest

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


def test_a_whole_model_loads_and_other_errors_pass_through(fuzz, tmp_path, monkeypatch):
    manifest, arrays = fuzz.seeds("model")[-2:]
    fuzz.load_any_model(tmp_path, manifest)
    fuzz.load_any_model(tmp_path, arrays)
    monkeypatch.setitem(fuzz.TARGETS, "table", lambda folder, raw: {}["missing"])
    with pytest.raises(KeyError):
        fuzz.read_or_refuse("table", tmp_path, b"")
