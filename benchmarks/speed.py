"""Seconds per training epoch: plurigp, GPyTorch's Bayesian GPLVM and the machine's own matrix product, in one run.

All take turns (A B C, A B C, …) on the same arrays and batch sizes, so that the machine's noise hits all alike.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from peers import ours

import plurigp
from plurigp.data import Coder, Schema, Table
from plurigp.datasets import load_support, simulate_cohort
from plurigp.inference.compiling import jax_runtime
from plurigp.likelihoods.layout import make_layout
from plurigp_paper.digits import digits

RESULTS = Path(__file__).parent / "results" / "speed.json"
N_INDUCING = 50
SETTLING_SECONDS = 0.5  # at the start of a turn, in whole epochs, one at least
EDGE = 2048  # of the square float32 matrices whose product is the machine's peak
PEERS = {"GPyTorch, Z shared": True, "GPyTorch as documented": False}  # name -> one Z for all columns


@dataclass(frozen=True)
class Shape:
    """A table, and the sizes of the model and of its batches."""

    load: Callable[[], Any]  # gives .table and .schema
    n_components: int
    batch_size: int


SHAPES = {
    "simulated": Shape(lambda: digits(n_per_digit=200), n_components=6, batch_size=300),
    "clinical": Shape(simulate_cohort, n_components=10, batch_size=350),
    "support": Shape(load_support, n_components=10, batch_size=500),
}


@dataclass
class Contestant:
    """A way to train for an epoch, and the seconds its turns took."""

    name: str
    train: Callable[[int], float]  # so many epochs; returns the bound, which must stay finite
    conditions: Callable[[], AbstractContextManager] = nullcontext  # entered before the clock starts
    first: float = np.nan  # with compilation
    turns: list[float] = field(default_factory=list)  # seconds per epoch

    def warm_up(self) -> None:
        with self.conditions():
            self.first = self._seconds(1)
            self._seconds(1)

    def take_turn(self, n_epochs: int) -> None:
        """Epochs that are not counted come first: caches are still the previous contestant's, and so are threads that
        spin for a while after their work, as those of OpenMP do."""
        with self.conditions():
            start = time.perf_counter()
            while time.perf_counter() - start < SETTLING_SECONDS:
                self._seconds(n_epochs)
            self.turns.append(self._seconds(n_epochs))

    def _seconds(self, n_epochs: int) -> float:
        """Per epoch."""
        start = time.perf_counter()
        bound = self.train(n_epochs)
        seconds = (time.perf_counter() - start) / n_epochs
        if not np.isfinite(bound):
            raise FloatingPointError(f"{self.name}: the bound is {bound}, so its seconds mean nothing")
        return seconds


def load(shape: Shape, n_rows: int | None, n_columns: int | None) -> Table:
    """The coded table; fewer columns, when asked for, are spread over all of it."""
    source = shape.load()
    chosen = np.linspace(0, len(source.schema) - 1, n_columns or len(source.schema)).round().astype(int)
    schema = Schema(tuple(source.schema.columns[c] for c in chosen))
    frame = source.table[list(schema.names)].iloc[:n_rows]
    return Coder.fit(frame, schema).table(frame)


def contestants(shape: Shape, table: Table, n_quadrature: int) -> tuple[list[Contestant], dict[str, str]]:
    """plurigp first, then the peers; and why a peer is missing."""
    sizes = shape.n_components, min(N_INDUCING, len(table.values)), shape.batch_size
    found = [Contestant("plurigp", ours.make_training(table, *sizes, n_quadrature), jax_runtime)]
    try:
        from peers import gpytorch_gplvm
    except ImportError as error:
        return found, dict.fromkeys(PEERS, f"not measured: {error}")
    for name, shared in PEERS.items():
        found.append(Contestant(name, repeated(gpytorch_gplvm.make_epoch(table.values, *sizes, shared))))
    return found, {}


def repeated(epoch: Callable[[], float]) -> Callable[[int], float]:
    """Of what is called once per epoch."""
    return lambda n_epochs: [epoch() for _ in range(n_epochs)][-1]


def matrix_product() -> Contestant:
    """The yardstick, in the place of an epoch."""
    a, b = (jax.random.normal(jax.random.key(n), (EDGE, EDGE), jnp.float32) for n in range(2))
    product = jax.jit(jnp.matmul)
    return Contestant("matrix product", repeated(lambda: float(product(a, b)[0, 0])))


def measure(shape: Shape, table: Table, args: argparse.Namespace) -> dict[str, Any]:
    """Let them race, and sum up."""
    racing, missing = contestants(shape, table, args.n_quadrature)
    product = matrix_product()
    for contestant in (*racing, product):
        contestant.warm_up()
    for turn in range(args.turns):
        for contestant in (*racing, product):
            contestant.take_turn(args.epochs)
        print(f"  turn {turn + 1} of {args.turns}", file=sys.stderr)
    kinds = [column.kind for column in table.schema.used]
    (N, M), P = (len(table.values), min(N_INDUCING, len(table.values))), make_layout(table.schema).n_functions
    operations = 3 * 2 * N * M * (M + 1) / 2 * P  # of an epoch: three products [B M(M+1)/2] [M(M+1)/2 P] per step
    peak = 2 * EDGE**3 / np.median(product.turns)
    return {
        "rows": N,
        "columns": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "gaps": 1 - table.seen.mean(),
        "n_components": shape.n_components,
        "n_inducing": M,
        "batch_size": min(shape.batch_size, N),
        "n_quadrature": args.n_quadrature or "each family's own",
        "peak_gflops": {"median": peak / 1e9, "best": 2 * EDGE**3 / np.min(product.turns) / 1e9},
        "contestants": {c.name: summary(c, racing[0], operations, peak) for c in racing},
        "missing": missing,
    }


def summary(contestant: Contestant, reference: Contestant, operations: float, peak: float) -> dict[str, Any]:
    """Seconds per epoch, their ratio to the reference's over all turns and turn by turn, and useful operations."""
    seconds = np.asarray(contestant.turns)
    low, median, high = np.quantile(seconds, (0.25, 0.5, 0.75))
    ratios = seconds / np.asarray(reference.turns)
    return {
        "seconds": {"median": median, "quartiles": [low, high], "least": seconds.min(), "turns": seconds.tolist()},
        "ratio": {"median": median / np.median(reference.turns), "turns": ratios.tolist()},
        "useful_gflops": operations / median / 1e9,
        "share_of_peak": operations / median / peak,
        "first_epoch_seconds": contestant.first,
    }


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    versions: dict[str, str | None] = {"python": platform.python_version(), "plurigp": plurigp.__version__}
    for package in ("jax", "jaxlib", "numpy", "torch", "gpytorch"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"system": platform.platform(), "cores": cores, "load_at_start": os.getloadavg()[0], "versions": versions}


