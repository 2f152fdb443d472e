"""One BLAS thread for the whole process, for as long as any of its threads asks for it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class Shared:
    """A context of the whole process, for any number of threads: the first to enter opens it, the last one closes."""

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


def one_thread() -> AbstractContextManager[None]:
    """BLAS and OpenMP stay at one thread as long as anybody, in any thread of the process, is inside.

    Small factorisations are slower on two, fight XLA's own threads, and round differently: answers must not depend
    on how many threads there were.
    """
    return _ONE_THREAD()


@cache
def _libraries() -> ThreadpoolController:
    """To look for them takes milliseconds, as much as an answer for one row: once is enough."""
    return ThreadpoolController()


_ONE_THREAD = Shared(lambda: _libraries().limit(limits=1))
