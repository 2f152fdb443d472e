"""One seed, one machine, one set of versions: the same model and positions whatever the number of threads, the process,
the working directory and the order of other work. Across `n_jobs`: `tests/study/test_run.py`."""

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
table = table.mask(rng.random(table.shape) < 0.1)
if sys.argv[2] == "after":
    PluriGP(max_epochs=1, random_state=9).fit(table.iloc[:50])
model = PluriGP(2, max_epochs=5, batch_size=150, random_state=1).fit(table)
folder = model.save(Path(sys.argv[1]))
parts = [path.read_bytes() for path in sorted(folder.iterdir())]
parts += [model.transform(table).tobytes()]
print([hashlib.sha256(part).hexdigest() for part in parts])
"""
WAYS = {
    "one thread": ({"NPROC": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, "alone"),
    "two threads": ({"NPROC": "2", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}, "alone"),
    "four threads": ({"NPROC": "4", "OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"}, "alone"),
    "after another fit": ({"PYTHONHASHSEED": "7"}, "after"),
    "without a cache of programs": ({"PLURIGP_CACHE": ""}, "alone"),
}


@pytest.mark.slow
@pytest.mark.trust
@pytest.mark.timeout(1800)
def test_the_same_bytes_in_every_way(tmp_path):
    said = {}
    for way, (environment, order) in WAYS.items():
        room = tmp_path / way.replace(" ", "-")
        room.mkdir()
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(room / "model"), order]
        own = os.environ | {"PYTHONPATH": SOURCE} | environment
        done = subprocess.run(command, env=own, cwd=room, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said[way] = done.stdout
    assert len(set(said.values())) == 1, said
