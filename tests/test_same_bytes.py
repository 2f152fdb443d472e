"""One seed, one machine, one set of versions: the same model, positions, filled tables, draws and densities whatever
the number of threads, the process, the working directory and the order of other work. Across `n_jobs` of a study:
`tests/study/test_run.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import plurigp

SOURCE = str(Path(plurigp.__file__).parents[1].resolve())
SCRIPT = """
import hashlib, sys
from pathlib import Path
import numpy as np
import pandas as pd
from plurigp import PluriGP
rng = np.random.default_rng(0)
factor = rng.normal(size=(400, 2))
table = pd.DataFrame(factor @ rng.normal(size=(2, 12)) + rng.normal(size=(400, 12))).add_prefix("lab")
table["stage"] = np.where(factor[:, 0] > 0, "late", "early")
table["visits"] = rng.poisson(np.exp(factor[:, 1]))
table["ward"] = rng.choice(["a", "b", "c"], 400)
table = table.mask(rng.random(table.shape) < 0.1)
if sys.argv[2] == "after":
    PluriGP(max_epochs=1, random_state=9).fit(table.iloc[:50])
model = PluriGP(2, max_epochs=5, batch_size=150, second_stage=sys.argv[3], random_state=1).fit(table)
folder = model.save(Path(sys.argv[1]))
said = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
def text(*frames):
    return "".join(frame.to_csv() for frame in frames).encode()
for rows in (table, table.head(20), table.head(1)):  # one program for each
    n = len(rows)
    said[f"transform {n}"] = model.transform(rows).tobytes()
    said[f"impute {n}"] = text(model.impute(rows))
    said[f"draws {n}"] = text(*model.impute_draws(rows, n_draws=3, random_state=5))
    said[f"gaps {n}"] = text(model.describe_gaps(rows, n_draws=20, random_state=5))
    said[f"score {n}"] = model.score_samples(rows).tobytes()
refined = model.set_params(refine=True)
said["refined"] = text(refined.impute(table.head(50)))
for name, part in said.items():
    print(name, hashlib.sha256(part).hexdigest())
"""
WAYS = {
    "one thread": ({"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, "alone"),
    "two threads": ({"NPROC": "2", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}, "alone"),
    "four threads": ({"NPROC": "4", "OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}, "alone"),
    "after another fit": ({"PYTHONHASHSEED": "7"}, "after"),
    "without a cache of programs": ({"PLURIGP_CACHE": ""}, "alone"),
}


def said_by(room: Path, environment: dict[str, str], order: str, second_stage: str) -> str:
    """The hashes that a process of its own prints, in a folder of its own."""
    room.mkdir()
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(room / "model"), order, second_stage]
    own = os.environ | {"PYTHONPATH": SOURCE} | environment
    done = subprocess.run(command, env=own, cwd=room, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_equal_lines(said: dict[str, str]) -> None:
    first, *others = said
    for other in others:
        assert said[other].splitlines() == said[first].splitlines(), f"{other} differs from {first}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("second_stage", ["none", "trees"])
def test_the_same_bytes_with_one_and_two_threads(second_stage, tmp_path):
    ways = ("one thread", "two threads")
    assert_equal_lines({way: said_by(tmp_path / way, *WAYS[way], second_stage) for way in ways})


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.timeout(1800)
def test_the_same_bytes_in_every_way(tmp_path):
    assert_equal_lines({way: said_by(tmp_path / way, *how, "none") for way, how in WAYS.items()})
