"""Checkpoints of a fit: a folder that says which fit it is of, and one file per run, replaced as a whole. No pickle."""

import hashlib
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import jax

import plurigp
from plurigp.core.files import whole_file
from plurigp.core.sealed import (
    DamagedError,
    digest,
    read_sealed_json,
    sealed_arrays,
    sealed_json,
    unsealed_arrays,
)
from plurigp.core.text import jsonable, show
from plurigp.core.types import DataError
from plurigp.data import Coder, Column
from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import BoundSpec
from plurigp.inference.model import Model
from plurigp.inference.parallel import together, wait_for_processes
from plurigp.inference.snapshots import Snapshot, snapshot_arrays, snapshot_from

CHECKPOINT_FORMAT = 1
ABOUT = "checkpoint.json"
RUNS = "run-*.safetensors"
NOT_BOUND = ("schema", "verbose", "random_state")  # the schema is bound as it was settled, the seed as it was drawn
ROWS_AT_ONCE = 65_536  # of a table that may lie on disk
ANEW = "delete the checkpoint's folder and fit anew"
ELSE = "give the same, or name a new folder for the checkpoint"


class Checkpoint:
    """Where a fit keeps its last snapshot, at most every so many seconds; without a folder, nowhere.

    The folder belongs to one fit: other settings, another schema, table or version are refused by name.
    """

    def __init__(self, folder: str | Path | None = None, every: float = 30.0) -> None:
        if not (isinstance(every, int | float) and every >= 0):
            raise ValueError(f"checkpoint_every={every!r} must be a number of seconds, at least 0")
        self.folder, self.every = None if folder is None else Path(folder), every
        self.run, self.about_sha256 = 1, ""
        self.latest: Snapshot | None = None
        self.written_at = time.monotonic()

    @property
    def writes(self) -> bool:
        """Of several processes, which all have the same state, the first one writes it."""
        return self.folder is not None and jax.process_index() == 0

    # --- which fit it is of ---

    def bind(self, given: Mapping[str, Any], coder: Coder, table: TrainingTable, seed: int) -> int:
        """Begin the folder, or find that it is of this very fit; the seed, which a fit without random_state reuses."""
        if self.folder is None:
            return seed
        about = {
            "format": CHECKPOINT_FORMAT,
            "plurigp": plurigp.__version__,
            "jax": jax.__version__,
            "settings": jsonable({name: value for name, value in given.items() if name not in NOT_BOUND}),
            "columns": [[show(c.name, 80), _column_digest(c)] for c in coder.schema],
            "table": _table_digest(table),  # of several processes, of all their rows
            "seed": seed,
        }
        if table.mesh is not None:  # sums over devices round otherwise than on one
            about["devices"], about["processes"] = table.mesh.size, jax.process_count()
        path = self.folder / ABOUT
        if path.exists():
            held = read_sealed_json(path, CHECKPOINT_FORMAT, ANEW)
            try:
                about["seed"] = int(held["seed"]) if given["random_state"] is None else seed
                _refuse_another(self.folder, held, about)
            except DataError:
                raise
            except (KeyError, TypeError, ValueError, AttributeError):
                _refuse_broken(path)
        elif self.writes:
            self._begin(about)
        wait_for_processes()
        self.about_sha256 = digest(sealed_json(about).encode())
        return int(about["seed"])

    def _begin(self, about: dict[str, Any]) -> None:
        assert self.folder is not None
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"{self.folder}: is a file; a checkpoint needs a folder of its own")
        if self.folder.is_dir() and any(not path.name.endswith(".part") for path in self.folder.iterdir()):
            raise DataError(f"{self.folder}: holds other files and no checkpoint; name an empty or a new folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(self.folder / ABOUT) as part:
            part.write_text(sealed_json(about), encoding="utf-8")

    # --- its runs ---

    @property
    def _path(self) -> Path:
        assert self.folder is not None
        return self.folder / RUNS.replace("*", str(self.run))

    def resume(self, run: int, spec: BoundSpec, model: Model, optimizer: str) -> Snapshot | None:
        """The last snapshot of this run, if it has one; the coming snapshots are of this run."""
        self.run, self.latest, self.written_at = run, None, time.monotonic()
        if self.folder is None or not self._path.exists():
            return None
        try:
            arrays, facts = unsealed_arrays(self._path.read_bytes())
            if facts["fit"] == self.about_sha256:
                return snapshot_from(arrays, facts, spec, model, optimizer)
        except (DamagedError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            _refuse_broken(self._path)
        raise DataError(f"{self._path}: is of another fit than {ABOUT} beside it; {ELSE}")

    def keep(self, snapshot: Snapshot) -> None:
        """Remember the snapshot, and write it if it is time."""
        if not self.writes:
            return
        self.latest = snapshot
        if time.monotonic() - self.written_at >= self.every:
            self.save()

    def save(self) -> None:
        """Write the last snapshot now, unless it is written already."""
        if self.latest is None:
            return
        arrays, facts = snapshot_arrays(self.latest)
        with whole_file(self._path) as part:
            part.write_bytes(sealed_arrays(arrays, {**facts, "fit": self.about_sha256}))
        self.latest, self.written_at = None, time.monotonic()

    @contextmanager
    def saved_when_stopped(self) -> Iterator[None]:
        """Inside, Ctrl-C and SIGTERM write the last snapshot before the fit ends, and the error says how to go on."""
        if self.folder is None:
            yield
            return
        with _sigterm_exits():
            try:
                yield
            except (KeyboardInterrupt, SystemExit, RuntimeError, MemoryError) as stop:
                self.save()
                stop.add_note(f"The same call of fit with checkpoint={str(self.folder)!r} goes on from here.")
                raise


def has_checkpoint(folder: Path) -> bool:
    """Whether a run of a fit could go on from this folder."""
    return next(folder.glob(RUNS), None) is not None


def remove_checkpoint(folder: Path) -> None:
    """Remove what a fit that is finished has kept in the folder, and the folder if nothing else is in it."""
    for pattern in (RUNS, ABOUT, ".*.part"):  # runs first: they are worth nothing without the rest, not vice versa
        for path in folder.glob(pattern):
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


@contextmanager
def _sigterm_exits() -> Iterator[None]:
    """SIGTERM raises SystemExit, where it would end the process without a word; a handler of the caller's stays."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def exit_with_its_code(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, exit_with_its_code)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


# --- hashes, and what is refused ---


def _column_digest(column: Column) -> str:
    """Of all that the schema says of a column but for why."""
    return digest(sealed_json(jsonable(replace(column, reason="").to_dict())).encode())


def _table_digest(table: TrainingTable) -> str:
    """Of the coded cells, a part of the rows at a time."""
    content = hashlib.sha256(f"{table.values.dtype} {table.values.shape} {table.seen.shape}".encode())
    for first in range(0, len(table.values), ROWS_AT_ONCE):
        for part in (table.values, table.seen, table.weights):
            if part is not None:
                content.update(part[first : first + ROWS_AT_ONCE].tobytes())
    return together(content.hexdigest())


def _refuse_broken(path: Path) -> NoReturn:
    raise DataError(f"{path}: was changed or cut short; {ANEW}") from None


def _refuse_another(folder: Path, held: dict[str, Any], about: dict[str, Any]) -> None:
    """Name the first thing in which the fit that the folder is of differs from the one that is asked for."""
    flat = [{**fit["settings"], **{name: fit[name] for name in ("format", "plurigp", "jax")}} for fit in (held, about)]
    for facts, fit in zip(flat, (held, about), strict=True):
        facts["number of devices"], facts["number of processes"] = fit.get("devices", 1), fit.get("processes", 1)
    for name, now in flat[1].items():
        if (before := flat[0].get(name)) != now:
            found = f"the checkpoint of a fit with another {name} ({show(before)} there, {show(now)} here)"
            raise DataError(f"{folder}: holds {found}; {ELSE}")
    columns = [dict(fit["columns"]) for fit in (held, about)]
    for name in [*columns[1], *columns[0]]:
        if columns[0].get(name) != columns[1].get(name):
            raise DataError(f"{folder}: holds the checkpoint of a fit with another schema of column {name}; {ELSE}")
    for name, called in (("columns", "order of the columns"), ("table", "table"), ("seed", "random_state")):
        if held[name] != about[name]:
            raise DataError(f"{folder}: holds the checkpoint of a fit with another {called}; {ELSE}")
