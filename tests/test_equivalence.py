"""These two must agree: families that are special cases of each other, fast paths and slow ones, two optimisers."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from plurigp.data import Coder
from plurigp.datasets import simulate
from plurigp.datasets.samplers import SAMPLERS
from plurigp.inference import training
from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import Batch, BoundSpec, bound
from plurigp.inference.encoder import independent, kl_x
from plurigp.inference.gp import sparse
from plurigp.inference.gp.linalg import JITTER
from plurigp.inference.model import Settings, init_model
from plurigp.inference.schedule import Rates, Schedule
from plurigp.inference.steps import _natural_step, refresh, start_state, train_step
from plurigp.inference.training import Trained, run_epoch, train
from plurigp.likelihoods.base import expected_log_prob, predictive_log_prob, predictive_mean
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.layout import arrange, make_layout, n_shared, rules_of
from plurigp.likelihoods.registry import LIKELIHOODS
from plurigp.likelihoods.rules import gauss_hermite

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
    hetero = three("gaussian_hetero", {}, [0.8], [mean, -0.4], [var, 1e-14])
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
    model = init_model(0, settings, coder.schema, layout, values, seen)
    model = jax.tree.map(lambda leaf: leaf.astype(float), model)
    log_scale, log_sd = rng.uniform(-0.5, 0.5, 4), np.full((15, 2), -18.0)
    model = eqx.tree_at(lambda t: (t.gp.log_scale, t.encoder.log_sd), model, (jnp.asarray(log_scale), log_sd))
    root, m = 0.3 * rng.normal(size=(4, 6, 6)), rng.normal(size=(4, 6))
    batch = Batch(jnp.asarray(values), jnp.asarray(seen), jnp.arange(15), jnp.ones(15, bool), jnp.asarray(1.0))
    spec = BoundSpec(layout, rules_of(layout, None))
    q = jax.jit(sparse.posterior_of_log_cholesky)(jnp.asarray(m), jnp.asarray(root))
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
    q_x = independent(model.encoder.mean, jnp.exp(model.encoder.log_sd))
    assert float(ours.kl_x) == pytest.approx(float(kl_x(q_x).sum()), rel=1e-12)


# --- precision, refreshing, optimisers ---

COLUMNS = {"gaussian": 2, "bernoulli": 1, "poisson": 1, "categorical": 1}
N, BATCH = 36, 6  # six batches: more than share one factorisation


class World:
    """A small mixed table in block order."""

    def __init__(self, n_rows: int = N, columns: dict[str, int] | None = None, missing: float = 0.1):
        simulation = simulate(n_rows, 2, columns or COLUMNS, missing, random_state=5)
        coder = Coder.fit(simulation.table, simulation.schema)
        self.schema, self.layout = coder.schema, make_layout(coder.schema)
        self.values, self.seen = arrange(self.layout, coder.table(simulation.table))
        self.spec = BoundSpec(self.layout, rules_of(self.layout, 16))

    def model(self, dtype=jnp.float32):
        settings = Settings(n_components=2, n_inducing=8, n_hidden=6)
        model = init_model(0, settings, self.schema, self.layout, self.values, self.seen)
        return jax.tree.map(lambda leaf: leaf.astype(dtype), model)

    def data(self, dtype=jnp.float32) -> TrainingTable:
        return TrainingTable(np.asarray(self.values, dtype), self.seen)

    def whole(self, dtype=jnp.float32) -> Batch:
        """All rows in one batch."""
        n = len(self.values)
        return Batch(*self.data(dtype)[:2], np.arange(n), np.ones(n, bool), np.asarray(1, dtype))

    def evaluate(self, run: Trained, n_draws: int = 32) -> float:
        """The bound of the whole table at the trained parameters."""
        spec = replace(self.spec, n_draws=n_draws)
        return float(bound_of(spec, run.model, run.q, self.whole(), jax.random.key(0)).total)


bound_of = jax.jit(lambda spec, *args: bound(spec, *args)[0], static_argnums=0)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_float32_is_float64():
    """The same trained model and draws of x: every part of the bound to 1e-4."""
    world = World(columns=dict.fromkeys(SAMPLERS, 1) | {"gaussian": 3})
    rng = np.random.default_rng(0)
    P = world.layout.n_functions
    m, root = rng.normal(size=(P, 8)), 0.3 * rng.normal(size=(P, 8, 8)) - np.eye(8)
    noise = rng.normal(size=(1, N, 2))
    parts = {}
    for dtype in (jnp.float32, jnp.float64):
        batch, model = world.whole(dtype), world.model(dtype)
        q = jax.jit(sparse.posterior_of_log_cholesky)(jnp.asarray(m, dtype), jnp.asarray(root, dtype))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("plurigp.inference.bound._normals", lambda key, shape, dtype: jnp.asarray(noise, dtype))
            parts[dtype] = jax.jit(lambda m, q, b: bound(world.spec, m, q, b, jax.random.key(0))[0])(model, q, batch)
    for narrow, wide in zip(*(jax.tree.leaves(p) for p in parts.values()), strict=True):
        assert narrow.dtype == jnp.float32
        assert float(narrow) == pytest.approx(float(wide), rel=1e-4)
    assert float(parts[jnp.float32].total) == pytest.approx(float(parts[jnp.float64].total), rel=1e-4)


posterior_of = jax.jit(sparse.posterior_of)


def rates(learning: float, natural: float) -> Rates:
    return Rates(*(np.asarray(rate, np.float32) for rate in (learning, natural, 0.0, 1.0)))


def plain_epoch(world: World, state, epoch: list[Batch], seed: int, every: int):
    """An epoch as a plain loop that factorises q(v) every so many steps."""
    seen_bounds = []
    for n, batch in enumerate(epoch):
        if n % every == 0:
            state = state._replace(posterior=posterior_of(state.q))
        state, step = train_step(world.spec, state, batch, seed, n, rates(0.01, 0.3))
        seen_bounds.append(float(step.bound.total))
    return state, seen_bounds


def test_an_epoch_is_its_steps_in_a_row(world):
    """run_epoch against the loop, sharing a factorisation as it does; and against one that never shares."""
    batches = list(world.data().epoch(BATCH, np.random.default_rng(0)))
    start, cautious = start_state(world.spec, world.model(), "natural"), rates(0.0, 0.3)._replace(caution=np.float32(1))
    for _ in range(2):  # while cautious, every step has a factorisation of its own
        start, _, _ = run_epoch(world.spec, start, iter(batches), 1, 0, cautious)
    fused, n_steps, steps = run_epoch(world.spec, start, iter(batches), 1, 0, rates(0.01, 0.3))
    shared, bounds_shared = plain_epoch(world, start, batches, 1, training.REFRESH_EVERY)
    _, bounds_fresh = plain_epoch(world, start, batches, 1, 1)
    assert n_steps == len(batches) == 6
    assert float(training.average(steps).bound.total) == pytest.approx(np.mean(bounds_shared), rel=1e-4)
    for ours, theirs in zip(jax.tree.leaves(fused.q), jax.tree.leaves(shared.q), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())
    assert bounds_shared[0] == bounds_fresh[0]  # nothing is old in the first step
    assert bounds_shared[1] != bounds_fresh[1]
    np.testing.assert_allclose(bounds_shared, bounds_fresh, rtol=0.03)  # the mean follows, only S is old


# --- functions that share a basis, and the same functions each with its own ---


@pytest.fixture(scope="module")
def complete() -> World:
    return World(columns={"gaussian": 3, "bernoulli": 2}, missing=0.0)


@pytest.mark.parametrize("n_draws", [1, 2])
def test_a_full_step_on_one_basis_is_a_full_step_each(complete, n_draws):
    """One batch of training, some of it padding, with step 1 and Adam at rest: the same q(v) and the same bound."""
    batch = complete.whole()._replace(real=np.arange(N) < 30, weight=np.asarray(1.2, np.float32))
    shared_spec = replace(complete.spec, n_draws=n_draws, n_shared=n_shared(complete.layout, complete.seen))
    assert shared_spec.n_shared == 3
    ends, bounds = [], []
    for spec in (shared_spec, replace(shared_spec, n_shared=0)):
        state = refresh(start_state(spec, complete.model(), "natural"), np.ones(()))
        for n in range(2):  # the first begins at the prior, the second where the first ended
            state, step = train_step(spec, state, batch, 0, n, rates(0.0, 1.0))
            state = refresh(state, np.ones(()))
            bounds.append(float(step.bound.total))
        ends.append(sparse.expand_shared_basis(state.posterior))
    for ours, theirs in zip(*(jax.tree.leaves(end) for end in ends), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())
    assert bounds[:2] == pytest.approx(bounds[2:], rel=1e-5)
    assert bounds[1] > bounds[0] + 1


@pytest.mark.slow
def test_training_on_one_basis_reaches_the_same_bound(complete):
    schedule = Schedule(max_epochs=80, batch_size=12, tol=0.0)
    reached = []
    for n in (0, n_shared(complete.layout, complete.seen)):
        run = train(replace(complete.spec, n_shared=n), complete.model(), complete.data(), schedule, 0)
        assert run.q.shared is None
        reached.append(complete.evaluate(run))
    assert reached[1] == pytest.approx(reached[0], rel=0.02)


@pytest.mark.slow
def test_both_optimisers_reach_the_same_bound():
    """Two hundred rows, and four times the epochs for Adam: within 2 % of each other, natural gradients not behind."""
    world = World(n_rows=200)
    reached = {}
    for optimizer, n_epochs in (("natural", 600), ("adam", 2400)):
        schedule = Schedule(n_epochs, batch_size=200, learning_rate=0.02, tol=-np.inf, optimizer=optimizer)
        run = train(world.spec, world.model(), world.data(), schedule, 0)
        reached[optimizer] = world.evaluate(run)
    assert reached["natural"] == pytest.approx(reached["adam"], rel=0.02)
    assert reached["natural"] > reached["adam"] - 0.01 * abs(reached["adam"])


# --- row weights, and rows repeated as often ---


def test_whole_weights_train_as_repeated_rows_do(complete, monkeypatch):
    """The same start to the bit; one full-batch step of q(v), shared basis and Adam the same, given the same draws."""
    weights = np.random.default_rng(0).integers(1, 4, N).astype(float)
    rows = np.repeat(np.arange(N), weights.astype(int))
    noise = np.random.default_rng(1).normal(size=(1, N, 2))
    draws = {N: noise, len(rows): noise[:, rows]}
    monkeypatch.setattr("plurigp.inference.bound._normals", lambda _, shape, dtype: jnp.asarray(draws[shape[1]], dtype))
    spec = replace(complete.spec, n_shared=3)
    settings = Settings(n_components=2, n_inducing=8, n_hidden=6)
    after = []
    apart = (complete.values[rows], complete.seen[rows], None)
    for values, seen, given in ((complete.values, complete.seen, weights), apart):
        model = init_model(0, settings, complete.schema, complete.layout, values, seen, given)
        model = jax.tree.map(lambda leaf: leaf.astype(np.float64), model)
        state = refresh(start_state(spec, model, "natural"), np.ones(()))
        (batch,) = TrainingTable(values, seen, given).epoch(len(values), np.random.default_rng(0))
        order = np.argsort(batch.rows)
        in_order = [None if part is None else part[order] for part in (*batch[:3], batch.row_weights)]
        batch = Batch(*in_order[:3], batch.real, batch.weight, in_order[3])
        step = jax.jit(partial(_natural_step, spec))
        after.append((model, *step(state, batch, jax.random.key(0), rates(0.01, 0.3))))
    (model, state, epoch), (model_, state_, epoch_) = after
    jax.tree.map(np.testing.assert_array_equal, model, model_)
    for one, other in zip(jax.tree.leaves((state, epoch.bound)), jax.tree.leaves((state_, epoch_.bound)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * max(np.abs(other).max(), 1))
    assert float(epoch.bound.total) == pytest.approx(float(epoch_.bound.total), rel=1e-9)
