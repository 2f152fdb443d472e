"""Tasks run here, in worker processes or on a Dask cluster; what is finished is on disk and never done again."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed, parallel_config

from plurigp.core.files import whole_file
from plurigp.core.types import DataError
from plurigp.data import Schema
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.progress import Progress
from plurigp.study.fits.store import read_arrays, write_arrays
from plurigp.study.fits.tasks import Finished, Task, run_task

Tables = Callable[[int], pd.DataFrame]  # the number of a structureless table, or −1 -> its frame


class Pool:
    """Where the fits of a study run and where they are kept.

    n_jobs worker processes of one thread each give the same bytes for every n_jobs; 0 runs the fits in this process.
    """

    def __init__(
        self, folder: Path, schema: Schema, config: StudyConfig, n_jobs: int, dask: str | None, progress: Progress
    ) -> None:
        self.folder, self.schema, self.config = folder, schema, config
        self.n_jobs, self.dask, self.progress = n_jobs, dask, progress
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, tasks: Sequence[Task], tables: Tables) -> list[Finished]:
        """Every task finished, in the order of `tasks`."""
        left = [task for task in tasks if not self.path(task).exists()]
        self.progress.already([task for task in tasks if self.path(task).exists()])
        for task, finished in self._results(left, tables):
            self._keep(task, finished)
            self.progress.done(task)
        return [Finished(*read_arrays(self.path(task))) for task in tasks]

    def path(self, task: Task) -> Path:
        """The file that says a task is finished."""
        return self.folder / f"{task.name}.safetensors"

    def model_folder(self, task: Task) -> Path:
        return self.folder / task.name

    def _results(self, tasks: list[Task], tables: Tables) -> Iterator[tuple[Task, Finished]]:
        if self.n_jobs == 0:
            for task in tasks:
                yield task, run_task(task, tables(task.table), self.schema, self.config, False)
            return
        with self._backend():
            calls = (delayed(_named)(task, tables(task.table), self.schema, self.config) for task in tasks)
            by_name = {task.name: task for task in tasks}
            many = Parallel(return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
            for name, finished in many(calls):
                yield by_name[name], finished

    def _backend(self) -> AbstractContextManager[Any]:
        if self.dask is None:
            # max_nbytes: joblib would put larger arrays into files that outlive a killed process
            return parallel_config("loky", n_jobs=self.n_jobs, inner_max_num_threads=1, max_nbytes=None)
        try:
            from distributed import Client
        except ImportError:
            raise DataError("a Dask scheduler needs dask; pip install 'dask[distributed]', or use n_jobs.") from None
        stack = ExitStack()
        stack.enter_context(Client(self.dask))
        stack.enter_context(parallel_config("dask", n_jobs=-1))
        return stack

    def _keep(self, task: Task, finished: Finished) -> None:
        """The model first: the file of arrays, written last and as a whole, says that the task is finished."""
        for name, content in finished.model.items():
            folder = self.model_folder(task)
            folder.mkdir(exist_ok=True)
            with whole_file(folder / name) as part:
                part.write_bytes(content)
        write_arrays(self.path(task), finished.arrays, finished.facts)


def _named(task: Task, frame: pd.DataFrame, schema: Schema, config: StudyConfig) -> tuple[str, Finished]:
    return task.name, run_task(task, frame, schema, config, True)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
