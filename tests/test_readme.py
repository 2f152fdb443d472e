"""Every Python and shell block of the README runs as it is written, on a small table under the names it uses."""

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import plurigp.datasets
from plurigp.cli.app import app
from plurigp.datasets import load_support, simulate_cohort

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
LONG = ("study", "reproduce")  # verbs that take minutes


def commands(*languages):
    """Lines of the blocks, each as its words."""
    lines = [line for language, text in BLOCKS if language in languages for line in text.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def inline_commands():
    """`plurigp VERB …` in running text, without elisions."""
    text = BLOCK.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))
    return [shlex.split(found) for found in re.findall(r"`(plurigp [a-z][^`]*)`", text) if "VERB" not in found]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with 80 simulated patients as patients.csv, who are also all that `load_support` has."""
    few = replace(load_support(), table=simulate_cohort(80, 2, n_binary=2, n_real=4, n_proportion=0).table)
    few.table.to_csv(tmp_path / "patients.csv", index=False)
    monkeypatch.setattr(plurigp.datasets, "load_support", lambda: few)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_verb(words):
    """A command in this process, so that one compilation serves all of them."""
    with pytest.raises(SystemExit) as ended:
        app(words[1:], prog_name="plurigp")
    assert ended.value.code == 0, shlex.join(words)


def test_every_block_says_what_it_is():
    assert {language for language, _ in BLOCKS} == {"python", "sh"}


def test_python_blocks_run(small):
    namespace = {}
    for language, text in BLOCKS:
        if language == "python":
            exec(compile(text, "README.md", "exec"), namespace)
    assert not namespace["filled"].isna().any(axis=None)
    assert (small / "support-model").is_dir()


def test_shell_commands_of_the_model_run(small):
    verbs = [words for words in commands("sh") if words[0] == "plurigp" and words[1] not in LONG]
    assert len(verbs) >= 7
    for words in verbs:
        run_verb(words)
    assert {path.name for path in small.iterdir()} >= {"schema.toml", "model", "latent.csv", "filled.csv", "gaps.csv"}


def test_make_targets_exist():
    targets = [words[1] for words in commands("sh") if words[0] == "make"]
    assert targets
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_what_pip_is_asked_to_install_is_there():
    """The packages of the checkout by their folders; pip itself is left alone here."""
    (words,) = [words for words in commands("sh") if words[0] == "pip"]
    folders = [ROOT / word for word in words[2:] if not word.startswith("-")]
    assert folders
    assert all((folder / "pyproject.toml").exists() for folder in folders)


def test_commands_in_the_text_have_verbs_and_options_that_exist():
    found = inline_commands()
    assert len(found) >= 3
    for words in found:
        shown = subprocess.run(
            [sys.executable, "-m", "plurigp.cli", words[1], "--help"], capture_output=True, text=True, check=True
        ).stdout
        for option in (word for word in words if word.startswith("--")):
            assert option in shown, shlex.join(words)


@pytest.mark.slow
def test_the_quick_reproduction_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (words,) = [words for words in commands("sh") if words[:2] == ["plurigp", "reproduce"]]
    run_verb(words)
