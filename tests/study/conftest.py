"""A small study result made by hand, with hostile names."""

import numpy as np
import pandas as pd
import pytest

from plurigp.study import Clusters, Consensus, Map, Nulls, StudyConfig, StudyResult
from plurigp.study.contents import FRAMES
from plurigp.study.findings.mixture import Mixture
from plurigp.study.findings.valley import Valleys

HOSTILE = ["=cmd()", "<script>alert(1)</script>", 'naïve, "quoted"\nline', "+1+1", "-x", "@a", "'=x"]


LINES = {"survival": 0, "subtypes": 2, "separations": 1}
COUNTS = (
    "n_permutations", "n_refits", "n_references", "n_columns", "n_subtypes", "n_groups", "n_robust", "n_paper_clusters",
    "n_outliers", "sampled_pairs", "split_rows", "test_rows", "hidden_cells",
)  # fmt: skip
FACTS = dict.fromkeys(COUNTS, 1) | {
    "level": 0.05, "choice": "evidence", "structured": True, "structure_p": float("nan"), "pac": 0.1, "gap_share": 0.2,
    "notes": [], "unseen_gain": 0.3, "bound": -1.0, "stopped": "plateau", "view_method": "pca", "time_column": None,
    "event_column": None,
}  # fmt: skip


def _frame(columns: dict[str, str]) -> pd.DataFrame:
    """A frame with the declared columns, a line per hostile name."""
    n = len(HOSTILE)
    numbers = np.linspace(0, 1, n)
    cells = {"text": HOSTILE, "number": numbers, "score": numbers, "share": np.nan, "count": 1, "truth": True}
    frame = pd.DataFrame({name: pd.Series(cells[sort], index=range(n)) for name, sort in columns.items()})
    numbered = {"subtype": np.arange(1, n + 1), "other": 2} if "size" in columns or "other" in columns else {}
    return frame.assign(**{name: values for name, values in numbered.items() if name in columns})


@pytest.fixture
def small_result(rng: np.random.Generator) -> StudyResult:
    """Twelve rows, two subtypes and an outlier."""
    n, Q = 12, 2
    subtype = np.array([1] * 6 + [2] * 5 + [0])
    mixture = Mixture(
        np.array([0.5, 0.4, 0.1]),
        np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 9.0]]),
        np.stack([np.eye(Q)] * 3),
        np.array([1, 2, 0]),
    )
    return StudyResult(
        facts=FACTS | {"title": "a <b>title</b>", "n_rows": n, "n_components": Q, "n_strata": 2},
        config=StudyConfig(n_refits=30).to_dict(),
        seeds={"random_state": 0},
        versions={"plurigp": "0"},
        latent=Map(rng.normal(size=(n, Q)), rng.random((n, Q)), rng.normal(size=(n, 2)), rng.random(n)),
        clusters=Clusters(subtype, rng.dirichlet([1, 1, 1], n)[:, :2], mixture),
        consensus=Consensus(
            np.arange(n),
            rng.random((n, n)),
            np.where(subtype > 0, rng.random(n), np.nan),
            np.eye(2),
            np.zeros((2, 2)),
            np.linspace(0, 1, 5),
            np.linspace(0, 1, 5),
        ),
        nulls=Nulls(rng.random((20, 2)), rng.random(3)),
        valleys=Valleys(*rng.random((3, 2, 2)), rng.integers(9, size=(2, 2, 36)).astype(float)),
        **{name: _frame(columns).head(LINES.get(name, len(HOSTILE))) for name, columns in FRAMES.items()},
    )
