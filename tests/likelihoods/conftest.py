"""Random cells of every family, SciPy's word on each of them, and float64 throughout."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from scipy import special, stats

from plurigp.likelihoods.base import Likelihood
from plurigp.likelihoods.families.beta import EDGE
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.registry import LIKELIHOODS


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


class Cells(NamedTuple):
    """n cells of one family; `facts` is the part of theta that is not learned."""

    theta: dict[str, np.ndarray]  # [n]
    facts: dict[str, np.ndarray]  # [n]
    y: np.ndarray  # [n W]
    f: np.ndarray  # [n H]


@dataclass(frozen=True)
class Family:
    """A likelihood under test: how to draw cells of it, and SciPy's frozen distribution of one cell."""

    like: Likelihood
    draw: Callable[[np.random.Generator, int], Cells]
    law: Callable[[Cells], Any]  # SciPy's distribution of every cell, or what stands in for it
    theta: dict[str, float | np.ndarray]  # one ordinary column
    n_functions: int = 1

    @property
    def kind(self) -> str:
        return self.like.kind

    def scipy(self, cells: Cells) -> np.ndarray:
        """The log density of every cell."""
        law = self.law(cells)
        return law.logpdf(cells.y[:, 0]) if hasattr(law, "logpdf") else law.logpmf(cells.y[:, 0])

    def log_prob(self) -> Callable[..., jax.Array]:
        """log p(y|f) of (theta, facts, y, f), over cells side by side."""
        return _log_prob(self.like)


@cache
def _log_prob(like: Likelihood) -> Callable[..., jax.Array]:
    return jax.jit(jax.vmap(lambda theta, facts, y, f: like.log_prob({**theta, **facts}, y, f)))


def _column(n: int, *slots: Any) -> np.ndarray:
    return np.stack([np.broadcast_to(np.asarray(slot, float), (n,)) for slot in slots], 1)


def _gaussian(rng: np.random.Generator, n: int) -> Cells:
    f = rng.uniform(-3, 3, (n, 1))
    log_sd = rng.uniform(-6, 1, n)  # well below the floor of the noise, too
    y = f[:, 0] + rng.standard_t(3, n) * np.exp(np.maximum(log_sd, -3))
    return Cells({"log_sd": log_sd}, {}, _column(n, y), f)


def _gaussian_hetero(rng: np.random.Generator, n: int) -> Cells:
    f = np.stack([rng.uniform(-3, 3, n), rng.uniform(-9, 1.5, n)], 1)  # well below the floor of the noise, too
    return Cells({}, {}, _column(n, f[:, 0] + rng.standard_t(3, n) * noise_sd(f[:, 1])), f)


def _lognormal(rng: np.random.Generator, n: int) -> Cells:
    theta, facts, y, f = _gaussian(rng, n)
    return Cells(theta, facts, np.exp(y), f)


def _limits(rng: np.random.Generator, y: np.ndarray, far: float, near: float) -> np.ndarray:
    """Every value known, or known to lie below, above or around itself; a density loses its log unit."""
    n, what = len(y), rng.integers(0, 5, len(y))
    low, high = (y + sign * rng.exponential(1, n) * np.maximum(np.abs(y), 0.3) * 0.5 for sign in (-1, 1))
    low = np.where(np.isin(what, [0, 1]), y, np.where(what == 2, near, np.maximum(low, near)))
    high = np.where(np.isin(what, [0, 1]), y, np.where(what == 3, far, high))
    return np.stack([low, high, np.where(low == high, 0.7, 0.0)], 1)


def _censored_gaussian(rng: np.random.Generator, n: int) -> Cells:
    theta, facts, y, f = _gaussian(rng, n)
    return Cells(theta, facts, _limits(rng, y[:, 0], 1e9, -1e9), f)


def _censored_lognormal(rng: np.random.Generator, n: int) -> Cells:
    theta, facts, y, f = _lognormal(rng, n)
    return Cells(theta, facts, _limits(rng, y[:, 0], 1e30, 1e-30), f)


