"""One fit of a study, wherever it runs: the same task gives the same bytes, whatever else ran before it."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from plurigp.answers.density import cell_log_density
from plurigp.answers.heldout import random_cells
from plurigp.data import Coder, Schema, Table
from plurigp.data.scale import OutOfScaleWarning
from plurigp.estimator import PluriGP
from plurigp.inference.schedule import Passes, enough_epochs
from plurigp.study.findings.cluster import (
    InformativePart,
    Starts,
    evidence_ladder,
    fit_mixture,
    informative_part,
    refit_mixture,
)
from plurigp.study.findings.mixture import Mixture, log_densities, memberships
from plurigp.study.findings.robustness import dissolved
from plurigp.study.findings.valley import count_between
from plurigp.study.fits.config import RULES, StudyConfig
from plurigp.study.fits.splits import first_rows, group_ids, shuffled_rows

SELECT, MAP, REFIT, REFERENCE = "select", "map", "refit", "reference"
FIRST_REFIT = "refit-000"
HIDDEN = "hidden"  # names the seed of the hidden cells
TRACED = ("bound", "kl_x", "kl_u", "spread")
PASSES = Passes(most=100, steps=600, least=50)  # enough for a map to converge; measured on SUPPORT
COUNTED = "between."  # before the names of a half map's counts
FEWEST_ROWS_EACH = 15  # of a cluster, on average: numbers of clusters that leave fewer are not tried
GAIN_ROWS = 1000  # by which the evidence for groups is compared between maps, at most
WHOLE_BATCHES = 5  # from so many on, leaving out an incomplete one costs little


@dataclass(frozen=True, eq=False)
class Task:
    """A map to learn from some rows of a table, and what to keep of it."""

    name: str  # kind, then numbers: select-04-1, map-0, refit-07, reference-003-1
    n_components: int
    rows: np.ndarray  # the rows to learn from
    table: int = -1  # the number of a structureless table, or −1 for the data
    n_clusters: int = 1  # into how many clusters to cut it
    shrinkage: float = 1.0  # of their covariances
    shares: np.ndarray | None = None  # [N K] of all rows in the map's clusters, to learn the same ones; None finds them

    @property
    def kind(self) -> str:
        return self.name.split("-")[0]

    @property
    def keeps_model(self) -> bool:
        """Selection and map are asked again later, and so is the first half map: it defines the split test."""
        return self.kind in (SELECT, MAP) or self.name == FIRST_REFIT


@dataclass(frozen=True, eq=False)
class Finished:
    """What a study keeps of a task, apart from its model: arrays and a few facts."""

    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]


TaskResult = tuple[Task, Finished, PluriGP | None]  # the model where it is kept


def run_task(task: Task, frame: pd.DataFrame, schema: Schema, config: StudyConfig) -> TaskResult:
    """Fit a model and read off it what the study keeps."""
    seed = config.seed_of(task.name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", OutOfScaleWarning)  # the study has warned already, by rows of the whole table
        model = _fit(task, frame, schema, config, seed)
    notes = sorted({str(w.message) for w in caught if w.category is RuntimeWarning})
    arrays: dict[str, np.ndarray] = {f"trace.{name}": model.history_[name].to_numpy(float) for name in TRACED}
    facts = {"bound": model.elbo_, "epochs": model.n_iter_, "stopped": model.stopped_, "seed": seed, "notes": notes}
    if task.kind == SELECT:
        arrays |= _hidden_scores(model, frame, task.rows, config)
        own = (part[task.rows] for part in model.transform(frame, return_std=True))
        facts["group_gain"] = group_gain(informative_part(*own).x, config, seed)
    elif task.kind == MAP:
        arrays["mean"], arrays["sd"] = model.transform(frame, return_std=True)
        facts["group_gain"] = group_gain(informative_part(arrays["mean"], arrays["sd"]).x, config, seed)
    else:
        mean, sd = model.transform(frame, return_std=True)
        arrays |= _half_map(task, mean, sd, seed, group_ids(frame, config.groups))
    return task, Finished(arrays, facts), model if task.keeps_model else None


def group_gain(x: np.ndarray, config: StudyConfig, seed: int) -> float:
    """Nats that groups add to the evidence for a map: that of the best mixture of its means over one Gaussian's."""
    shown = np.sort(np.random.default_rng(seed).permutation(len(x))[:GAIN_ROWS])
    ladder = evidence_ladder(x[shown], min(most_clusters(len(shown), config), len(shown)), seed)
    gain = max(rung.evidence for rung in ladder) - ladder[0].evidence
    return float(gain * len(x) / len(shown))


