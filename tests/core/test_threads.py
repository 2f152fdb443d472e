"""The number of threads changes rounding and nothing else; the number of cores not even that. Any number of threads may
fit and ask at once."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.datasets import simulate

FIT = """
import sys
import numpy as np
from plurigp import PluriGP
from plurigp.datasets import simulate
sim = simulate(300, 2, missing=0.1, random_state=0)
model = PluriGP(2, schema=sim.schema, n_inducing=20, max_epochs=40, random_state=0, calibrate=False).fit(sim.table)
np.savez(sys.argv[1], x=model.transform(sim.table), m=model._fitted.q.m, S=model._fitted.q.S)
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


# --- several threads at once ---


@pytest.fixture(scope="module")
def table():
    return simulate(150, 2, {"gaussian": 3, "bernoulli": 2, "categorical": 1, "lognormal": 1}, 0.1, 0)


def fit(table, seed=0):
    return PluriGP(2, schema=table.schema, n_inducing=10, max_epochs=3, random_state=seed).fit(table.table)


def as_bytes(answer):
    return answer.to_csv().encode() if isinstance(answer, pd.DataFrame) else np.asarray(answer).tobytes()


def test_fits_in_threads_end_with_the_bytes_of_fits_alone(table):
    """Four at once: with batched LAPACK calls two were enough to wait for each other for ever."""
    alone = [fit(table, seed).transform(table.table).tobytes() for seed in range(3)]
    with ThreadPoolExecutor(4) as pool:
        runs = pool.map(lambda _: [fit(table, seed).transform(table.table).tobytes() for seed in range(3)], range(4))
    assert all(run == alone for run in runs)


def test_one_model_answers_many_threads(table):
    model = fit(table)
    asked = ("transform", "impute", "describe_gaps", "score_samples", "effective_sample_size")
    alone = {name: as_bytes(getattr(model, name)(table.table)) for name in asked}

    def ask(number):
        return {name: as_bytes(getattr(model, name)(table.table)) for name in np.roll(asked, number)}

    with ThreadPoolExecutor(8) as pool:
        assert all(answers == alone for answers in pool.map(ask, range(8)))
