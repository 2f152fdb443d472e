"""The latent dimension: of those that predict hidden cells no worse than the best, the one with most evidence."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from plurigp.answers.heldout import ratio_se
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.tasks import SELECT, Finished, Task, training_rows

NO_WORSE = 2.0  # standard errors below the best score: more is significantly worse


def selection_tasks(n_rows: int, config: StudyConfig, groups: np.ndarray | None = None) -> list[Task]:
    """Every dimension with every restart, on the training rows; neighbours differ, so that no two workers compile the
    same program at once."""
    rows = training_rows(n_rows, config, groups)
    grid = sorted(set(config.n_components))
    return [Task(f"{SELECT}-{Q:02}-{r}", Q, rows) for r in range(config.n_restarts) for Q in grid]


def selection_frame(tasks: Sequence[Task], finished: Sequence[Finished]) -> pd.DataFrame:
    """One line per dimension: the restart with most evidence, its held-out score, and its distance to the best.

    The evidence is the bound and what groups add to it: a dimension that shows groups is not given up for a smaller one
    that predicts no worse. Chosen is, among the dimensions that predict not significantly worse than the best, the one
    with most evidence, so that neither prediction nor groups suffer.

    Standard errors are over rows, since the cells of a row depend on each other; `gap` is paired by row.
    """
    pairs = list(zip(tasks, finished, strict=True))
    by_dimension = [
        [pair for pair in pairs if pair[0].n_components == Q] for Q in sorted({t.n_components for t in tasks})
    ]
    fits = [max(restarts, key=lambda pair: evidence_of(pair[1])) for restarts in by_dimension]
    n = fits[0][1].arrays["row_cells"]  # the same cells for every fit
    scores = np.stack([result.arrays["row_score"] for _, result in fits])  # [fits rows]
    top = int(np.argmax(scores.sum(1) / n.sum()))
    gaps = scores[top] - scores
    gap, gap_se = gaps.sum(1) / n.sum(), np.array([ratio_se(row, n) for row in gaps])
    evidence = np.array([evidence_of(result) for _, result in fits])
    near = gap <= NO_WORSE * np.nan_to_num(gap_se) + 1e-12
    return pd.DataFrame(
        {
            "n_components": [task.n_components for task, _ in fits],
            "fit": [task.name for task, _ in fits],
            "bound": [result.facts["bound"] for _, result in fits],
            "group_gain": [result.facts["group_gain"] for _, result in fits],
            "score": scores.sum(1) / n.sum(),
            "se": [ratio_se(row, n) for row in scores],
            "gap": gap,
            "gap_se": gap_se,
            "best": np.arange(len(fits)) == top,
            "chosen": np.arange(len(fits)) == np.argmax(np.where(near, evidence, -np.inf)),
        }
    )


def evidence_of(finished: Finished) -> float:
    """Of a map with its groups, in nats: the bound, and what a mixture of its means gains over one Gaussian."""
    return float(finished.facts["bound"] + finished.facts["group_gain"])
