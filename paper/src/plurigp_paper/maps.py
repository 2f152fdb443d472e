"""A study of a table: the choice of Q, the map, how it clusters, and the consensus; with or without characteristics."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from plurigp.answers.heldout import hide_cells
from plurigp.core.threads import single_blas_thread
from plurigp.data import Schema
from plurigp.study import Study, StudyConfig, StudyResult
from plurigp.study.findings.em import RIDGE
from plurigp.study.fits.learn import learn, rows_to_fit
from plurigp.study.fits.pool import Pool
from plurigp.study.fits.progress import StudyProgress
from plurigp.study.fits.select import selection_frame, selection_tasks
from plurigp.study.fits.tasks import HIDDEN, held_out_rows, training_rows
from plurigp.study.run import FITS_FOLDER, settled_schema, start_study
from plurigp.study.subtypes import clustering_frame, find_subtypes
from plurigp_paper.scores import score

SEED = 0
COVARIANCES = ("tied", "full")  # of a mixture: shared by its clusters, or one for each
REST = "rest"  # one group of columns, whatever their kinds


@dataclass(frozen=True, eq=False)
class Found:
    """What the experiments read off a study."""

    x: np.ndarray  # [N Q]
    subtype: np.ndarray  # [N] int, 0 for outliers
    n_paper: int
    clusterings: pd.DataFrame
    structured: bool
    structure_p: float
    subtypes: pd.DataFrame
    selection: pd.DataFrame
    config: StudyConfig

    @property
    def n_evidence(self) -> int:
        """How many clusters have most evidence; one where no valley lies between the clusters that were looked at."""
        best = int(self.clusterings["n_clusters"].iloc[int(self.clusterings["gain"].to_numpy().argmax())])
        return best if self.structured else 1


def full_study(folder: Path, table: pd.DataFrame, schema: Schema, **settings: Any) -> tuple[Found, StudyResult]:
    """The library's study, or going on with it: characteristics and outcomes too."""
    result = Study(schema=schema, out=folder, verbose=True, random_state=SEED, **settings).fit(table)
    found = Found(
        result.latent.mean,
        result.clusters.subtype,
        int(result.facts["n_paper_clusters"]),
        result.clusterings,
        result.facts["structured"],
        result.facts["structure_p"],
        result.subtypes,
        result.selection,
        StudyConfig.from_dict(result.config),
    )
    return found, result


def map_study(folder: Path, table: pd.DataFrame, schema: Schema, **settings: Any) -> Found:
    """The same fits and the same consensus without characteristics, which say little of 784 pixels.

    In this process: families of the experiments are known here only.
    """
    config = StudyConfig.from_dict({"random_state": SEED, **settings})
    schema = settled_schema(table, schema, config)
    start_study(folder, table, schema, config)
    progress = StudyProgress(rows_to_fit(len(table), config), True)
    with progress.bar:
        maps = learn(Pool(folder / FITS_FOLDER, schema, config, 0, None, progress), table, config)
    found = find_subtypes(maps, config)
    return Found(
        maps.latent.arrays["mean"],
        found.clusters.subtype,
        maps.n_paper,
        clustering_frame(maps),
        found.structured,
        found.p,
        found.frame,
        maps.selection,
        config,
    )


def choose_dimension(folder: Path, table: pd.DataFrame, schema: Schema, **settings: Any) -> list[dict[str, Any]]:
    """The study's choice of Q alone: every Q with its restarts, the best bound of each, hidden cells of held-out rows.

    One line per Q, with the paper's reconstruction score, the density and the course of training beside it.
    """
    config = StudyConfig.from_dict({"random_state": SEED, **settings})
    settled = settled_schema(table, schema, config)
    start_study(folder, table, settled, config)
    tasks = selection_tasks(len(table), config)
    progress = StudyProgress(sum(len(task.rows) for task in tasks), True)
    with progress.bar:
        pool = Pool(folder / FITS_FOLDER, settled, config, 0, None, progress)
        finished = dict(zip((task.name for task in tasks), pool.run(tasks, lambda _: table), strict=True))
    lines = []
    for line in selection_frame(tasks, list(finished.values())).to_dict("records"):
        fit = str(line["fit"])
        truth = table.iloc[held_out_rows(len(table), training_rows(len(table), config), config)].reset_index(drop=True)
        shown = hide_cells(truth, settled, config.hidden_share, config.seed_of(HIDDEN))
        scores = score(pool.model(fit), truth, shown, {c.name: REST for c in settled.used})
        trace = finished[fit].arrays["trace.bound"] / len(tasks[0].rows)
        lines.append(
            {
                "Q": int(line["n_components"]),
                "cells": float(line["score"]),
                "gap": float(line["gap"]),
                "gap_se": float(line["gap_se"]),
                "chosen": bool(line["chosen"]),
                "reconstruction": scores["reconstruction"][REST],
                "density": scores["density"]["all"],
                "trace": np.round(trace, 3).tolist(),
            }
        )
    return lines


def clusters_found(found: Found, truth: np.ndarray) -> dict[str, Any]:
    """Agreement with the known groups at their own number and at the study's, and all that is known without them."""
    n_true = len(np.unique(truth))
    rand = {name: rand_index(found.x, truth, n_true, name) for name in COVARIANCES}
    rand["evidence"] = rand_index(found.x, truth, found.n_evidence, "full")
    return {"n_true": n_true, "rand": rand, **numbers(found)}


def numbers(found: Found) -> dict[str, Any]:
    """The study's own numbers, for the page."""
    wanted = ["subtype", "size", "index", "permutation_threshold", "permutation_p"]
    return {
        "n_rows": len(found.x),
        "n_components": found.x.shape[1],
        "n_paper": found.n_paper,
        "n_evidence": found.n_evidence,
        "structured": found.structured,
        "structure_p": found.structure_p,
        "n_outliers": int((found.subtype == 0).sum()),
        "consensus": found.subtypes[wanted].to_dict("records"),
        "n_refits": found.config.n_refits,
        "n_references": found.config.n_references,
    }


def rand_index(x: np.ndarray, truth: np.ndarray, K: int, covariance: str) -> float:
    """Adjusted Rand index of a K-component mixture of the latent means with the known groups."""
    fitted = GaussianMixture(K, covariance_type=covariance, n_init=10, random_state=SEED, reg_covar=RIDGE)
    with single_blas_thread():
        return float(adjusted_rand_score(truth, fitted.fit_predict(np.asarray(x, float))))


def flat_view(x: np.ndarray) -> np.ndarray:
    """Two dimensions for the eye, neighbours kept: t-SNE, where the paper has UMAP."""
    with single_blas_thread():
        return TSNE(random_state=SEED, init="pca", perplexity=min(30.0, len(x) / 4)).fit_transform(x)