def _censored_gamma(rng: np.random.Generator, n: int) -> Cells:
    theta, facts, y, f = _gamma(rng, n)
    return Cells(theta, facts, _limits(rng, np.maximum(y[:, 0], 1e-6), 1e30, 1e-30), f)


def _weibull(rng: np.random.Generator, n: int) -> Cells:
    f, log_shape = rng.uniform(-4, 4, (n, 1)), rng.uniform(-1, 1.5, n)
    y = np.exp(f[:, 0]) * rng.exponential(1, n) ** np.exp(-log_shape)
    return Cells({"log_shape": log_shape}, {}, _limits(rng, np.maximum(y, 1e-6), 1e30, 1e-30), f)


def _student_t(rng: np.random.Generator, n: int) -> Cells:
    f = rng.uniform(-3, 3, (n, 1))
    theta = {"log_scale": rng.uniform(-5, 1, n), "log_df": rng.uniform(-1, 4, n)}
    return Cells(theta, {}, _column(n, f[:, 0] + 3 * rng.standard_t(2, n)), f)


def _gamma(rng: np.random.Generator, n: int) -> Cells:
    f, log_shape = rng.uniform(-4, 4, (n, 1)), rng.uniform(-1.5, 5, n)
    y = np.exp(f[:, 0]) * rng.gamma(np.exp(np.minimum(log_shape, 2))) / np.exp(np.minimum(log_shape, 2))
    return Cells({"log_shape": log_shape}, {}, _column(n, np.maximum(y, 1e-12)), f)


def _negative_binomial(rng: np.random.Generator, n: int) -> Cells:
    f, log_r = rng.uniform(-4, 5, (n, 1)), rng.uniform(-2, 4, n)
    return Cells({"log_r": log_r}, {}, _column(n, rng.poisson(np.exp(f[:, 0] + rng.normal(size=n)))), f)


def _zero_inflated_poisson(rng: np.random.Generator, n: int) -> Cells:
    f, logit = rng.uniform(-4, 5, (n, 1)), rng.uniform(-4, 3, n)
    y = rng.poisson(np.exp(f[:, 0])) * (rng.random(n) < 0.5)
    return Cells({"logit_zero": logit}, {}, _column(n, y), f)


def _ordinal(rng: np.random.Generator, n: int) -> Cells:
    theta = {"first_cut": rng.uniform(-3, 1, n), "log_gaps": rng.uniform(-3, 1, (n, 3))}
    return Cells(theta, {}, _column(n, rng.integers(0, 5, n)), rng.uniform(-6, 6, (n, 1)))


def ordinal_cuts(theta: dict[str, np.ndarray]) -> np.ndarray:
    """−∞, c_1 … c_{K−1}, ∞ of every cell."""
    steps = np.concatenate([np.asarray(theta["first_cut"])[:, None], np.exp(theta["log_gaps"])], 1)
    return np.pad(np.cumsum(steps, 1), ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))


def _bernoulli(rng: np.random.Generator, n: int) -> Cells:
    return Cells({}, {}, _column(n, rng.integers(0, 2, n)), rng.uniform(-6, 6, (n, 1)))


def _binomial(rng: np.random.Generator, n: int) -> Cells:
    trials = rng.integers(1, 300, n)
    return Cells({}, {}, _column(n, rng.integers(0, trials + 1), trials), rng.uniform(-5, 5, (n, 1)))


def _beta(rng: np.random.Generator, n: int) -> Cells:
    log_nu = rng.uniform(np.log(0.5), np.log(300), n)
    y = np.where(rng.random(n) < 0.5, rng.uniform(0.001, 0.999, n), rng.beta(0.5, 0.5, n).clip(1e-6, 1 - 1e-6))
    return Cells({"log_nu": log_nu}, {}, _column(n, y), rng.uniform(-4, 4, (n, 1)))


