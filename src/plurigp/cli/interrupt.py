"""Ctrl-C and SIGTERM end the command at once, with nothing left running.

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GRACE = 1.0  # seconds to unwind
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

_received: list[int] = []
_ended = threading.Lock()


@dataclass
class Ending:
    """How a command ends: seconds to unwind, and what is said after the word "interrupted"."""

    grace: float = GRACE
    advice: Callable[[], str] = str  # nothing


_ending = Ending()


def prepare(grace: float, advice: Callable[[], str]) -> None:
    """Give the command more time to unwind, because it saves what it has, and say how to go on."""
    _ending.grace, _ending.advice = grace, advice


def install() -> None:
    """Make both signals end this process within GRACE seconds; a signal that is ignored stays ignored."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.signal(signal.SIGINT, _handle)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _handle)
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    sys.unraisablehook = _report_unless_interrupted
    threading.Thread(target=_watch, args=(read,), daemon=True).start()


def _handle(number: int, _: object) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether a signal arrived; C++ code may have turned the exception into another."""
    return bool(_received)


def _report_unless_interrupted(raised: Any) -> None:
    """An interrupt inside a callback of the garbage collector is lost there; the thread has seen it."""
    if not issubclass(raised.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(raised)


def _watch(read: int) -> None:
    while (number := os.read(read, 1)[0]) not in WORDS:
        pass
    time.sleep(_ending.grace)
    _received.append(number)  # Python may not have come to handle it
    terminate()


def terminate() -> None:
    """Report it once, stop the worker processes, and exit without waiting for any thread."""
    if not _ended.acquire(blocking=False):
        time.sleep(GRACE)  # the other thread is about to end the process
        return
    number = signal.Signals(next(iter(_received), signal.SIGINT))
    for worker in multiprocessing.active_children():
        worker.kill()
    for stream, text in ((sys.stderr, f"{WORDS[number]}{_ending.advice()}\n"), (sys.stdout, "")):
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, or none at all
            continue
    os._exit(128 + number)
