"""Tables whose latent positions are known: continua of several shapes, planted groups, one group within a continuum."""

import numpy as np
import pandas as pd

from plurigp.data import Schema
from plurigp.datasets.functions import draw_functions
from plurigp.datasets.gaps import draw_gaps
from plurigp.datasets.samplers import ColumnPlan, draw_cells, function_scales

CONTINUA = ("model", "banana", "uniform", "heavy", "skewed")
N_DIMENSIONS = 3
LENGTHSCALE = 3.0  # where positions have a variance of 1: functions bend, but gently
BEND = 1.6  # half of the banana's angle: nearly a half circle
NARROW = (5, 6, 3)  # yes/no, real and share columns
WIDE = (20, 20, 6)  # those of the paper's hospital table


def continuum(shape: str, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Positions [N 3] without groups: normal as in the model, bent, uniform in a cube, Student's t (3), gamma (1.5)."""
    size = (n_rows, N_DIMENSIONS)
    if shape == "banana":
        angle, radius = rng.uniform(-BEND, BEND, n_rows), 1 + 0.15 * rng.normal(size=n_rows)
        return np.stack([radius * np.sin(angle), radius * np.cos(angle), 0.35 * rng.normal(size=n_rows)], axis=1)
    draws = {
        "model": lambda: rng.normal(size=size),
        "uniform": lambda: rng.uniform(-1, 1, size),
        "heavy": lambda: rng.standard_t(3, size),
        "skewed": lambda: rng.gamma(1.5, 1, size),
    }
    return draws[shape]()


def planted_groups(K: int, separation: float, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """K round groups of equal expected size, all centres `separation` sds apart: positions [N Q], groups [N]."""
    centres = np.eye(max(K, N_DIMENSIONS))[:K] * separation / np.sqrt(2)
    group = rng.integers(K, size=n_rows)
    return centres[group] + rng.normal(size=(n_rows, centres.shape[1])), group


def one_group(
    shape: str, share: float, away: float, n_rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A continuum and one round group of a share of the rows, `away` of the continuum's sds from its middle."""
    x = _standard(continuum(shape, n_rows, rng))
    group = (rng.random(n_rows) < share).astype(int)
    direction = rng.normal(size=N_DIMENSIONS)
    centre = away * direction / np.linalg.norm(direction)
    return np.where(group[:, None] == 1, centre + 0.5 * rng.normal(size=x.shape), x), group


def table_of(
    x: np.ndarray, seed: int, columns: tuple[int, int, int], missing: float = 0.1
) -> tuple[pd.DataFrame, Schema]:
    """Smooth functions of the positions, seen through yes/no, real and share columns with noise and gaps."""
    plan_rng, f_rng, cell_rng, gap_rng = np.random.default_rng([seed, 7]).spawn(4)
    plans = _plans(plan_rng, *columns)
    functions = draw_functions(f_rng, *function_scales(plans), np.full(x.shape[1], LENGTHSCALE))
    truth, schema = draw_cells(cell_rng, plans, functions(_standard(x)))
    return truth.mask(draw_gaps(gap_rng, truth, missing, "random")), schema


def _standard(x: np.ndarray) -> np.ndarray:
    """Mean 0 and a mean variance of 1."""
    centred = x - x.mean(0)
    return centred / np.sqrt((centred**2).mean())


def _plans(rng: np.random.Generator, n_binary: int, n_real: int, n_share: int) -> list[ColumnPlan]:
    """Yes/no columns of all frequencies, real ones with noise of 0.3 to 0.8 of their scale, shares."""
    binary = [
        ColumnPlan(f"yes_{i + 1:02}", "bernoulli", [rng.normal(-0.5, 0.7)], [2.5], levels=(False, True))
        for i in range(n_binary)
    ]
    real = [
        ColumnPlan(f"real_{i + 1:02}", "gaussian", [0.0], [1.0], {"sd": rng.uniform(0.3, 0.8)}) for i in range(n_real)
    ]
    share = [
        ColumnPlan(f"share_{i + 1:02}", "beta", [rng.normal(0, 0.3)], [0.7], {"nu": rng.uniform(15, 40)})
        for i in range(n_share)
    ]
    return [*binary, *real, *share]
