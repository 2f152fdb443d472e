"""SIGINT at random moments of fits and studies, with and without compiled programs on disk, from the command line and
from a script: how long until the process has ended, with which exit code, and whether anything is left running.

    python benchmarks/interrupts.py --moments 40
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save

from plurigp.datasets import load_support

MARK = "PLURIGP_INTERRUPTS"  # in the environment of everything that is started, so that what is left can be found
SCRIPT = """
import sys
import pandas as pd
from plurigp import PluriGP
PluriGP(4, random_state=0).fit(pd.read_csv(sys.argv[1]))
"""
LATEST = {"fit": 12.0, "script": 12.0, "study": 40.0}  # seconds within which the signal comes
PATIENCE = 30.0


def commands(folder: Path) -> dict[str, list[str]]:
    """Each from the same small table."""
    table, plurigp = str(folder / "table.csv"), [sys.executable, "-m", "plurigp.cli"]
    return {
        "fit": [*plurigp, "fit", table, "--out", str(folder / "model"), "--force"],
        "script": [sys.executable, "-c", SCRIPT, table],
        "study": [*plurigp, "study", table, "--out", str(folder / "run")],
    }


def left_running(mark: str) -> list[int]:
    """Processes that have the mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def heard() -> None:
    """A shell starts what runs in the background deaf to SIGINT, and its children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(command: list[str], cache: Path | None, moment: float, mark: str) -> dict:
    """Start it, interrupt it, and watch it end. A script that the signal itself ends counts as 130, as in a shell."""
    environment = os.environ | {MARK: mark, "PLURIGP_CACHE": "" if cache is None else str(cache)}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=heard
    )
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    start = time.perf_counter()
    try:
        _, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        _, errors = process.communicate()
    seconds = time.perf_counter() - start
    time.sleep(0.2)
    code = 128 + signal.SIGINT if process.returncode == -signal.SIGINT else process.returncode
    left = left_running(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return {"code": code, "seconds": seconds, "left": len(left), "said": errors.decode().strip().splitlines()[-1:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=40)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, runs = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load_support().table.iloc[: given.rows].to_csv(folder / "table.csv", index=False)
        cache = folder / "cache"
        subprocess.run(commands(folder)["fit"], env=os.environ | {"PLURIGP_CACHE": str(cache)}, check=True)
        for number in range(given.moments):
            what, cached = ("fit", "study", "script")[number % 3], number % 2 == 0
            moment = rng.uniform(0.1, LATEST[what])
            found = interrupt(commands(folder)[what], cache if cached else None, moment, f"{os.getpid()}-{number}")
            runs.append({"what": what, "cached": cached, "moment": moment, **found})
            print(f"{number:3d} {what:6s} cached={cached!s:5s} at {moment:5.1f} s: {found}", flush=True)
    interrupted = [run for run in runs if run["code"] != 0]
    wrong = [run for run in interrupted if run["code"] != 130 or run["seconds"] > 2 or run["left"]]
    longest = max(run["seconds"] for run in interrupted)
    print(f"{len(interrupted)} interrupted of {len(runs)}, longest {longest:.2f} s, wrong {len(wrong)}")
    save("interrupts", {"runs": runs, "longest": longest, "wrong": len(wrong)})


if __name__ == "__main__":
    main()
