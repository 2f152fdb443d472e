"""How fast do processes train together? Seconds per step at 1, 2 and 4 processes of one core each, beside a cost model.

    python benchmarks/scaling.py [--rows 100000] [--columns 40] [--batch 2000] [--processes 1 2 4]

The model of a step: max(1, n / cores) · (fixed + per_row · B / n) + all_reduce(n). One process at the batch and at a
quarter of it gives the first two; to place rows and to sum vectors of the step's sizes, on n processes that do nothing
else, gives the third. Every process has a core of its own, or shares one. docs/scale.md says what the terms are.
"""

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import time

import numpy as np
from common import save

N_SCALARS = 40  # parts of the bound and checks that are summed with the gradient, about
NETWORK = {"bytes_per_second": 1.25e9, "latency": 50e-6}  # of the extrapolation: ten gigabits per second


def summed_shapes(P: int, M: int, n_parameters: int) -> list[tuple[int, ...]]:
    """The vectors that a step sums over rows: gradient and parts; Λ and λ; the slope of m; its curvature."""
    return [(n_parameters + N_SCALARS,), (P * (M * (M + 1) // 2 + M),), (P * M,), (P,)]


def n_bytes(shapes: list[tuple[int, ...]]) -> int:
    return 4 * sum(math.prod(shape) for shape in shapes)


# --- one process of a group ---


def child(asked: dict) -> None:
    """Train for some epochs, and sum arrays, on a core of its own; process 0 prints the median seconds of both."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[asked["process"] % len(os.sched_getaffinity(0))]})
    from plurigp.core.memory import reuse_memory
    from plurigp.inference.parallel import join_processes

    reuse_memory()  # as the command line does
    if asked["n"] > 1:
        join_processes(asked["coordinator"], asked["n"], asked["process"])
    import jax

    from plurigp.data import Coder
    from plurigp.datasets import simulate
    from plurigp.inference.batches import TrainingTable
    from plurigp.inference.bound import BoundSpec
    from plurigp.inference.compiling import jax_runtime
    from plurigp.inference.model import Settings, init_model
    from plurigp.inference.parallel import row_shards
    from plurigp.inference.schedule import Schedule, rates_of
    from plurigp.inference.steps import compile_training, start_state
    from plurigp.inference.training import run_epoch
    from plurigp.likelihoods.layout import arrange, make_layout, rules_of

    half = asked["columns"] // 2
    table = simulate(asked["rows"], 2, {"gaussian": asked["columns"] - half, "bernoulli": half}, 0.1, 0)
    coder = Coder.fit(table.table, table.schema)
    layout = make_layout(coder.schema)
    values, seen = arrange(layout, coder.table(table.table))
    shards = row_shards(len(values), max(asked["n"], 4))
    own = shards.own_rows
    data = TrainingTable(values[own].astype("float32"), seen[own], shards=shards)
    spec = BoundSpec(layout, rules_of(layout, None), mesh=shards.mesh)
    with jax_runtime():
        model = init_model(0, Settings(), coder.schema, layout, values, seen)
        state = start_state(spec, model, "natural")
        rates = rates_of(Schedule(), 10, 1.0, "float32")
        compile_training(spec, state, next(data.epoch(asked["batch"], np.random.default_rng(0))), rates)
        rng, step, seconds = np.random.default_rng(0), 0, []
        for _ in range(asked["epochs"] + 1):
            start, first = time.perf_counter(), step
            state, step, steps = run_epoch(spec, state, data.epoch(asked["batch"], rng), 0, step, rates)
            jax.block_until_ready(steps)
            seconds.append((time.perf_counter() - start) / (step - first))
        n_parameters = sum(leaf.size for leaf in jax.tree.leaves(model))
        shapes = summed_shapes(layout.n_functions, len(model.gp.Z), n_parameters)
        rows = next(data._replace(shards=None).epoch(asked["batch"] // asked["n"], np.random.default_rng(0)))
        sums = sum_seconds(shapes, shards.mesh, rows[:4])
    if asked["process"] == 0:
        print("RESULT" + json.dumps({"step": float(np.median(seconds[1:])), "sum": sums, "bytes": n_bytes(shapes)}))


def sum_seconds(shapes: list[tuple[int, ...]], mesh, rows) -> float:
    """The median time in which rows are placed on the mesh and vectors of these sizes summed over it."""
    import jax
    from jax.sharding import NamedSharding

    from plurigp.inference.parallel import ROWS, SAME, on_own_rows, spread_rows, total

    if mesh is None:
        return 0.0
    parts = spread_rows(mesh, [np.ones((1, *shape), np.float32) for shape in shapes])

    def added(parts, rows):  # one after the other, as in a step
        found = []
        for part in parts:
            part, _ = jax.lax.optimization_barrier((part, found[-1:]))
            found.append(total(mesh, part[0]))
        return found

    add = jax.jit(on_own_rows(mesh, added, (ROWS, ROWS)), out_shardings=NamedSharding(mesh, SAME))
    seconds = []
    for _ in range(100):
        start = time.perf_counter()
        jax.block_until_ready(add(parts, spread_rows(mesh, rows)))
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


# --- groups of processes, and the model ---


def measure(n: int, asked: dict) -> dict:
    """What process 0 of n reports; each has one thread."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        asked = {**asked, "n": n, "coordinator": f"127.0.0.1:{free.getsockname()[1]}"}
    environment = {**os.environ, "NPROC": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--child", json.dumps({**asked, "process": process})],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for process in range(n)
    ]
    out = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit(f"a process of {n} failed")
    return json.loads(out[0].split("RESULT")[1])


def extrapolated(fixed: float, per_row: float, size: int, batch: int, n_hosts: int) -> float:
    """Seconds of a step on n hosts: a ring sends 2 (n − 1)/n of the bytes, in 2 log₂ n rounds of latency."""
    ring = 2 * (n_hosts - 1) / n_hosts * size / NETWORK["bytes_per_second"]
    return fixed + per_row * batch / n_hosts + ring + 2 * math.log2(max(n_hosts, 1)) * NETWORK["latency"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", 100_000), ("columns", 40), ("batch", 2000), ("epochs", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        child(args.child)
        return
    asked = {name: getattr(args, name) for name in ("rows", "columns", "batch", "epochs")}
    measured = {n: measure(n, asked) for n in sorted({1, *args.processes})}
    quarter = measure(1, {**asked, "batch": args.batch // 4})["step"]
    per_row = (measured[1]["step"] - quarter) / (args.batch - args.batch // 4)
    fixed = measured[1]["step"] - per_row * args.batch
    lines, n_cores = [], len(os.sched_getaffinity(0))
    for n, found in measured.items():
        shared = max(1.0, n / n_cores)  # processes that take turns on one core
        predicted = shared * (fixed + per_row * args.batch / n) + found["sum"]
        lines.append({"processes": n, **found, "predicted": predicted, "speedup": measured[1]["step"] / found["step"]})
        off = predicted / found["step"] - 1
        print(f"{n} processes: {1e3 * found['step']:.2f} ms per step, predicted {1e3 * predicted:.2f} ({off:+.0%}), "
              f"{lines[-1]['speedup']:.2f} times one; sums {1e3 * found['sum']:.2f} ms")  # fmt: skip
    size = measured[1]["bytes"]
    print(f"fixed {1e3 * fixed:.2f} ms, {1e6 * per_row:.2f} µs per row, {size / 1e6:.2f} MB summed per step")
    far = {n: extrapolated(fixed, per_row, size, args.batch * n, n) for n in args.hosts}
    for n, seconds in far.items():
        print(f"{n} hosts with {args.batch} rows each: {1e3 * seconds:.2f} ms, {args.batch * n / seconds:.3g} rows/s")
    found = {"asked": asked, "lines": lines, "fixed": fixed, "per_row": per_row, "hosts": far, "network": NETWORK}
    save("scaling", found)


if __name__ == "__main__":
    main()
