"""The number of threads changes rounding and nothing else; the number of cores not even that."""

import os
import subprocess
import sys

import numpy as np
import pytest

FIT = """
import sys
import numpy as np
from plurigp import PluriGP
from plurigp.datasets import simulate
sim = simulate(300, 2, missing=0.1, random_state=0)
model = PluriGP(2, schema=sim.schema, n_inducing=20, max_epochs=40, random_state=0, calibrate=False).fit(sim.table)
np.savez(sys.argv[1], x=model.transform(sim.table), m=model._q.m, S=model._q.S)
"""


def fitted(folder, n_threads, n_cores):
    """Of a fit in a process of its own, with so many XLA threads on so many cores."""
    path = folder / f"{n_threads}-{n_cores}.npz"
    cores = sorted(os.sched_getaffinity(0))[:n_cores]
    code = f"import os; os.sched_setaffinity(0, {set(cores)})\n{FIT}"
    environment = {**os.environ, "NPROC": str(n_threads)}
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
    return np.load(path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen on this system")
def test_threads_change_rounding_only(tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only")
    one, two, crowded = fitted(tmp_path, 1, 1), fitted(tmp_path, 2, 2), fitted(tmp_path, 2, 1)
    for name in ("m", "S"):
        np.testing.assert_array_equal(two[name], crowded[name], err_msg=name)
    np.testing.assert_allclose(one["x"], two["x"], atol=1e-3)
