"""What an installation brings along: few packages, permissive licences, and a bill of materials that holds together."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("supply_chain", ROOT / "tools" / "supply_chain.py")
    module = sys.modules["supply_chain"] = importlib.util.module_from_spec(spec)  # dataclasses look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["supply_chain"]


@pytest.fixture(scope="module")
def core(tool):
    return tool.closure("plurigp", set())


def test_the_core_installation_is_small_and_permissive(tool, core):
    names = {package.name for package in core}
    assert {"plurigp", "jax", "jaxlib", "numpy", "scipy"} <= names
    assert not names & {"pytest", "ruff", "duckdb", "polars"}
    assert tool.findings(core, core) == []


def test_extras_add_what_they_need_and_say_so(tool, core):
    more = tool.closure("plurigp", {"cohort"})
    assert {"duckdb", "psycopg"} <= {package.name for package in more} - {package.name for package in core}
    assert tool.findings(more, core) == []


def test_what_is_not_allowed_is_found(tool, core):
    other = tool.Package("viral", "1.0", "GNU General Public License v3 (GPLv3)", 1.0, 0.0, ())
    silent = tool.Package("silent", "1.0", "not stated", 1.0, 0.0, ())
    large = tool.Package("large", "1.0", "MIT", 10_000.0, 0.0, ())
    many = [tool.Package(f"small-{n}", "1.0", "MIT", 0.0, 0.0, ()) for n in range(50)]
    assert [line.split(":")[0] for line in tool.findings([*core, other, silent], core)] == ["viral", "silent"]
    assert "10000 MB, more than 800" in "".join(tool.findings([large], [large]))
    assert "50 packages, more than 45" in "".join(tool.findings(many, many))
    copyleft = tool.Package("psycopg", "3.2", "LGPL-3.0-only", 1.0, 0.0, ())
    assert tool.findings([copyleft], core) == []
    assert len(tool.findings([copyleft], [copyleft])) == 1


def test_the_bill_of_materials_holds_together(tool, core):
    bill = json.loads(json.dumps(tool.sbom(core)))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "plurigp"
    known = {part["bom-ref"] for part in [bill["metadata"]["component"], *bill["components"]]}
    assert len(known) == len(core)
    assert {entry["ref"] for entry in bill["dependencies"]} == known
    assert {ref for entry in bill["dependencies"] for ref in entry["dependsOn"]} <= known


def test_the_constraints_pin_everything_that_pyproject_asks_for(tool):
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert lines[: len(tool.CONSTRAINTS_HEAD)] == list(tool.CONSTRAINTS_HEAD)
    pins = [Requirement(line) for line in lines[len(tool.CONSTRAINTS_HEAD) :]]
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in pins)
    versions = {tool.canonicalize_name(pin.name): str(pin.specifier)[2:] for pin in pins}
    for need in map(Requirement, tool.distribution("plurigp").requires):
        if tool.applies(need, {"dev"}) and need.name != "plurigp":
            assert need.specifier.contains(versions[tool.canonicalize_name(need.name)]), need


def test_from_the_command_line(tool, tmp_path, monkeypatch, capsys):
    bill, pins = tmp_path / "sbom.json", tmp_path / "constraints.txt"
    monkeypatch.setattr(sys, "argv", ["supply_chain.py", "--check", "--sbom", str(bill), "--constraints", str(pins)])
    tool.main()
    assert re.search(r"core installation: \d+ packages, \d+ MB, and \d+ MB of bytecode", capsys.readouterr().out)
    assert json.loads(bill.read_text())["version"] == 1
    assert not any(line.startswith("plurigp==") for line in pins.read_text().splitlines())
