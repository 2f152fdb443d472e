"""Hashes of three reference fits and one small study: the same before and after a change that moves code only.

    python tools/fingerprint.py > before.txt     # then change the code
    python tools/fingerprint.py | diff before.txt -
    python tools/fingerprint.py default study    # some of them

Bytes depend on machine and versions, so the hashes are compared on one machine and never committed. Only public names
are used, so that the script runs against any two commits (PYTHONPATH=<other checkout>/src).
"""

import hashlib
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from plurigp import PluriGP, Study
from plurigp.datasets import load_support

FITS = {
    "default": {"n_components": 2},
    "linear_rbf_masked": {"n_components": 3, "kernel": "linear+rbf", "encoder": "masked", "calibrate": False},
    "adam_float64": {"n_components": 2, "optimizer": "adam", "dtype": "float64", "max_epochs": 15},
}


def digest(*parts: np.ndarray | str | bytes) -> str:
    """The first half of a SHA-256 over all parts."""
    total = hashlib.sha256()
    for part in parts:
        total.update(np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else _bytes(part))
    return total.hexdigest()[:32]


def _bytes(part: str | bytes) -> bytes:
    return part.encode() if isinstance(part, str) else part


def fit_digests(name: str, table: pd.DataFrame, settings: dict[str, object]) -> None:
    """A fit's arrays, places, filled cells, scores, gaps and draws."""
    model = PluriGP(**{"max_epochs": 40, "random_state": 1, **settings}).fit(table)
    with tempfile.TemporaryDirectory() as folder:
        arrays = (model.save(Path(folder) / "model") / "model.safetensors").read_bytes()
    print(f"{name} arrays", digest(arrays))
    print(f"{name} transform", digest(*model.transform(table, return_std=True)))
    print(f"{name} impute", digest(model.impute(table).to_csv()))
    print(f"{name} score", digest(model.score_samples(table)))
    print(f"{name} gaps", digest(model.describe_gaps(table, n_draws=20).to_csv()))
    print(f"{name} draws", digest(model.impute_draws(table, 1, random_state=3)[0].to_csv()))
    print(f"{name} sample", digest(model.sample(50, random_state=4).to_csv()))


def study_digests(table: pd.DataFrame, time: str, event: str) -> None:
    """Every frame of a small study, the memberships and the assignment of new rows."""
    result = Study(
        n_components=[2, 3], n_restarts=1, n_refits=4, n_references=3, n_permutations=50, max_epochs=30, n_jobs=0,
        random_state=5, time=time, event=event, horizons=[180.0],
    ).fit(table)  # fmt: skip
    for name, frame in result.frames().items():
        print(f"study {name}", digest(frame.to_csv()))
    print("study latent", digest(result.latent.mean, result.latent.sd))
    print("study probability", digest(result.clusters.probability))
    print("study assign", digest(result.assign(table.iloc[:40]).to_csv()))


def main() -> None:
    """Print one line per hash."""
    warnings.simplefilter("ignore")
    support = load_support()
    table = support.table.iloc[:600].reset_index(drop=True)
    outcomes = support.outcomes.iloc[:600].reset_index(drop=True)
    wanted = sys.argv[1:] or [*FITS, "study"]
    for name in FITS:
        if name in wanted:
            fit_digests(name, table, FITS[name])
    if "study" in wanted:
        time, event = "follow_up_days", "died"
        study_digests(pd.concat([table, outcomes[[time, event]]], axis=1), time, event)


if __name__ == "__main__":
    main()
