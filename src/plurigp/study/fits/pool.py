"""Tasks run here, in worker processes or on a Dask cluster; what is finished is on disk and never done again."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

from plurigp.core.forms import FormError, list_form, number_form, optional_form, record_form, text_form
from plurigp.core.types import DataError
from plurigp.data import Schema
from plurigp.estimator import PluriGP, load
from plurigp.estimator.persistence import REMEDY
from plurigp.study.findings.valley import HISTOGRAM, Counts
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.progress import StudyProgress
from plurigp.study.fits.remote import run_on_dask
from plurigp.study.fits.store import errors_name, read_arrays, write_arrays
from plurigp.study.fits.tasks import COUNTED, MAP, SELECT, TRACED, Finished, Task, TaskResult, run_task

FINISHED = record_form(
    {"bound": number_form(), "stopped": text_form(), "notes": list_form(text_form())}, {}, optional_form(number_form())
)
MAPPED = record_form({"group_gain": number_form()}, {}, lambda *_: None)  # what the choice between maps goes by
ALIKE = ("row_score", "labels")  # a number per row of the table or of its held-out part: equally many in every fit
REPEATED = "run the study again: only this fit is repeated."
Tables = Callable[[int], pd.DataFrame]  # the number of a structureless table, or −1 -> its frame


class Pool:
    """Where the fits of a study run and where they are kept.

    n_jobs worker processes of one thread each give the same bytes for every n_jobs; 0 runs the fits in this process.
    """

    def __init__(
        self, folder: Path, schema: Schema, config: StudyConfig, n_jobs: int, dask: str | None, progress: StudyProgress
    ) -> None:
        self.folder, self.schema, self.config = folder, schema, config
        self.n_jobs, self.dask, self.progress = n_jobs, dask, progress
        self._models: dict[str, PluriGP] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, tasks: Sequence[Task], tables: Tables) -> list[Finished]:
        """Every task finished, in the order of `tasks`, which are of one kind; a damaged fit is refused by name."""
        found = {task.name: self._read(task) for task in tasks if self._is_finished(task)}
        self._check_alike(found)
        left = [task for task in tasks if task.name not in found]
        rows_found = sum(len(task.rows) for task in tasks) - sum(len(task.rows) for task in left)
        self.progress.start_stage(tasks[0].kind, len(tasks), len(tasks) - len(left), rows_found)
        for task, finished, model in self._fit(left, tables):
            if model is not None:
                self._models[task.name] = model
                model.save(self.folder / task.name)
            write_arrays(self._path(task.name), finished.arrays, finished.facts)  # after the model: it says "finished"
            self.progress.fit_done(len(task.rows))
        done = {task.name: found[task.name] if task.name in found else self._read(task) for task in tasks}
        self._check_alike(done)
        return list(done.values())

    def model(self, name: str) -> PluriGP:
        """The model of a finished task: the one that this study has just fitted, otherwise read from disk once."""
        if name not in self._models:
            try:
                self._models[name] = load(self.folder / name)
            except DataError as error:
                finding = str(error).removesuffix(REMEDY).rstrip("; ")
                raise DataError(f"{finding}; delete the folder {self.folder / name} and {REPEATED}") from None
        return self._models[name]

    def _path(self, name: str) -> Path:
        """The file that says a task is finished."""
        return self.folder / f"{name}.safetensors"

    def _is_finished(self, task: Task) -> bool:
        return self._path(task.name).exists() and (not task.keeps_model or (self.folder / task.name).exists())

    def _read(self, task: Task) -> Finished:
        finished = Finished(*read_arrays(self._path(task.name), f"delete it and {REPEATED}"))
        with errors_name(self._path(task.name), f"delete it and {REPEATED}"):
            check_finished(task, finished)
        return finished

    def _check_alike(self, finished: Mapping[str, Finished]) -> None:
        """Fits of one kind are of the same rows, although a single one does not tell of how many."""
        shapes = [{name: one.arrays[name].shape for name in ALIKE if name in one.arrays} for one in finished.values()]
        for name, own in zip(finished, shapes, strict=True):
            if own != shapes[0]:
                with errors_name(self._path(name), f"delete it and {REPEATED}"):
                    raise FormError(f"its arrays {', '.join(own)} do not fit those of {next(iter(finished))}")

    def _fit(self, tasks: list[Task], tables: Tables) -> Iterator[TaskResult]:
        if self.dask is not None:
            yield from run_on_dask(self.dask, tasks, tables, _run_in_worker, self.schema, self.config)
            return
        calls = ((task, tables(task.table), self.schema, self.config) for task in tasks)
        if self.n_jobs == 0:
            yield from starmap(run_task, calls)
            return
        # max_nbytes: joblib would put larger arrays into files that outlive a killed process
        with parallel_config("loky", n_jobs=self.n_jobs, inner_max_num_threads=1, max_nbytes=None):
            many = Parallel(return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
            yield from many(delayed(_run_in_worker)(*call) for call in calls)


def check_finished(task: Task, finished: Finished) -> None:
    """What a fit must have left for the study to go on; every number is finite."""
    FINISHED(finished.facts, "facts")
    if task.kind in (MAP, SELECT):
        MAPPED(finished.facts, "facts")
    arrays, n = finished.arrays, len(task.rows)
    shapes: dict[str, tuple[int, ...]] = {
        f"trace.{name}": arrays.get("trace.bound", np.empty(0)).shape for name in TRACED
    }
    if task.kind == MAP:
        shapes |= {"mean": (n, task.n_components), "sd": (n, task.n_components)}
    elif task.kind == SELECT:
        shapes |= dict.fromkeys(("row_score", "row_cells"), arrays.get("row_cells", np.empty(0)).shape)
    else:
        shapes |= {"rows": (n,), **dict.fromkeys(("labels", "gains"), arrays.get("labels", np.empty(0)).shape)}
        shapes |= _shapes_of_counts(task, arrays)
    for name, shape in shapes.items():
        if name not in arrays or arrays[name].shape != shape or len(shape) == 0:
            raise FormError(f"array {name!r} is missing or does not fit the task")
    for name, array in arrays.items():
        if array.dtype.kind not in "fi" or not np.isfinite(array).all():
            raise FormError(f"array {name!r} holds what is no number, or numbers that are not finite")
    if "rows" in shapes:
        K = shapes[f"{COUNTED}middle"][0]
        if not np.array_equal(arrays["rows"], task.rows):
            raise FormError("array 'rows' holds other rows than those of the task")
        if not np.isin(arrays["labels"], np.arange(K)).all():
            raise FormError(f"array 'labels' holds other numbers than those of its {K} clusters")


def _shapes_of_counts(task: Task, arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    """Of the counts between each two clusters of a half map, which has as many as the map where it has the same."""
    K = max(arrays.get(f"{COUNTED}middle", np.empty(0)).shape, default=0)
    K = K if task.shares is None else task.shares.shape[1]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys((f"{COUNTED}{name}" for name in Counts._fields), (K, K))
    return shapes | {f"{COUNTED}histogram": (K, K, len(HISTOGRAM) - 1)}


def _run_in_worker(*call: Any) -> TaskResult:
    """A task on one thread, so that sums have one order on every machine."""
    os.environ["NPROC"] = "1"  # read when JAX starts, which in a fresh process is below
    with warnings.catch_warnings(action="ignore"):  # of a worker nobody reads: those of the fit are among its facts
        return run_task(*call)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
