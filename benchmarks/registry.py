"""A registry in a folder of Parquet files, trained by the command line: seconds per row and epoch, memory per process.

    python benchmarks/registry.py [--rows 100000 1000000 10000000] [--processes 1 2] [--batch 2000] [--passes 3000000]

The mixed table of growth.py, 100,000 rows a file. Every command runs twice, for one epoch and for some more; the
difference is the time of these, so that reading, starting and compiling do not count. One process has one core
(`taskset`), of several each has a core to itself if there are as many. Peak memory is the largest of all processes.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import save, saved
from growth import MIXED, write_rows

FILE_ROWS = 100_000
MANY = 1_000_000  # rows beyond which nothing is run only to compile


def write_folder(folder: Path, n_rows: int) -> None:
    """Files that are copies of one after the first: what is measured does not look at the cells."""
    folder.mkdir()
    write_rows(folder / "0000.parquet", min(n_rows, FILE_ROWS), chunk=FILE_ROWS // 4)
    for number in range(1, n_rows // FILE_ROWS):
        (folder / f"{number:04}.parquet").hardlink_to(folder / "0000.parquet")


def peak_of(process: subprocess.Popen) -> float:
    """Wait for it; the most memory of its own that it or a child of it had, in GB: without pages of files, which the
    system may take back. Sampled five times a second."""
    peak = 0
    while process.poll() is None:
        family = [process.pid, *_children(process.pid)]
        for number in family:
            try:
                lines = Path(f"/proc/{number}/status").read_text().splitlines()
            except OSError:
                continue
            peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))])
        time.sleep(0.2)
    return peak / 2**20


def _children(number: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{number}/task/{number}/children").read_text().split()]
    except OSError:
        return []


def fit(folder: Path, schema: Path, n_processes: int, n_epochs: int, batch: int) -> tuple[float, float]:
    """Seconds of the whole command, and its peak memory."""
    out = folder.parent / "model"
    shutil.rmtree(out, ignore_errors=True)
    pinned = ["taskset", "-c", "0"] if n_processes == 1 else []
    group = ["--processes", str(n_processes)] if n_processes > 1 else []
    command = [*pinned, sys.executable, "-m", "plurigp.cli", "fit", str(folder), "--schema", str(schema)]
    settings = ["--epochs", str(n_epochs), "--batch-size", str(batch), "--components", "5", "--shards", "4"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [*command, *settings, "--seed", "0", *group, "--out", str(out)], stdout=subprocess.DEVNULL
    )
    peak = peak_of(process)
    if process.returncode:
        sys.exit("the fit has failed")
    return time.perf_counter() - start, peak


def transform(folder: Path) -> float:
    """Rows per second on one core, from files to files."""
    out = folder.parent / "positions"
    shutil.rmtree(out, ignore_errors=True)
    command = ["taskset", "-c", "0", sys.executable, "-m", "plurigp.cli", "transform", str(folder.parent / "model")]
    start = time.perf_counter()
    subprocess.run([*command, str(folder), "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=3_000_000, help="rows in all further epochs, at least one")
    parser.add_argument("--transform", action="store_true", help="also place all rows, on one core")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        schema = Path(name) / "schema.toml"
        kinds = [f"{kind}{c}" for kind, n in MIXED.items() for c in range(n)]
        tables = (f'[[column]]\nname = "{column}"\nkind = "{column.rstrip("0123456789")}"\n' for column in kinds)
        schema.write_text("".join(tables))
        for n_rows in given.rows:
            folder = Path(name) / str(n_rows)
            write_folder(folder, n_rows)
            for n_processes in given.processes:
                n_epochs = max(1, given.passes // n_rows)
                if n_rows == given.rows[0] and n_rows <= MANY:
                    fit(folder, schema, n_processes, 1, given.batch)  # compiles
                one, _ = fit(folder, schema, n_processes, 1, given.batch)
                more, peak = fit(folder, schema, n_processes, 1 + n_epochs, given.batch)
                per_row = (more - one) / n_epochs / n_rows
                run = {"rows": n_rows, "processes": n_processes, "batch": given.batch, "start": one, "peak_gb": peak}
                run |= {"microseconds_per_row": 1e6 * per_row}
                if given.transform and n_processes == 1:
                    run["transform_rows_per_second"] = n_rows / transform(folder)
                print(run, flush=True)
                runs = {(r["rows"], r["processes"], r["batch"]): r for r in saved("registry").get("runs", [])}
                runs[n_rows, n_processes, given.batch] = run
                save("registry", {"runs": [runs[key] for key in sorted(runs)]})
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
