"""What all tests share: one CPU, repeatable examples, and a small table with columns of every kind."""

import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")  # tests compile far more than they compute
os.environ.setdefault("PLURIGP_CACHE", str(Path(__file__).parent / ".pytest_cache" / "compiled"))

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture
def rng() -> np.random.Generator:
    """Randomness that is the same in every run."""
    return np.random.default_rng(20210413)


@pytest.fixture
def mixed_frame(rng: np.random.Generator) -> pd.DataFrame:
    """120 rows around one factor: an id, a real, a yes/no, a count, a proportion and a category, a tenth of it gaps."""
    n = 120
    factor = rng.normal(size=n)
    stages = np.array(["early", "late", "middle"])[np.digitize(factor + 0.3 * rng.normal(size=n), [-0.5, 0.5])]
    frame = pd.DataFrame(
        {
            "patient": [f"P{i:04d}" for i in range(n)],
            "albumin": 3.5 + 0.5 * factor + 0.2 * rng.normal(size=n),
            "diabetes": np.where(factor + rng.normal(size=n) > 0, "yes", "no"),
            "visits": rng.poisson(np.exp(1.0 + 0.5 * factor)).astype(float),
            "ejection": 1 / (1 + np.exp(-factor - 0.3 * rng.normal(size=n))),
            "stage": stages,
        }
    )
    for name in frame.columns[1:]:
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame
