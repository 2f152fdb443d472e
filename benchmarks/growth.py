"""Does it grow in proportion? Seconds per row and epoch over rows, per column over columns, and memory when streamed.

    python benchmarks/growth.py [--rows 10000 100000 1000000] [--columns 50 500 2000]

Rows: 40 mixed columns (gaussian, bernoulli, beta, poisson, categorical), 10 % gaps, from a Parquet file that
is read column by column. Columns: half gaussian, half bernoulli, 10 % gaps, 2,000 rows (--column-rows). Each size has a
process of its own, so that its peak memory is its own. Compilation is not counted in the seconds per row and column.
Cohort: the whole fit, compilation and all, of 20 epochs on 100,000 simulated patients with the paper's 46 columns.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import save, saved

from plurigp.inference.schedule import WARMUP_EPOCHS

MIXED = {"gaussian": 10, "bernoulli": 10, "beta": 6, "poisson": 8, "categorical": 6}


def write_rows(path: Path, n_rows: int, chunk: int = 100_000) -> None:
    """A mixed table around two factors, written chunk by chunk."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(2, sum(MIXED.values())))
    writer = None
    for start in range(0, n_rows, chunk):
        n = min(chunk, n_rows - start)
        f = iter((rng.normal(size=(n, 2)) @ loadings).T)
        frame = pd.DataFrame(
            {f"gaussian{c}": next(f) + rng.normal(size=n) for c in range(MIXED["gaussian"])}
            | {f"bernoulli{c}": np.where(rng.random(n) < 1 / (1 + np.exp(-next(f))), "yes", "no")
               for c in range(MIXED["bernoulli"])}
            | {f"beta{c}": 1 / (1 + np.exp(-next(f) - rng.normal(size=n))) for c in range(MIXED["beta"])}
            | {f"poisson{c}": rng.poisson(np.exp(0.3 * next(f))).astype(float) for c in range(MIXED["poisson"])}
            | {f"categorical{c}": np.array(list("abcd"))[np.digitize(next(f) + rng.normal(size=n), [-1, 0, 1])]
               for c in range(MIXED["categorical"])}
        )  # fmt: skip
        frame = frame.mask(rng.random(frame.shape) < 0.1)
        batch = pa.Table.from_pandas(frame, preserve_index=False)
        writer = writer or ParquetWriter(path, batch.schema)
        writer.write_table(batch)
    writer.close()


def settled(stamps: list[float]) -> float:
    """Seconds of an epoch once the warm-up is over."""
    return float(np.median(np.diff(stamps)[WARMUP_EPOCHS:]))


def fit_file(path: str, n_epochs: int) -> dict:
    """Seconds of an epoch and peak memory of a fit from the file; run in a process of its own."""
    from plurigp import PluriGP
    from plurigp.estimator.progress import FitProgress

    stamps = []
    FitProgress.__call__ = lambda self, epoch, record: stamps.append(time.perf_counter())
    schema = {f"{kind}{c}": kind for kind, n in MIXED.items() for c in range(n)}
    start = time.perf_counter()
    PluriGP(5, schema=schema, max_epochs=n_epochs, random_state=0, calibrate=False, verbose=True).fit(path)
    total = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {"epoch": settled(stamps), "fit": total, "peak_gb": peak}


def over_rows(sizes: list[int], n_epochs: int) -> list[dict]:
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / f"{n}.parquet"
            write_rows(path, n)
            command = [sys.executable, __file__, "--one", str(path), "--epochs", str(n_epochs)]
            line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
            out.append({"rows": n, **json.loads(line)})
            out[-1]["microseconds_per_row"] = 1e6 * out[-1]["epoch"] / n
            print(out[-1], flush=True)
    return out


def fit_columns(n_rows: int, n: int, n_epochs: int) -> dict:
    """Seconds of an epoch and peak memory of a fit of so many columns; run in a process of its own."""
    from plurigp import PluriGP
    from plurigp.estimator.progress import FitProgress

    rng = np.random.default_rng(0)
    factors, loadings = rng.normal(size=(n_rows, 2)), rng.normal(size=(2, n))
    columns = {}
    for d in range(n):
        f = factors @ loadings[:, d]
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-f))).astype(float) if d % 2 else f + rng.normal(size=n_rows)
        columns[f"c{d}"] = np.where(rng.random(n_rows) < 0.1, np.nan, y)
    stamps = []
    FitProgress.__call__ = lambda self, epoch, record: stamps.append(time.perf_counter())
    schema = {name: "bernoulli" if d % 2 else "gaussian" for d, name in enumerate(columns)}
    PluriGP(5, schema=schema, max_epochs=n_epochs, random_state=0, calibrate=False).fit(pd.DataFrame(columns))
    return {"epoch": settled(stamps), "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2}


def over_columns(sizes: list[int], n_rows: int, n_epochs: int) -> list[dict]:
    out = []
    for n in sizes:
        asked = [str(number) for number in (n_rows, n, n_epochs)]
        command = [sys.executable, __file__, "--one-columns", *asked]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        out.append({"columns": n, "rows": n_rows, **json.loads(line)})
        out[-1]["microseconds_per_column"] = 1e6 * out[-1]["epoch"] / n
        print(out[-1], flush=True)
    return out


def cohort(n_rows: int = 100_000, n_epochs: int = 20) -> dict:
    from plurigp import PluriGP
    from plurigp.datasets import simulate_cohort

    patients = simulate_cohort(n_rows, random_state=0)
    start = time.perf_counter()
    PluriGP(10, schema=patients.schema, max_epochs=n_epochs, random_state=0, calibrate=False).fit(patients.table)
    return {"rows": n_rows, "columns": patients.table.shape[1], "epochs": n_epochs, "fit": time.perf_counter() - start}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, nargs="*", default=[50, 200, 500, 2000])
    parser.add_argument("--epochs", type=int, default=9, help="of the fits over rows (default: %(default)s)")
    parser.add_argument(
        "--column-rows", type=int, default=2000, help="of the tables over columns (default: %(default)s)"
    )
    parser.add_argument("--column-epochs", type=int, default=30, help="of their fits (default: %(default)s)")
    parser.add_argument("--no-cohort", action="store_true", help="leave the cohort as it was")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--one-columns", type=int, nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(fit_file(given.one, given.epochs)))
    elif given.one_columns:
        print(json.dumps(fit_columns(*given.one_columns)))
    else:
        result = saved("growth")
        if not given.no_cohort:
            result["cohort"] = cohort()
            print(result["cohort"], flush=True)
        columns = over_columns(given.columns, given.column_rows, given.column_epochs)
        # Sizes that were not asked for stay as they were.
        rows = {run["rows"]: run for run in (*result.get("rows", []), *over_rows(given.rows, given.epochs))}
        result["rows"] = [rows[size] for size in sorted(rows)]
        sizes = {(run.get("rows", 2000), run["columns"]): run for run in (*result.get("columns", []), *columns)}
        result["columns"] = [sizes[size] for size in sorted(sizes)]
        save("growth", result)
