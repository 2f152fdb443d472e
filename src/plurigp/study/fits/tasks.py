"""One fit of a study, wherever it runs: same task, same bytes, whatever ran before it or beside it."""

import hashlib
import os
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plurigp.answers.density import cell_log_density
from plurigp.answers.heldout import random_cells
from plurigp.data import Coder, Schema, Table
from plurigp.data.scale import OutOfScaleWarning
from plurigp.estimator import PluriGP
from plurigp.inference.schedule import Passes, enough_epochs
from plurigp.study.findings.cluster import HalfMap, half_labels
from plurigp.study.fits.config import StudyConfig

SELECT, MAP, REFIT, REFERENCE = "select", "map", "refit", "reference"
HIDDEN = "hidden"  # the name by which the hidden cells get their seed
TRACED = ("bound", "kl_x", "kl_u", "spread")
PASSES = Passes(most=100, steps=600, least=50)  # in which a map settles; measured on SUPPORT
WHOLE_BATCHES = 5  # from so many on, leaving an incomplete one out costs little


@dataclass(frozen=True, eq=False)
class Task:
    """A map to learn from some rows of a table, and what to keep of it."""

    name: str  # kind, then numbers: select-04-1, map-0, refit-07, reference-003-1
    n_components: int
    rows: np.ndarray  # the rows to learn from
    table: int = -1  # the number of a structureless table, or −1 for the data
    n_clusters: tuple[int, ...] = ()  # into how many clusters to cut it

    @property
    def kind(self) -> str:
        return self.name.split("-")[0]

    @property
    def keeps_model(self) -> bool:
        """Selection and map are asked again later, and so is the first half map: it defines the split test."""
        return self.kind in (SELECT, MAP) or self.name == FIRST_REFIT


FIRST_REFIT = "refit-000"


@dataclass(frozen=True, eq=False)
class Finished:
    """What a task leaves: arrays, a few facts, and the files of its model where they are needed."""

    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]
    model: dict[str, bytes] = field(default_factory=dict)


def seed_of(random_state: int, name: str) -> int:
    """A seed that depends on the study's seed and the task's name alone."""
    return int.from_bytes(hashlib.sha256(f"{random_state}/{name}".encode()).digest()[:4], "little") >> 1


def run_task(task: Task, frame: pd.DataFrame, schema: Schema, config: StudyConfig, one_thread: bool) -> Finished:
    """Learn, answer and forget. On one thread, so that sums have one order on every machine and in every process."""
    if one_thread:
        os.environ["NPROC"] = "1"  # read when JAX starts, which in a fresh process is below
    seed = seed_of(config.random_state, task.name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", OutOfScaleWarning)  # said of the whole table, whose rows have other numbers
        model = _fit(task, frame, schema, config, seed)
    notes = sorted({str(w.message) for w in caught if w.category is RuntimeWarning})
    arrays: dict[str, np.ndarray] = {f"trace.{name}": model.history_[name].to_numpy(float) for name in TRACED}
    facts = {"bound": model.elbo_, "epochs": model.n_iter_, "stopped": model.stopped_, "seed": seed, "notes": notes}
    if task.kind == SELECT:
        arrays |= _hidden_scores(model, frame, task.rows, config)
    elif task.kind == MAP:
        arrays["mean"], arrays["sd"] = model.transform(frame, return_std=True)
    else:
        mean, sd = model.transform(frame, return_std=True)
        half = HalfMap(mean, sd, task.rows)
        labels = [half_labels(half, K, config.covariance, seed) for K in task.n_clusters]
        arrays |= {"labels": np.array(labels, np.int16).reshape(len(labels), len(frame)), "rows": task.rows}
    return Finished(arrays, facts, _files(model) if task.keeps_model else {})


def _fit(task: Task, frame: pd.DataFrame, schema: Schema, config: StudyConfig, seed: int) -> PluriGP:
    n = len(task.rows)
    batch = fitting_batch(n, common_batch(len(frame), config))
    return PluriGP(
        task.n_components,
        schema=schema,
        max_epochs=config.max_epochs or enough_epochs(n, batch, PASSES),
        batch_size=batch,
        random_state=seed,
        **config.model | {"calibrate": task.kind == MAP and config.model.get("calibrate", True)},
    ).fit(frame.iloc[task.rows].reset_index(drop=True))


def common_batch(n_rows: int, config: StudyConfig) -> int:
    """Rows of a batch such that halves of the table and the table are whole numbers of batches, up to a row or two:
    a program compiled for one fit then serves the others."""
    n_batches = -(-(n_rows // 2) // config.batch_size)
    return -(-n_rows // (2 * n_batches))


def fitting_batch(n: int, batch: int) -> int:
    """The batch itself where n rows fill theirs up to one row each, or else one that they fill evenly."""
    even = -(-n // -(-n // batch))
    return batch if batch - even <= 1 else even


def held_out(frame: pd.DataFrame, coder: Coder, rows: np.ndarray, config: StudyConfig) -> tuple[Table, Table]:
    """The test rows with a share of their cells hidden, and complete; the same for every fit of a study."""
    complete = coder.table(frame.iloc[held_out_rows(len(frame), rows, config)])
    seed = seed_of(config.random_state, HIDDEN)
    return complete.hidden(random_cells(len(complete.seen), complete.schema, config.hidden_share, seed)), complete


def held_out_rows(n_rows: int, rows: np.ndarray, config: StudyConfig) -> np.ndarray:
    """The rows by which a map that was learned from `rows` is judged."""
    return np.setdiff1d(_selection_rows(n_rows, config), rows)


def training_rows(n_rows: int, config: StudyConfig) -> np.ndarray:
    """The rows from which the maps to choose between are learned."""
    rows, batch = _selection_rows(n_rows, config), common_batch(n_rows, config)
    n = max(2, round(len(rows) * (1 - config.test_share)))
    return np.sort(rows[: n - n % batch if n >= WHOLE_BATCHES * batch else n])


def _selection_rows(n_rows: int, config: StudyConfig) -> np.ndarray:
    shuffled = np.random.default_rng(seed_of(config.random_state, "test")).permutation(n_rows)
    return shuffled[: config.selection_rows]


def _hidden_scores(model: PluriGP, frame: pd.DataFrame, rows: np.ndarray, config: StudyConfig) -> dict[str, np.ndarray]:
    """Sum of the log densities of a test row's hidden cells and their number; nothing of the cells themselves."""
    shown, complete = held_out(frame, model.coder_, rows, config)
    hidden = complete.seen & ~shown.seen
    cells = np.where(hidden, cell_log_density(model.predictor_, shown, complete) - model.coder_.log_units, 0.0)
    return {"row_score": cells.sum(1), "row_cells": hidden.sum(1).astype(float)}


def _files(model: PluriGP) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return {path.name: path.read_bytes() for path in sorted((Path(folder) / "model").iterdir())}
