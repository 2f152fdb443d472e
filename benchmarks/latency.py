"""How soon is a row answered? Milliseconds for one row, seconds for 100,000 rows × 40 columns, after warm-up.

    python benchmarks/latency.py [--rows 100000]

The model is that of growth.py's mixed table (Q = 5). One row: the median of 200 calls, each with a row of its own, on a
frame; then all rows at once. Filling and scoring average over 32 draws of x; gaps are described by 200 draws each.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import save
from growth import MIXED, write_rows

from plurigp import PluriGP


def seconds(call, repeats: int) -> float:
    times = []
    for n in range(repeats):
        start = time.perf_counter()
        call(n)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder) / "rows.parquet", given.rows)
        frame = pd.read_parquet(Path(folder) / "rows.parquet")
    schema = {f"{kind}{c}": kind for kind, n in MIXED.items() for c in range(n)}
    model = PluriGP(5, schema=schema, max_epochs=10, random_state=0, calibrate=False).fit(frame.iloc[:3000])
    result = {}
    for name in ("transform", "impute", "score_samples", "describe_gaps"):
        answer = getattr(model, name)
        answer(frame.iloc[:1]), answer(frame.iloc[:1000])  # compiles
        result[name] = {
            "one_row_ms": 1e3 * seconds(lambda n, answer=answer: answer(frame.iloc[n : n + 1]), 200),
            "rows_s": seconds(lambda n, answer=answer: answer(frame), 1),
        }
        print(name, result[name], flush=True)
    save("latency", {"rows": given.rows, "columns": sum(MIXED.values()), **result})
