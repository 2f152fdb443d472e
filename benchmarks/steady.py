"""Does every fit end? Many short default fits one after the other in one process, at three shapes, pinned to two cores
and to one, alone and beside a busy process; fits in several threads at once; and answers of one model to many threads.

    python benchmarks/steady.py                       # all of it: about an hour on two cores
    python benchmarks/steady.py --shapes clinical --fits 20
    python benchmarks/steady.py --threads-only

A fit that takes longer than --patience seconds counts as hung: the stacks of all threads are printed, and the process
that hangs is ended.
"""

import argparse
import faulthandler
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from common import save, saved

from plurigp import PluriGP
from plurigp.datasets import load_support, simulate_cohort
from plurigp_paper.digits import digits

BUSY = [sys.executable, "-c", "while True: sum(i * i for i in range(10_000))"]
ANSWERS = ("transform", "impute", "describe_gaps", "score_samples")


def shapes() -> dict[str, tuple[pd.DataFrame, int]]:
    """Table and Q: the paper's clinical shape, its digits, and patients with every kind of column."""
    images = digits(n_per_digit=200).table
    return {
        "clinical": (simulate_cohort(1400).table, 10),
        "digits": (images, 6),
        "support": (load_support().table.iloc[:2000], 5),
    }


def fit(frame: pd.DataFrame, n_components: int, seed: int) -> PluriGP:
    return PluriGP(n_components, max_epochs=10, random_state=seed).fit(frame)


def many_fits(shape: str, n_fits: int, patience: float) -> list[float]:
    """Seconds of each."""
    frame, Q = shapes()[shape]
    seconds = []
    for seed in range(n_fits):
        faulthandler.dump_traceback_later(patience, exit=True)
        start = time.perf_counter()
        fit(frame, Q, seed)
        seconds.append(time.perf_counter() - start)
        faulthandler.cancel_dump_traceback_later()
    return seconds


def in_a_process(shape: str, n_fits: int, cores: set[int], busy: bool, patience: float) -> dict:
    """The same in a process of its own on these cores, beside a busy one if asked for."""
    other = subprocess.Popen(BUSY, preexec_fn=lambda: os.sched_setaffinity(0, cores)) if busy else None
    command = [sys.executable, __file__, "--child", shape, "--fits", str(n_fits), "--patience", str(patience)]
    try:
        done = subprocess.run(
            command, preexec_fn=lambda: os.sched_setaffinity(0, cores), stdout=subprocess.PIPE, text=True
        )
    finally:
        if other is not None:
            other.kill()
    seconds = [float(line) for line in done.stdout.split()] if done.returncode == 0 else []
    return {
        "fits": n_fits,
        "done": len(seconds),
        "first": seconds[0] if seconds else None,
        "longest": max(seconds, default=None),
        "median": float(np.median(seconds)) if seconds else None,
    }


def as_bytes(answer: object) -> bytes:
    if isinstance(answer, pd.DataFrame):
        return answer.to_csv().encode()
    return np.asarray(answer).tobytes()


def threads(n_fit_threads: int, n_fits: int, n_answer_threads: int, patience: float) -> dict:
    """Fits in threads and answers in threads, against the same calls made alone, byte by byte."""
    faulthandler.dump_traceback_later(20 * patience, exit=True)
    frame, Q = shapes()["clinical"]
    alone = {seed: fit(frame, Q, seed).transform(frame).tobytes() for seed in range(n_fits)}
    together: list[bool] = []

    def several(_: int) -> None:
        for seed in range(n_fits):
            together.append(fit(frame, Q, seed).transform(frame).tobytes() == alone[seed])

    start = time.perf_counter()
    with ThreadPoolExecutor(n_fit_threads) as pool:
        list(pool.map(several, range(n_fit_threads)))
    seconds = time.perf_counter() - start
    model = fit(frame, Q, 0)
    expected = {name: as_bytes(getattr(model, name)(frame)) for name in ANSWERS}
    same: list[bool] = []

    def ask(number: int) -> None:
        for name in np.roll(ANSWERS, number):
            same.append(as_bytes(getattr(model, name)(frame)) == expected[name])

    workers = [threading.Thread(target=ask, args=(number,)) for number in range(n_answer_threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    faulthandler.cancel_dump_traceback_later()
    return {
        "fits": len(together),
        "fits_same_bytes": sum(together),
        "seconds": seconds,
        "answers": len(same),
        "answers_same_bytes": sum(same),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=["clinical", "digits", "support"])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--fits-on-one-core", type=int, default=30)
    parser.add_argument("--patience", type=float, default=120.0)
    parser.add_argument("--threads-only", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print("\n".join(map(str, many_fits(given.child, given.fits, given.patience))))
        return
    cores = sorted(os.sched_getaffinity(0))
    result = saved("steady")
    for shape in () if given.threads_only else given.shapes:
        for name, n_fits, own, busy in (
            ("two cores", given.fits, set(cores[:2]), False),
            ("two cores, one busy", given.fits, set(cores[:2]), True),
            ("one core", given.fits_on_one_core, set(cores[:1]), False),
        ):
            found = in_a_process(shape, n_fits, own, busy, given.patience)
            print(shape, name, found, flush=True)
            result.setdefault(shape, {})[name] = found
            save("steady", result)
    result["threads"] = threads(4, 10, 8, given.patience)
    print("threads", result["threads"], flush=True)
    save("steady", result)


if __name__ == "__main__":
    main()
