"""Tables drawn from the model itself, with everything known that a fit has to find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.types import DataError
from plurigp.data.schema import Schema
from plurigp.datasets.functions import Functions, draw_functions
from plurigp.datasets.gaps import draw_gaps
from plurigp.datasets.samplers import SAMPLERS, ColumnPlan, draw_cells, function_scales, function_slices, plan_column

COLUMNS = {
    "gaussian": 6,
    "gaussian_hetero": 3,
    "bernoulli": 5,
    "binomial": 3,
    "beta": 3,
    "poisson": 3,
    "categorical": 3,
}


@dataclass(frozen=True, eq=False)
class Simulation:
    """A table with gaps and the truth behind it; `functions` evaluates the true functions at any x [... Q]."""

    table: pd.DataFrame
    truth: pd.DataFrame  # the same without gaps
    hidden: np.ndarray  # bool [N D], True = a gap in the table
    x: np.ndarray  # [N Q]
    f: np.ndarray  # [N P], functions(x)
    functions: Functions
    theta: dict[str, dict[str, Any]]  # per column: sd (gaussian), nu (beta), first_cut and gaps (ordinal), or nothing
    function_slices: dict[str, slice]  # per column, its functions among the P
    lengthscale: np.ndarray  # [Q]
    schema: Schema


def simulate(
    n_rows: int = 500,
    n_components: int = 2,
    columns: Mapping[str, int] | None = None,
    missing: float = 0.2,
    random_state: int | np.random.Generator | None = 0,
    lengthscale: float | Sequence[float] = 2.0,
    mechanism: str = "random",
    n_levels: int | Sequence[int] = (3, 4, 5),
    trials: int = 10,
) -> Simulation:
    """Draw x ~ N(0, I), functions from the GP prior and cells from each column's likelihood; then hide cells.

    `columns` says how many of each kind, in the table's order (26 columns of the basic kinds by default). `n_levels` is
    used in turn for the categorical and ordinal columns. Gaps and their mechanism do not change the truth of a seed.
    """
    plan_rng, x_rng, f_rng, cell_rng, gap_rng = np.random.default_rng(random_state).spawn(5)
    plans = _plans(plan_rng, COLUMNS if columns is None else columns, n_levels, trials)
    ell = _lengthscale(lengthscale, n_components)
    functions = draw_functions(f_rng, *function_scales(plans), ell)
    x = x_rng.standard_normal((n_rows, n_components))
    f = functions(x)
    truth, schema = draw_cells(cell_rng, plans, f)
    hidden = draw_gaps(gap_rng, truth, missing, mechanism)
    theta = {plan.name: dict(plan.theta) for plan in plans}
    slices = function_slices(plans)
    return Simulation(truth.mask(hidden), truth, hidden, x, f, functions, theta, slices, ell, schema)


def _lengthscale(lengthscale: float | Sequence[float], n_components: int) -> np.ndarray:
    """One lengthscale per dimension, from one for all or one for each."""
    given = np.atleast_1d(np.asarray(lengthscale, dtype=float))
    if len(given) not in (1, n_components) or not (given > 0).all():
        raise DataError(
            f"lengthscale {lengthscale}: give one positive number, or one for each of {n_components} dimensions."
        )
    return np.broadcast_to(given, (n_components,)).copy()


def _plans(
    rng: np.random.Generator, columns: Mapping[str, int], n_levels: int | Sequence[int], trials: int
) -> list[ColumnPlan]:
    """One plan per column, named by its kind and number: gaussian_1, gaussian_2, …"""
    unknown = [kind for kind in columns if kind not in SAMPLERS]
    if unknown or sum(columns.values()) < 1:
        found = f"kind {unknown[0]!r} is not known" if unknown else "columns asks for no column"
        raise DataError(f"{found}; give numbers of columns for some of {', '.join(SAMPLERS)}.")
    widths = np.atleast_1d(n_levels).tolist()
    return [
        plan_column(rng, f"{kind}_{i + 1}", kind, widths[i % len(widths)], trials)
        for kind, number in columns.items()
        for i in range(number)
    ]
