"""SIGKILL at random moments of small fits with checkpoints: each goes on until it is done, and the model must have the
bytes of a fit that nobody disturbed. A checkpoint is written after every epoch, so that many kills strike a write.

    python benchmarks/killed_fits.py --kills 300
"""

import argparse
import hashlib
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import save

from plurigp.estimator import PluriGP

MAX_KILLS = 4  # of one fit; then it may finish
FITS = {
    "natural": {},
    "adam": {"optimizer": "adam", "encoder": "masked"},
    "groups": {"n_groups": 2},
    "restarts": {"n_init": 2, "max_epochs": 25},
}


def table(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    factor = rng.normal(size=n)
    frame = pd.DataFrame({"lab": factor + rng.normal(size=n), "stage": np.where(factor > 0, "late", "early")})
    return frame.mask(rng.random(frame.shape) < 0.1)


def fitted_bytes(params: dict, out: Path, checkpoint: Path | None) -> str:
    """Fit, save, and the hash of what was saved."""
    settings = {"n_inducing": 6, "max_epochs": 50, "tol": 0.0, "random_state": 3, **params}
    folder = PluriGP(**settings).fit(table(), checkpoint=checkpoint, checkpoint_every=0.0).save(out)
    content = b"".join(path.name.encode() + path.read_bytes() for path in sorted(folder.iterdir()))
    return hashlib.sha256(content).hexdigest()


def in_child(params: dict, folder: Path, checkpoint: Path | None) -> int:
    """Fork before JAX has started anything: a child costs no imports. It leaves the hash in a file."""
    child = os.fork()
    if child:
        return child
    try:
        (folder / "hash").write_text(fitted_bytes(params, folder / "model", checkpoint))
        os._exit(0)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


def undisturbed(params: dict, folder: Path) -> tuple[str, float]:
    """The hash that all must end with, and how long a child takes once programs are cached."""
    seconds, hashes = 0.0, set()
    for name in ("without", "with"):
        (folder / name).mkdir(parents=True)
        begin = time.monotonic()
        _, status = os.waitpid(in_child(params, folder / name, folder / "running" if name == "with" else None), 0)
        seconds = time.monotonic() - begin
        if status:
            sys.exit("a fit that nobody disturbed has failed")
        hashes.add((folder / name / "hash").read_text())
    if len(hashes) > 1:
        sys.exit("undisturbed fits, with checkpoints and without, differ from each other")
    return hashes.pop(), seconds


def kill_at(child: int, seconds: float) -> tuple[bool, int]:
    """Whether the child was still there to be killed, and its status."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return False, status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), status


def disturbed(params: dict, folder: Path, seconds: float, rng: random.Random, most: int) -> dict:
    """One fit, killed up to `most` times: at which moments, and what it ended with."""
    folder.mkdir()
    moments: list[float] = []
    while len(moments) < most:
        moment = rng.uniform(0.0, seconds)
        killed, status = kill_at(in_child(params, folder, folder / "running"), moment)
        if not killed:
            break
        moments.append(moment)
    else:
        _, status = os.waitpid(in_child(params, folder, folder / "running"), 0)
    ended = (folder / "hash").read_text() if status == 0 else None
    return {"kills": len(moments), "moments": moments, "status": status, "hash": ended}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--fits", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    given = parser.parse_args()
    rng, runs = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as name:
        expected = {what: undisturbed(FITS[what], Path(name) / what) for what in given.fits}
        while (left := given.kills - sum(run["kills"] for run in runs)) > 0:
            what = given.fits[len(runs) % len(given.fits)]
            whole, seconds = expected[what]
            run = disturbed(FITS[what], Path(name) / f"run-{len(runs)}", seconds, rng, min(MAX_KILLS, left))
            runs.append({"what": what, **run, "same": run["hash"] == whole})
            print(f"{len(runs):3d} {what:8s} {run['kills']} kills, same bytes: {runs[-1]['same']}", flush=True)
    kills, wrong = sum(run["kills"] for run in runs), sum(not run["same"] for run in runs)
    print(f"{kills} kills in {len(runs)} fits, {wrong} did not end with the same bytes")
    if given.save:
        save("killed_fits", {"runs": runs, "kills": kills, "wrong": wrong})
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
