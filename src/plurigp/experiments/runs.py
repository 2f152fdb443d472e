"""Where an experiment keeps what it has done: one JSON file per finished fit, so that the same command goes on."""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import plurigp
from plurigp.study.progress import time_left
from plurigp.study.store import plain, read_json, write_json
from plurigp.types import DataError

PAPER = "paper"  # everything but the page itself is in this folder
SETTINGS = "settings.json"
Work = Callable[[], Mapping[str, Any]]


class Runs:
    """The fits of one experiment in one folder. `sizes` says how large it is; another size is another folder."""

    def __init__(self, out: Path, name: str, sizes: Mapping[str, Any], quiet: bool = False) -> None:
        self.name, self.quiet = name, quiet
        self.paper = out / PAPER
        self.folder = self.paper / "fits" / name
        self._start(plain({"plurigp": plurigp.__version__, **sizes}))

    def _start(self, about: dict[str, Any]) -> None:
        """Say which experiment the folder holds; another one's is refused."""
        path = self.folder / SETTINGS
        if path.exists() and read_json(path) != about:
            raise DataError(f"{self.folder}: holds this experiment in another size or version; name a new folder.")
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(path, about)

    def all(self, tasks: Mapping[str, Work]) -> dict[str, dict[str, Any]]:
        """What every task found, by name; those on disk are not done again."""
        left = [name for name in tasks if not self._path(name).exists()]
        started = time.perf_counter()
        for done, name in enumerate(left):
            at = time.perf_counter()
            found = tasks[name]()
            write_json(self._path(name), found)
            now = time.perf_counter()
            rest = (now - started) / (done + 1) * (len(left) - done - 1)
            self.say(f"{len(tasks) - len(left) + done + 1}/{len(tasks)}  {name}  {now - at:.1f} s  {time_left(rest)}")
        return {name: read_json(self._path(name)) for name in tasks}

    def one(self, name: str, work: Work) -> dict[str, Any]:
        """The same for a single task."""
        return self.all({name: work})[name]

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def figure(self, name: str) -> Path:
        """Where a figure goes."""
        return self.paper / f"{self.name}-{name}.svg"

    def keep(self, results: Mapping[str, Any]) -> None:
        """What the page is made of, as far as it has come."""
        write_json(self.paper / f"{self.name}.json", results)

    def say(self, line: str) -> None:
        """Progress, on standard error: it is read on terminals and in logs."""
        if not self.quiet:
            print(f"{self.name}: {line}", file=sys.stderr, flush=True)
