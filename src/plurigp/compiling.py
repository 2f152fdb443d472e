"""What all compiled work runs under: float64 where asked for, one BLAS thread, and programs kept on disk for the next
process."""

import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache
from threadpoolctl import ThreadpoolController

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


@dataclass
class _Holders:
    """Those who hold BLAS and OpenMP at one thread, and what ends it."""

    lock: Lock = field(default_factory=Lock)
    n: int = 0
    end: ExitStack = field(default_factory=ExitStack)


_HOLDERS = _Holders()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and OpenMP stay at one thread as long as anybody, in any thread of the process, is inside.

    Small factorisations are slower on two, fight XLA's own threads, and round differently: answers must not depend
    on how many threads there were.
    """
    with _HOLDERS.lock:
        if _HOLDERS.n == 0:
            _HOLDERS.end.enter_context(_libraries().limit(limits=1))
        _HOLDERS.n += 1
    try:
        yield
    finally:
        with _HOLDERS.lock:
            _HOLDERS.n -= 1
            if _HOLDERS.n == 0:
                _HOLDERS.end.close()


@cache
def _libraries() -> ThreadpoolController:
    """To look for them takes milliseconds, as much as an answer for one row: once is enough."""
    return ThreadpoolController()


@contextmanager
def _kept_on_disk() -> Iterator[None]:
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
