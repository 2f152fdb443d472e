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

    Standard errors are over rows, since the cells of a row hang together; `gap` is paired by row.
    """
    best: dict[int, tuple[Task, Finished]] = {}
    for task, result in zip(tasks, finished, strict=True):
        held = best.get(task.n_components)
        if held is None or result.facts["bound"] > held[1].facts["bound"]:
            best[task.n_components] = (task, result)
    lines = [
        {"n_components": Q, "fit": task.name, "bound": result.facts["bound"], **_score(result)}
        for Q, (task, result) in sorted(best.items())
    ]
    frame = pd.DataFrame(lines)
    top = int(frame["score"].to_numpy().argmax())
    top_fit = best[lines[top]["n_components"]][1]
    gaps = [_gap(top_fit, best[Q][1]) for Q in frame["n_components"]]
    frame["gap"], frame["gap_se"] = np.array(gaps).T
    frame["best"] = np.arange(len(frame)) == top
    frame["chosen"] = np.arange(len(frame)) == one_standard_error(frame["gap"].to_numpy(), frame["gap_se"].to_numpy())
    return frame


def one_standard_error(gap: np.ndarray, se: np.ndarray) -> int:
    """The first (smallest) dimension whose distance to the best is within its standard error."""
    return int(np.argmax(gap <= np.nan_to_num(se) + 1e-12))


def _score(result: Finished) -> dict[str, float]:
    total, n = result.arrays["row_score"], result.arrays["row_cells"]
    return {"score": float(total.sum() / n.sum()), "se": ratio_se(total, n)}


def _gap(top: Finished, other: Finished) -> tuple[float, float]:
    difference, n = top.arrays["row_score"] - other.arrays["row_score"], top.arrays["row_cells"]
    return float(difference.sum() / n.sum()), ratio_se(difference, n)
