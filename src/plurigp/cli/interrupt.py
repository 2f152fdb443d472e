"""Ctrl-C ends the command at once, whatever it is doing, with nothing left running.

Python hears of a signal between two of its own instructions. XLA compiles for many seconds without one, cannot be
stopped, and crashes an interpreter that ends beneath it. So a thread hears of the signal as well: it gives the command
a moment to unwind, in which unfinished files are removed, and then ends the process.
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

_heard, _ended = threading.Event(), threading.Lock()


def listen() -> None:
    """From now on an interrupt ends this process within GRACE seconds; one that is ignored stays ignored."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, _hear)
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    sys.unraisablehook = _say_unless_interrupted
    threading.Thread(target=_watch, args=(read,), daemon=True).start()


def _hear(*_: object) -> None:
    _heard.set()
    raise KeyboardInterrupt


def heard() -> bool:
    """Whether there was an interrupt: code in C++ may have made another error of it on its way."""
    return _heard.is_set()


def _say_unless_interrupted(raised: Any) -> None:
    """An interrupt that arrives inside a callback of the garbage collector is lost there; the thread has heard it."""
    if not issubclass(raised.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(raised)


def _watch(read: int) -> None:
    while os.read(read, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(GRACE)
    end()


def end() -> None:
    """Say so once, stop the worker processes, and leave without waiting for any thread."""
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
