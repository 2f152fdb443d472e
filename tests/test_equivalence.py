"""These two must agree: families that are special cases of each other, fast paths and slow ones, two optimisers."""

from collections.abc import Iterator
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from plurigp import training
from plurigp.bound import Batch, BoundSpec, bound
from plurigp.data import Coder, batches
from plurigp.datasets import simulate
from plurigp.encoder import LatentNormal, kl_x
from plurigp.gp import sparse
from plurigp.gp.linalg import JITTER
from plurigp.likelihoods.base import expected_log_prob, predictive_log_prob, predictive_mean
from plurigp.likelihoods.blocks import arrange, make_layout, rules_of
from plurigp.likelihoods.gaussian import FLOOR
from plurigp.likelihoods.registry import LIKELIHOODS
from plurigp.likelihoods.rules import gauss_hermite
from plurigp.model import Settings, init_model
from plurigp.training import (
    Data,
    Rates,
    Schedule,
    batch_of,
    evaluate,
    natural_train_step,
    run_epoch,
    start_state,
    train,
)

RULE = gauss_hermite(60)
MOMENTS = [(-1.3, 0.4), (0.2, 1.0), (1.7, 0.1)]


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


# --- families that are special cases of each other ---


def three(kind, theta, y, mean, var):
    """E[log p], log E[p] and E[y] of one cell."""
    arrays = [jnp.asarray(a, float) for a in (y, mean, var)]
    return [np.asarray(part) for part in _three(kind, theta, *arrays)]


@partial(jax.jit, static_argnums=0)
def _three(kind, theta, y, mean, var):
    cell = (LIKELIHOODS[kind], theta, y, mean, var, RULE)
    return [what(*cell) for what in (expected_log_prob, predictive_log_prob, predictive_mean)]


