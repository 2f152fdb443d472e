"""Quadrature is data: points, weights and `expect`."""

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array, Scalar

CellFunctions = Float[Array, " H"]  # f, or its mean or variance: a column's functions at one row


class Rule(NamedTuple):
    """Points and weights of a rule for a standard normal: E[g(t)] ≈ Σ_j w_j g(t_j), Σ w_j = 1.

    Where a rule is `adaptive`, an integral that has points of its own (the softmax) takes those instead.
    """

    points: tuple[float, ...]
    weights: tuple[float, ...]
    adaptive: bool = False


@cache
def gauss_hermite(n: int) -> Rule:
    """The probabilists' rule with n points: exact for polynomials of degree 2n − 1."""
    return _normalised(*np.polynomial.hermite_e.hermegauss(n))


REACH = 5.8  # of the even rule at most, in standard deviations: what lies beyond weighs 1e-8


@cache
def even(n: int) -> Rule:
    """n equally spaced points, weighted by the density: for smooth g it converges exponentially, and for large
    variances far sooner than Gauss–Hermite, whose outer points are wasted on tails.

    The step is √(3π/n) until the points reach REACH: what lies between them and what lies beyond them then weigh about
    the same. Σ w t² is 1 up to 0.08 with 3 points, 0.006 with 4 or 5, 2e-4 with 8 and 2e-7 from 16 on. One or two
    points have no spacing to choose; they are Gauss–Hermite's.
    """
    if n < 3:
        return gauss_hermite(n)
    reach = min(REACH, (n - 1) / 2 * math.sqrt(3 * math.pi / n))
    points = np.linspace(-reach, reach, n)
    return _normalised(points, np.exp(-(points**2) / 2))


def _normalised(points: np.ndarray, weights: np.ndarray) -> Rule:
    return Rule(tuple(points.tolist()), tuple((weights / weights.sum()).tolist()))


def _nodes(rule: Rule, mean: CellFunctions) -> tuple[Float[Array, "J H"], Float[Array, " J"]]:
    """The product rule for independent normals, in the precision of their means."""
    points = np.array(list(product(rule.points, repeat=len(mean))))
    weights = np.prod(list(product(rule.weights, repeat=len(mean))), axis=1)
    return jnp.asarray(points, mean.dtype), jnp.asarray(weights, mean.dtype)


def expect(g: Callable[[CellFunctions], Any], mean: CellFunctions, var: CellFunctions, rule: Rule) -> Any:
    """E[g(f)] for independent f_h ~ N(mean_h, var_h); where slopes are asked for, `expect_with_slopes` is the way."""
    sd = jnp.sqrt(var)

    def add(total: Any, node: tuple[Array, Scalar]) -> tuple[Any, None]:
        t, w = node
        return total + w * g(mean + sd * t), None

    return jax.lax.scan(add, jnp.zeros_like(jax.eval_shape(g, mean)), _nodes(rule, mean))[0]


def log_expect(log_g: Callable[[CellFunctions], Scalar], mean: CellFunctions, var: CellFunctions, rule: Rule) -> Scalar:
    """log E[exp(log_g(f))], by the same nodes, without overflow."""
    sd = jnp.sqrt(var)
    points, weights = _nodes(rule, mean)
    return jax.nn.logsumexp(jnp.log(weights) + jax.lax.map(lambda t: log_g(mean + sd * t), points))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def expect_with_slopes(
    g: Callable[..., Scalar], rule: Rule, theta: Any, data: Any, mean: CellFunctions, var: CellFunctions
) -> Scalar:
    """E[g(theta, data, f)], with all slopes taken in the same sweep over the nodes; `data`, a tree too, has none.

    A sweep that is differentiated afterwards has to evaluate g at every node once more, at twice the cost; one that is
    unrolled keeps every node's parts of every cell, at several times the cost.
    """
    return _sweep_with_slopes(g, rule, theta, data, mean, var)[0]


def _sweep_with_slopes(g: Callable, rule: Rule, theta: Any, data: Any, mean: Array, var: Array) -> tuple[Array, Any]:
    sd = jnp.sqrt(var)
    value_and_slopes = jax.value_and_grad(g, argnums=(0, 2))

    def add(total: Any, node: tuple[Array, Scalar]) -> tuple[Any, None]:
        t, w = node
        value, (by_theta, by_f) = value_and_slopes(theta, data, mean + sd * t)
        return jax.tree.map(lambda a, b: a + w * b, total, (value, by_theta, by_f, t * by_f)), None

    nothing = jax.tree.map(jnp.zeros_like, (mean[0], theta, mean, mean))
    (value, by_theta, by_mean, by_sd), _ = jax.lax.scan(add, nothing, _nodes(rule, mean))
    return value, (by_theta, by_mean, by_sd / (2 * sd))


def _scaled_slopes(g: Callable, rule: Rule, slopes: Any, by_value: Scalar) -> tuple[Any, None, Array, Array]:
    by_theta, by_mean, by_var = jax.tree.map(lambda slope: by_value * slope, slopes)
    return by_theta, None, by_mean, by_var


expect_with_slopes.defvjp(_sweep_with_slopes, _scaled_slopes)


def expect_by_sampling(
    g: Callable[[CellFunctions], Any], mean: CellFunctions, var: CellFunctions, noise: Float[Array, "J H"]
) -> Any:
    """E[g(f)] by plain Monte Carlo with the given standard normal draws: the paper's ablation."""
    sd = jnp.sqrt(var)
    return sum(g(mean + sd * draw) for draw in noise) / len(noise)
