"""One open model that answers many requests from several threads, and many fits in one process: wrong answers, memory
and time.

    python benchmarks/load.py --requests 100000 --threads 8
    python benchmarks/load.py --fits 1000

A request is one row, or a few, to transform, impute or place in a group. Every answer must be, to the byte, the one
that the same rows got before the load began.
"""

import argparse
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from common import save

from plurigp import PluriGP
from plurigp.datasets import load_support

COLUMNS = ("age", "sex", "diabetes", "heart_rate", "temperature", "sodium")
ASKED = ("transform", "impute", "assign")
MAX_GROWTH = 0.05  # of the memory after the first tenth
SAMPLES = 10  # of the memory over the run
ROWS = (1, 1, 1, 8)  # of a request, in turn


def resident() -> float:
    """Megabytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def answer(model: PluriGP, verb: str, rows: pd.DataFrame) -> bytes:
    """As bytes, so that two can be compared."""
    if verb == "transform":
        return model.transform(rows).tobytes()
    if verb == "impute":
        return model.impute(rows).to_csv(index=False).encode()
    return model.group_probabilities(rows).tobytes()


def requests(table: pd.DataFrame, n_different: int) -> list[tuple[str, pd.DataFrame]]:
    """Different questions, to be asked again and again."""
    starts = range(0, len(table) - max(ROWS), max(1, (len(table) - max(ROWS)) // n_different))
    return [(ASKED[n % 3], table.iloc[s : s + ROWS[n % len(ROWS)]]) for n, s in enumerate(starts)][:n_different]


def serve(model: PluriGP, table: pd.DataFrame, n_requests: int, n_threads: int) -> dict:
    """All requests from a pool of threads that share the model."""
    asked = requests(table, 60)
    expected = [answer(model, *request) for request in asked]
    seconds, memory, lock = np.zeros(n_requests), [], threading.Lock()
    wrong: list[int] = []

    def one(n: int) -> None:
        begin = time.perf_counter()
        right = answer(model, *asked[n % len(asked)]) == expected[n % len(asked)]
        seconds[n] = time.perf_counter() - begin
        if not right:
            with lock:
                wrong.append(n)

    begin = time.perf_counter()
    with ThreadPoolExecutor(n_threads) as pool:
        for part in np.array_split(np.arange(n_requests), SAMPLES):
            list(pool.map(one, part.tolist()))
            memory.append(resident())
            print(f"{part[-1] + 1} requests, {memory[-1]:.0f} MB", flush=True)
    took = time.perf_counter() - begin
    percentiles = {f"p{q}": float(np.percentile(seconds, q) * 1e3) for q in (50, 90, 99, 99.9)}
    growth = memory[-1] / memory[0] - 1
    return {"requests": n_requests, "threads": n_threads, "wrong": len(wrong), "per_second": n_requests / took,
            "milliseconds": percentiles, "megabytes": memory, "growth": growth}  # fmt: skip


def soak(table: pd.DataFrame, n_fits: int) -> dict:
    """Small fits, one after the other, in this process: the bound of each, its time and the memory after it."""
    memory, seconds, bounds = [], [], set()
    for n in range(n_fits):
        begin = time.perf_counter()
        model = PluriGP(n_inducing=10, max_epochs=5, random_state=n % 5).fit(table)
        seconds.append(time.perf_counter() - begin)
        bounds.add(model.elbo_)
        memory.append(resident())
        if (n + 1) % max(1, n_fits // SAMPLES) == 0:
            print(f"{n + 1} fits, {memory[-1]:.0f} MB, {seconds[-1]:.2f} s", flush=True)
    growth = memory[-1] / memory[max(5, n_fits // 10) - 1] - 1
    return {"fits": n_fits, "different": len(bounds), "megabytes": memory[:: max(1, n_fits // SAMPLES)],
            "growth": growth, "median_seconds": float(np.median(seconds)), "longest": max(seconds[5:])}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--fits", type=int, default=0)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    given = parser.parse_args()
    table, found, failed = load_support().table[list(COLUMNS)].iloc[:300], {}, []
    if given.requests:
        model = PluriGP(2, n_groups=2, n_inducing=20, max_epochs=20, random_state=0).fit(table)
        found["serve"] = served = serve(model, table, given.requests, given.threads)
        failed += [f"{served['wrong']} wrong answers"] if served["wrong"] else []
        failed += [f"memory grew by {served['growth']:.1%}"] if served["growth"] > MAX_GROWTH else []
        print({name: value for name, value in served.items() if name != "megabytes"})
    if given.fits:
        found["soak"] = soaked = soak(table, given.fits)
        failed += ["one seed gave several bounds"] if soaked["different"] > min(5, given.fits) else []
        failed += [f"memory grew by {soaked['growth']:.1%}"] if soaked["growth"] > MAX_GROWTH else []
        print({name: value for name, value in soaked.items() if name != "megabytes"})
    if given.save:
        save("load", found)
    if failed:
        sys.exit("; ".join(failed))


if __name__ == "__main__":
    main()
