"""Counts of every size: probabilities that are exact and never above one, rates and fillings that end with the data."""

from decimal import Decimal, localcontext
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp import PluriGP
from plurigp.data import Column
from plurigp.data.scale import OutOfScaleWarning
from plurigp.likelihoods import special
from plurigp.likelihoods.base import expected_log_prob, predictive_mean
from plurigp.likelihoods.families.counts import SLIP
from plurigp.likelihoods.registry import LIKELIHOODS

KINDS = ("poisson", "negative_binomial", "zero_inflated_poisson")
THETA = {"poisson": {}, "negative_binomial": {"log_r": 1.5}, "zero_inflated_poisson": {"logit_zero": -1.0}}
COUNTS = (0.0, 1.0, 2.0, 7.0, 40.0, 1e3, 1e5, 1e7, 1e9, 1e12, 1e15)


# --- exact sums by decimals of sixty digits ---


def decimal_log_gamma(x: Decimal) -> Decimal:
    """log Γ(x) by Stirling's series at x + 30."""
    shift = Decimal(1)
    while x < 30:
        shift, x = shift * x, x + 1
    two_pi = Decimal("6.28318530717958647692528676655900576839433879875021")
    series = sum(Decimal(n) / Decimal(d) / x ** (2 * k + 1) for k, (n, d) in enumerate(BERNOULLI))
    return (x - Decimal("0.5")) * x.ln() - x + two_pi.ln() / 2 + series - shift.ln()


BERNOULLI = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400))


def exact(kind: str, theta: dict[str, float], y: float, f: float) -> float:
    """log p(y|f)."""
    with localcontext() as context:
        context.prec = 60
        count, log_mean = Decimal(y), Decimal(f)
        if kind == "negative_binomial":
            log_r = Decimal(theta["log_r"])
            r, mean = log_r.exp(), log_mean.exp()
            constant = decimal_log_gamma(count + r) - decimal_log_gamma(r) - decimal_log_gamma(count + 1)
            return float(constant + count * log_mean + r * log_r - (count + r) * (mean + r).ln())
        value = count * log_mean - log_mean.exp() - decimal_log_gamma(count + 1)
        if kind == "zero_inflated_poisson":
            odds = Decimal(theta["logit_zero"]).exp()
            value = ((odds + value.exp()) / (1 + odds)).ln() if y == 0 else value - (1 + odds).ln()
        return float(value)


def log_probs(kind: str, theta: dict[str, float], y: np.ndarray, f: np.ndarray, dtype) -> np.ndarray:
    theta = {name: jnp.asarray(value, dtype) for name, value in theta.items()}
    one = jax.jit(jax.vmap(lambda y, f: LIKELIHOODS[kind].log_prob(theta, y[None], f[None])))
    out = one(jnp.asarray(y, dtype), jnp.asarray(f, dtype))
    assert out.dtype == dtype
    return np.asarray(out, float)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_probability_is_exact_for_counts_of_any_size(kind, dtype):
    """To a few roundings of f, y and the result itself: no more than these numbers can tell."""
    near = np.array([-3.0, -0.5, -1e-2, -1e-4, 0.0, 1e-5, 1e-3, 0.1, 2.0])
    y, f = (part.ravel() for part in np.broadcast_arrays(np.array(COUNTS)[:, None], near))
    y, f = y.astype(dtype), (np.log(np.maximum(y, 0.5)) + f).astype(dtype)
    theta = {name: float(np.asarray(value, dtype)) for name, value in THETA[kind].items()}
    ours = log_probs(kind, theta, y, f, dtype)
    truth = np.array([exact(kind, theta, float(a), float(b)) for a, b in zip(y, f, strict=True)])
    wide_y, wide_f = y.astype(float), f.astype(float)
    spread = np.exp(theta["log_r"]) if kind == "negative_binomial" else np.inf  # log p changes less fast with f
    slope = np.abs(wide_y - np.exp(wide_f)) / (1 + np.exp(wide_f) / spread)
    within = np.finfo(dtype).eps * (32 * (1 + np.abs(truth)) + 4 * slope * (1 + np.abs(wide_f)))
    np.testing.assert_array_less(np.abs(ours - truth), within)


