"""The examples in docstrings run, and every public name is in one."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

from plurigp import PluriGP

ROOT = Path(__file__).parents[1]
ALONE = ("plurigp.data", "plurigp.datasets", "plurigp.cohort", "plurigp.likelihoods")
OF_A_STUDY = ("plurigp", "plurigp.study", "plurigp.report", "plurigp.explore")  # which the first one makes


def how_to_code():
    """The Python blocks of the how-to pages: some names have a page of their own."""
    pages = (page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("how-to-*.md"))
    return "\n".join(block for page in pages for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S))


def run_examples(owner, name):
    """All examples of one docstring; pytest shows those that fail."""
    (test,) = doctest.DocTestFinder(recurse=False).find(owner, name, globs={"__name__": "__main__"})
    out = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=out.append)
    assert test.examples, f"{name} has no example"
    assert not runner.failures, "".join(out)


@pytest.fixture
def _families():
    """What an example registers is forgotten."""
    from plurigp.data import KINDS
    from plurigp.likelihoods.registry import LIKELIHOODS, OUTSIDE

    known = [(registry, dict(registry)) for registry in (KINDS, LIKELIHOODS, OUTSIDE)]
    yield
    for registry, before in known:
        registry.clear()
        registry.update(before)


@pytest.mark.usefixtures("_families")
@pytest.mark.parametrize("name", ALONE)
def test_the_example_of_a_package_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(importlib.import_module(name), name)


@pytest.mark.slow
def test_the_examples_of_a_study_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in OF_A_STUDY:
        run_examples(importlib.import_module(name), name)


def test_the_example_of_the_estimator_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(PluriGP, "PluriGP")


@pytest.mark.parametrize("name", ALONE + OF_A_STUDY)
def test_every_public_name_is_in_an_example(name):
    package = importlib.import_module(name)
    shown = package.__doc__.partition("Examples\n--------\n")[2] + how_to_code()
    missing = [
        public
        for public in package.__all__
        if not re.search(rf"\b{public}\b", shown) and ">>> " not in (getattr(package, public).__doc__ or "")
    ]
    assert not missing, f"show {', '.join(missing)} in the docstring of {name}"


def test_every_method_of_the_estimator_is_in_its_example():
    example = inspect.cleandoc(PluriGP.__doc__).partition("Examples\n--------\n")[2]
    own = [name for name, member in vars(PluriGP).items() if inspect.isfunction(member) and not name.startswith("_")]
    missing = [name for name in own if f".{name}(" not in example]
    assert not missing, f"show {', '.join(missing)} in the docstring of PluriGP"
