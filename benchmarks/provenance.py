"""With which version a result was measured, and whether the code that it measures has changed since.

A result names the commit it was measured at; of older ones it is the commit that brought the file. Two versions of a
module are equal if they parse to the same syntax tree without docstrings: comments and prose do not age a figure.
"""

import ast
import subprocess
import tarfile
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/plurigp"
MODEL = ("core", "data", "likelihoods", "inference", "answers", "estimator")
ALL = (*MODEL, "study")
SOURCES = {  # rooms of the package that a result depends on, datasets aside; MODEL where nothing else is said
    "interrupts": (*ALL, "cli"),
    "waiting": (*MODEL, "cli"),
    "registry": (*MODEL, "cli"),
    "killed_groups": (*MODEL, "cli"),
    "dask_study": (*ALL, "cli"),
    "subtypes": ALL,
    "study_planted": ALL,
    "study_size": ALL,
    "study_split": ALL,
    "study_killed": ALL,
    "study_support": ALL,
}


def git(*arguments: str) -> str:
    """What git says of this repository; nothing where there is none or it does not know."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def current_commit() -> str:
    """The commit that is measured, marked where the checkout differs from it."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", PACKAGE)
    return git("rev-parse", "HEAD").strip() + ("+changes" if changed else "")


def measured_at(path: Path, result: dict[str, Any]) -> str:
    """The commit that a result names, or the one that brought its file."""
    named = (result.get("versions") or {}).get("commit", "").split("+")[0]
    return named or git("log", "-1", "--format=%H", "--", str(path)).strip()


@cache
def fingerprints(commit: str) -> dict[str, str]:
    """Hash of every module of the package at a commit, docstrings aside."""
    done = subprocess.run(["git", "archive", commit, "--", PACKAGE], cwd=ROOT, capture_output=True)
    if done.returncode:
        return {}  # a commit that this clone does not have
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        modules = [member for member in archive if member.isfile() and member.name.endswith(".py")]
        return {member.name: _hash(archive.extractfile(member).read().decode()) for member in modules}


def _hash(source: str) -> str:
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node):
            node.body = node.body[1:]
    return sha256(ast.dump(tree).encode()).hexdigest()


def changed_modules(name: str, commit: str) -> list[str]:
    """The modules behind a result that are not what they were at a commit, as paths within the package."""
    then, now = fingerprints(commit), fingerprints("HEAD")
    rooms = tuple(f"{PACKAGE}/{room}/" for room in SOURCES.get(name, MODEL))
    differ = {path for path in then.keys() | now.keys() if then.get(path) != now.get(path)}
    return sorted(path.removeprefix(f"{PACKAGE}/") for path in differ if path.startswith(rooms))


def provenance(name: str, path: Path, result: dict[str, Any]) -> str:
    """One line for the page: versions, commit and day, and a mark where the code has changed since."""
    commit = measured_at(path, result)
    versions = result.get("versions") or {}
    parts = [f"{package} {versions[package]}" for package in ("plurigp", "jax", "python") if package in versions]
    if not commit:
        return f"*Measured with {', '.join(parts) or 'a version that was not recorded'}.*"
    day = git("show", "--no-patch", "--format=%cs", commit).strip()
    line = f"*Measured with {', '.join([*parts, f'commit {commit[:7]} of {day}'])}.*"
    changed = changed_modules(name, commit)
    return line if not changed else f"{line} {_mark(changed)}"


def _mark(changed: list[str]) -> str:
    first = ", ".join(f"`{module}`" for module in changed[:3])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return f"**Older than what it measures**: {first}{more} changed since."