def _zero_one_beta(rng: np.random.Generator, n: int) -> Cells:
    theta, facts, y, f = _beta(rng, n)
    theta = {**theta, "low_cut": rng.uniform(-3, 0, n), "log_gap": rng.uniform(-1, 1, n)}
    y = np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), y[:, 0])
    return Cells(theta, facts, _column(n, y, np.where((y > 0) & (y < 1), 0.7, 0.0)), f)


def _zero_lognormal(rng: np.random.Generator, n: int) -> Cells:
    theta, facts, y, f = _lognormal(rng, n)
    there = rng.random(n) < 0.6
    f = np.concatenate([rng.uniform(-5, 5, (n, 1)), f], 1)
    return Cells(theta, facts, _column(n, np.where(there, y[:, 0], 0), 0.7 * there), f)


def _poisson(rng: np.random.Generator, n: int) -> Cells:
    f = rng.uniform(-4, 6, (n, 1))
    return Cells({}, {}, _column(n, rng.poisson(np.exp(f[:, 0] + rng.normal(size=n)))), f)


def _categorical(rng: np.random.Generator, n: int) -> Cells:
    n_levels = rng.integers(2, 9, n)
    f = rng.uniform(-6, 6, (n, 8))  # padded to eight: the padding holds numbers that must not matter
    return Cells({}, {"n_levels": n_levels}, _column(n, rng.integers(0, n_levels)), f)


def noise_sd(log_sd: np.ndarray) -> np.ndarray:
    return np.sqrt(FLOOR**2 + np.exp(2 * log_sd))


