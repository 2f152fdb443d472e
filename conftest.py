"""What all tests share: one CPU, fast compilation, repeatable examples, a small table with columns of every kind."""

import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Tests compile far more than they compute: XLA's older code generator without optimisation compiles three times
# as fast. A jaxlib that no longer knows the flag stops at once and names it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")
os.environ.setdefault("PLURIGP_CACHE", str(Path(__file__).parent / ".pytest_cache" / "compiled"))

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

MAX_MAPS = 20_000  # memory maps; Linux gives a process 65,530, a compiled program takes about ten
MAX_SILENCE = 900  # seconds without a finished test; a single one fails after `timeout` in pyproject.toml


@pytest.fixture(autouse=True, scope="module")
def _few_memory_maps() -> Iterator[None]:
    """Forgets compiled programs before a process runs out of memory maps, which ends it with a segmentation fault."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MAX_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of a process: Playwright runs only once at a time."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    from plurigp.report import find_browser

    chromium = find_browser()
    if chromium is None:
        pytest.skip("no Chromium, Chrome or Edge on this machine")
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        yield started
        started.close()


class Watchdog:
    """Ends a run whose workers have died or hang: the process that waits for them has no time limit of its own."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def pytest_runtest_logreport(self) -> None:
        self.last = time.monotonic()

    def _watch(self) -> None:
        while time.monotonic() - self.last < MAX_SILENCE:
            time.sleep(5)  # polls: there is nothing to wait for when workers are gone
        os.write(2, f"\nno test has finished for {MAX_SILENCE} seconds; giving up\n".encode())
        os._exit(3)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "trust: long checks of docs/trust.md; run by `make trust`")
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Watchdog(), "watchdog")


@pytest.fixture
def rng() -> np.random.Generator:
    """Randomness that is the same in every run."""
    return np.random.default_rng(20210413)


@pytest.fixture
def mixed_frame(rng: np.random.Generator) -> pd.DataFrame:
    """120 rows around one factor: an id, a real, a yes/no, a count, a proportion and a category, a tenth of it gaps."""
    n = 120
    factor = rng.normal(size=n)
    stages = np.array(["early", "late", "middle"])[np.digitize(factor + 0.3 * rng.normal(size=n), [-0.5, 0.5])]
    frame = pd.DataFrame(
        {
            "patient": [f"P{i:04d}" for i in range(n)],
            "albumin": 3.5 + 0.5 * factor + 0.2 * rng.normal(size=n),
            "diabetes": np.where(factor + rng.normal(size=n) > 0, "yes", "no"),
            "visits": rng.poisson(np.exp(1.0 + 0.5 * factor)).astype(float),
            "ejection": 1 / (1 + np.exp(-factor - 0.3 * rng.normal(size=n))),
            "stage": stages,
        }
    )
    for name in frame.columns[1:]:
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame
