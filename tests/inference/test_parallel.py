"""Rows on several devices and processes: who has which, and that training does not depend on it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from plurigp import PluriGP
from plurigp.datasets import simulate
from plurigp.inference.batches import TrainingTable, sharded_batches
from plurigp.inference.parallel import RowShards, row_shards

FAMILIES = ("gaussian", "gaussian_hetero", "bernoulli", "binomial", "beta", "poisson", "categorical", "ordinal")
N, N_SHARDS, SAME = 203, 4, 1e-5  # rows that divide into nothing, and the relative difference that rounding may make


# --- which rows where ---


def test_shards_are_ranges_that_cover_the_table():
    shards = RowShards(N, N_SHARDS)
    assert [row for shard in shards.own for row in shards.rows_of(shard)] == list(range(N))
    assert {len(shards.rows_of(shard)) for shard in shards.own} == {50, 51}
    assert shards.own_rows == slice(0, N)


def test_every_batch_has_equally_many_rows_of_every_shard():
    shards = RowShards(N, N_SHARDS)
    rows, real = sharded_batches(shards, 64, np.random.default_rng(0))
    assert rows.shape == (4, N_SHARDS * 13)
    assert sorted(rows[real]) == list(range(N))
    by_shard = zip(*(np.split(part, N_SHARDS, 1) for part in (rows, real)), strict=True)
    for shard, (of_shard, known) in enumerate(by_shard):
        assert set(of_shard.ravel()) == set(shards.rows_of(shard))  # padding is a row of the shard, too
        assert {12, 13} >= set(known.sum(1))


def test_epochs_are_shuffled_anew_and_repeat_with_the_seed():
    shards = RowShards(N, N_SHARDS)
    first, again = (sharded_batches(shards, 64, np.random.default_rng(1))[0] for _ in range(2))
    assert (first == again).all()
    rng = np.random.default_rng(1)
    sharded_batches(shards, 64, rng)
    assert (sharded_batches(shards, 64, rng)[0] != first).any()


def test_one_shard_is_the_table_as_it_was():
    table = TrainingTable(np.arange(2.0 * N, dtype=np.float32).reshape(N, 2), np.ones((N, 2), bool))
    whole = table._replace(shards=RowShards(N))
    for one, other in zip(*(part.epoch(64, np.random.default_rng(0)) for part in (table, whole)), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert (table.n_rows, whole.n_rows) == (N, N)
    assert (whole.count_seen() == N).all()


def test_more_shards_than_rows_are_refused():
    with pytest.raises(ValueError, match="n_shards=4 for a table of 3 rows; it must be"):
        row_shards(3, 4)


def test_several_processes_share_the_shards_evenly(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(jax, "devices", lambda platform: jax.local_devices() * 2)
    with pytest.raises(ValueError, match="n_shards=3 cannot be spread evenly over the 2 devices"):
        row_shards(9, 3)


# --- the same trajectory ---

PROGRAM = """
import json, sys
import jax
from plurigp.inference.parallel import join_processes
n_devices, n_processes, process, port, families, options = json.loads(sys.argv[1])
jax.config.update("jax_num_cpu_devices", n_devices)
if n_processes > 1:
    join_processes(f"127.0.0.1:{port}", n_processes, process)
sys.path.insert(0, sys.argv[2])
from test_parallel import fitted
model = fitted(families, int(sys.argv[3]), **options)
leaves = [leaf.tolist() for leaf in jax.tree.leaves(model.model_)]
print("RESULT" + json.dumps([jax.device_count(), model.history_["bound"].tolist(), model.elbo_, leaves]))
"""


def fitted(families, max_epochs: int, missing: float = 0.1, **options) -> PluriGP:
    simulation = simulate(N, 2, dict.fromkeys(families, 1), missing, 0)
    shape = {"n_inducing": 8, "batch_size": 64, "max_epochs": max_epochs, "n_shards": N_SHARDS}
    model = PluriGP(2, schema=simulation.schema, tol=0.0, calibrate=False, random_state=0, **shape, **options)
    return model.fit(simulation.table)


def apart(families, max_epochs: int, n_devices: int = 1, n_processes: int = 1, **options) -> list:
    """What each of so many processes, of so many devices each, has trained."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shares = [json.dumps([n_devices, n_processes, n, port, list(families), options]) for n in range(n_processes)]
    environment = {**os.environ, "NPROC": "1", "JAX_PLATFORMS": "cpu"}
    program = [sys.executable, "-c", PROGRAM]
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    rest = [str(Path(__file__).parent), str(max_epochs)]
    started = [subprocess.Popen([*program, share, *rest], **told) for share in shares]
    ended = [process.communicate() for process in started]
    assert all(process.returncode == 0 for process in started), ended[0][1][-2000:]
    return [json.loads(out.split("RESULT")[1]) for out, _ in ended]


def agree(one: PluriGP, result: list) -> None:
    _, totals, bound, leaves = result
    np.testing.assert_allclose(totals, one.history_["bound"], rtol=SAME)
    assert bound == pytest.approx(one.elbo_, rel=SAME)
    for leaf, other in zip(jax.tree.leaves(one.model_), leaves, strict=True):
        np.testing.assert_allclose(other, leaf, rtol=1e-3, atol=1e-4)


def test_two_devices_train_as_one():
    families = ("gaussian", "bernoulli")
    (result,) = apart(families, 5, n_devices=2)
    assert result[0] == 2
    agree(fitted(families, 5), result)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"missing": 0.0, "hiding": 0.3},  # functions that share a basis, and cells hidden from the encoder
        {"n_groups": 2},
        {"expectation": "sampling"},
        {"encoder": "free"},
        {"optimizer": "adam", "learning_rate": 1e-4},  # larger steps would magnify rounding
    ],
    ids=lambda options: "-".join(options),
)
def test_two_devices_train_as_one_whatever_is_drawn_or_summed(options):
    families = ("gaussian", "bernoulli", "categorical")
    (result,) = apart(families, 6, n_devices=2, **options)
    agree(fitted(families, 6, **options), result)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # four processes may share two cores
@pytest.mark.parametrize("n_processes", [2, 4])
def test_processes_train_as_one_on_every_family(n_processes):
    one = fitted(FAMILIES, 50)
    results = apart(FAMILIES, 50, n_processes=n_processes)
    for result in results:
        assert result[0] == n_processes
        assert result[1:] == results[0][1:]  # every process ends with the same model
        agree(one, result)