def beta_shapes(log_nu: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mu, rest = (EDGE + (1 - 2 * EDGE) * special.ndtr(g) for g in (f, -f))
    return np.exp(log_nu) * mu, np.exp(log_nu) * rest


class Limited(NamedTuple):
    """A SciPy law of which cells are known within bounds."""

    law: Any
    y: np.ndarray

    def logpdf(self, _: np.ndarray) -> np.ndarray:
        low, high = np.where(np.abs(self.y[:, :2] - 1e-30) < 1e-40, -np.inf, self.y[:, :2]).T
        high = np.where(high >= 1e9, np.inf, high)
        upper = self.law.cdf(low) > 0.5
        a = np.where(upper, self.law.logsf(high), self.law.logcdf(low))
        b = np.where(upper, self.law.logsf(low), self.law.logcdf(high))
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = b + np.log(-np.expm1(a - b))
        return np.where(low == high, self.law.logpdf(low) - self.y[:, 2], mass)

    def ppf(self, level: float) -> np.ndarray:
        low, high = self.law.cdf(self.y[:, 0]), self.law.cdf(self.y[:, 1])
        inside = self.law.ppf(low + level * (high - low))
        other = self.law.isf((1 - level) * self.law.sf(self.y[:, 0]) + level * self.law.sf(self.y[:, 1]))
        return np.clip(np.where(low > 0.5, other, inside), self.y[:, 0], self.y[:, 1])

    def std(self) -> np.ndarray:
        """From the quantiles; rough where a tail is long."""
        points, weights = np.polynomial.legendre.leggauss(200)
        values = np.stack([self.ppf((1 + point) / 2) for point in points])
        mean = weights @ values / 2
        return np.sqrt(weights @ (values - mean) ** 2 / 2)


class ZeroInflated(NamedTuple):
    """What SciPy would say of a zero-inflated Poisson if it had one."""

    zero: np.ndarray
    mean: np.ndarray

    def logpmf(self, y: np.ndarray) -> np.ndarray:
        poisson = np.log1p(-self.zero) + stats.poisson.logpmf(y, self.mean)
        return np.where(y == 0, np.logaddexp(np.log(self.zero), poisson), poisson)

    def ppf(self, level: float) -> np.ndarray:
        """By walking up from zero."""
        k = np.zeros_like(self.mean)
        while (short := self.zero + (1 - self.zero) * stats.poisson.cdf(k, self.mean) < level).any():
            k = k + short
        return k

    def std(self) -> np.ndarray:
        second = (1 - self.zero) * (self.mean + self.mean**2)
        return np.sqrt(second - ((1 - self.zero) * self.mean) ** 2)


class ZeroOne(NamedTuple):
    """A beta between two masses: those of 0 and of 1."""

    law: Any
    low: np.ndarray
    high: np.ndarray  # cuts less f
    unit: np.ndarray

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        between = np.log(special.ndtr(-self.low) - special.ndtr(-self.high))
        upper = self.low > 0
        between = np.where(upper, between, np.log(special.ndtr(self.high) - special.ndtr(self.low)))
        density = between + self.law.logpdf(np.where((y > 0) & (y < 1), y, 0.5)) - self.unit
        return np.where(y == 0, special.log_ndtr(self.low), np.where(y == 1, special.log_ndtr(-self.high), density))

    def ppf(self, level: float) -> np.ndarray:
        zero, below = special.ndtr(self.low), special.ndtr(self.high)
        inside = self.law.ppf(np.clip((level - zero) / (below - zero), 0, 1))
        return np.where(level <= zero, 0.0, np.where(level > below, 1.0, inside))

    def std(self) -> np.ndarray:
        one, between = special.ndtr(-self.high), special.ndtr(self.high) - special.ndtr(self.low)
        first, second = self.law.mean(), self.law.var() + self.law.mean() ** 2
        return np.sqrt(one + between * second - (one + between * first) ** 2)


class ZeroOrSome(NamedTuple):
    """A SciPy law beside a mass at zero."""

    law: Any
    share: np.ndarray  # of what is not zero
    unit: np.ndarray

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        density = np.log(self.share) + self.law.logpdf(np.where(y > 0, y, 1)) - self.unit
        return np.where(y > 0, density, np.log1p(-self.share))

    def ppf(self, level: float) -> np.ndarray:
        rest = (level - (1 - self.share)) / self.share
        return np.where(rest > 0, self.law.ppf(np.clip(rest, 0, 1)), 0.0)

    def std(self) -> np.ndarray:
        second = self.share * (self.law.var() + self.law.mean() ** 2)
        return np.sqrt(second - (self.share * self.law.mean()) ** 2)


class Ordered(NamedTuple):
    """The same for a cumulative probit; cut points from −∞ to ∞ [n K+1]."""

    cuts: np.ndarray
    f: np.ndarray

    def logpmf(self, y: np.ndarray) -> np.ndarray:
        k = y.astype(int)[:, None]
        low, high = (np.take_along_axis(self.cuts, k + step, 1)[:, 0] - self.f for step in (0, 1))
        turn = low + high > 0
        low, high = np.where(turn, -high, low), np.where(turn, -low, high)
        return special.log_ndtr(high) + np.log(-np.expm1(special.log_ndtr(low) - special.log_ndtr(high)))

    def ppf(self, level: float) -> np.ndarray:
        return np.argmax(special.ndtr(self.cuts[:, 1:] - self.f[:, None]) >= level, axis=1)


class Softmax(NamedTuple):
    """The same for a category."""

    f: np.ndarray
    n_levels: np.ndarray

    def logpmf(self, y: np.ndarray) -> np.ndarray:
        rows = zip(y.astype(int), self.f, self.n_levels, strict=True)
        return np.array([special.log_softmax(f[:n])[k] for k, f, n in rows])


_LIST = (
    ("gaussian", _gaussian, lambda c: stats.norm(c.f[:, 0], noise_sd(c.theta["log_sd"])), {"log_sd": -0.7}),
    ("gaussian_hetero", _gaussian_hetero, lambda c: stats.norm(c.f[:, 0], noise_sd(c.f[:, 1])), {}),
    (
        "lognormal",
        _lognormal,
        lambda c: stats.lognorm(noise_sd(c.theta["log_sd"]), scale=np.exp(c.f[:, 0])),
        {"log_sd": -0.7},
    ),
    (
        "zero_lognormal",
        _zero_lognormal,
        lambda c: ZeroOrSome(
            stats.lognorm(noise_sd(c.theta["log_sd"]), scale=np.exp(c.f[:, 1])), special.expit(c.f[:, 0]), c.y[:, 1]
        ),
        {"log_sd": -0.7},
    ),
    (
        "censored_gaussian",
        _censored_gaussian,
        lambda c: Limited(stats.norm(c.f[:, 0], noise_sd(c.theta["log_sd"])), c.y),
        {"log_sd": -0.7},
    ),
    (
        "censored_lognormal",
        _censored_lognormal,
        lambda c: Limited(stats.lognorm(noise_sd(c.theta["log_sd"]), scale=np.exp(c.f[:, 0])), c.y),
        {"log_sd": -0.7},
    ),
    (
        "censored_gamma",
        _censored_gamma,
        lambda c: Limited(
            stats.gamma(np.exp(c.theta["log_shape"]), scale=np.exp(c.f[:, 0] - c.theta["log_shape"])), c.y
        ),
        {"log_shape": 1.0},
    ),
    (
        "weibull",
        _weibull,
        lambda c: Limited(stats.weibull_min(np.exp(c.theta["log_shape"]), scale=np.exp(c.f[:, 0])), c.y),
        {"log_shape": 0.3},
    ),
    ("bernoulli", _bernoulli, lambda c: stats.bernoulli(special.expit(c.f[:, 0])), {}),
    ("binomial", _binomial, lambda c: stats.binom(c.y[:, 1], special.expit(c.f[:, 0])), {}),
    ("beta", _beta, lambda c: stats.beta(*beta_shapes(c.theta["log_nu"], c.f[:, 0])), {"log_nu": 3.0}),
    (
        "zero_one_beta",
        _zero_one_beta,
        lambda c: ZeroOne(
            stats.beta(*beta_shapes(c.theta["log_nu"], c.f[:, 0])),
            c.theta["low_cut"] - c.f[:, 0],
            c.theta["low_cut"] + np.exp(c.theta["log_gap"]) - c.f[:, 0],
            c.y[:, 1],
        ),
        {"log_nu": 3.0, "low_cut": -1.5, "log_gap": 1.0},
    ),
    ("poisson", _poisson, lambda c: stats.poisson(np.exp(c.f[:, 0])), {}),
    (
        "student_t",
        _student_t,
        lambda c: stats.t(1 + np.exp(c.theta["log_df"]), c.f[:, 0], noise_sd(c.theta["log_scale"])),
        {"log_scale": -0.7, "log_df": 1.2},
    ),
    (
        "gamma",
        _gamma,
        lambda c: stats.gamma(np.exp(c.theta["log_shape"]), scale=np.exp(c.f[:, 0] - c.theta["log_shape"])),
        {"log_shape": 1.0},
    ),
    (
        "negative_binomial",
        _negative_binomial,
        lambda c: stats.nbinom(np.exp(c.theta["log_r"]), special.expit(c.theta["log_r"] - c.f[:, 0])),
        {"log_r": 0.8},
    ),
    (
        "zero_inflated_poisson",
        _zero_inflated_poisson,
        lambda c: ZeroInflated(special.expit(c.theta["logit_zero"]), np.exp(c.f[:, 0])),
        {"logit_zero": -0.8},
    ),
    (
        "ordinal",
        _ordinal,
        lambda c: Ordered(ordinal_cuts(c.theta), c.f[:, 0]),
        {"first_cut": -1.0, "log_gaps": np.array([0.1, -0.4, 0.2])},
    ),
    ("categorical", _categorical, lambda c: Softmax(c.f, c.facts["n_levels"]), {}),
)
N_FUNCTIONS = {"gaussian_hetero": 2, "zero_lognormal": 2, "categorical": 8}
_ALL = tuple(Family(LIKELIHOODS[kind], draw, law, theta, N_FUNCTIONS.get(kind, 1)) for kind, draw, law, theta in _LIST)
FAMILIES = {family.kind: family for family in _ALL}


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    """Every family in turn."""
    return FAMILIES[request.param]


@pytest.fixture
def families() -> dict[str, Family]:
    """All of them by kind."""
    return FAMILIES