def markdown(results: dict[str, Any]) -> str:
    """The table, what is missing from it, and the machine."""
    lines = [
        "| shape | | ms per epoch (quartiles) | × plurigp (lowest–highest turn) | useful GFLOP/s | share of peak |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for shape, r in results["shapes"].items():
        for name, c in r["contestants"].items():
            low, median, high = (1e3 * s for s in np.insert(c["seconds"]["quartiles"], 1, c["seconds"]["median"]))
            ratio = f"{c['ratio']['median']:.2f} ({min(c['ratio']['turns']):.2f}–{max(c['ratio']['turns']):.2f})"
            seconds = f"{median:.1f} ({low:.1f}–{high:.1f})"
            lines.append(
                f"| {shape} | {name} | {seconds} | {ratio} | {c['useful_gflops']:.1f} | {c['share_of_peak']:.1%} |"
            )
        lines.append(f"| {shape} | matrix product | | | {r['peak_gflops']['median']:.1f} | 100.0% |")
    missing = [
        f"{shape}, {name}: {why}" for shape, r in results["shapes"].items() for name, why in r["missing"].items()
    ]
    missing += [f"{shape}: {why}" for shape, why in results["missing"].items()]
    m = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in m["versions"].items() if number)
    return "\n".join([*lines, "", *missing, f"{m['cores']} cores, load {m['load_at_start']:.1f} at start; {versions}"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--turns", type=int, default=9, help="per contestant (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=10, help="timed together in each turn (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="2 turns of 2 epochs")
    parser.add_argument("--rows", type=int, help="take only so many")
    parser.add_argument("--columns", type=int, help="take only so many")
    parser.add_argument("--n-quadrature", type=int, default=3, help="J (default: the paper's 3); 0: each family's own")
    parser.add_argument("--out", type=Path, help="JSON; a run with default settings writes results/speed.json")
    args = parser.parse_args()
    if args.out is None and all(getattr(args, name) == parser.get_default(name) for name in vars(args)):
        args.out = RESULTS
    if args.quick:
        args.turns, args.epochs = 2, 2
    return args


def main() -> None:
    args = arguments()
    results: dict[str, Any] = {"machine": machine(), "shapes": {}, "missing": {}}
    for name in args.shapes:
        try:
            table = load(SHAPES[name], args.rows, args.columns)
        except ImportError as error:  # the images come with an extra
            results["missing"][name] = f"not measured: {error}"
            continue
        print(f"{name}: {table.seen.shape[0]} rows, {table.seen.shape[1]} columns", file=sys.stderr)
        results["shapes"][name] = measure(SHAPES[name], table, args)
    print(markdown(results))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(results, indent=1) + "\n")
        print(f"written to {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
