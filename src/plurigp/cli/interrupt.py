"""Ctrl-C ends the command at once, with nothing left running.

Python handles a signal between two of its own instructions. XLA compiles for many seconds without one, cannot be
stopped, and crashes an interpreter that ends during compilation. So a thread watches for the signal as well: it gives
the command a moment to unwind, in which unfinished files are removed, and then ends the process.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import Any

from plurigp.core.types import INTERRUPTED

GRACE = 1.0  # seconds to unwind

_received, _ended = threading.Event(), threading.Lock()


def install() -> None:
    """Make SIGINT end this process within GRACE seconds; a signal that is ignored stays ignored."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, _handle)
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    sys.unraisablehook = _report_unless_interrupted
    threading.Thread(target=_watch, args=(read,), daemon=True).start()


def _handle(*_: object) -> None:
    _received.set()
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether SIGINT arrived; C++ code may have turned the exception into another."""
    return _received.is_set()


def _report_unless_interrupted(raised: Any) -> None:
    """An interrupt inside a callback of the garbage collector is lost there; the thread has seen it."""
    if not issubclass(raised.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(raised)


def _watch(read: int) -> None:
    while os.read(read, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(GRACE)
    terminate()


def terminate() -> None:
    """Report it once, stop the worker processes, and exit without waiting for any thread."""
    if not _ended.acquire(blocking=False):
        time.sleep(GRACE)  # the other thread is about to end the process
        return
    for worker in multiprocessing.active_children():
        worker.kill()
    for stream, text in ((sys.stderr, "interrupted\n"), (sys.stdout, "")):
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, or none at all
            continue
    os._exit(INTERRUPTED)
