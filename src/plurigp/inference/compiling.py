"""JAX settings of all compiled work (float64, one BLAS thread, sums in an order that the number of threads does not
change, compiled programs cached on disk), and compilation ahead of time in a background thread."""

import atexit
import gc
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from threading import Thread
from typing import Any
from weakref import WeakSet

import jax
from jax.experimental.compilation_cache import compilation_cache

from plurigp.core.threads import SharedContext, single_blas_thread
from plurigp.core.types import INTERRUPTED

CACHE_VARIABLE = "PLURIGP_CACHE"  # a folder for compiled programs; empty switches the cache off
MAX_CACHE_BYTES = 2**30  # of all programs; the least recently used ones go first
MIN_COMPILE_SECONDS = 0.3  # programs that compile faster are not cached
MAX_MEMORY_MAPS = 30_000  # of this process; Linux allows 65,530, and a compiled program takes about ten


def cache_folder() -> Path | None:
    """Where compiled programs are cached: one folder per JAX version and processor, readable by its owner only.

    Programs hold no data: tables enter them as arguments.
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given == "":
        return None
    home = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plurigp"
    folder = home / f"jax-{jax.__version__}-{_processor()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    _limit_cache(home)
    return folder


@cache
def _limit_cache(home: Path) -> None:
    """Once per process, the least recently used programs are deleted until the rest takes MAX_CACHE_BYTES."""
    found: list[tuple[float, int, Path]] = []
    for path in home.glob("jax-*/*"):
        with suppress(OSError):  # another process may be deleting, too
            facts = path.stat()
            found.append((max(facts.st_atime, facts.st_mtime), facts.st_size, path))
    held = 0
    for _, size, path in sorted(found, reverse=True):
        held += size
        if held > MAX_CACHE_BYTES:
            with suppress(OSError):
                path.unlink()


@cache
def _processor() -> str:
    """A program compiled for one processor may not run on another, and machines may share a home folder."""
    try:
        facts = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        facts = platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(facts.encode()).hexdigest()[:8]}"


@contextmanager
def jax_runtime() -> Iterator[None]:
    """Inside, float64 is available and compiled programs are cached; the caller's settings are untouched."""
    with jax.enable_x64(True), single_blas_thread(), _disk_cache():
        yield


@SharedContext
@contextmanager
def _disk_cache() -> Iterator[None]:
    settings: Any = jax.config  # has no types for its options
    folder = None if settings.jax_compilation_cache_dir else cache_folder()
    if folder is None:
        yield
        return
    seconds_before = settings.jax_persistent_cache_min_compile_time_secs
    _set_cache(str(folder), MIN_COMPILE_SECONDS)
    try:
        yield
    finally:
        _set_cache(None, seconds_before)


def _set_cache(folder: str | None, seconds: float) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)
    compilation_cache.reset_cache()


def forget_programs_in_time() -> None:
    """Before a process that has compiled for many shapes runs out of memory maps, which ends it with a crash, drop all
    compiled programs; those that are needed again come from the cache on disk."""
    maps = Path("/proc/self/maps")
    with suppress(OSError):
        if maps.read_bytes().count(b"\n") > MAX_MEMORY_MAPS:
            jax.clear_caches()
            gc.collect()


# --- programs ---

# Products of matrices by YNNPACK, whose rounding does not depend on the number of threads, where Eigen's does; sums by
# XLA's own loops, since YNNPACK adds up in parts, as many as there are threads.
FIXED_ORDER = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"}


# XLA's older code for elementwise loops: two thirds of the compilation, four thirds of the time of a step.
QUICKLY_COMPILED = {"xla_cpu_use_fusion_emitters": False}


@cache
def _compiler_options(quick: bool) -> dict[str, Any]:
    """XLA's options for all programs; none where this jaxlib does not know them: its last digits may differ."""
    options: dict[str, Any] = FIXED_ORDER | QUICKLY_COMPILED if quick else FIXED_ORDER
    try:
        jax.jit(lambda x: x, compiler_options=options).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return _compiler_options(False) if quick else {}
    return dict(options)


class Program:
    """A function compiled by XLA, `jax.jit` with results that do not depend on the number of threads.

    XLA takes its options from the outermost program: within another one, or within a gradient, this is its function.
    A `quick` one is for what runs so rarely, or on so little, that it is compiled for longer than it runs.
    """

    def __init__(self, function: Callable[..., Any], quick: bool = False, **options: Any) -> None:
        self._function, self._quick, self._options = function, quick, options
        update_wrapper(self, function)

    @cached_property
    def _jitted(self) -> Any:
        return jax.jit(self._function, compiler_options=_compiler_options(self._quick), **self._options)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((arguments, named)))
        return (self._function if traced else self._jitted)(*arguments, **named)

    def lower(self, *arguments: Any) -> Any:
        """For arguments of given shapes, as `jax.jit(...).lower`."""
        return self._jitted.lower(*arguments)


def program(**options: Any) -> Callable[[Callable[..., Any]], Program]:
    """`Program` as a decorator with its options and those of `jax.jit`, such as static_argnames."""
    return partial(Program, **options)


# --- compilation ahead of time ---

_COMPILING: "WeakSet[Future[None]]" = WeakSet()


def compile_in_background(*programs: tuple[Any, tuple[Any, ...]]) -> "Future[None]":
    """Compile jitted functions for arguments of given shapes, one after the other, in a thread.

    Nothing is executed: two programs at once must never depend on each other's threads. Waiting for the result can be
    interrupted, unlike compilation in the caller's thread.
    """
    done: Future[None] = Future()

    def run() -> None:
        try:
            for jitted, arguments in programs:
                with jax_runtime():  # float64 is local to a thread, and the caller may have left the cache by then
                    jitted.lower(*arguments).compile()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    _COMPILING.add(done)
    Thread(target=run, daemon=True).start()
    return done


@atexit.register
def _wait_at_exit() -> None:
    """XLA cannot stop compiling, and an interpreter that ends beneath it crashes: wait, or after Ctrl-C end at once."""
    running = [compilation for compilation in _COMPILING if not compilation.done()]
    if running and issubclass(getattr(sys, "last_type", None) or object, KeyboardInterrupt):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(INTERRUPTED)
    wait(running)
