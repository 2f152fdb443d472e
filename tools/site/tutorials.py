"""Runs the code of a tutorial and puts what it printed and drew below each block.

    python tools/site/tutorials.py docs/tutorials/imputation.md    # run one and print the page

All Python blocks of a page share one namespace, and all blocks one folder, which holds the TOML and CSV files that the
page links to, in a process of their own. A block that fails stops the site. Results are kept in .cache/tutorials for as
long as neither page nor package changes.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "tutorials"
FILE_LINK = re.compile(r"\]\(([^)\s:#]+\.(?:toml|csv))\)")
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Executed:
    """A tutorial with its output, the figures that it refers to, and the seconds that it took."""

    markdown: str
    figures: list[Path]
    seconds: float


def executed(page: Path) -> Executed:
    """The page with its output, from the cache if it is there."""
    folder = CACHE / f"{page.stem}-{_fingerprint(page)}"
    if not (folder / "page.json").exists():
        _run_in_new_process(page, folder)
    kept = json.loads((folder / "page.json").read_text(encoding="utf-8"))
    return Executed(kept["markdown"], sorted(folder.glob("*.svg")) + sorted(folder.glob("*.png")), kept["seconds"])


def _fingerprint(page: Path) -> str:
    digest = hashlib.sha256()
    for path in [page, Path(__file__), *sorted((ROOT / "src").rglob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _run_in_new_process(page: Path, folder: Path) -> None:
    for old in CACHE.glob(f"{page.stem}-*"):
        shutil.rmtree(old)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "MPLBACKEND": "svg",
        "NO_COLOR": "1",
        "PLURIGP_BROWSER": "none",  # a study's figures as files are not shown
        "COLUMNS": "100",
    }
    command = [sys.executable, str(Path(__file__)), str(page.resolve()), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{page.name} does not run:\n{done.stderr[-4000:]}")


def run_page(page: Path, folder: Path) -> Executed:
    """Run every block in a fresh folder and put its output below it."""
    began, names = time.perf_counter(), {"__name__": "__main__"}
    folder.mkdir(parents=True, exist_ok=True)
    text, parts, last = page.read_text(encoding="utf-8"), [], 0
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        path = _with_command(Path(place, "bin"))
        for linked in FILE_LINK.findall(text):
            shutil.copy(page.parent / linked, place)
        for found in BLOCK.finditer(text):
            printed = _python(found[2], names, page) if found[1] == "python" else _shell(found[2], path)
            drawn = _figures(folder, page.stem)
            parts += [text[last : found.end()], _shown(printed), *drawn]
            last = found.end()
    return Executed("".join([*parts, text[last:]]), sorted(folder.glob("*.svg")), time.perf_counter() - began)


def _with_command(folder: Path) -> str:
    """The search path with `plurigp`, run by this Python from this checkout, in this folder."""
    folder.mkdir()
    command = folder / "plurigp"
    run = f'PYTHONPATH="{ROOT / "src"}:$PYTHONPATH" exec "{sys.executable}" -m plurigp.cli "$@"'
    command.write_text(f"#!/bin/sh\n{run}\n")
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def _python(code: str, names: dict[str, object], page: Path) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, page.name, "exec"), names)
    return out.getvalue()


def _shell(code: str, path: str) -> str:
    done = subprocess.run(["sh", "-e", "-c", code], env=os.environ | {"PATH": path}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{code}\nends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _shown(printed: str) -> str:
    text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return f'\n<div class="output" markdown>\n\n```text\n{text}\n```\n\n</div>\n' if text else ""


def _figures(folder: Path, stem: str) -> list[str]:
    """Saves what is open in pyplot; the title of a figure is its text for those who do not see it."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    lines = []
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        name = f"{stem}-{len(list(folder.glob('*.svg'))) + 1}.svg"
        title = figure.get_suptitle() or " · ".join(filter(None, (axes.get_title() for axes in figure.axes)))
        figure.savefig(folder / name, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
        lines.append(f"\n![{title}]({name})\n")
    return lines


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    target = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    result = run_page(source, target)
    kept = json.dumps({"markdown": result.markdown, "seconds": result.seconds})
    (target / "page.json").write_text(kept, encoding="utf-8")
    if len(sys.argv) == 2:
        print(result.markdown, f"\n{result.seconds:.1f} s, figures in {target}")
