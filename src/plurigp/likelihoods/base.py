"""The contract of a likelihood: a frozen record of functions of ONE cell; `blocks.py` vmaps them in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar
from plurigp.data import Column
from plurigp.likelihoods.rules import Rule, expect, expect_with_slopes, gauss_hermite, log_expect
from plurigp.likelihoods.special import softplus

Theta = Mapping[str, Any]  # one column's own parameters, unconstrained; "n_levels" (not learned) rides along


Cells = np.ndarray  # [... W] or [... H]: many cells at once, in plain NumPy


class Start(NamedTuple):
    """Where training starts for one column: the bias of each of its functions and its theta."""

    bias: np.ndarray  # [H]
    theta: dict[str, Any]


@dataclass(frozen=True)
class Likelihood:
    """One family. `y` is a cell's values [W], `f` the column's functions at that row [H].

    `mean` gives what imputation averages over f and x: E[y|f] [1], or a probability per level [H];
    `point` turns that average into the one coded value a gap is filled with. Both `mean` and `sample` see `y`
    for its companion slots (a binomial's trials) only. `sample` draws for many cells at once, theta spread over them;
    it is never part of a compiled program, so it is NumPy's, and so are `sd` and `quantile` given f (the quantile of a
    discrete family is the smallest value whose cdf reaches the level). `features` is what the encoder reads of a cell.
    `expected_log_prob` and `predictive_log_prob` are None where quadrature is the way; both take
    (theta, y, mean, var, rule). The `block_` forms, for families that need them for speed, take a whole block at
    once ([C · B], theta with its column axis) and must agree with the one-cell forms. `start` sees one column's
    observed cells [n W].
    """

    kind: str
    log_prob: Callable[[Theta, Float[Array, " W"], Float[Array, " H"]], Scalar]
    mean: Callable[[Theta, Float[Array, " W"], Float[Array, " H"]], Float[Array, " R"]]
    point: Callable[[Float[Array, " R"]], Scalar]
    sample: Callable[[np.random.Generator, Theta, Cells, Cells], np.ndarray]
    start: Callable[[np.ndarray, Column], Start]
    features: Callable[[Float[Array, " W"], int], Float[Array, " E"]]
    n_functions: Callable[[Column], int]
    sd: Callable[[Theta, Cells, Cells], np.ndarray] | None = None
    quantile: Callable[[Theta, Cells, Cells, Cells], np.ndarray] | None = None  # (theta, y, f, level)
    expected_log_prob: Callable[..., Scalar] | None = None
    predictive_log_prob: Callable[..., Scalar] | None = None
    predictive_mean: Callable[..., Float[Array, " R"]] | None = None
    block_expected_log_prob: Callable[..., Float[Array, "C B"]] | None = None
    block_predictive_log_prob: Callable[..., Float[Array, "C B"]] | None = None
    block_predictive_mean: Callable[..., Float[Array, "C R B"]] | None = None
    rule: Callable[[int], Rule] = gauss_hermite  # from a number of points
    n_quadrature: int = 10
    adaptive: bool = False  # unless a number of points is asked for, the family's integrals choose their own
    block_width: Callable[[Column], int] | None = None  # what columns of a block share besides their functions
    continuous: bool = False
    constant_curvature: bool = False  # ∂²E[log p]/∂f² is the same for every cell of a column


def own_rule(likelihood: Likelihood) -> Rule:
    """The rule of a family for which no number of points is asked."""
    return likelihood.rule(likelihood.n_quadrature)._replace(adaptive=likelihood.adaptive)


def one_function(column: Column) -> int:
    """Most families read one function."""
    return 1


def two_functions(column: Column) -> int:
    """A mean and a spread, or whether there is any and how much."""
    return 2


def expected_log_prob(
    likelihood: Likelihood,
    theta: Theta,
    y: Float[Array, " W"],
    mean: Float[Array, " H"],
    var: Float[Array, " H"],
    rule: Rule,
) -> Scalar:
    """E[log p(y|f)] for f ~ N(mean, var): the closed form where there is one, quadrature otherwise."""
    if likelihood.expected_log_prob is not None:
        return likelihood.expected_log_prob(theta, y, mean, var, rule)
    learned = {name: value for name, value in theta.items() if jnp.issubdtype(jnp.result_type(value), jnp.floating)}
    facts = {name: value for name, value in theta.items() if name not in learned}

    def log_prob(learned: Theta, data: tuple[Theta, Array], f: Float[Array, " H"]) -> Scalar:
        return likelihood.log_prob({**learned, **data[0]}, data[1], f)

    return expect_with_slopes(log_prob, rule, learned, (facts, y), mean, var)


def predictive_log_prob(
    likelihood: Likelihood,
    theta: Theta,
    y: Float[Array, " W"],
    mean: Float[Array, " H"],
    var: Float[Array, " H"],
    rule: Rule,
) -> Scalar:
    """log ∫ p(y|f) N(f; mean, var) df."""
    if likelihood.predictive_log_prob is not None:
        return likelihood.predictive_log_prob(theta, y, mean, var, rule)
    return log_expect(lambda f: likelihood.log_prob(theta, y, f), mean, var, rule)


def predictive_mean(
    likelihood: Likelihood,
    theta: Theta,
    y: Float[Array, " W"],
    mean: Float[Array, " H"],
    var: Float[Array, " H"],
    rule: Rule,
) -> Float[Array, " R"]:
    """∫ E[y|f] N(f; mean, var) df (a probability per level for categories)."""
    if likelihood.predictive_mean is not None:
        return likelihood.predictive_mean(theta, y, mean, var, rule)
    return expect(lambda f: likelihood.mean(theta, y, f), mean, var, rule)


def first(expected: Float[Array, " R"]) -> Scalar:
    """The point value of a real column is its mean."""
    return expected[0]


def nearest_whole(expected: Float[Array, " R"]) -> Scalar:
    """The point value of a count is the whole number nearest to its mean."""
    return jnp.round(expected[0])


def _softplus_of_first(theta: Theta, data: Any, f: Float[Array, " H"]) -> Scalar:
    return softplus(f[0])


def expected_softplus(mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule) -> Scalar:
    """E[log(1 + e^f)]."""
    return expect_with_slopes(_softplus_of_first, rule, {}, None, mean, var)


HIGHEST = 30.0  # of an exponent


def bounded_exp(x: np.ndarray) -> np.ndarray:
    """e^x for draws, which need no slope: held at e^HIGHEST."""
    return np.exp(np.minimum(x, HIGHEST))


def safe_exp(x: Float[Array, "..."], top: float = HIGHEST) -> Float[Array, "..."]:
    """e^x, continued by its tangent above `top`, so a wild step gives a large finite slope and not an overflow."""
    low = jnp.minimum(x, top)
    return jnp.exp(low) * (1 + x - low)
