"""Tasks on a real Dask cluster: tables sent once, dead workers replaced, the same bytes as worker processes here."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import Coder, infer_schema
from plurigp.study.fits import remote
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.pool import Pool
from plurigp.study.fits.progress import StudyProgress
from plurigp.study.fits.remote import run_on_dask
from plurigp.study.fits.tasks import Task

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # those of tornado and of a cluster that ends are not ours


def tasks(n: int, n_tables: int = 1) -> list[Task]:
    return [Task(f"map-{number}", 2, np.arange(80), number % n_tables) for number in range(n)]


def cluster(**options):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL", **options
    )


def test_every_task_once_and_every_table_sent_once():
    sent = []

    def table(number):
        sent.append(number)
        return number

    with cluster(processes=False) as here:
        got = list(run_on_dask(here.scheduler_address, tasks(9, 3), table, lambda task, *rest: (task.name, *rest), "x"))
    assert sorted(got) == sorted((f"map-{number}", number % 3, "x") for number in range(9))
    assert sorted(sent) == [0, 1, 2]


def test_an_error_of_a_task_is_raised_here():
    def fail(*_):
        raise DataError("column 'age': all gone")

    with cluster(processes=False) as here, pytest.raises(DataError, match="column 'age'"):
        list(run_on_dask(here.scheduler_address, tasks(2), int, fail))


def test_a_task_that_kills_its_workers_ends_the_study(monkeypatch):
    monkeypatch.setattr(remote, "MAX_LOSSES", 1)
    monkeypatch.setattr(remote, "_is_lost", lambda future: True)
    with cluster(processes=False) as here, pytest.raises(DataError, match="fit map-0 lost 1 workers"):
        list(run_on_dask(here.scheduler_address, tasks(1), int, lambda *_: None))


@pytest.mark.slow
def test_what_a_killed_worker_had_is_done_again(tmp_path):
    mark = str(tmp_path / "killed")

    def dies_once(task, table):
        if task.name == "map-2" and not os.path.exists(mark):
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return task.name, table, os.getpid()

    with cluster(processes=True) as here:
        got = list(run_on_dask(here.scheduler_address, tasks(8), lambda _: "the table", dies_once))
    assert Path(mark).exists()
    assert sorted(name for name, _, _ in got) == [f"map-{number}" for number in range(8)]
    assert {table for _, table, _ in got} == {"the table"}
    assert os.getpid() not in {process for _, _, process in got}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_same_bytes_as_two_worker_processes_while_workers_die(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    frame = pd.DataFrame({"sodium": x + rng.normal(size=80), "urea": x - rng.normal(size=80), "sex": x > 0})
    schema = Coder.fit(frame, infer_schema(frame)).schema
    config = StudyConfig(max_epochs=5)

    def run(folder: Path, address: str | None, on_done=lambda: None) -> dict[str, bytes]:
        progress = StudyProgress(800, False)
        progress.fit_done = lambda n_rows: on_done()
        Pool(folder, schema, config, 2, address, progress).run(tasks(4), lambda _: frame)
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    with cluster(processes=True) as there:

        def kill_one() -> None:
            process = next(iter(there.workers.values())).process.process
            os.kill(process.pid, signal.SIGKILL)

        ours = run(tmp_path / "dask", there.scheduler_address, kill_one)
    assert ours == run(tmp_path / "processes", None)