def most_clusters(n: int, config: StudyConfig) -> int:
    """How many clusters are tried: as many as have some FEWEST_ROWS_EACH rows on average."""
    asked = 0 if config.n_subtypes in RULES else int(config.n_subtypes)
    return max(2, asked, min(config.max_subtypes, n // FEWEST_ROWS_EACH))


def _half_map(
    task: Task, mean: np.ndarray, sd: np.ndarray, seed: int, groups: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Clusters of the rows that the map was learned from, what they make of all rows, and what lies between them."""
    part = informative_part(mean[task.rows], sd[task.rows])
    x, sd = mean[:, part.kept].astype(float), sd[:, part.kept]
    starts = Starts(part.x, seed)
    mixture = _clusters_of(task, part, starts)
    labels = memberships(mixture, x, sd)[0] - 1
    seen = np.isin(np.arange(len(x)), task.rows)
    one = fit_mixture(part.x, 1, starts, rows=part.rows).mixture
    gains = logsumexp(log_densities(mixture, x, sd), axis=1) - log_densities(one, x, sd)[:, 0]
    counts = count_between(mixture, x, _among_found(task, mixture, (x, sd), labels), seen, groups)
    between = {f"{COUNTED}{name}": part for name, part in counts._asdict().items()}
    return {"labels": labels.astype(np.int16), "gains": gains.astype(np.float32), "rows": task.rows, **between}


def _clusters_of(task: Task, part: InformativePart, starts: Starts) -> Mixture:
    """Those of the map, learned anew from the half map's positions of its own rows; or found there anew."""
    if task.shares is None:
        return fit_mixture(part.x, task.n_clusters, starts, (task.shrinkage,), part.rows).mixture
    return refit_mixture(part.x, task.shares[task.rows], task.shrinkage, part.rows)


def _among_found(
    task: Task, mixture: Mixture, positions: tuple[np.ndarray, np.ndarray], labels: np.ndarray
) -> np.ndarray:
    """The labels [N], where the rows of clusters that dissolve in this half map go to the likeliest of the others.

    They may fill what lies between two others, and would be missing there.
    """
    if task.shares is None:
        return labels
    gone = dissolved(task.shares.argmax(1), labels, np.arange(len(mixture.weights)))
    return labels if gone.all() else np.where(gone, -np.inf, log_densities(mixture, *positions)).argmax(1)


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
    ).fit(frame.iloc[task.rows].reset_index(drop=True), sample_weight=config.weights)


def common_batch(n_rows: int, config: StudyConfig) -> int:
    """Batch size of which the table and its halves are whole multiples, up to a row or two: programs are shared."""
    n_batches = -(-(n_rows // 2) // config.batch_size)
    return -(-n_rows // (2 * n_batches))


def fitting_batch(n: int, batch: int) -> int:
    """The given batch size where n rows fill such batches up to one row each, otherwise one that they fill evenly."""
    even = -(-n // -(-n // batch))
    return batch if batch - even <= 1 else even


def held_out(frame: pd.DataFrame, coder: Coder, rows: np.ndarray, config: StudyConfig) -> tuple[Table, Table]:
    """The test rows with a share of their cells hidden, and complete; the same for every fit of a study."""
    test = held_out_rows(len(frame), rows, config, group_ids(frame, config.groups))
    complete = coder.table(frame.iloc[test])
    cells = random_cells(len(complete.seen), complete.schema, config.hidden_share, config.seed_of(HIDDEN))
    return complete.hidden(cells), complete


def held_out_rows(n_rows: int, rows: np.ndarray, config: StudyConfig, groups: np.ndarray | None = None) -> np.ndarray:
    """The test rows of a map that was learned from `rows`; whole groups, if rows have any."""
    return np.setdiff1d(_selection_rows(n_rows, config, groups), rows)


def training_rows(n_rows: int, config: StudyConfig, groups: np.ndarray | None = None) -> np.ndarray:
    """The rows from which the maps to choose between are learned."""
    rows, batch = _selection_rows(n_rows, config, groups), common_batch(n_rows, config)
    n = max(2, round(len(rows) * (1 - config.test_share)))
    return np.sort(first_rows(rows, n - n % batch if n >= WHOLE_BATCHES * batch else n, groups))


def _selection_rows(n_rows: int, config: StudyConfig, groups: np.ndarray | None = None) -> np.ndarray:
    return first_rows(shuffled_rows(n_rows, config.seed_of("test"), groups), config.selection_rows, groups)


def _hidden_scores(model: PluriGP, frame: pd.DataFrame, rows: np.ndarray, config: StudyConfig) -> dict[str, np.ndarray]:
    """Sum of the log densities of a test row's hidden cells and their number; nothing of the cells themselves."""
    shown, complete = held_out(frame, model.coder_, rows, config)
    hidden = complete.seen & ~shown.seen
    cells = np.where(hidden, cell_log_density(model.predictor_, shown, complete) - model.coder_.log_units, 0.0)
    return {"row_score": cells.sum(1), "row_cells": hidden.sum(1).astype(float)}
