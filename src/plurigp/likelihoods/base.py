"""The contract of a likelihood: a frozen record of functions of ONE cell; `evaluate.py` vmaps them in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.rules import CellFunctions, Rule, expect, expect_with_slopes, gauss_hermite, log_expect

Theta = Mapping[str, Any]  # one column's own parameters, unconstrained; "n_levels" (not learned) rides along
CellValues = Float[Array, " W"]  # y: the numbers of one cell
CellMean = Float[Array, " R"]  # E[y] [1], or a probability per level
CellFeatures = Float[Array, " E"]  # what the encoder reads of one cell


class Start(NamedTuple):
    """Where training starts for one column: the bias of each of its functions and its theta."""

    bias: np.ndarray  # [H]
    theta: dict[str, Any]


def value_feature(y: CellValues, width: int) -> CellFeatures:
    """The encoder reads the value itself."""
    return y[:1]


def log_feature(y: CellValues, width: int) -> CellFeatures:
    """The encoder reads the logarithm of a positive value."""
    return jnp.log(y[:1])


class NumberScale(NamedTuple):
    """A scale on which a number's residuals are alike, outside compiled programs: there, back, log of the slope there.

    That of the number's one feature; the value itself for amounts that are often zero.
    """

    forward: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], np.ndarray]
    log_slope: Callable[[np.ndarray], np.ndarray]


def same_value(y: np.ndarray) -> np.ndarray:
    """The value itself, as a scale."""
    return y


def minus_log(y: np.ndarray) -> np.ndarray:
    """log of the slope of log y."""
    return -np.log(y)


VALUE_SCALE = NumberScale(same_value, same_value, np.zeros_like)
LOG_SCALE = NumberScale(np.log, np.exp, minus_log)


def one_function(column: Column) -> int:
    """Most families read one function."""
    return 1


def one_per_level(column: Column) -> int:
    """A function for each level."""
    return len(column.levels)


def two_functions(column: Column) -> int:
    """A mean and a spread, or whether there is any and how much."""
    return 2


@dataclass(frozen=True)
class Likelihood:
    """One family. `y` is a cell's values [W], `f` the column's functions at that row [H].

    `mean` gives what imputation averages over f and x: `E[y|f]` of shape [1], or a probability per level [H];
    `point` turns that average into the one coded value a gap is filled with. Both `mean` and `sample` see `y`
    for its companion slots (a binomial's trials, a censored cell's bounds) only. `sample` draws for many cells at once
    ([… W] and [… H], theta spread over them), outside compiled programs and so in NumPy. `start` sees one column's
    observed cells [n W]. `features` is what the encoder reads of a cell of a block `width` functions wide.
    `expected_log_prob`, `predictive_log_prob` and `predictive_mean` are None where quadrature is the way; they take
    (theta, y, mean, var, rule). The `block_` forms, for families that need them for speed, take a whole block at
    once ([C · B], theta with its column axis) and must agree with the one-cell forms; `block_log_share` gives log p(y)
    where that is a part of the block's mean. With `single_precision`, answers take the family's integrals in float32:
    twice as fast, with errors of 1e-4 nats where a cell is not known to more than three digits.
    """

    kind: str
    log_prob: Callable[[Theta, CellValues, CellFunctions], Scalar]
    mean: Callable[[Theta, CellValues, CellFunctions], CellMean]
    point: Callable[[CellMean], Scalar]
    sample: Callable[[np.random.Generator, Theta, np.ndarray, np.ndarray], np.ndarray]
    start: Callable[[np.ndarray, Column], Start]
    features: Callable[[CellValues, int], CellFeatures] = value_feature
    scale: NumberScale | None = None  # of numbers without bounds
    n_functions: Callable[[Column], int] = one_function
    expected_log_prob: Callable[..., Scalar] | None = None
    predictive_log_prob: Callable[..., Scalar] | None = None
    predictive_mean: Callable[..., CellMean] | None = None
    block_expected_log_prob: Callable[..., Float[Array, "C B"]] | None = None
    block_predictive_log_prob: Callable[..., Float[Array, "C B"]] | None = None
    block_predictive_mean: Callable[..., Float[Array, "C R B"]] | None = None
    block_log_share: Callable[..., Float[Array, "C B"]] | None = None
    rule: Callable[[int], Rule] = gauss_hermite  # from a number of points
    n_quadrature: int = 10
    adaptive: bool = False  # unless a number of points is asked for, the family's integrals choose their own
    block_width: Callable[[Column], int] | None = None  # what columns of a block share besides their functions
    single_precision: bool = False
    constant_curvature: bool = False  # ∂²E[log p]/∂f² is the same for every cell of a column


def own_rule(likelihood: Likelihood) -> Rule:
    """The rule of a family for which no number of points is asked."""
    return likelihood.rule(likelihood.n_quadrature)._replace(adaptive=likelihood.adaptive)


def expected_log_prob(
    likelihood: Likelihood, theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule
) -> Scalar:
    """E[log p(y|f)] for f ~ N(mean, var): the closed form where there is one, quadrature otherwise."""
    if likelihood.expected_log_prob is not None:
        return likelihood.expected_log_prob(theta, y, mean, var, rule)
    learned = {name: value for name, value in theta.items() if jnp.issubdtype(jnp.result_type(value), jnp.floating)}
    facts = {name: value for name, value in theta.items() if name not in learned}

    def log_prob(learned: Theta, data: tuple[Theta, Array], f: CellFunctions) -> Scalar:
        return likelihood.log_prob({**learned, **data[0]}, data[1], f)

    return expect_with_slopes(log_prob, rule, learned, (facts, y), mean, var)


def predictive_log_prob(
    likelihood: Likelihood, theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule
) -> Scalar:
    """log ∫ p(y|f) N(f; mean, var) df."""
    if likelihood.predictive_log_prob is not None:
        return likelihood.predictive_log_prob(theta, y, mean, var, rule)
    return log_expect(lambda f: likelihood.log_prob(theta, y, f), mean, var, rule)


def predictive_mean(
    likelihood: Likelihood, theta: Theta, y: CellValues, mean: CellFunctions, var: CellFunctions, rule: Rule
) -> CellMean:
    """∫ E[y|f] N(f; mean, var) df (a probability per level for categories)."""
    if likelihood.predictive_mean is not None:
        return likelihood.predictive_mean(theta, y, mean, var, rule)
    return expect(lambda f: likelihood.mean(theta, y, f), mean, var, rule)


def mean_as_point(expected: CellMean) -> Scalar:
    """The point value of a real column is its mean."""
    return expected[0]


def nearest_whole(expected: CellMean) -> Scalar:
    """The point value of a count is the whole number nearest to its mean."""
    return jnp.round(expected[0])
