"""E[log Σ_k e^{f_k}] and E[softmax(f)] for independent normal f_k, from one-dimensional rules (docs/mathematics.md).

Levels come first and any number of cells last ([H *n]): the loops then run over cells, which the compiler vectorises;
the same code under vmap, cells first, is several times slower.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from plurigp.core.arrays import Array, Scalar
from plurigp.likelihoods.rules import Rule, gauss_hermite


class Grid(NamedTuple):
    """Gauss–Hermite nodes for each f_k, and a trapezoid of n_points over s."""

    rule: Rule
    n_points: int


FINE = Grid(gauss_hermite(16), 32)
COARSE = Grid(gauss_hermite(8), 20)  # as accurate where no variance exceeds NARROW_VAR, at a third of the cost
NARROW_VAR = 1.0
WIDE_SHARE = 16  # wide cells take the fine grid together, one in so many of all cells at a time
LOWER_END = 5.5  # how far below the step of the outermost node the trapezoid begins

Levels = Float[Array, "H *n"]
IsLevel = Bool[Array, "H *n"]  # False for the padding of columns with fewer levels


class _Sweep(NamedTuple):
    """What both integrals over s share: c, e^{f_k − c + shift} at the nodes [H J *n], the trapezoid's start and step.

    The shift, half of the largest variance, keeps e^{s − shift} and the growth within float32's range both.
    """

    c: Float[Array, "*n"]
    shift: Float[Array, "*n"]
    growth: Float[Array, "H J *n"]
    start: Float[Array, "*n"]
    step: Float[Array, "*n"]


def _per_node(numbers: tuple[float, ...], like: Levels) -> Float[Array, "1 J *ones"]:
    return jnp.asarray(numbers, like.dtype).reshape(1, -1, *(1 for _ in like.shape[1:]))


def _sweep(mean: Levels, var: Levels, level: IsLevel, grid: Grid) -> _Sweep:
    """c = log E[Σ e^f] cancels the integrand to first order at the lower end, where it falls like e^{2s + v};
    at the upper end it must outlast the smallest likely Σ e^f, some sd below c. Hence ends that widen with v."""
    tops = jnp.where(level, mean + var / 2, -jnp.inf)
    c = jax.nn.logsumexp(tops, axis=0)
    widest = jnp.where(level, var, 0).max(0)
    sd = jnp.sqrt(jnp.where(level, var, 1))
    shift = widest / 2
    outermost = jnp.maximum(grid.rule.points[-1] * jnp.sqrt(widest) - shift, 0)  # where the last node has its step
    start = -(jnp.minimum(shift, outermost) + LOWER_END)
    end = widest / 2 + 3.5 * jnp.sqrt(widest) + (c - tops.max(0)) + 2
    exponent = (jnp.where(level, mean, 0) - c + shift)[:, None] + sd[:, None] * _per_node(grid.rule.points, mean)
    growth = jnp.where(level[:, None], jnp.exp(jnp.minimum(exponent, 60.0)), 0)
    return _Sweep(c, shift, growth, start, (end - start) / (grid.n_points - 1))


def _integrate(body: Callable[[Array], Any], sweep: _Sweep, n_points: int) -> Any:
    """∫ body(s) ds by the trapezoid; at both ends the integrand has died away."""
    first = jax.tree.map(jnp.zeros_like, jax.eval_shape(body, sweep.start))

    def add(total: Any, i: Scalar) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, body(sweep.start + i * sweep.step)), None

    total, _ = jax.lax.scan(add, first, jnp.arange(n_points).astype(sweep.step.dtype))
    return jax.tree.map(lambda leaf: leaf * sweep.step, total)


def _survivors(sweep: _Sweep, s: Float[Array, "*n"], rule: Rule) -> tuple[Array, Levels, Float[Array, "*n"]]:
    """At t = e^{s−c}: w t e^{f} exp(−t e^f) per node, E[exp(−t e^f)] per level, and the product over levels."""
    scaled = jnp.minimum(jnp.exp(s - sweep.shift) * sweep.growth, 1e30)  # 1e30 e^{−1e30} is zero, ∞ e^{−∞} is not
    kept = _per_node(rule.weights, sweep.growth[:, 0]) * jnp.exp(-scaled)
    factor = jnp.maximum(kept.sum(1), jnp.finfo(kept.dtype).tiny)
    return kept * scaled, factor, jnp.prod(factor, axis=0)


def _on_grid(integrals: Callable[..., Any], mean: Levels, var: Levels, level: IsLevel, rule: Rule | None) -> Any:
    """The coarse grid for narrow cells and the fine one for wide cells: each cell by its own variances alone. A rule
    that is given and not adaptive takes the place of both grids' nodes.

    Wide cells are gathered, the widest first, and done again in as many turns as they need, mostly none or one: so the
    fine grid is compiled once, not a second time for blocks with many of them.
    """
    coarse, fine = COARSE, FINE
    if rule is not None and not rule.adaptive:
        coarse, fine = (grid._replace(rule=rule) for grid in (coarse, fine))
    if mean.ndim == 1:
        return integrals(mean, var, level, fine)
    if mean.ndim > 2:
        a, v, own = (part.reshape(len(mean), -1) for part in (mean, var, level))
        flat = _on_grid(integrals, a, v, own, rule)
        return jax.tree.map(lambda leaf: leaf.reshape(*leaf.shape[:-1], *mean.shape[1:]), flat)
    widest = jnp.where(level, var, 0).max(0)
    n_turn = -(-len(widest) // WIDE_SHARE)

    def turn(state: tuple[Any, Any]) -> tuple[Any, Any]:
        left, cells = state
        top, at = jax.lax.top_k(left, n_turn)
        wide = integrals(mean[:, at], var[:, at], level[:, at], fine)
        cells = jax.tree.map(lambda a, b: a.at[..., at].set(jnp.where(top > NARROW_VAR, b, a[..., at])), cells, wide)
        return left.at[at].set(0), cells

    start = (widest, integrals(mean, var, level, coarse))
    return jax.lax.while_loop(lambda state: state[0].max() > NARROW_VAR, turn, start)[1]


def lse_and_gradient(
    mean: Levels, var: Levels, level: IsLevel, rule: Rule | None = None
) -> tuple[Array, Levels, Levels]:
    """Value and both gradients in one sweep."""
    return _on_grid(_lse_and_gradient, mean, var, level, rule)


def _lse_and_gradient(mean: Levels, var: Levels, level: IsLevel, grid: Grid) -> tuple[Array, Levels, Levels]:
    """The gradients include that of c: it restores the tail below `start`, where level k's share is
    softmax(mean + var/2)_k."""
    sweep = _sweep(mean, var, level, grid)
    points = _per_node(grid.rule.points, mean)

    def body(s: Array) -> Any:
        slope, factor, whole = _survivors(sweep, s, grid.rule)
        others = whole / factor
        return jnp.exp(-jnp.exp(s)) - whole, slope.sum(1) * others, (slope * points).sum(1) * others

    value, by_mean, by_sd = _integrate(body, sweep, grid.n_points)
    tail = (1 - by_mean.sum(0)) * jnp.where(level, jnp.exp(mean + var / 2 - sweep.c), 0)
    return sweep.c + value, by_mean + tail, 0.5 * (by_sd / jnp.sqrt(var) + tail)


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def expected_logsumexp(mean: Levels, var: Levels, level: IsLevel, rule: Rule | None = None) -> Float[Array, "*n"]:
    """E[log Σ_k e^{f_k}] over the real levels: c + ∫ (e^{−e^s} − Π_k E[exp(−e^{s−c} e^{f_k})]) ds."""
    return lse_and_gradient(mean, var, level, rule)[0]


@expected_logsumexp.defjvp
def _expected_logsumexp_jvp(rule: Rule | None, primals: Any, tangents: Any) -> tuple[Array, Array]:
    mean, var, level = primals
    value, by_mean, by_var = lse_and_gradient(mean, var, level, rule)
    return value, (by_mean * tangents[0] + by_var * tangents[1]).sum(0)


def expected_softmax(mean: Levels, var: Levels, level: IsLevel, rule: Rule | None = None) -> Levels:
    """E[softmax(f)] over the real levels, from 1/S = ∫ e^{−tS} dt; normalised, so it sums to one exactly."""
    return _on_grid(_expected_softmax, mean, var, level, rule)


def _expected_softmax(mean: Levels, var: Levels, level: IsLevel, grid: Grid) -> Levels:
    sweep = _sweep(mean, var, level, grid)

    def body(s: Array) -> Levels:
        slope, factor, whole = _survivors(sweep, s, grid.rule)
        return slope.sum(1) * whole / factor

    probability = _integrate(body, sweep, grid.n_points)
    tail = (1 - probability.sum(0)) * jnp.where(level, jnp.exp(mean + var / 2 - sweep.c), 0)
    probability = jnp.maximum(probability + tail, 0)
    return probability / probability.sum(0)
