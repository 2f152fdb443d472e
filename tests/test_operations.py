"""No program of a fit grows unnoticed: compilation, which takes as long as a program has operations, is most of what a
small table waits for. `python tools/count_operations.py --record` renews the record after a change that is meant."""

import importlib.util
import json
from pathlib import Path

import jax
import pytest

TOOL = Path(__file__).parents[1] / "tools" / "count_operations.py"
GROWTH = 1.03  # a few operations more need no new record


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("count_operations", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("table", ["numbers", "mixed"])
def test_programs_have_no_more_operations_than_recorded(tool, table):
    recorded = json.loads(tool.RECORD.read_text())
    if recorded["jax"] != jax.__version__:
        pytest.skip(f"recorded with jax {recorded['jax']}: other versions lower to other operations")
    counts = tool.count_operations(table)
    assert counts.keys() == recorded[table].keys()
    for program, n in counts.items():
        assert n <= GROWTH * recorded[table][program], f"{program}: {n} operations, {recorded[table][program]} recorded"
