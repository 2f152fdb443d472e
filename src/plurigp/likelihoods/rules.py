"""Quadrature is data: points and weights, one `expect`, and the two softmax integrals."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from plurigp.arrays import Scalar


class Rule(NamedTuple):
    """Points and weights of a rule for a standard normal: E[g(t)] ≈ Σ_j w_j g(t_j), Σ w_j = 1."""

    points: tuple[float, ...]
    weights: tuple[float, ...]


@cache
def gauss_hermite(n: int) -> Rule:
    """The probabilists' rule with n points: exact for polynomials of degree 2n − 1."""
    points, weights = np.polynomial.hermite_e.hermegauss(n)
    return Rule(tuple(points.tolist()), tuple((weights / weights.sum()).tolist()))


def expect(
    g: Callable[[Float[Array, " H"]], Any], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Any:
    """E[g(f)] for independent f_h ~ N(mean_h, var_h); unrolled: a tensordot over nodes is several times slower."""
    sd = jnp.sqrt(var)
    total = 0.0
    for nodes in product(range(len(rule.points)), repeat=len(mean)):
        weight = float(np.prod([rule.weights[j] for j in nodes]))
        total = total + weight * g(mean + sd * jnp.asarray([rule.points[j] for j in nodes], mean.dtype))
    return total


def log_expect(
    log_g: Callable[[Float[Array, " H"]], Scalar], mean: Float[Array, " H"], var: Float[Array, " H"], rule: Rule
) -> Scalar:
    """log E[exp(log_g(f))], by the same nodes, without overflow."""
    sd = jnp.sqrt(var)
    terms = []
    for nodes in product(range(len(rule.points)), repeat=len(mean)):
        weight = float(np.prod([rule.weights[j] for j in nodes]))
        terms.append(np.log(weight) + log_g(mean + sd * jnp.asarray([rule.points[j] for j in nodes], mean.dtype)))
    return jax.nn.logsumexp(jnp.stack(terms))


def expect_by_sampling(
    g: Callable[[Float[Array, " H"]], Any],
    mean: Float[Array, " H"],
    var: Float[Array, " H"],
    noise: Float[Array, "J H"],
) -> Any:
    """E[g(f)] by plain Monte Carlo with the given standard normal draws: the paper's ablation."""
    sd = jnp.sqrt(var)
    return sum(g(mean + sd * draw) for draw in noise) / len(noise)


# --- softmax: E[log Σ_k e^{f_k}] and E[softmax(f)] from one-dimensional rules (docs/mathematics.md) ---

LSE_RULE, LSE_POINTS = gauss_hermite(12), 32
SOFTMAX_RULE, SOFTMAX_POINTS = gauss_hermite(32), 64


class _Sweep(NamedTuple):
    """Everything both integrals over s share: e^{f_k − c} at the nodes, and the ends of the trapezoid."""

    c: Scalar
    growth: Float[Array, "H J"]
    weights: Float[Array, " J"]
    start: Scalar
    step: Scalar


def _sweep(
    mean: Float[Array, " H"], var: Float[Array, " H"], level: Bool[Array, " H"], rule: Rule, n: int, reach: float
) -> _Sweep:
    """c = log E[Σ e^f] cancels the integrand to first order at the lower end, where it falls like e^{2s + v};
    at the upper end it must outlast the smallest likely Σ e^f, some sd below c. Hence ends that widen with v."""
    tops = jnp.where(level, mean + var / 2, -jnp.inf)
    c = jax.nn.logsumexp(tops)
    widest = jnp.where(level, var, 0).max()
    sd = jnp.sqrt(jnp.where(level, var, 1))
    start = -(widest / 2 + reach + 1)
    end = widest / 2 + reach - 4 + 3.5 * jnp.sqrt(widest) + (c - tops.max())
    exponent = jnp.where(level, mean, 0)[:, None] - c + sd[:, None] * jnp.asarray(rule.points, mean.dtype)
    growth = jnp.where(level[:, None], jnp.exp(jnp.minimum(exponent, 60.0)), 0)
    return _Sweep(c, growth, jnp.asarray(rule.weights, mean.dtype), start, (end - start) / (n - 1))


def _integrate(body: Callable[[Scalar], Any], sweep: _Sweep, n: int) -> Any:
    """∫ body(s) ds by the trapezoid; the ends are where the integrand has died away."""
    steps = jnp.arange(n).astype(sweep.step.dtype)
    first = jax.tree.map(jnp.zeros_like, jax.eval_shape(body, sweep.start))

    def add(total: Any, i: Scalar) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, body(sweep.start + i * sweep.step)), None

    total, _ = jax.lax.scan(add, first, steps)
    return jax.tree.map(lambda leaf: leaf * sweep.step, total)


def _survivors(sweep: _Sweep, s: Scalar) -> tuple[Float[Array, "H J"], Float[Array, "H J"], Float[Array, " H"], Scalar]:
    """At t = e^{s−c}: t e^{f}, w exp(−t e^f), its sum over nodes (a factor per level) and the factors' product."""
    scaled = jnp.exp(s) * sweep.growth
    kept = sweep.weights * jnp.exp(-scaled)
    factor = jnp.maximum(kept.sum(1), jnp.finfo(kept.dtype).tiny)
    return scaled, kept, factor, jnp.prod(factor)


def lse_and_gradient(
    mean: Float[Array, " H"], var: Float[Array, " H"], level: Bool[Array, " H"]
) -> tuple[Scalar, Float[Array, " H"], Float[Array, " H"]]:
    """Value and both gradients in one sweep; the integral does not depend on c or the ends, so they are held still."""
    sweep = _sweep(mean, var, level, LSE_RULE, LSE_POINTS, reach=6.5)
    points = jnp.asarray(LSE_RULE.points, mean.dtype)

    def body(s: Scalar) -> Any:
        scaled, kept, factor, whole = _survivors(sweep, s)
        slope = kept * scaled * (whole / factor)[:, None]
        return jnp.exp(-jnp.exp(s)) - whole, slope.sum(1), (slope * points).sum(1)

    value, by_mean, by_sd = _integrate(body, sweep, LSE_POINTS)
    return sweep.c + value, by_mean, 0.5 * by_sd / jnp.sqrt(var)


@jax.custom_jvp
def expected_logsumexp(mean: Float[Array, " H"], var: Float[Array, " H"], level: Bool[Array, " H"]) -> Scalar:
    """E[log Σ_k e^{f_k}] over the real levels: c + ∫ (e^{−e^s} − Π_k E[exp(−e^{s−c} e^{f_k})]) ds."""
    return lse_and_gradient(mean, var, level)[0]


@expected_logsumexp.defjvp
def _expected_logsumexp_jvp(primals: Any, tangents: Any) -> tuple[Scalar, Scalar]:
    value, by_mean, by_var = lse_and_gradient(*primals)
    return value, by_mean @ tangents[0] + by_var @ tangents[1]


def expected_softmax(mean: Float[Array, " H"], var: Float[Array, " H"], level: Bool[Array, " H"]) -> Float[Array, " H"]:
    """E[softmax(f)] over the real levels, from 1/S = ∫ e^{−tS} dt; normalised, so it sums to one exactly."""
    sweep = _sweep(mean, var, level, SOFTMAX_RULE, SOFTMAX_POINTS, reach=10.0)

    def body(s: Scalar) -> Float[Array, " H"]:
        scaled, kept, factor, whole = _survivors(sweep, s)
        return (kept * scaled).sum(1) * whole / factor

    probability = _integrate(body, sweep, SOFTMAX_POINTS)
    return probability / probability.sum()
