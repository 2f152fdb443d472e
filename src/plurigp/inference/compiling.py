"""What all compiled work runs under: float64 where asked for, one BLAS thread, programs kept on disk for the next
process; and compilation ahead of time, on a thread of its own."""

import atexit
import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any
from weakref import WeakSet

import jax
from jax.experimental.compilation_cache import compilation_cache

from plurigp.core.threads import Shared, one_thread
from plurigp.core.types import INTERRUPTED

VARIABLE = "PLURIGP_CACHE"  # a folder for compiled programs; empty switches the cache off
WORTH_KEEPING = 0.3  # seconds of compilation from which a program is kept


def cache_folder() -> Path | None:
    """Where compiled programs are kept: one folder per JAX version and kind of processor, readable by its owner only.

    They hold no data: tables enter compiled programs as arguments.
    """
    given = os.environ.get(VARIABLE)
    if given == "":
        return None
    home = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plurigp"
    folder = home / f"jax-{jax.__version__}-{_processor()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


@cache
def _processor() -> str:
    """A program compiled for one processor may not run on another, and home folders travel."""
    try:
        facts = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        facts = platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"


@contextmanager
def compiled_work() -> Iterator[None]:
    """float64 is available inside, and programs compiled inside are kept; the caller's settings are untouched."""
    with jax.enable_x64(True), one_thread(), _kept_on_disk():
        yield


@contextmanager
def _program_cache() -> Iterator[None]:
    folder = None if _setting("jax_compilation_cache_dir") else cache_folder()
    if folder is None:
        yield
        return
    before = _setting("jax_persistent_cache_min_compile_time_secs")
    _use(str(folder), WORTH_KEEPING)
    try:
        yield
    finally:
        _use(None, before)


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


def _use(folder: str | None, seconds: float) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)
    compilation_cache.reset_cache()


_kept_on_disk = Shared(_program_cache)


# --- compilation ahead of time ---

_COMPILING: "WeakSet[Compilation]" = WeakSet()


class Compilation:
    """Compiles jitted functions for arguments of given shapes on a thread of its own. Nothing is executed: two programs
    at once must never depend on each other's threads. Whoever waits can be interrupted, unlike a caller that compiles.
    """

    def __init__(self, *programs: tuple[Any, tuple[Any, ...]]) -> None:
        self.error: Exception | None = None
        self._done = Event()  # Thread.join, when interrupted, takes a running thread for a finished one (Python 3.11)
        _COMPILING.add(self)
        Thread(target=self._run, args=programs, daemon=True).start()

    def _run(self, *programs: tuple[Any, tuple[Any, ...]]) -> None:
        try:
            for jitted, arguments in programs:
                with jax.enable_x64(True):  # local to a thread
                    jitted.lower(*arguments).compile()
        except Exception as error:
            self.error = error
        finally:
            self._done.set()

    def wait(self) -> None:
        """Until it is done. An error is raised here."""
        self._done.wait()
        if self.error is not None:
            raise self.error

    @property
    def running(self) -> bool:
        return not self._done.is_set()


@atexit.register
def _leave_in_order() -> None:
    """XLA cannot stop compiling, and an interpreter that ends beneath it crashes: wait, or after Ctrl-C end at once."""
    running = [compilation for compilation in _COMPILING if compilation.running]
    if running and issubclass(getattr(sys, "last_type", None) or object, KeyboardInterrupt):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(INTERRUPTED)
    for compilation in running:
        compilation._done.wait()
