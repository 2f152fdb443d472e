"""The latent dimension: the smallest that predicts hidden cells about as well as the best."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from plurigp.answers.heldout import ratio_se
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.tasks import SELECT, Finished, Task, training_rows


def selection_tasks(n_rows: int, config: StudyConfig) -> list[Task]:
    """Every dimension with every restart, on the training rows; neighbours differ, so that no two workers compile the
    same program at once."""
    rows = training_rows(n_rows, config)
    grid = sorted(set(config.n_components))
    return [Task(f"{SELECT}-{Q:02}-{r}", Q, rows) for r in range(config.n_restarts) for Q in grid]


def selection_frame(tasks: Sequence[Task], finished: Sequence[Finished]) -> pd.DataFrame:
    """One line per dimension: the restart with the best bound, its held-out score, and its distance to the best.

    Standard errors are over rows, since the cells of a row depend on each other; `gap` is paired by row.
    """
    pairs = list(zip(tasks, finished, strict=True))
    by_dimension = [
        [pair for pair in pairs if pair[0].n_components == Q] for Q in sorted({t.n_components for t in tasks})
    ]
    fits = [max(restarts, key=lambda pair: pair[1].facts["bound"]) for restarts in by_dimension]
    n = fits[0][1].arrays["row_cells"]  # the same cells for every fit
    scores = np.stack([result.arrays["row_score"] for _, result in fits])  # [fits rows]
    top = int(np.argmax(scores.sum(1) / n.sum()))
    gaps = scores[top] - scores
    gap, gap_se = gaps.sum(1) / n.sum(), np.array([ratio_se(row, n) for row in gaps])
    return pd.DataFrame(
        {
            "n_components": [task.n_components for task, _ in fits],
            "fit": [task.name for task, _ in fits],
            "bound": [result.facts["bound"] for _, result in fits],
            "score": scores.sum(1) / n.sum(),
            "se": [ratio_se(row, n) for row in scores],
            "gap": gap,
            "gap_se": gap_se,
            "best": np.arange(len(fits)) == top,
            "chosen": np.arange(len(fits)) == one_standard_error(gap, gap_se),
        }
    )


def one_standard_error(gap: np.ndarray, se: np.ndarray) -> int:
    """The first (smallest) dimension whose distance to the best is within its standard error."""
    return int(np.argmax(gap <= np.nan_to_num(se) + 1e-12))