@pytest.mark.parametrize(("mean", "var"), MOMENTS)
@pytest.mark.parametrize("y", [0, 1])
def test_bernoulli_is_binomial_with_one_trial(y, mean, var):
    for ours, theirs in zip(
        three("bernoulli", {}, [y], [mean], [var]), three("binomial", {}, [y, 1], [mean], [var]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize(("mean", "var"), MOMENTS)
def test_bernoulli_is_a_category_with_two_levels(mean, var):
    """Only the difference of two functions matters: N(a₁ − a₀, v₀ + v₁)."""
    mean_two, var_two = [0.3, 0.3 + mean], [0.3 * var, 0.7 * var]
    for y in (0, 1):
        two = three("categorical", {"n_levels": 2}, [y], mean_two, var_two)
        one = three("bernoulli", {}, [y], [mean], [var])
        np.testing.assert_allclose(two[0], one[0], atol=2e-5)
        np.testing.assert_allclose(two[1], one[1], atol=2e-5)
        np.testing.assert_allclose(two[2], [1 - one[2][0], one[2][0]], atol=2e-5)


@pytest.mark.parametrize(("mean", "var"), MOMENTS)
def test_the_two_function_gaussian_with_a_known_sd_is_the_gaussian(mean, var):
    log_sd = 0.5 * np.log(FLOOR**2 + np.exp(2 * -0.4))
    hetero = three("gaussian_hetero", {}, [0.8], [mean, log_sd], [var, 1e-14])
    gaussian = three("gaussian", {"log_sd": -0.4}, [0.8], [mean], [var])
    for ours, theirs in zip(hetero, gaussian, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("mean", "var"), MOMENTS)
def test_lognormal_is_the_gaussian_of_the_logarithm(mean, var):
    ours = three("lognormal", {"log_sd": -0.4}, [2.5], [mean], [var])
    theirs = three("gaussian", {"log_sd": -0.4}, [np.log(2.5)], [mean], [var])
    for a, b in zip(ours[:2], theirs[:2], strict=True):
        np.testing.assert_allclose(a, b - np.log(2.5), rtol=1e-12)


# --- the whole bound against one written out by hand ---


def numpy_bound(y, seen, x_mean, x_sd, log_lengthscale, Z, bias, scale, log_sd, m, S) -> float:
    """Gaussian columns and q(x) without spread: dense, unpacked, unwhitened, no JAX."""

    def kernel(a, b):
        d = (a[:, None] - b[None]) / np.exp(log_lengthscale)
        return np.exp(-0.5 * (d**2).sum(2))

    Kzz = kernel(Z, Z)
    Kzz += JITTER * np.mean(np.diag(Kzz)) * np.eye(len(Z))
    Lz, W = np.linalg.cholesky(Kzz), kernel(x_mean, Z) @ np.linalg.inv(Kzz)
    total = -float((0.5 * (x_mean**2 + x_sd**2 - 1) - np.log(x_sd)).sum())
    for p in range(y.shape[1]):
        f_mean = bias[p] + scale[p] * W @ Lz @ m[p]
        f_var = scale[p] ** 2 * (1 - np.diag(W @ (Kzz - Lz @ S[p] @ Lz.T) @ W.T))
        noise = FLOOR**2 + np.exp(2 * log_sd[p])
        cells = stats.norm.logpdf(y[:, p], f_mean, np.sqrt(noise)) - 0.5 * f_var / noise
        total += cells[seen[:, p]].sum()
        total -= 0.5 * (np.trace(S[p]) + m[p] @ m[p] - len(Z) - np.linalg.slogdet(S[p])[1])
    return float(total)


def test_gaussian_columns_with_free_rows_are_a_plain_gplvm(rng):
    simulation = simulate(15, 2, {"gaussian": 4}, 0.2, random_state=2)
    coder = Coder.fit(simulation.table, simulation.schema)
    layout = make_layout(coder.schema)
    values, seen = arrange(layout, coder.table(simulation.table))
    settings = Settings(n_components=2, n_inducing=6, encoder="free", n_hidden=4)
    model = init_model(jax.random.key(0), settings, coder.schema, layout, values, seen)
    model = jax.tree.map(lambda leaf: leaf.astype(float), model)
    log_scale, log_sd = rng.uniform(-0.5, 0.5, 4), np.full((15, 2), -18.0)
    model = eqx.tree_at(lambda t: (t.gp.log_scale, t.encoder.log_sd), model, (jnp.asarray(log_scale), log_sd))
    root, m = 0.3 * rng.normal(size=(4, 6, 6)), rng.normal(size=(4, 6))
    batch = Batch(jnp.asarray(values), jnp.asarray(seen), jnp.arange(15), jnp.ones(15, bool), jnp.asarray(1.0))
    spec = BoundSpec(layout, rules_of(layout, None))
    q = jax.jit(sparse.posterior_of_root)(jnp.asarray(m), jnp.asarray(root))
    ours = jax.jit(lambda: bound(spec, model, q, batch, jax.random.key(0))[0])()
    L = np.tril(root, -1) + np.stack([np.diag(np.exp(np.diag(r))) for r in root])
    theirs = numpy_bound(
        values,
        seen,
        np.asarray(model.encoder.mean),
        np.exp(log_sd),
        np.asarray(model.gp.kernel.log_lengthscales[0]),
        np.asarray(model.gp.Z),
        np.asarray(model.gp.bias),
        np.exp(log_scale),
        np.asarray(model.thetas[0]["log_sd"]),
        m,
        L @ L.swapaxes(1, 2),
    )
    assert float(ours.total) == pytest.approx(theirs, rel=1e-7)
    q_x = LatentNormal(model.encoder.mean, jnp.exp(model.encoder.log_sd))
    assert float(ours.kl_x) == pytest.approx(float(kl_x(q_x).sum()), rel=1e-12)


# --- precision, refreshing, optimisers ---

COLUMNS = {"gaussian": 2, "bernoulli": 1, "poisson": 1, "categorical": 1}
N, BATCH = 36, 6  # six batches: more than share one factorisation


class World:
    """A small mixed table in block order."""

    def __init__(self, n_rows: int = N, columns: dict[str, int] | None = None):
        simulation = simulate(n_rows, 2, columns or COLUMNS, 0.1, random_state=5)
        coder = Coder.fit(simulation.table, simulation.schema)
        self.schema, self.layout = coder.schema, make_layout(coder.schema)
        self.values, self.seen = arrange(self.layout, coder.table(simulation.table))
        self.spec = BoundSpec(self.layout, rules_of(self.layout, 16))

    def model(self, dtype=jnp.float32):
        settings = Settings(n_components=2, n_inducing=8, n_hidden=6)
        model = init_model(jax.random.key(0), settings, self.schema, self.layout, self.values, self.seen)
        return jax.tree.map(lambda leaf: leaf.astype(dtype), model)

    def data(self, dtype=jnp.float32) -> Data:
        return Data(jnp.asarray(self.values, dtype), jnp.asarray(self.seen))


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_float32_is_float64():
    """The same trained model and draws of x: every part of the bound to 1e-4."""
    world = World(columns={kind: 1 for kind in LIKELIHOODS if kind != "lognormal"} | {"gaussian": 3})
    rng = np.random.default_rng(0)
    P = world.layout.n_functions
    m, root = rng.normal(size=(P, 8)), 0.3 * rng.normal(size=(P, 8, 8)) - np.eye(8)
    noise = rng.normal(size=(1, N, 2))
    parts = {}
    for dtype in (jnp.float32, jnp.float64):
        data, model = world.data(dtype), world.model(dtype)
        q = jax.jit(sparse.posterior_of_root)(jnp.asarray(m, dtype), jnp.asarray(root, dtype))
        batch = batch_of(data, jnp.arange(N), jnp.ones(N, bool), 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jax.random, "normal", lambda key, shape, dtype: jnp.asarray(noise, dtype))
            parts[dtype] = jax.jit(lambda m, q, b: bound(world.spec, m, q, b, jax.random.key(0))[0])(model, q, batch)
    for narrow, wide in zip(*(jax.tree.leaves(p) for p in parts.values()), strict=True):
        assert narrow.dtype == jnp.float32
        assert float(narrow) == pytest.approx(float(wide), rel=1e-4)
    assert float(parts[jnp.float32].total) == pytest.approx(float(parts[jnp.float64].total), rel=1e-4)


step_of = jax.jit(natural_train_step, static_argnums=0)
posterior_of = jax.jit(sparse.posterior_of)


def plain_epoch(world: World, state, rows, real, key, rates, refresh: int):
    """An epoch as a Python loop that factorises q(v) every `refresh` steps."""
    seen_bounds = []
    for n, (r, k) in enumerate(zip(rows, real, strict=True)):
        if n % refresh == 0:
            state = state._replace(now=posterior_of(state.q))
        batch = batch_of(world.data(), jnp.asarray(r), jnp.asarray(k), len(rows))
        state, epoch = step_of(world.spec, state, batch, jax.random.fold_in(key, n), rates)
        seen_bounds.append(float(epoch.bound.total))
    return state, seen_bounds


def test_an_epoch_is_its_steps_in_a_row(world):
    """run_epoch against the loop, sharing a factorisation as it does; and against one that never shares."""
    rows, real = batches(N, BATCH, np.random.default_rng(0))
    key, rates = jax.random.key(1), Rates(jnp.float32(0.01), jnp.float32(0.3), jnp.float32(0.0))
    fused, epoch = run_epoch(
        world.spec,
        start_state(world.model(), 8, "natural"),
        world.data(),
        jnp.asarray(rows),
        jnp.asarray(real),
        key,
        rates,
    )
    start = start_state(world.model(), 8, "natural")
    shared, bounds_shared = plain_epoch(world, start, rows, real, key, rates, training.REFRESH)
    _, bounds_fresh = plain_epoch(world, start, rows, real, key, rates, 1)
    assert float(epoch.bound.total) == pytest.approx(np.mean(bounds_shared), rel=1e-4)
    for ours, theirs in zip(jax.tree.leaves(fused.q), jax.tree.leaves(shared.q), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())
    assert bounds_shared[0] == bounds_fresh[0]  # nothing is stale in the first step
    assert bounds_shared[1] != bounds_fresh[1]
    # Two steps in, the two differ by what a step of 0.3 moves; both climb.
    assert bounds_fresh[-1] > bounds_fresh[0]
    assert bounds_shared[-1] > bounds_shared[0]


@pytest.mark.slow
def test_both_optimisers_reach_the_same_bound():
    """Two hundred rows, long enough for Adam: within 2 % of each other, natural gradients not behind."""
    world = World(n_rows=200)
    reached = {}
    for optimizer in ("natural", "adam"):
        schedule = Schedule(max_epochs=600, batch_size=200, learning_rate=0.02, tol=0.0, optimizer=optimizer)
        run = train(world.spec, world.model(), world.data(), schedule, 0)
        reached[optimizer] = float(evaluate(world.spec, run.model, run.q, world.data(), 200, 0, n_draws=32).total)
    assert reached["natural"] == pytest.approx(reached["adam"], rel=0.02)
    assert reached["natural"] > reached["adam"] - 0.01 * abs(reached["adam"])
