"""The how-to's own family: registered from outside, trained, saved by import path, loaded only when allowed."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import plurigp
from plurigp.data import KINDS
from plurigp.likelihoods import registry

PAGE = Path(__file__).parents[2] / "docs" / "how-to-likelihood.md"
EXAMPLE, USE = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def family(tmp_path, monkeypatch):
    """The page's module on the path, and everything as before afterwards."""
    (tmp_path / "laplace_family.py").write_text(EXAMPLE)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for table in (KINDS, registry.LIKELIHOODS, registry.OUTSIDE):
        table.pop("laplace", None)
    sys.modules.pop("laplace_family", None)


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    return pd.DataFrame({"lab": 5 + x + rng.laplace(0, 0.3, 60), "z": x}).mask(rng.random((60, 2)) < 0.1)


IN_ANOTHER_PROCESS = """
import sys
import plurigp
try:
    plurigp.load(sys.argv[1])
except plurigp.DataError as error:
    print(error)
print(plurigp.load(sys.argv[1], allow_imports=["laplace_family"]).schema_["lab"].kind)
"""


def test_the_example_is_short():
    assert len([line for line in EXAMPLE.splitlines() if line.strip()]) < 40
    assert "allow_imports" in USE


def test_the_page_from_end_to_end(family):
    importlib.import_module("laplace_family")
    table = _table()
    model = plurigp.PluriGP(1, schema={"lab": "laplace"}, n_inducing=6, max_epochs=5, random_state=0).fit(table)
    filled = model.impute(table)
    assert filled.notna().all(axis=None)
    assert np.isfinite(model.score_samples(table)).all()
    folder = model.save(family / "model")
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(folder)]
    path = {"PYTHONPATH": f"{family}:{Path(plurigp.__file__).parents[1]}", "JAX_PLATFORMS": "cpu", "HOME": str(family)}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=path, timeout=300).stdout.splitlines()
    assert out[0] == (
        "kind 'laplace' comes from module 'laplace_family', outside plurigp; if you trust it, import it first, "
        "or load with allow_imports=['laplace_family']"
    )
    assert out[1] == "laplace"


def test_a_file_in_families_and_an_entry_among_kinds_are_found(tmp_path, monkeypatch):
    """Both, or neither: one without the other is an error that names the kind."""
    assert list(registry.LIKELIHOODS) == list(KINDS)
    (tmp_path / "laplace_family.py").write_text(
        EXAMPLE.replace("register(", "(laplace :=").replace(', reads_like="gaussian"', "")
    )
    monkeypatch.setattr(registry.families, "__path__", [*registry.families.__path__, str(tmp_path)])
    with pytest.raises(RuntimeError, match=r"\['laplace'\] lack one"):
        registry._discover()
    monkeypatch.setitem(KINDS, "laplace", KINDS["gaussian"])
    assert registry._discover()["laplace"].kind == "laplace"


def test_names_are_not_taken_over(family):
    module = importlib.import_module("laplace_family")
    importlib.reload(module)  # the same family again is no trouble
    like = registry.LIKELIHOODS["laplace"]
    with pytest.raises(ValueError, match="kind 'gaussian' is taken"):
        registry.register(registry.replace(like, kind="gaussian"), "gaussian")
    with pytest.raises(ValueError, match="reads_like='real' is not one of"):
        registry.register(registry.replace(like, kind="other"), "real")


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(plurigp.DataError, match="module 'no_such_module' cannot be imported; put it on the path"):
        registry.import_families({"odd": "no_such_module"}, "no_such_module")
