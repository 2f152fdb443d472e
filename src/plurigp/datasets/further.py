"""How the kinds with tails, limits, order or extra zeros are simulated; as in `families.py`, apart from the model."""

import numpy as np
from scipy.special import expit, ndtr

from plurigp.datasets.plans import EDGE, Family, Plan

LIMITED = 0.3  # the share of a censored column that lies beyond its limit


def _plan_student_t(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    theta = {"scale": float(rng.uniform(0.2, 0.4)), "df": float(rng.uniform(2.5, 5))}
    return Plan(name, "student_t", rng.normal(0, 1, 1), rng.uniform(1.0, 2.0, 1), theta)


def _plan_lognormal(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "lognormal", rng.normal(1, 1, 1), np.array([1.0]), {"sd": float(rng.uniform(0.2, 0.4))})


def _plan_zero_lognormal(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    theta = {"sd": float(rng.uniform(0.2, 0.4))}
    return Plan(name, "zero_lognormal", np.array([rng.normal(0.5, 0.3), rng.normal(1, 1)]), np.array([2.0, 1.0]), theta)


def _plan_gamma(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "gamma", rng.normal(1, 1, 1), np.array([1.0]), {"shape": float(rng.uniform(2, 6))})


def _plan_negative_binomial(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "negative_binomial", rng.normal(2.5, 0.3, 1), np.array([1.0]), {"r": float(rng.uniform(3, 8))})


def _plan_zero_inflated(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    theta = {"zero": float(rng.uniform(0.2, 0.5))}
    return Plan(name, "zero_inflated_poisson", rng.normal(2.0, 0.3, 1), np.array([1.0]), theta)


def _plan_ordinal(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    theta = {"first_cut": -1.5 + rng.normal(0, 0.3), "gaps": rng.uniform(1.0, 2.0, n_levels - 2)}
    return Plan(name, "ordinal", np.zeros(1), np.array([3.0]), theta, levels=tuple(range(1, n_levels + 1)))


def _plan_zero_one_beta(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    theta = {"nu": float(rng.uniform(15, 40)), "low_cut": rng.uniform(-2, -1.2), "gap": rng.uniform(2.4, 3.2)}
    return Plan(name, "zero_one_beta", rng.normal(0, 0.2, 1), np.array([0.8]), theta)


def _plan_censored_gaussian(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "censored_gaussian", rng.normal(0, 1, 1), np.array([1.5]), {"sd": float(rng.uniform(0.2, 0.4))})


def _plan_censored_lognormal(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "censored_lognormal", rng.normal(1, 1, 1), np.ones(1), {"sd": float(rng.uniform(0.2, 0.4))})


def _plan_censored_gamma(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "censored_gamma", rng.normal(1, 1, 1), np.ones(1), {"shape": float(rng.uniform(2, 6))})


def _plan_weibull(rng: np.random.Generator, name: str, n_levels: int, trials: int) -> Plan:
    return Plan(name, "weibull", rng.normal(2, 0.5, 1), np.ones(1), {"shape": float(rng.uniform(2.0, 4.0))})


def _sample_student_t(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return f[:, 0] + plan.theta["scale"] * rng.standard_t(plan.theta["df"], len(f))


def _sample_lognormal(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return np.exp(rng.normal(f[:, 0], plan.theta["sd"]))


def _sample_gamma(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return np.maximum(rng.gamma(plan.theta["shape"], np.exp(f[:, 0]) / plan.theta["shape"]), EDGE)


def _sample_negative_binomial(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return rng.poisson(rng.gamma(plan.theta["r"], np.exp(f[:, 0]) / plan.theta["r"]))


def _sample_zero_inflated(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return rng.poisson(np.exp(f[:, 0])) * (rng.random(len(f)) >= plan.theta["zero"])


def _sample_ordinal(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    cuts = plan.theta["first_cut"] + np.concatenate([[0.0], np.cumsum(plan.theta["gaps"])])
    return 1 + (rng.normal(f[:, :1], 1.0) > cuts).sum(axis=1)


def _sample_zero_lognormal(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return (rng.random(len(f)) < expit(f[:, 0])) * rng.lognormal(f[:, 1], plan.theta["sd"])


def _sample_zero_one_beta(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    nu, noisy, low = plan.theta["nu"], rng.normal(f[:, 0], 1.0), plan.theta["low_cut"]
    inside = np.clip(rng.beta(nu * ndtr(f[:, 0]), nu * ndtr(-f[:, 0])), EDGE, 1 - EDGE)
    return np.where(noisy < low, 0.0, np.where(noisy > low + plan.theta["gap"], 1.0, inside))


def _below_a_limit(values: np.ndarray) -> np.ndarray:
    """The lowest cells as "<limit", the others spelled out."""
    limit = float(f"{np.quantile(values, LIMITED):.6g}")
    return np.where(values < limit, f"<{limit!r}", [repr(float(value)) for value in values])


def _sample_censored_gaussian(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return _below_a_limit(rng.normal(f[:, 0], plan.theta["sd"]))


def _sample_censored_lognormal(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return _below_a_limit(_sample_lognormal(rng, f, plan))


def _sample_censored_gamma(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    return _below_a_limit(_sample_gamma(rng, f, plan))


def _sample_weibull(rng: np.random.Generator, f: np.ndarray, plan: Plan) -> np.ndarray:
    """Times, of which those that end after a random one of the same size are known as ">time"."""
    time, until = np.exp(f[:, 0]) * rng.weibull(plan.theta["shape"], len(f)), rng.exponential(3.0, len(f))
    until = until * float(np.exp(plan.bias[0]))
    return np.array([f">{u!r}" if u < t else repr(t) for t, u in zip(time.tolist(), until.tolist(), strict=True)])


FURTHER = {
    "student_t": Family(_plan_student_t, _sample_student_t, "float64"),
    "lognormal": Family(_plan_lognormal, _sample_lognormal, "float64"),
    "zero_lognormal": Family(_plan_zero_lognormal, _sample_zero_lognormal, "float64"),
    "gamma": Family(_plan_gamma, _sample_gamma, "float64"),
    "negative_binomial": Family(_plan_negative_binomial, _sample_negative_binomial, "Int64"),
    "zero_inflated_poisson": Family(_plan_zero_inflated, _sample_zero_inflated, "Int64"),
    "ordinal": Family(_plan_ordinal, _sample_ordinal, "Int64"),
    "zero_one_beta": Family(_plan_zero_one_beta, _sample_zero_one_beta, "float64"),
    "censored_gaussian": Family(_plan_censored_gaussian, _sample_censored_gaussian, "str"),
    "censored_lognormal": Family(_plan_censored_lognormal, _sample_censored_lognormal, "str"),
    "censored_gamma": Family(_plan_censored_gamma, _sample_censored_gamma, "str"),
    "weibull": Family(_plan_weibull, _sample_weibull, "str"),
}
