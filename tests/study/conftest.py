"""A small study result made by hand, with hostile names."""

import numpy as np
import pandas as pd
import pytest

from plurigp.study import Clusters, Consensus, Map, Nulls, StudyResult
from plurigp.study.findings.mixture import Mixture
from plurigp.study.findings.valley import Valleys

HOSTILE = ["=cmd()", "<script>alert(1)</script>", 'naïve, "quoted"\nline', "+1+1", "-x", "@a", "'=x"]


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
    names = HOSTILE[: len(HOSTILE)]
    frame = pd.DataFrame({"column": names, "kind": "bernoulli", "p": np.linspace(0, 1, len(names)), "q": np.nan})
    empty = pd.DataFrame({"subtype": pd.Series(dtype=int), "time": pd.Series(dtype=float)})
    names_of = ("columns", "selection", "traces", "clusterings", "subtypes", "separations", "characteristics",
                "associations", "missingness", "predictions", "calibration", "risks", "survival_tests")  # fmt: skip
    return StudyResult(
        facts={"title": "a <b>title</b>", "n_rows": n, "structured": True, "structure_p": float("nan")},
        config={"n_refits": 30},
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
        survival=empty,
        **{name: frame.copy() for name in names_of},
    )
