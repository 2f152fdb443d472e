"""The reference: every public name from its docstring, and the help of every verb of the command line."""

import importlib
import os
import re
from types import ModuleType

EXAMPLE = re.compile(r"^>>> .*?(?:\n(?=\n)|\Z)", re.MULTILINE | re.DOTALL)
PARAMETERS = re.compile(r"^Parameters\n-{3,}\n", re.MULTILINE)
SECTION = re.compile(r"^[A-Z][\w ]*\n-{3,}$", re.MULTILINE)
NAMES = r"\*{0,2}\w+(?:, \*{0,2}\w+)*"
ENTRY = re.compile(rf"^({NAMES}) ?: (.+(?:\n +.+)*)$", re.MULTILINE)  # name : what it is, further lines indented
CODE = re.compile(r"(`[^`]*`|^(?:>>>|\.\.\.).*$)", re.MULTILINE)
PACKAGES = ("plurigp", "data", "datasets", "study", "report", "explore", "cohort", "likelihoods")


def reference_pages() -> dict[str, str]:
    """Page by name: what the package is for, and one entry for every name in its `__all__`."""
    return {name: _page(_package(name)) for name in PACKAGES}


def _package(name: str) -> ModuleType:
    return importlib.import_module(name if name == "plurigp" else f"plurigp.{name}")


def _page(package: ModuleType) -> str:
    entries = (f"::: {_home(package, name)}\n" for name in sorted(package.__all__, key=str.lower))
    return "\n".join([f"# {package.__name__}\n", _described(package.__doc__ or ""), *entries])


def _described(docstring: str) -> str:
    """The docstring of a package, its example in blocks; what stands between prompts is text."""
    about, _, example = docstring.partition("Examples\n--------\n")
    fenced = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", example)
    return f"{about.strip()}\n\n{fenced.strip()}\n"


def _home(package: ModuleType, name: str) -> str:
    """Where the name is defined, so that its docstring is found without importing anything."""
    found = getattr(package, name)
    module = found.__module__ if callable(found) else package.__name__
    return f"{module}.{name}"


def reading(docstring: str) -> str:
    """A docstring as Griffe reads it: descriptions of names below them, text apart from lists, no HTML."""
    heading = PARAMETERS.search(docstring)
    if heading is None:
        return _escaped("\n\n".join(map(_listed, docstring.split("\n\n"))))
    following = SECTION.search(docstring, heading.end())
    end = following.start() if following else len(docstring)
    entries = docstring[heading.end() : end].rstrip().split("\n\n")
    text = [one for one in entries if not ENTRY.match(one)]
    named = [ENTRY.sub(r"\1\n    \2", one) for one in entries if one not in text]
    parts = (docstring[: heading.start()].rstrip(), *text, heading[0] + "\n\n".join(named), docstring[end:])
    return _escaped("\n\n".join(part for part in parts if part))


def _listed(paragraph: str) -> str:
    """A paragraph of nothing but `name : what it is` as a list, any other as it is."""
    entries = ENTRY.findall(paragraph)
    if len(entries) < 2 or ENTRY.sub("", paragraph).strip():
        return paragraph
    names = ["`, `".join(names.split(", ")) for names, _ in entries]
    return "\n".join(f"- `{one}`: {' '.join(about.split())}" for one, (_, about) in zip(names, entries, strict=True))


def _escaped(docstring: str) -> str:
    """`<name>` in running text is text and no tag."""
    parts = CODE.split(docstring)
    return "".join(part if n % 2 else re.sub(r"<(?=[a-zA-Z/])", "&lt;", part) for n, part in enumerate(parts))


def command_line_page() -> str:
    """The help of every verb, as the terminal shows it."""
    os.environ["TERMINAL_WIDTH"], os.environ["NO_COLOR"] = "100", "1"
    from typer.main import get_command
    from typer.testing import CliRunner

    from plurigp.cli.app import app

    runner, parts = CliRunner(), ["# Command line\n", "What `plurigp VERB --help` prints.\n"]
    for verb in get_command(app).commands:  # type: ignore[attr-defined]  # a group: it has verbs
        shown = runner.invoke(app, [verb, "--help"], prog_name="plurigp").output
        text = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## plurigp {verb}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)