@cache
def expectations(kind, dtype):
    """E[log p] with its slopes, log p and E[y] of cells side by side.

    In float64 by the code generator that users have: the tests' own may round a log probability of 0 to 2e-15.
    """
    like = LIKELIHOODS[kind]
    rule = like.rule(like.n_quadrature)

    def one(theta, mean, var, y):
        expected = lambda theta, mean, var: expected_log_prob(like, theta, y, mean, var, rule)  # noqa: E731
        value, slopes = jax.value_and_grad(expected, (0, 1, 2))(theta, mean, var)
        return value, slopes, like.log_prob(theta, y, mean), predictive_mean(like, theta, mean, mean, var, rule)

    options = {"xla_cpu_use_fusion_emitters": True} if dtype == np.float64 else None
    return jax.jit(jax.vmap(one, (None, 0, 0, 0)), compiler_options=options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ceiling", [{}, {"log_ceiling": 3.5}, {"log_ceiling": 21.0}], ids=["none", "low", "high"])
def test_no_count_has_a_probability_above_one(kind, dtype, ceiling):
    """Whatever f and its variance; all is finite, slopes too."""
    theta = {name: jnp.asarray(value, dtype) for name, value in {**THETA[kind], **ceiling}.items()}
    grids = np.meshgrid(COUNTS, [-80, -5, 0, 3.4, 3.6, 20.7, 29, 31, 34.5, 60, 200], [1e-10, 1e-3, 1.0, 30.0, 400.0])
    y, mean, var = (jnp.asarray(part.reshape(-1, 1), dtype) for part in grids)
    values, slopes, given, means = expectations(kind, dtype)(theta, mean, var, y)
    for leaf in (values, given, means, *jax.tree.leaves(slopes)):
        assert leaf.dtype == dtype
        assert np.isfinite(leaf).all()
    assert np.asarray(values).max() <= 0
    assert np.asarray(given).max() <= 0
    if ceiling:
        assert np.asarray(means).max() <= np.exp(ceiling["log_ceiling"]) * (1 + 1e-4)
        np.testing.assert_array_equal(slopes[0]["log_ceiling"], 0)  # a fact: nothing is to be learned of it


# --- the ceiling ---

TOP = {"log_ceiling": 3.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("f", [-1.0, 2.0, 2.99, 3.0, 5.0, 60.0])
def test_probabilities_sum_to_one_below_and_above_the_ceiling(kind, f):
    """Slips go on for ever: m / (y (y + 1)) from the n-th count on sums to m / n."""
    n = 3000
    counts = np.arange(n, dtype=float)
    total = np.exp(log_probs(kind, {**THETA[kind], **TOP}, counts, np.full(n, f), np.float64)).sum()
    assert total + SLIP * 21 / n == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_count_beyond_the_ceiling_costs_tens_of_nats(kind):
    beyond = log_probs(kind, {**THETA[kind], **TOP}, np.array([1e4, 1e9, 1e15]), np.full(3, 1.0), np.float64)
    np.testing.assert_allclose(beyond, np.log(SLIP * 21) - 2 * np.log([1e4, 1e9, 1e15]), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_expectations_are_integrals_at_the_ceiling_too(kind, rng):
    """Against a fine trapezoid; where the rule meets the kink at the ceiling, to what 32 or 64 points can."""
    like, theta = LIKELIHOODS[kind], {name: jnp.asarray(value) for name, value in {**THETA[kind], **TOP}.items()}
    rule = like.rule(like.n_quadrature)
    mean, var = (jnp.asarray(rng.uniform(*ends, (60, 1))) for ends in ((-3, 6), (0.01, 4)))
    y = jnp.asarray(rng.integers(0, 20, (60, 1)).astype(float))
    t = np.linspace(-9, 9, 20_001)
    w = np.exp(-(t**2) / 2) / np.exp(-(t**2) / 2).sum()
    nodes = lambda a, v: a + jnp.sqrt(v) * t[:, None]  # noqa: E731
    log_prob = jax.jit(jax.vmap(lambda y, a, v: jax.vmap(lambda f: like.log_prob(theta, y, f))(nodes(a, v)) @ w))
    mean_of = jax.jit(jax.vmap(lambda a, v: w @ jax.vmap(lambda f: like.mean(theta, a, f))(nodes(a, v))))
    ours = jax.jit(jax.vmap(lambda y, a, v: expected_log_prob(like, theta, y, a, v, rule)))(y, mean, var)
    closed = np.asarray(y[:, 0] > 0) if kind == "zero_inflated_poisson" else np.full(60, kind == "poisson")
    off = np.abs(np.asarray(ours - log_prob(y, mean, var)))
    assert off[closed].max(initial=0) < 1e-6
    assert off[~closed].max(initial=0) < 0.05
    filled = jax.jit(jax.vmap(lambda a, v: predictive_mean(like, theta, a, a, v, rule)))(mean, var)
    np.testing.assert_allclose(filled, mean_of(mean, var), rtol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_finite_differences_at_the_ceiling_too(kind, rng):
    like = LIKELIHOODS[kind]
    rule = like.rule(like.n_quadrature)
    theta = {name: jnp.asarray(value) for name, value in {**THETA[kind], **TOP}.items()}
    cells = np.stack([rng.uniform(-3, 6, 60), rng.uniform(0.01, 4, 60)], 1)
    y = jnp.asarray(rng.integers(0, 60, 60).astype(float))  # slips among them
    one = lambda y, c: expected_log_prob(like, theta, y[None], c[:1], c[1:], rule)  # noqa: E731
    value = jax.jit(jax.vmap(one))
    slopes = np.asarray(jax.jit(jax.vmap(jax.grad(one, 1)))(y, jnp.asarray(cells)))
    smooth = kind == "poisson"
    for part, step in enumerate(1e-6 * np.eye(2)):
        by_hand = np.asarray(value(y, jnp.asarray(cells + step)) - value(y, jnp.asarray(cells - step))) / 2e-6
        off = np.abs(slopes[:, part] - by_hand) / (1 + np.abs(by_hand))
        assert (off < 1e-6).mean() > (0.999 if smooth else 0.95)  # a step may take a node of the rule over the kink


@pytest.mark.parametrize("kind", KINDS)
def test_draws_end_at_the_ceiling(kind, rng):
    like = LIKELIHOODS[kind]
    theta = {name: np.array([value]) for name, value in {**THETA[kind], **TOP}.items()}
    y, far, top = np.zeros((4000, 1, 1)), np.full((4000, 1, 1), 50.0), np.full((4000, 1, 1), 3.0)
    drawn = [like.sample(np.random.default_rng(3), theta, y, f) for f in (far, top)]
    np.testing.assert_array_equal(*drawn)
    assert drawn[0].max() < 40 * np.exp(3)


# --- starts, and what is made of a slip ---


@pytest.mark.parametrize("kind", KINDS)
def test_one_slip_does_not_move_the_start(kind, rng):
    like, column = LIKELIHOODS[kind], Column("visits", kind)
    counts = rng.poisson(3, (100, 1)).astype(float)
    usual = like.start(counts, column)
    other = like.start(np.append(counts, [[1e9]], axis=0), column)
    np.testing.assert_array_equal(usual.bias, other.bias)
    assert usual.theta == other.theta
    assert np.exp(usual.theta["log_ceiling"]) == pytest.approx((np.sqrt(counts.max()) + 3) ** 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slip_among_small_counts_does_not_fill_the_gaps(kind, rng):
    """One cell of 1e9 among counts around 3: gaps are filled as without it, and the ceiling is not trained."""
    factor = rng.normal(size=100)
    counts = rng.poisson(np.exp(1.1 + 0.3 * factor)).astype(float)
    gaps = np.arange(100) % 5 == 0
    frame = pd.DataFrame({"lab": factor + 0.3 * rng.normal(size=100), "visits": np.where(gaps, np.nan, counts)})
    frame.loc[7, "visits"] = 1e9
    model = PluriGP(schema={"visits": kind}, n_inducing=10, max_epochs=30, calibrate=False, random_state=0)
    with jax.enable_x64(False), pytest.warns(OutOfScaleWarning, match="row 7"):
        filled = model.fit(frame).impute(frame)["visits"].to_numpy()
    assert filled[gaps].max() < 12
    assert filled[7] == 1e9
    start = LIKELIHOODS[kind].start(frame.loc[~gaps, ["visits"]].to_numpy(), Column("visits", kind))
    (theta,) = (theta for theta in model.model_.thetas if "log_ceiling" in theta)
    np.testing.assert_allclose(theta["log_ceiling"], start.theta["log_ceiling"], rtol=1e-6)


# --- the functions behind them ---


@pytest.mark.parametrize(("dtype", "within"), [(np.float64, 1e-14), (np.float32, 2e-6)])
def test_what_stirling_leaves_of_log_factorial(dtype, within):
    x = np.concatenate([[0.0, 1e-6, 0.3, 1.0], np.linspace(2.5, 9.5, 50), np.logspace(1, 15, 40)]).astype(dtype)
    with localcontext() as context:
        context.prec = 60
        exact = [float(decimal_log_gamma(d + 1) - (d * d.ln() if d else 0) + d) for d in (Decimal(float(v)) for v in x)]
    np.testing.assert_allclose(jax.jit(special.log_factorial_rest)(x), exact, rtol=within, atol=within)


@pytest.mark.parametrize(("dtype", "within"), [(np.float64, 1e-14), (np.float32, 2e-6)])
def test_excess_of_the_exponential(dtype, within):
    x = np.concatenate([np.linspace(-30, 30, 601), np.logspace(-12, 0, 60), -np.logspace(-12, 0, 60)]).astype(dtype)
    with localcontext() as context:
        context.prec = 60
        exact = [float(d.exp() - 1 - d) for d in (Decimal(float(v)) for v in x)]
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(special.exp_excess)))(jnp.asarray(x))
    np.testing.assert_allclose(value, exact, rtol=within)
    np.testing.assert_allclose(slope, np.expm1(x.astype(float)), rtol=within)


def test_in_the_usual_range_the_poisson_is_scipys(rng):
    f = rng.uniform(-4, 8, 500)
    y = rng.poisson(np.exp(f)).astype(float)
    np.testing.assert_allclose(
        log_probs("poisson", {}, y, f, np.float64), stats.poisson.logpmf(y, np.exp(f)), rtol=1e-11, atol=1e-11
    )
