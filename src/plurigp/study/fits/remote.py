"""Tasks on a Dask cluster: a table goes to the workers once, and what a dead worker had under way is done again."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plurigp.core.types import DataError
from plurigp.study.fits.tasks import Task, TaskResult

QUEUED = 2  # tasks per worker thread that the cluster is given at once, so that few tables are there at a time
MAX_LOSSES = 20  # workers that one task may lose before it is taken to be the cause


def run_on_dask(
    address: str, tasks: Sequence[Task], tables: Callable[[int], Any], run: Callable[..., TaskResult], *rest: Any
) -> Iterator[TaskResult]:
    """`run(task, table, *rest)` of every task on the cluster of this scheduler, in the order in which they finish.

    Tables are held by the workers, as long as tasks need them; one that died with its only holder is sent again.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise DataError("a Dask scheduler needs dask; pip install 'plurigp[dask]', or use n_jobs.") from None
    with Client(address, set_as_default=False) as client:
        waiting, held = deque(tasks), dict[int, Any]()
        running: dict[str, tuple[Task, Any]] = {}
        users, losses = Counter(task.table for task in tasks), Counter[str]()
        finished = as_completed(loop=client.loop, raise_errors=False)
        while waiting or running:
            while waiting and len(running) < QUEUED * max(sum(client.nthreads().values()), 1):
                task = waiting.popleft()
                if task.table not in held:
                    held[task.table] = client.scatter(tables(task.table), broadcast=True, hash=False)
                future = client.submit(run, task, held[task.table], *rest, pure=False)
                running[future.key] = task, future
                finished.add(future)
            task, future = running.pop(next(finished).key)
            if _is_lost(future):
                losses[task.name] += 1
                if losses[task.name] > MAX_LOSSES:
                    raise DataError(f"fit {task.name} lost {MAX_LOSSES} workers; give them more memory, then go on.")
                held.pop(task.table, None)
                waiting.append(task)
                continue
            yield future.result()
            users[task.table] -= 1
            if users[task.table] == 0:
                held.pop(task.table, None)


def _is_lost(future: Any) -> bool:
    """Whether its worker or its table went away, rather than that it failed."""
    from distributed.scheduler import KilledWorker

    if future.status in ("cancelled", "lost"):
        return True
    return future.status == "error" and isinstance(future.exception(), KilledWorker)
