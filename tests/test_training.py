"""Training: it climbs, it repeats itself to the byte, it never looks under a gap, and it stops when it should."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp import training
from plurigp.bound import BoundSpec
from plurigp.data import Coder, batches
from plurigp.datasets import simulate
from plurigp.gp.sparse import Natural
from plurigp.likelihoods.blocks import arrange, make_layout, rules_of
from plurigp.model import Settings, init_model
from plurigp.training import (
    COOLED,
    COOLING,
    WARM,
    WINDOW,
    Data,
    Plateau,
    Rates,
    Schedule,
    Trained,
    _rates,
    batch_of,
    evaluate,
    run_epoch,
    start_state,
    train,
)

COLUMNS = {
    "gaussian": 2,
    "gaussian_hetero": 1,
    "bernoulli": 1,
    "binomial": 1,
    "beta": 1,
    "poisson": 1,
    "categorical": 1,
}
N, BATCH = 40, 16  # three batches of fourteen, two of them padded
SETTINGS = Settings(n_components=2, n_inducing=8, n_hidden=6)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


class World:
    """A small table of every family in block order. All tests share its shapes, hence its two compiled programs."""

    def __init__(self, random_state: int = 0):
        simulation = simulate(N, 2, COLUMNS, 0.0, random_state)
        coder = Coder.fit(simulation.table, simulation.schema)
        self.schema, self.layout = coder.schema, make_layout(coder.schema)
        self.values, self.seen = arrange(self.layout, coder.table(simulation.table))
        self.spec = BoundSpec(self.layout, rules_of(self.layout, 16))

    def hidden(self, share: float) -> np.ndarray:
        """`seen` with that share of the cells hidden, an empty row, and no column without a cell."""
        seen = np.random.default_rng(1).random(self.seen.shape) >= share
        seen[5] = False
        seen[np.arange(self.seen.shape[1]) + 10, np.arange(self.seen.shape[1])] = True
        return seen

    def model(self, values: np.ndarray | None = None, seen: np.ndarray | None = None):
        values, seen = self.values if values is None else values, self.seen if seen is None else seen
        return init_model(jax.random.key(0), SETTINGS, self.schema, self.layout, values, seen)

    def train(self, values=None, seen=None, seed: int = 0, **schedule) -> Trained:
        values, seen = self.values if values is None else values, self.seen if seen is None else seen
        schedule = Schedule(**{"max_epochs": 6, "batch_size": BATCH, **schedule})
        return train(self.spec, self.model(values, seen), self.data(values, seen), schedule, seed)

    def data(self, values=None, seen=None) -> Data:
        values, seen = self.values if values is None else values, self.seen if seen is None else seen
        return Data(jnp.asarray(values, jnp.float32), jnp.asarray(seen))


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def totals(run: Trained) -> list[float]:
    return [float(epoch.bound.total) for epoch in run.epochs]


def as_bytes(tree) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


# --- it climbs ---


@pytest.mark.parametrize("optimizer", ["natural", "adam"])
def test_training_raises_the_bound(world, optimizer):
    path = totals(world.train(seen=world.hidden(0.2), max_epochs=40, optimizer=optimizer))
    assert len(path) == 40
    thirds = [np.mean(path[:5]), np.mean(path[10:15]), np.mean(path[-5:])]
    assert thirds[0] < thirds[1] < thirds[2] + 2
    assert thirds[2] - thirds[0] > 0.2 * abs(thirds[0])


def test_natural_gradients_climb_faster_than_adam(world):
    natural, adam = (totals(world.train(max_epochs=6, optimizer=o)) for o in ("natural", "adam"))
    assert natural[-1] > adam[-1]


# --- it repeats itself ---


@pytest.mark.parametrize("optimizer", ["natural", "adam"])
def test_one_seed_gives_the_same_bytes(world, optimizer):
    first, second = (world.train(optimizer=optimizer, seed=3) for _ in range(2))
    assert as_bytes(first[:-1]) == as_bytes(second[:-1])
    other = world.train(optimizer=optimizer, seed=4)
    assert as_bytes(other.q) != as_bytes(first.q)


def test_the_given_model_survives(world):
    """Training works on its own copy: the caller may train again from the same start."""
    model = world.model()
    before = as_bytes(model)
    train(world.spec, model, world.data(), Schedule(max_epochs=1, batch_size=BATCH), 0)
    assert as_bytes(model) == before


# --- what it does not see ---


@pytest.mark.parametrize("optimizer", ["natural", "adam"])
def test_a_hidden_cell_has_no_influence(world, optimizer):
    """Every value under a gap altered, trials included: not one byte of the trained model differs."""
    seen = world.hidden(0.5)
    other = world.values.copy()
    rng = np.random.default_rng(2)
    for block in world.layout.blocks:
        W = (block.slots[1] - block.slots[0]) // block.n_columns
        kind = block.likelihood.kind
        for c in range(block.n_columns):
            gaps = ~seen[:, block.columns[0] + c]
            slot = block.slots[0] + c * W
            drawn = rng.uniform(0.1, 0.9, gaps.sum()) if kind == "beta" else rng.integers(0, 2, gaps.sum())
            other[gaps, slot] = drawn
            if W == 2:
                other[gaps, slot + 1] = 3
    assert (other != world.values).sum() > 50
    ours, theirs = (world.train(v, seen, optimizer=optimizer) for v in (world.values, other))
    assert as_bytes(ours[:-1]) == as_bytes(theirs[:-1])


def test_an_empty_column_has_no_influence(world):
    """Not even on where its own bias starts."""
    seen = world.hidden(0.2)
    block = world.layout.blocks[-1]
    seen[:, block.columns[0]] = False
    other = world.values.copy()
    other[:, block.slots[0]] = other[:, block.slots[0]] + 1
    ours, theirs = (world.train(v, seen, max_epochs=2) for v in (world.values, other))
    assert as_bytes((ours.model, ours.q)) == as_bytes((theirs.model, theirs.q))


def test_padding_has_no_influence(world):
    """The padded places of a batch point at another row: the same bytes."""
    rows, real = batches(N, BATCH, np.random.default_rng(0))
    assert (~real).sum() == 2
    elsewhere = np.where(real, rows, 7).astype(rows.dtype)
    states = []
    for r in (rows, elsewhere):
        state, epoch = run_epoch(
            world.spec,
            start_state(world.model(), 8, "natural"),
            world.data(),
            jnp.asarray(r),
            jnp.asarray(real),
            jax.random.key(0),
            Rates(jnp.float32(0.01), jnp.float32(0.3), jnp.float32(0.0)),
        )
        states.append(as_bytes((state, epoch)))
    assert states[0] == states[1]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("optimizer", ["natural", "adam"])
def test_finite_with_many_gaps_and_an_empty_row(world, share, optimizer):
    run = world.train(seen=world.hidden(share), max_epochs=8, optimizer=optimizer)
    for leaf in jax.tree.leaves((run.model, run.q, run.epochs)):
        assert np.isfinite(leaf).all()


def test_a_wholly_empty_column_is_finite(world):
    seen = world.hidden(0.2)
    seen[:, 3] = False
    run = world.train(seen=seen, max_epochs=4)
    for leaf in jax.tree.leaves((run.model, run.q, run.epochs)):
        assert np.isfinite(leaf).all()


# --- q(v) stays a distribution ---


@pytest.mark.parametrize("random_state", [1, 2, 3])
def test_precisions_stay_positive_definite(world, random_state):
    """The two-function gaussian and the beta are not log-concave; big steps, several tables."""
    table = World(random_state)
    assert table.layout == world.layout
    state = start_state(table.model(), 8, "natural")
    rng = np.random.default_rng(random_state)
    for _ in range(8):
        rows, real = batches(N, BATCH, rng)
        state, _ = run_epoch(
            world.spec,
            state,
            table.data(),
            jnp.asarray(rows),
            jnp.asarray(real),
            jax.random.key(random_state),
            Rates(jnp.float32(0.03), jnp.float32(0.8), jnp.float32(0.0)),
        )
        assert isinstance(state.q, Natural)
        Lam = np.asarray(state.q.Lam, float)
        np.testing.assert_allclose(Lam, Lam.swapaxes(1, 2), rtol=1e-4, atol=1e-4 * np.abs(Lam).max())
        assert np.linalg.eigvalsh((Lam + Lam.swapaxes(1, 2)) / 2).min() > 0.2  # (1−ρ)Λ + ρI


# --- when it stops ---


def feed(plateau: Plateau, values) -> list[float]:
    """Add totals until finished; the factor before every epoch."""
    factors = []
    for value in values:
        if plateau.finished:
            break
        factors.append(plateau.factor)
        plateau.add(float(value))
    return factors


@pytest.mark.parametrize("longest", [1, 2, 3, 5, 7, 10, 13, 50, 97, 98, 100, 102, 300])
def test_max_epochs_is_exact_while_the_bound_climbs(longest):
    plateau = Plateau(Schedule(max_epochs=longest), n_cells=100)
    assert len(feed(plateau, range(0, 10**6, 1000))) == longest


def test_a_flat_bound_cools_and_finishes():
    plateau = Plateau(Schedule(max_epochs=1000), n_cells=100)
    factors = feed(plateau, [5.0] * 1000)
    assert plateau.cooling_from == 3 * WINDOW  # not before three windows are full
    cooling = max(WINDOW, round(COOLING / (1 - COOLING) * plateau.cooling_from))
    assert len(factors) == plateau.cooling_from + cooling
    assert factors[: plateau.cooling_from] == [1.0] * plateau.cooling_from


def test_the_factor_falls_steadily_to_its_end():
    plateau = Plateau(Schedule(max_epochs=100), n_cells=100)
    factors = feed(plateau, range(0, 10**6, 1000))
    cooling = np.array(factors[80:])
    assert factors[:80] == [1.0] * 80
    np.testing.assert_allclose(cooling[1:] / cooling[:-1], COOLED ** (1 / 20), rtol=1e-9)
    assert plateau.factor == pytest.approx(COOLED)


def test_a_slow_climb_is_a_plateau_only_below_the_tolerance():
    """Gains are per observed cell over WINDOW epochs."""
    schedule, n_cells = Schedule(max_epochs=200, tol=1e-3), 1000
    for gain, expected in ((0.5, "plateau"), (2.0, "max_epochs")):  # tol · cells = 1 nat per window
        plateau = Plateau(schedule, n_cells)
        n = len(feed(plateau, np.arange(1000) * gain / WINDOW))
        assert (n == 200) == (expected == "max_epochs"), (gain, n)


def test_a_falling_bound_is_a_plateau():
    assert len(feed(Plateau(Schedule(max_epochs=1000), 10), -np.arange(1000.0))) < 100


def test_training_reports_why_it_stopped(world):
    seen_epochs = []
    schedule = Schedule(max_epochs=3, batch_size=BATCH)
    run = train(world.spec, world.model(), world.data(), schedule, 0, lambda n, epoch: seen_epochs.append(n))
    assert (run.stopped, seen_epochs) == ("max_epochs", [1, 2, 3])
    flat = Schedule(max_epochs=500, batch_size=BATCH, tol=1e9)
    run = train(world.spec, world.model(), world.data(), flat, 0)
    assert (run.stopped, len(run.epochs)) == ("plateau", 4 * WINDOW)


def test_a_bound_that_is_not_finite_is_an_error(world):
    values = world.values.copy()
    values[0, 0] = np.nan
    with pytest.raises(FloatingPointError, match=r"not finite in epoch 1.*extreme values"):
        train(world.spec, world.model(), world.data(values), Schedule(max_epochs=2, batch_size=BATCH), 0)


# --- evaluation ---


def test_evaluate_averages_over_batches_and_repeats_itself(world):
    run = world.train()
    first, second = (evaluate(world.spec, run.model, run.q, world.data(), BATCH, seed=1) for _ in range(2))
    assert as_bytes(first) == as_bytes(second)
    assert float(first.total) == pytest.approx(totals(run)[-1], rel=0.1)
    assert float(run.bound.total) == pytest.approx(float(first.total), rel=0.03)
    assert float(first.kl_u) > 0


def test_the_final_q_is_the_last_one(world):
    """Trained.q is a fresh factorisation of the last natural parameters, not a stale one: more epochs move it."""
    one, two = (world.train(max_epochs=n) for n in (1, 2))
    assert as_bytes(one.q) != as_bytes(two.q)
    settled = evaluate(world.spec, one.model, one.q, world.data(), BATCH, seed=0, n_draws=16)
    assert float(one.bound.kl_u) == pytest.approx(float(settled.kl_u), rel=1e-4)


def test_adam_warms_up_while_natural_steps_are_cautious():
    schedule = Schedule(learning_rate=0.02, natural_rate=0.4)
    rates = [_rates(schedule, n, 1.0, np.dtype("float32")) for n in range(2 * WARM)]
    learning, natural, caution = (np.array([float(r[i]) for r in rates]) for i in range(3))
    np.testing.assert_allclose(learning[: WARM + 1], 0.02 * np.arange(WARM + 1) / WARM, rtol=1e-6)
    np.testing.assert_allclose(learning[WARM:], 0.02, rtol=1e-6)
    np.testing.assert_allclose(natural, 0.4, rtol=1e-6)
    np.testing.assert_allclose(caution, 1 - learning / 0.02, atol=1e-6)


def test_a_failed_epoch_is_taken_back(world, monkeypatch):
    """The second epoch fails once: training goes on from the state before it, more calmly, and ends in time."""
    calls = []

    def failing(spec, state, data, rows, real, key, rates):
        calls.append(float(rates.natural))
        after, epoch = run_epoch(spec, state, data, rows, real, key, rates)
        if len(calls) == 2:
            spoilt = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), after.model)
            return after._replace(model=spoilt), epoch._replace(bound=epoch.bound._replace(kl_u=jnp.float32(jnp.nan)))
        return after, epoch

    monkeypatch.setattr(training, "run_epoch", failing)
    run = world.train(max_epochs=4)
    assert len(run.epochs) == 4
    assert calls[2] == pytest.approx(0.3 * calls[1], rel=1e-5)
    for leaf in jax.tree.leaves((run.model, run.q, run.epochs)):
        assert np.isfinite(leaf).all()


def test_a_batch_stands_for_all_of_them(world):
    batch = batch_of(world.data(), jnp.array([4, 2]), jnp.array([True, False]), 20)
    np.testing.assert_allclose(batch.values, world.values[[4, 2]], rtol=1e-6)
    np.testing.assert_array_equal(batch.rows, [4, 2])
    assert float(batch.weight) == 20
    assert batch.weight.dtype == jnp.float32
