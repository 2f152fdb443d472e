"""How a column of each kind is simulated: parameters that make it informative, and a sampler given its functions.

A column has one function, gaussian_hetero two (mean and log sd), categorical one per level. The samplers are written
here a second time, in NumPy, apart from the model's own likelihoods: where the two agree, both are right.
"""

from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr, softmax

from plurigp.core.types import DataError
from plurigp.data import Column, Schema
from plurigp.datasets.further import FURTHER
from plurigp.datasets.plans import EDGE, Family, Plan


def _plan_gaussian(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    scale = rng.uniform(1.0, 2.0, 1)
    return Plan(name, "gaussian", rng.normal(0, 1, 1), scale, {"sd": float(scale[0] * rng.uniform(0.1, 0.25))})


def _plan_hetero(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "gaussian_hetero", np.array([rng.normal(0, 1), -1.4]), np.array([1.5, 0.6]))


def _plan_bernoulli(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "bernoulli", rng.normal(0, 0.5, 1), np.array([3.0]), levels=(False, True))


def _plan_binomial(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "binomial", rng.normal(0, 0.5, 1), np.array([2.0]), trials=trials)


def _plan_beta(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "beta", rng.normal(0, 0.2, 1), np.array([0.8]), {"nu": float(rng.uniform(25, 50))})


def _plan_poisson(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "poisson", rng.normal(1.5, 0.3, 1), np.array([1.0]))


def _plan_categorical(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    if not 2 <= n_levels <= len(ascii_lowercase):
        raise DataError(f"n_levels is {n_levels}: a simulated category has from 2 to {len(ascii_lowercase)} levels.")
    levels = tuple(ascii_lowercase[:n_levels])
    return Plan(name, "categorical", np.zeros(n_levels), np.full(n_levels, 2.5), levels=levels)


def _sample_gaussian(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return rng.normal(f[:, 0], plan.theta["sd"])


def _sample_hetero(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return rng.normal(f[:, 0], np.exp(f[:, 1]))


def _sample_bernoulli(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return rng.random(len(f)) < expit(f[:, 0])


def _sample_binomial(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return rng.binomial(np.full(len(f), plan.trials), expit(f[:, 0]))


def _sample_beta(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    nu = plan.theta["nu"]
    return np.clip(rng.beta(nu * ndtr(f[:, 0]), nu * ndtr(-f[:, 0])), EDGE, 1 - EDGE)


def _sample_poisson(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return rng.poisson(np.exp(f[:, 0]))


def _sample_categorical(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    above = rng.random((len(f), 1)) > np.cumsum(softmax(f, axis=1), axis=1)[:, :-1]
    return np.array(plan.levels, dtype=object)[above.sum(axis=1)]


FAMILIES = {
    "gaussian": Family(_plan_gaussian, _sample_gaussian, "float64"),
    "gaussian_hetero": Family(_plan_hetero, _sample_hetero, "float64"),
    "bernoulli": Family(_plan_bernoulli, _sample_bernoulli, "boolean"),
    "binomial": Family(_plan_binomial, _sample_binomial, "Int64"),
    "beta": Family(_plan_beta, _sample_beta, "float64"),
    "poisson": Family(_plan_poisson, _sample_poisson, "Int64"),
    "categorical": Family(_plan_categorical, _sample_categorical, "str"),
    **FURTHER,
}


def function_slices(plans: Sequence[Plan]) -> dict[str, slice]:
    """Where each column's functions lie among the P, column after column."""
    ends = np.cumsum([len(plan.bias) for plan in plans]).tolist()
    return {plan.name: slice(end - len(plan.bias), end) for plan, end in zip(plans, ends, strict=True)}


def draw_cells(rng: np.random.Generator, plans: Sequence[Plan], f: np.ndarray) -> pd.DataFrame:
    """Every cell given the functions' values f [N P], in dtypes that can also hold a gap."""
    columns = {}
    for plan, part in zip(plans, function_slices(plans).values(), strict=True):
        family = FAMILIES[plan.kind]
        columns[plan.name] = pd.Series(family.sample(rng, f[:, part], plan)).astype(
            pd.api.types.pandas_dtype(family.dtype)
        )
    return pd.DataFrame(columns)


def schema_of(plans: Sequence[Plan], frame: pd.DataFrame) -> Schema:
    """The kinds the columns were drawn from."""
    return Schema(
        tuple(
            Column(
                name=plan.name,
                kind=plan.kind,
                reason="simulated as this kind",
                levels=plan.levels,
                trials=plan.trials,
                dtype=str(frame[plan.name].dtype),
            )
            for plan in plans
        )
    )
