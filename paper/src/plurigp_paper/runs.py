"""Where an experiment keeps what it has done: one JSON file per finished fit, so that the same command goes on."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

import plurigp
from plurigp.core.types import DataError
from plurigp.study.fits.pool import available_cores
from plurigp.study.fits.store import plain, read_json, write_json

PAPER = "paper"  # everything but the page itself is in this folder
SETTINGS = "settings.json"
Work = Callable[[], Mapping[str, Any]]
Figures = Callable[[str], Path]  # where the figure of that name goes


def figure_path(paper: Path, experiment: str, name: str) -> Path:
    """Where a figure of an experiment goes."""
    return paper / f"{experiment}-{name}.svg"


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

    def all(self, tasks: Mapping[str, Work], side_by_side: bool = False) -> dict[str, dict[str, Any]]:
        """What every task found, by name; those on disk are not done again.

        Side by side, the cores share the groups of tasks whose names differ in their last part only: a group has one
        compiled program. What is timed must not be done so.
        """
        left = [name for name in tasks if not self.path(name).exists()]
        groups: dict[str, dict[str, Work]] = {}
        for name in left:
            groups.setdefault(name.rsplit("-", 1)[0], {})[name] = tasks[name]
        share = partial(_work, self, list(tasks), time.time(), len(tasks) - len(left))
        n_jobs = min(available_cores(), len(groups)) if side_by_side else 1
        if n_jobs > 1:
            calls = (delayed(share)(group, True) for group in groups.values())
            Parallel(n_jobs=n_jobs, pre_dispatch="n_jobs", batch_size=1, max_nbytes=None)(calls)
        else:
            share({name: tasks[name] for name in left}, False)
        return {name: read_json(self.path(name)) for name in tasks}

    def one(self, name: str, work: Work) -> dict[str, Any]:
        """The same for a single task."""
        return self.all({name: work})[name]

    def path(self, name: str) -> Path:
        """Where a finished task is kept."""
        return self.folder / f"{name}.json"

    def figure(self, name: str) -> Path:
        """Where a figure goes."""
        return figure_path(self.paper, self.name, name)

    def keep(self, results: Mapping[str, Any]) -> None:
        """What the page is made of, as far as it has come."""
        write_json(self.paper / f"{self.name}.json", results)

    def say(self, line: str) -> None:
        """Progress, on standard error: it is read on terminals and in logs."""
        if not self.quiet:
            print(f"{self.name}: {line}", file=sys.stderr, flush=True)


def _work(
    runs: Runs, names: Sequence[str], started: float, n_found: int, tasks: Mapping[str, Work], one_thread: bool
) -> None:
    """Do some tasks one after the other, here or in a process of its own; each is kept as soon as it is done."""
    if one_thread:
        os.environ["NPROC"] = "1"  # read when JAX starts, which in a fresh process is below
    for name, work in tasks.items():
        at = time.perf_counter()
        write_json(runs.path(name), work())
        seconds = time.perf_counter() - at
        n_done = sum(runs.path(other).exists() for other in names)
        rest = (time.time() - started) / max(n_done - n_found, 1) * (len(names) - n_done)
        runs.say(f"{n_done}/{len(names)}  {name}  {seconds:.1f} s  {_time_left(rest)}")


def _time_left(seconds: float) -> str:
    return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"
