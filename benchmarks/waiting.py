"""How long does a person wait? The help page, the first sign of life, and the whole fit of the clinical table.

    python benchmarks/waiting.py

The table is the simulated cohort (1,400 × 46, Q = 10), written as CSV and fitted by the command line in processes of
their own on a terminal of their own: twice with an empty cache of compiled programs, then twice with a full one.
"""

import argparse
import os
import pty
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import save

from plurigp.datasets import simulate_cohort

PLURIGP = [sys.executable, "-m", "plurigp.cli"]


def run_on_terminal(command: list[str], cache: Path) -> dict[str, float]:
    """Seconds until the first characters appear on a terminal, and until the command ends."""
    ours, theirs = pty.openpty()
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"PLURIGP_CACHE": str(cache)}
    )
    os.close(theirs)
    first = None
    while True:
        try:
            seen = os.read(ours, 4096)
        except OSError:  # the terminal closes when the command ends
            break
        if not seen:
            break
        first = first or time.perf_counter() - start
    if process.wait():
        raise SystemExit(f"failed: {' '.join(command)}")
    return {"first_line": first, "whole": time.perf_counter() - start}


def help_page() -> float:
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([*PLURIGP, "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    result: dict = {"help": help_page()}
    print(result, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        cohort = simulate_cohort(random_state=0)
        cohort.table.to_csv(Path(folder) / "cohort.csv", index=False)
        for turn in ("cold", "warm", "cold again", "warm again"):
            cache = Path(folder) / turn.removeprefix("warm").removeprefix("cold").strip()
            command = [*PLURIGP, "fit", str(Path(folder) / "cohort.csv"), "--components", "10", "--seed", "0",
                       "--out", str(Path(folder) / turn)]  # fmt: skip
            result[turn] = run_on_terminal(command, cache / "programs")
            print(turn, result[turn], flush=True)
    save("waiting", result)
