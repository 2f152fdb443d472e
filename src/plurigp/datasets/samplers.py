"""How a column of each kind is simulated: parameters that make it informative, and its cells given its functions.

A column has one function; gaussian_hetero and zero_lognormal have two, categorical one per level. The samplers are
written here a second time, in NumPy, apart from the model's own likelihoods: where the two agree, both are right.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.special import expit, ndtr, softmax

from plurigp.core.types import DataError
from plurigp.data.schema import Column, Schema

MARGIN = 1e-9  # a beta draw may underflow to 0 or round to 1; it is kept this far inside
CENSORED_SHARE = 0.3  # of a column's cells, those below its limit of detection


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """One column to be drawn: its kind, b and s of its H functions, its theta, and levels or trials if it has any."""

    name: str
    kind: str
    bias: Sequence[float]  # [H]
    scale: Sequence[float]  # [H]
    theta: Mapping[str, Any] = field(default_factory=dict)
    levels: tuple = ()
    trials: int | None = None


@dataclass(frozen=True)
class Sampler:
    """A kind to simulate: its dtype, the parameters of a column (bias, scale, theta, …) and the cells from f [N H]."""

    dtype: str
    parameters: Callable[[Generator, int, int], tuple]  # (rng, n_levels, trials) -> fields of a ColumnPlan
    cells: Callable[[Generator, np.ndarray, ColumnPlan], np.ndarray]


def _gaussian_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    scale = rng.uniform(1.0, 2.0)
    return [rng.normal(0, 1)], [scale], {"sd": scale * rng.uniform(0.1, 0.25)}


def _student_t_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    theta = {"scale": rng.uniform(0.2, 0.4), "df": rng.uniform(2.5, 5)}
    return [rng.normal(0, 1)], [rng.uniform(1.0, 2.0)], theta


def _lognormal_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    return [rng.normal(1, 1)], [1.0], {"sd": rng.uniform(0.2, 0.4)}


def _zero_lognormal_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    theta = {"sd": rng.uniform(0.2, 0.4)}
    return [rng.normal(0.5, 0.3), rng.normal(1, 1)], [2.0, 1.0], theta


def _gamma_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    return [rng.normal(1, 1)], [1.0], {"shape": rng.uniform(2, 6)}


def _zero_inflated_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    theta = {"zero": rng.uniform(0.2, 0.5)}
    return [rng.normal(2.0, 0.3)], [1.0], theta


def _zero_one_beta_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    theta = {"nu": rng.uniform(15, 40), "low_cut": rng.uniform(-2, -1.2), "gap": rng.uniform(2.4, 3.2)}
    return [rng.normal(0, 0.2)], [0.8], theta


def _ordinal_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    theta = {"first_cut": -1.5 + rng.normal(0, 0.3), "gaps": rng.uniform(1.0, 2.0, n_levels - 2)}
    return [0.0], [3.0], theta, tuple(range(1, n_levels + 1))


def _categorical_parameters(rng: Generator, n_levels: int, trials: int) -> tuple:
    if not 2 <= n_levels <= len(ascii_lowercase):
        raise DataError(f"n_levels is {n_levels}: a simulated category has from 2 to {len(ascii_lowercase)} levels.")
    return [0.0] * n_levels, [2.5] * n_levels, {}, tuple(ascii_lowercase[:n_levels])


def _normals(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    return rng.normal(f[:, 0], plan.theta["sd"])


def _lognormals(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    return np.exp(_normals(rng, f, plan))


def _gammas(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    return np.maximum(rng.gamma(plan.theta["shape"], np.exp(f[:, 0]) / plan.theta["shape"]), MARGIN)


def _betas(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    nu = plan.theta["nu"]
    return np.clip(rng.beta(nu * ndtr(f[:, 0]), nu * ndtr(-f[:, 0])), MARGIN, 1 - MARGIN)


def _betas_with_ends(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    noisy, low = rng.normal(f[:, 0], 1.0), plan.theta["low_cut"]
    return np.where(noisy < low, 0.0, np.where(noisy > low + plan.theta["gap"], 1.0, _betas(rng, f, plan)))


def _gamma_poissons(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    return rng.poisson(rng.gamma(plan.theta["r"], np.exp(f[:, 0]) / plan.theta["r"]))


def _ordered_levels(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    cuts = plan.theta["first_cut"] + np.concatenate([[0.0], np.cumsum(plan.theta["gaps"])])
    return 1 + (rng.normal(f[:, :1], 1.0) > cuts).sum(axis=1)


def _named_levels(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    above = rng.random((len(f), 1)) > np.cumsum(softmax(f, axis=1), axis=1)[:, :-1]
    return np.array(plan.levels, dtype=object)[above.sum(axis=1)]


def _censored_times(rng: Generator, f: np.ndarray, plan: ColumnPlan) -> np.ndarray:
    """Weibull times; where an exponential follow-up ends earlier, the cell is ">follow-up"."""
    time, until = np.exp(f[:, 0]) * rng.weibull(plan.theta["shape"], len(f)), rng.exponential(3.0, len(f))
    until = until * float(np.exp(plan.bias[0]))
    return np.array([f">{u!r}" if u < t else repr(t) for t, u in zip(time.tolist(), until.tolist(), strict=True)])


def _left_censored(values: np.ndarray) -> np.ndarray:
    """As text: the lowest cells as "<limit", the others spelled out."""
    limit = float(f"{np.quantile(values, CENSORED_SHARE):.6g}")
    return np.where(values < limit, f"<{limit!r}", [repr(float(value)) for value in values])


SAMPLERS = {
    "gaussian": Sampler("float64", _gaussian_parameters, _normals),
    "gaussian_hetero": Sampler(
        "float64",
        lambda rng, *_: ([rng.normal(0, 1), -1.4], [1.5, 0.6]),
        lambda rng, f, plan: rng.normal(f[:, 0], np.exp(f[:, 1])),
    ),
    "bernoulli": Sampler(
        "boolean",
        lambda rng, *_: ([rng.normal(0, 0.5)], [3.0], {}, (False, True)),
        lambda rng, f, plan: rng.random(len(f)) < expit(f[:, 0]),
    ),
    "binomial": Sampler(
        "Int64",
        lambda rng, _, trials: ([rng.normal(0, 0.5)], [2.0], {}, (), trials),
        lambda rng, f, plan: rng.binomial(np.full(len(f), plan.trials), expit(f[:, 0])),
    ),
    "beta": Sampler("float64", lambda rng, *_: ([rng.normal(0, 0.2)], [0.8], {"nu": rng.uniform(25, 50)}), _betas),
    "poisson": Sampler(
        "Int64",
        lambda rng, *_: ([rng.normal(1.5, 0.3)], [1.0]),
        lambda rng, f, plan: rng.poisson(np.exp(f[:, 0])),
    ),
    "categorical": Sampler("str", _categorical_parameters, _named_levels),
    "student_t": Sampler(
        "float64",
        _student_t_parameters,
        lambda rng, f, plan: f[:, 0] + plan.theta["scale"] * rng.standard_t(plan.theta["df"], len(f)),
    ),
    "lognormal": Sampler("float64", _lognormal_parameters, _lognormals),
    "zero_lognormal": Sampler(
        "float64",
        _zero_lognormal_parameters,
        lambda rng, f, plan: (rng.random(len(f)) < expit(f[:, 0])) * rng.lognormal(f[:, 1], plan.theta["sd"]),
    ),
    "gamma": Sampler("float64", _gamma_parameters, _gammas),
    "negative_binomial": Sampler(
        "Int64", lambda rng, *_: ([rng.normal(2.5, 0.3)], [1.0], {"r": rng.uniform(3, 8)}), _gamma_poissons
    ),
    "zero_inflated_poisson": Sampler(
        "Int64",
        _zero_inflated_parameters,
        lambda rng, f, plan: rng.poisson(np.exp(f[:, 0])) * (rng.random(len(f)) >= plan.theta["zero"]),
    ),
    "ordinal": Sampler("Int64", _ordinal_parameters, _ordered_levels),
    "zero_one_beta": Sampler("float64", _zero_one_beta_parameters, _betas_with_ends),
    "censored_gaussian": Sampler(
        "str",
        lambda rng, *_: ([rng.normal(0, 1)], [1.5], {"sd": rng.uniform(0.2, 0.4)}),
        lambda *cells: _left_censored(_normals(*cells)),
    ),
    "censored_lognormal": Sampler("str", _lognormal_parameters, lambda *cells: _left_censored(_lognormals(*cells))),
    "censored_gamma": Sampler("str", _gamma_parameters, lambda *cells: _left_censored(_gammas(*cells))),
    "weibull": Sampler(
        "str", lambda rng, *_: ([rng.normal(2, 0.5)], [1.0], {"shape": rng.uniform(2.0, 4.0)}), _censored_times
    ),
}


def plan_column(rng: Generator, name: str, kind: str, n_levels: int, trials: int) -> ColumnPlan:
    """A column of that kind with parameters drawn at random."""
    return ColumnPlan(name, kind, *SAMPLERS[kind].parameters(rng, n_levels, trials))


def function_slices(plans: Sequence[ColumnPlan]) -> dict[str, slice]:
    """Where each column's functions lie among the P, column after column."""
    ends = np.cumsum([len(plan.bias) for plan in plans]).tolist()
    return {plan.name: slice(end - len(plan.bias), end) for plan, end in zip(plans, ends, strict=True)}


def function_scales(plans: Sequence[ColumnPlan]) -> tuple[np.ndarray, np.ndarray]:
    """b and s of all P functions, column after column."""
    return np.concatenate([plan.bias for plan in plans]), np.concatenate([plan.scale for plan in plans])


def draw_cells(rng: Generator, plans: Sequence[ColumnPlan], f: np.ndarray) -> tuple[pd.DataFrame, Schema]:
    """Every cell given the functions' values f [N P], in dtypes that can also hold a gap; and the kinds drawn from."""
    slices, frame, columns = function_slices(plans), {}, []
    for plan in plans:
        sampler = SAMPLERS[plan.kind]
        cells = pd.Series(sampler.cells(rng, f[:, slices[plan.name]], plan))
        frame[plan.name] = cells.astype(pd.api.types.pandas_dtype(sampler.dtype))
        dtype = str(frame[plan.name].dtype)
        columns.append(Column(plan.name, plan.kind, "simulated as this kind", plan.levels, plan.trials, dtype=dtype))
    return pd.DataFrame(frame), Schema(tuple(columns))
