"""Prints the test files that a change concerns, for `make check`: those of every module that differs from main.

A module's tests are its mirror (src/plurigp/data/read.py: tests/data/test_read.py) and the tests beside that file that
import the module; where there are neither, the nearest folder of tests. A changed test file is its own test.
"""

import argparse
import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREES = {"src/plurigp": "tests", "paper/src/plurigp_paper": "paper/tests"}  # source folder: its tests
ALWAYS = "tests/test_house.py"


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files(base: str) -> set[str]:
    """All that differs from the point where this branch left `base`, whether committed, edited or new."""
    start = next(iter(git("merge-base", "HEAD", base)), "HEAD")
    return {*git("diff", "--name-only", start), *git("ls-files", "--others", "--exclude-standard")}


def imported(path: Path) -> Iterator[str]:
    """Every module, or name of a module, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def tests_of(module: Path, source: str, tests: str) -> set[Path]:
    """The tests of one module of the package that lies in `source`."""
    inside = module.relative_to(source)
    mirror = ROOT / tests / inside.parent
    folder = next(path for path in (mirror, *mirror.parents) if path.exists())
    beside = {path for path in folder.glob("test_*.py") if path != ROOT / ALWAYS}
    name = ".".join((Path(source).name, *inside.with_suffix("").parts))
    found = {path for path in beside if path.stem == f"test_{inside.stem}" or name in imported(path)}
    return found if found and folder == mirror else beside or set(folder.rglob("test_*.py"))


def tests_for(changed: set[str]) -> set[Path]:
    found = {ROOT / ALWAYS}
    for path in map(Path, sorted(changed)):
        if path.suffix != ".py":
            continue
        if path.name.startswith("test_") and (ROOT / path).exists():
            found.add(ROOT / path)
        elif path.name == "conftest.py" and path.parent != Path("."):
            found |= set((ROOT / path.parent).glob("test_*.py"))
        for source, tests in TREES.items():
            if path.is_relative_to(source):
                found |= tests_of(path, source, tests)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", default="main", help="the branch to compare with")
    changed = changed_files(parser.parse_args().base)
    print(*sorted(str(path.relative_to(ROOT)) for path in tests_for(changed)), sep="\n")


if __name__ == "__main__":
    main()
