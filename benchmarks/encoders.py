"""Which encoder? Nats per hidden cell of real tables under every way to place a row.

    python benchmarks/encoders.py [--folders ...] [--seeds 3] [--rows 2000] [--rate 20]

Tables: SUPPORT, scikit-learn's breast cancer and diabetes, and any folders in the format of imputation.py (their first
--rows rows; a share of --rate percent of the cells is hidden at random, anew for every seed). Settings as in
imputation.py, at most --epochs epochs.

factors     every cell seen is evidence, as in factor analysis, bent by networks
masked      networks that read the cells and which of them are there
paper       networks that read the cells, gaps as zeros
+hiding     factors, and in training a share of a row's cells (0 to 50 %) is hidden from the encoder, not from the bound
+refined    factors, and a hundred steps on each row's own q(x) with the decoder frozen
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from common import save, saved
from hidden import SETTINGS, read_hidden
from sklearn.datasets import load_breast_cancer, load_diabetes

from plurigp import PluriGP
from plurigp.answers.heldout import hide_cells
from plurigp.data import infer_schema
from plurigp.datasets import load_support

WAYS = {
    "factors": {},
    "masked": {"encoder": "masked"},
    "paper": {"encoder": "paper"},
    "+hiding": {"hiding": 0.5},
    "+refined": {"refine": True},
}


def read_tables(folders: list[str], n_rows: int) -> dict[str, tuple[pd.DataFrame, object]]:
    support = load_support()
    tables = {"support": (support.table.iloc[:n_rows], support.schema)}
    for name, load in {"breast cancer": load_breast_cancer, "diabetes": load_diabetes}.items():
        frame = load(as_frame=True, **({"scaled": False} if name == "diabetes" else {})).frame
        tables[name] = (frame, infer_schema(frame, None))
    for folder in folders:
        frame = read_hidden(folder, 10, 1).frame.iloc[:n_rows].reset_index(drop=True)
        tables[Path(folder).name] = (frame, infer_schema(frame, None))
    return tables


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=200)
    given = parser.parse_args()
    for name, (frame, schema) in read_tables(given.folders, given.rows).items():
        runs: dict[str, list[float]] = {way: [] for way in WAYS}
        for seed in range(given.seeds):
            shown = hide_cells(frame, schema, given.rate / 100, seed)
            settings = SETTINGS | {"random_state": seed, "max_epochs": given.epochs, "calibrate": False}
            plain = PluriGP(schema=schema, **settings).fit(shown)
            for way, options in WAYS.items():
                again = PluriGP(schema=schema, **settings | options)
                model = plain.set_params(**options) if "refine" in options or not options else again.fit(shown)
                runs[way].append(float(np.nanmean(model.score_cells(shown, frame))))
                print(name, seed, way, round(runs[way][-1], 4), flush=True)
        result = saved("encoders")
        result[name] = {"rows": len(frame), "columns": frame.shape[1], "rate": given.rate, "nats": runs}
        save("encoders", result)
        print(name, {way: round(float(np.mean(of)), 4) for way, of in runs.items()}, flush=True)
