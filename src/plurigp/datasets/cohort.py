"""A simulated hospital cohort with planted subtypes: yes/no diagnoses, lab values and proportions, with gaps."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from plurigp.core.types import DataError
from plurigp.data.schema import Schema
from plurigp.datasets.functions import draw_functions
from plurigp.datasets.gaps import draw_gaps
from plurigp.datasets.samplers import ColumnPlan, draw_cells, function_scales

N_DIMENSIONS = 4
LENGTHSCALE = 3.0  # the latent spread is 1 per dimension: functions bend, but gently


@dataclass(frozen=True, eq=False)
class Cohort:
    """A table with gaps, its truth, and the planted subtype (0, 1, …) and latent position of each row."""

    table: pd.DataFrame
    truth: pd.DataFrame  # the same without gaps
    hidden: np.ndarray  # bool [N D], True = a gap in the table
    subtype: np.ndarray  # int [N]
    x: np.ndarray  # [N Q]
    schema: Schema


def simulate_cohort(
    n_rows: int = 1400,
    n_subtypes: int = 4,
    n_binary: int = 20,
    n_real: int = 20,
    n_proportion: int = 6,
    missing: float = 0.1,
    separation: float = 6.0,
    random_state: int | np.random.Generator | None = 0,
    mechanism: str = "random",
) -> Cohort:
    """Draw a mixture of round Gaussian subtypes and push it through smooth functions to diagnoses, labs and shares.

    `separation` is the distance between any two subtype centres in units of the sd within a subtype: at 6 the
    subtypes hardly touch; of four, one row in 20 lies nearer to a wrong centre at 4, one in 6 at 3; 0 is no subtypes.
    Subtypes differ in size, the largest three times the smallest. `n_subtypes=1` is one round, structureless cloud.
    """
    if n_subtypes < 1:
        raise DataError(f"n_subtypes is {n_subtypes}: ask for at least 1, which means one structureless cloud.")
    if n_binary + n_real + n_proportion < 1:
        raise DataError("the cohort has no column; ask for some with n_binary, n_real or n_proportion.")
    plan_rng, x_rng, f_rng, cell_rng, gap_rng = np.random.default_rng(random_state).spawn(5)
    plans = _plans(plan_rng, n_binary, n_real, n_proportion)
    subtype, x = _positions(x_rng, n_rows, n_subtypes, separation)
    functions = draw_functions(f_rng, *function_scales(plans), np.full(x.shape[1], LENGTHSCALE))
    truth, schema = draw_cells(cell_rng, plans, functions(x))
    hidden = draw_gaps(gap_rng, truth, missing, mechanism)
    return Cohort(truth.mask(hidden), truth, hidden, subtype, x, schema)


def _positions(
    rng: np.random.Generator, n_rows: int, n_subtypes: int, separation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Subtypes [N] and positions [N Q] of overall mean 0 and a mean variance of 1 per dimension.

    The centres are the corners of a regular simplex, so all pairs are equally far apart, turned at random.
    """
    Q = max(N_DIMENSIONS, n_subtypes - 1)
    weights = np.linspace(3.0, 1.0, n_subtypes) / np.linspace(3.0, 1.0, n_subtypes).sum()
    corners = np.eye(n_subtypes) - 1 / n_subtypes  # pairwise distance √2, in n_subtypes - 1 dimensions
    basis = np.linalg.svd(corners)[2][: n_subtypes - 1]  # [K-1 K]
    turn = np.linalg.qr(rng.standard_normal((Q, Q)))[0][: n_subtypes - 1]
    centres = separation / np.sqrt(2) * corners @ basis.T @ turn  # [K Q], in units of the sd within
    centres = centres - weights @ centres
    sd = 1 / np.sqrt(1 + (weights @ centres**2).mean())
    subtype = rng.choice(n_subtypes, n_rows, p=weights)
    return subtype, sd * (centres[subtype] + rng.standard_normal((n_rows, Q)))


def _plans(rng: np.random.Generator, n_binary: int, n_real: int, n_proportion: int) -> list[ColumnPlan]:
    """Diagnoses of all frequencies, labs in units of their own with noise of 0.3 to 0.8 of their scale, shares."""
    plans = [
        ColumnPlan(f"diagnosis_{i + 1:02}", "bernoulli", [rng.normal(-0.5, 0.7)], [2.5], levels=(False, True))
        for i in range(n_binary)
    ]
    for i in range(n_real):
        level = 10.0 ** rng.uniform(0.5, 2.5, 1)
        scale = level * rng.uniform(0.1, 0.25)
        sd = float(scale[0] * rng.uniform(0.3, 0.8))
        plans.append(ColumnPlan(f"lab_{i + 1:02}", "gaussian", level.tolist(), scale.tolist(), {"sd": sd}))
    for i in range(n_proportion):
        nu = rng.uniform(15, 40)
        plans.append(ColumnPlan(f"share_{i + 1:02}", "beta", [rng.normal(0, 0.3)], [0.7], {"nu": nu}))
    return plans
