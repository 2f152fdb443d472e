"""SIGKILL of one process of a group, at random moments of a fit by several processes with a checkpoint: the command
goes on by itself, and the model must have the bytes of a fit that nobody disturbed.

    python benchmarks/killed_groups.py [--kills 20] [--processes 2 4]
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save

from plurigp.datasets import simulate

N_ROWS, N_EPOCHS, COLUMNS = 3000, 30, {"gaussian": 3, "bernoulli": 3, "poisson": 2, "beta": 2}


def start(folder: Path, name: str, n: int) -> subprocess.Popen:
    """The command that fits by n processes."""
    settings = ["--epochs", str(N_EPOCHS), "--processes", str(n), "--checkpoint-every", "0"]
    places = ["--checkpoint", str(folder / f"{name}-running"), "--out", str(folder / name)]
    command = [sys.executable, "-m", "plurigp.cli", "fit", str(folder / "table.csv"), *settings, *places]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def group_of(process: subprocess.Popen) -> list[int]:
    """Its children."""
    tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in tasks.read_text().split()]


def model_hash(folder: Path) -> str:
    content = b"".join(path.name.encode() + path.read_bytes() for path in sorted(folder.iterdir()))
    return hashlib.sha256(content).hexdigest()


def undisturbed(folder: Path, n: int) -> tuple[str, float]:
    """The hash that all must end with, and how long the command takes once programs are cached."""
    for turn in ("first", "second"):
        begin = time.monotonic()
        if start(folder, f"{turn}-{n}", n).wait():
            sys.exit("a fit that nobody disturbed has failed")
        seconds = time.monotonic() - begin
    return model_hash(folder / f"second-{n}"), seconds


def disturbed(folder: Path, name: str, n: int, moment: float, rng: random.Random) -> dict:
    """One fit of which one process is killed: which, when, and what became of it."""
    process = start(folder, name, n)
    time.sleep(moment)
    victim = None
    if process.poll() is None and (group := group_of(process)):
        victim = rng.randrange(len(group))
        os.kill(group[victim], signal.SIGKILL)
    said = process.communicate()[1]
    ended = model_hash(folder / name) if process.returncode == 0 else said.strip()
    return {"processes": n, "moment": moment, "victim": victim, "restarted": "all go on from" in said, "ended": ended}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, runs = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(N_ROWS, 2, COLUMNS, 0.1, 0).table.to_csv(folder / "table.csv", index=False)
        expected = {n: undisturbed(folder, n) for n in given.processes}
        while sum(run["victim"] is not None for run in runs) < given.kills:
            n = given.processes[len(runs) % len(given.processes)]
            whole, seconds = expected[n]
            run = disturbed(folder, f"run-{len(runs)}", n, rng.uniform(0.5, seconds), rng)
            runs.append({**run, "same": run["ended"] == whole})
            print({key: value for key, value in runs[-1].items() if key != "ended" or not runs[-1]["same"]}, flush=True)
    killed = [run for run in runs if run["victim"] is not None]
    print(f"{sum(run['same'] for run in killed)} of {len(killed)} ended with the same bytes")
    save("killed_groups", {"runs": runs})


if __name__ == "__main__":
    main()
