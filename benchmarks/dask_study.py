"""Does a study on a Dask cluster end with the bytes of two processes, also when workers are killed?

    python benchmarks/dask_study.py [--rows 1400] [--every 30] [--refits 10] [--references 0]

A simulated cohort, by `plurigp study --jobs 2` and by `--dask` on a LocalCluster of two processes of one thread each:
left alone, and with one of its workers killed every so many seconds. Every second the scheduler is asked which keys it
knows and where they are, so that copies of a table can be counted.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save
from distributed import Client, LocalCluster

from plurigp.datasets import simulate_cohort
from study import contents

STUDY = [sys.executable, "-m", "plurigp.cli", "study"]


def start_study(folder: Path, out: str, given: argparse.Namespace, *where: str) -> subprocess.Popen:
    options = ["--refits", str(given.refits), "--references", str(given.references), "--seed", "0"]
    command = [*STUDY, str(folder / "table.csv"), "--out", str(folder / out), *options, *where]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def copies(client: Client) -> int:
    """The most copies that any one worker has of one key."""
    return max((len(places) - len(set(places)) + 1 for places in client.who_has().values() if places), default=0)


def on_dask(folder: Path, out: str, given: argparse.Namespace, every: float) -> dict:
    """One study on a cluster of its own; `every` 0 kills nothing."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": "CRITICAL"}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        start = last = time.monotonic()
        running, kills, most = start_study(folder, out, given, "--dask", cluster.scheduler_address), 0, 0
        while running.poll() is None:
            time.sleep(1)
            most = max(most, copies(client))
            if every and time.monotonic() - last > every:
                last, kills = time.monotonic(), kills + 1
                workers = list(cluster.workers.values())
                os.kill(workers[kills % len(workers)].process.process.pid, signal.SIGKILL)
        return {"code": running.returncode, "seconds": time.monotonic() - start, "kills": kills, "copies": most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 1400), ("every", 30), ("refits", 10), ("references", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, runs = Path(name), {}
        simulate_cohort(given.rows, 3, random_state=0).table.to_csv(folder / "table.csv", index=False)
        start = time.monotonic()
        if start_study(folder, "here", given, "--jobs", "2").wait():
            sys.exit("the study has failed")
        runs["processes"] = {"seconds": time.monotonic() - start}
        whole = contents(folder / "here")
        for out, every in (("alone", 0), ("killed", given.every)):
            runs[out] = on_dask(folder, out, given, every)
            runs[out]["same"] = contents(folder / out) == whole
            print(out, runs[out], flush=True)
    save("dask_study", {"rows": given.rows, "refits": given.refits, "runs": runs})


if __name__ == "__main__":
    main()
