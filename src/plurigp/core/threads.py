"""One BLAS thread for the whole process, for as long as any of its threads asks for it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class SharedContext:
    """A process-wide context for any number of threads: the first to enter opens it, the last to leave closes it."""

    def __init__(self, open_context: Callable[[], AbstractContextManager[Any]]) -> None:
        self._open, self._lock, self._n, self._close = open_context, Lock(), 0, ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._n == 0:
                self._close.enter_context(self._open())
            self._n += 1
        try:
            yield
        finally:
            with self._lock:
                self._n -= 1
                if self._n == 0:
                    self._close.close()


@cache
def _libraries() -> ThreadpoolController:
    """The search takes milliseconds, as long as an answer for one row: once is enough."""
    return ThreadpoolController()


@SharedContext
def single_blas_thread() -> AbstractContextManager[None]:
    """BLAS and OpenMP have one thread while any thread of the process is inside.

    Small factorisations are slower on two, compete with XLA's own threads, and round differently: answers must not
    depend on the number of threads.
    """
    return _libraries().limit(limits=1)
