"""Training: it climbs, it repeats itself to the byte, it never looks under a gap, and it stops when it should."""

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from plurigp.data import Coder
from plurigp.datasets import simulate
from plurigp.inference import training
from plurigp.inference.batches import TrainingTable, batches
from plurigp.inference.bound import Batch, Bound, BoundSpec, _normals, bound
from plurigp.inference.divergence import Diverged
from plurigp.inference.gp.linalg import pack, unpack, unpack_doubled
from plurigp.inference.gp.sparse import LogCholesky, Natural, posterior_of, posterior_of_log_cholesky, with_full_kl
from plurigp.inference.model import Settings, init_model
from plurigp.inference.prior import by_weight, update_prior
from plurigp.inference.schedule import WINDOW, Rates, Schedule
from plurigp.inference.snapshots import Snapshot, snapshot_arrays, snapshot_from
from plurigp.inference.steps import State, _key, finalise, refresh, start_state, trained_posterior
from plurigp.inference.training import Trained, run_epoch, train
from plurigp.likelihoods.layout import arrange, make_layout, n_shared, rules_of

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
    """A small table of every family in block order. Most tests share its shapes, hence its two compiled programs."""

    def __init__(self, random_state: int = 0, columns: dict[str, int] = COLUMNS):
        simulation = simulate(N, 2, columns, 0.0, random_state)
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
        return init_model(0, SETTINGS, self.schema, self.layout, values, seen)

    def train(self, values=None, seen=None, seed: int = 0, **schedule) -> Trained:
        values, seen = self.values if values is None else values, self.seen if seen is None else seen
        schedule = Schedule(**{"max_epochs": 6, "batch_size": BATCH, **schedule})
        return train(self.spec, self.model(values, seen), self.data(values, seen), schedule, seed)

    def data(self, values=None, seen=None) -> TrainingTable:
        values, seen = self.values if values is None else values, self.seen if seen is None else seen
        return TrainingTable(np.asarray(values, np.float32), seen)

    def sharing(self) -> BoundSpec:
        """The spec with the functions of complete gaussian columns on one basis."""
        return replace(self.spec, n_shared=n_shared(self.layout, self.seen))


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def totals(run: Trained) -> list[float]:
    return [float(epoch.bound.total) for epoch in run.epochs]


def as_bytes(tree) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def rates(learning: float, natural: float) -> Rates:
    return Rates(*(np.asarray(rate, np.float32) for rate in (learning, natural, 0.0, 1.0)))


bound_of = jax.jit(lambda spec, *args: bound(spec, *args)[0], static_argnums=0)


def evaluate(spec: BoundSpec, run: Trained, data: TrainingTable, n_draws: int) -> Bound:
    """The bound of the whole table at the trained parameters, in one piece."""
    n = len(data.values)
    batch = Batch(data.values, data.seen, np.arange(n), np.ones(n, bool), np.asarray(1, np.float32))
    return bound_of(replace(spec, n_draws=n_draws), run.model, run.q, batch, jax.random.key(5))


# --- it climbs ---


@pytest.mark.parametrize("optimizer", ["natural", "adam"])
def test_training_raises_the_bound(world, optimizer):
    path = totals(world.train(seen=world.hidden(0.2), max_epochs=40, optimizer=optimizer))
    assert len(path) == 40
    thirds = [np.mean(path[:5]), np.mean(path[10:15]), np.mean(path[-5:])]
    assert thirds[0] < thirds[1] < thirds[2] + 2
    assert thirds[2] - thirds[0] > 0.2 * abs(thirds[0])


@pytest.mark.slow
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


# --- it goes on where it stopped ---


def stored(snapshot: Snapshot, spec: BoundSpec, model, optimizer: str) -> Snapshot:
    """The snapshot after its trip through what a file keeps."""
    arrays, facts = snapshot_arrays(snapshot)
    return snapshot_from(arrays, json.loads(json.dumps(facts)), spec, model, optimizer)


@pytest.mark.parametrize(("optimizer", "n_groups"), [("natural", 1), ("adam", 1), ("natural", 2)])
def test_a_resumed_run_ends_with_the_same_bytes(world, optimizer, n_groups):
    """From every epoch: in the main phase, in the cooldown, before and after a mixture has started, and at the end."""
    settings, taken = replace(SETTINGS, n_groups=n_groups), []
    model = init_model(0, settings, world.schema, world.layout, world.values, world.seen)
    spec = world.sharing() if optimizer == "natural" else world.spec
    schedule = Schedule(max_epochs=6, batch_size=BATCH, optimizer=optimizer)
    whole = train(spec, model, world.data(), schedule, 3, on_snapshot=taken.append)
    assert [len(snapshot.epochs) for snapshot in taken] == [1, 2, 3, 4, 5, 6]
    assert [snapshot.has_groups for snapshot in taken].count(True) == (0 if n_groups == 1 else 2)
    for snapshot in taken:
        resumed = train(spec, model, world.data(), schedule, 3, resumed=stored(snapshot, spec, model, optimizer))
        assert as_bytes(resumed[:-1]) == as_bytes(whole[:-1])
        assert resumed.stopped == whole.stopped


def test_a_snapshot_of_another_run_is_refused_by_name(world):
    taken, model = [], world.model()
    schedule = Schedule(max_epochs=1, batch_size=BATCH)
    train(world.spec, model, world.data(), schedule, 0, on_snapshot=taken.append)
    arrays, facts = snapshot_arrays(taken[0])
    without, cut = dict(arrays), arrays | {"epochs.spread": arrays["epochs.spread"][:, :1]}
    del without["state.model.gp.Z"]
    for broken, name in ((without, r"state\.model\.gp\.Z"), (cut, r"epochs\.spread")):
        with pytest.raises(ValueError, match=f"array '{name}' is missing or has another shape"):
            snapshot_from(broken, facts, world.spec, model, "natural")
    with pytest.raises(ValueError, match="'n_steps' is missing or is no int"):
        snapshot_from(arrays, facts | {"n_steps": "3"}, world.spec, model, "natural")


@jax.jit
def step_draws(seed, step):
    """What a training step draws, in float64, where no number comes twice by chance."""
    return _normals(_key(seed, step), (2, 16, 3), np.dtype(float))


def test_the_same_seed_and_step_draw_the_same():
    one, again = (step_draws(np.int64(3), np.int32(7)) for _ in range(2))
    np.testing.assert_array_equal(one, again)


def test_no_two_steps_or_seeds_share_a_draw():
    """Not even shifted, as they would if one step counted on from another; the final bound's steps are negative."""
    draws = [step_draws(np.int64(seed), np.int32(step)) for seed in (0, 1, 2**31) for step in (-2, -1, 0, 1, 2, 1000)]
    assert len(np.unique(draws)) == np.size(draws)


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


@pytest.mark.parametrize("sharing", [False, True])
def test_padding_has_no_influence(world, sharing):
    """The padded places of a batch point at another row: the same bytes."""
    spec, data = world.sharing() if sharing else world.spec, world.data()
    given = list(data.epoch(BATCH, np.random.default_rng(0)))
    assert sum((~batch.real).sum() for batch in given) == 2
    elsewhere = []
    for batch in given:
        r = np.where(batch.real, batch.rows, 7)
        elsewhere.append(batch._replace(values=data.values[r], seen=data.seen[r], rows=r.astype(batch.rows.dtype)))
    ends = []
    for epoch in (given, elsewhere):
        start = start_state(spec, world.model(), "natural")
        ends.append(as_bytes(run_epoch(spec, start, epoch, 0, 0, rates(0.01, 0.3))))
    assert ends[0] == ends[1]


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
    state, n = start_state(world.spec, table.model(), "natural"), 0
    rng = np.random.default_rng(random_state)
    for _ in range(8):
        epoch = table.data().epoch(BATCH, rng)
        state, n, _ = run_epoch(world.spec, state, epoch, random_state, n, rates(0.03, 0.8))
        assert isinstance(state.q, Natural)
        Lam = np.asarray(unpack(state.q.Lam, 8), float)
        assert np.linalg.eigvalsh(Lam).min() > 0.2  # (1−ρ)Λ + ρI


# --- functions that share a basis ---


@pytest.fixture(scope="module")
def gaussians() -> World:
    """Complete gaussian columns and nothing else: no function has a q(v) of its own."""
    world = World(columns={"gaussian": 3})
    world.spec = world.sharing()
    return world


def test_without_own_functions_a_state_is_refreshed(gaussians):
    state = start_state(gaussians.spec, gaussians.model(), "natural")
    assert (state.q.lam.shape, state.shared.targets.shape) == ((0, 8), (3, 8))
    refreshed = refresh(state, np.ones(())).posterior
    assert (refreshed.m.shape, refreshed.S.shape, refreshed.shared.shrink.shape) == ((3, 8), (0, 36), (3, 8))
    np.testing.assert_array_equal(refreshed.m, 0)
    np.testing.assert_allclose(refreshed.trace, 8, rtol=1e-6)


@pytest.mark.slow
def test_without_own_functions_training_climbs(gaussians):
    run = gaussians.train(max_epochs=40)
    path = totals(run)
    assert np.mean(path[-5:]) - np.mean(path[:5]) > 0.2 * abs(np.mean(path[:5]))
    assert run.q.S.shape == (3, 36)  # every function written out
    assert run.q.shared is None
    assert float(evaluate(gaussians.spec, run, gaussians.data(), 32).total) == pytest.approx(
        float(run.bound.total), rel=0.03
    )


def test_shared_and_own_functions_train_side_by_side(world):
    spec = world.sharing()
    schedule = Schedule(max_epochs=8, batch_size=BATCH)
    first, second = (train(spec, world.model(), world.data(), schedule, 3) for _ in range(2))
    assert as_bytes(first[:-1]) == as_bytes(second[:-1])
    assert (spec.n_shared, len(first.q.S)) == (2, world.layout.n_functions)
    for leaf in jax.tree.leaves((first.model, first.q, first.epochs)):
        assert np.isfinite(leaf).all()


def test_adam_on_everything_shares_nothing(world):
    state = start_state(world.spec, world.model(), "adam")
    assert state.shared is None
    assert refresh(state, np.ones(())) is state


# --- when it stops ---


def test_training_reports_why_it_stopped(world):
    seen_epochs = []
    schedule = Schedule(max_epochs=3, batch_size=BATCH)
    run = train(world.spec, world.model(), world.data(), schedule, 0, lambda n, epoch: seen_epochs.append(n))
    assert (run.stopped, seen_epochs) == ("max_epochs", [1, 2, 3])
    flat = Schedule(max_epochs=500, batch_size=BATCH, tol=1e9)
    run = train(world.spec, world.model(), world.data(), flat, 0)
    assert (run.stopped, len(run.epochs)) == ("plateau", 4 * WINDOW)


@pytest.mark.parametrize("optimizer", ["natural", "adam"])
def test_a_bound_that_is_not_finite_is_an_error_that_knows_the_column(world, optimizer):
    """The spoiled cell takes its whole row with it, yet only its own column is to blame."""
    first_slots = [block.slots[0] for block in world.layout.blocks]
    for slot in (first_slots[0], first_slots[-1]):
        values, column = world.values.copy(), [b.columns[0] for b in world.layout.blocks][first_slots.index(slot)]
        values[0, slot] = np.nan
        schedule = Schedule(max_epochs=2, batch_size=BATCH, optimizer=optimizer)
        with pytest.raises(Diverged, match=r"not finite in epoch 1.*extreme values") as caught:
            train(world.spec, world.model(), world.data(values), schedule, 0)
        assert caught.value.column == column


# --- evaluation ---


def test_the_final_bound_is_that_of_the_whole_table(world):
    """Averaged over batches, against the table in one piece with many draws of x; and near the last epoch's."""
    run = world.train()
    at_once = evaluate(world.spec, run, world.data(), 16)
    assert float(at_once.total) == pytest.approx(totals(run)[-1], rel=0.1)
    assert float(run.bound.total) == pytest.approx(float(at_once.total), rel=0.03)
    assert float(run.bound.kl_x) == pytest.approx(float(at_once.kl_x), rel=1e-4)
    assert float(run.bound.kl_u) > 0


def test_the_final_q_is_the_last_one(world, monkeypatch):
    """Trained.q is a fresh factorisation of the last natural parameters, not a stale one: more epochs move it."""
    states = []

    def recording(*args):
        out = run_epoch(*args)
        states.append(out[0])
        return out

    monkeypatch.setattr(training, "run_epoch", recording)
    one, two = (world.train(max_epochs=n) for n in (1, 2))
    assert as_bytes(one.q) != as_bytes(two.q)
    fresh = trained_posterior(finalise(states[-1], Schedule.kl_covariance_weight))
    assert as_bytes(two.q) == as_bytes(fresh) != as_bytes(trained_posterior(states[-1]))
    at_once = evaluate(world.spec, one, world.data(), 16)
    assert float(one.bound.kl_u) == pytest.approx(float(at_once.kl_u), rel=1e-4)


@pytest.mark.parametrize("shows", [True, False], ids=["in its bound", "in its last step alone"])
def test_a_failed_epoch_is_taken_back(world, monkeypatch, shows):
    """The second epoch fails: training goes on from the state before it, more calmly, and ends in time; what had been
    queued behind it has not happened."""
    calls = []

    def failing(spec, state, epoch, seed, first_step, rates):
        calls.append((float(rates.natural), first_step))
        after, n, steps = run_epoch(spec, state, epoch, seed, first_step, rates)
        if first_step == 3:
            spoilt = jax.tree.map(lambda leaf: np.full_like(leaf, np.nan), after.model)
            after = after._replace(model=spoilt)
            if shows:
                bound = steps[-1].bound._replace(kl_u=np.float32("nan"))
                steps = [*steps[:-1], steps[-1]._replace(bound=bound)]
        return after, n, steps

    monkeypatch.setattr(training, "run_epoch", failing)
    ahead = world.train(max_epochs=4)
    assert [first for _, first in calls] == [0, 3, 6, 6, 9, 12]
    calls.clear()
    monkeypatch.setattr(training, "MAX_STEPS_AHEAD", 0)
    run = world.train(max_epochs=4)
    assert len(run.epochs) == 4
    assert calls[2][0] == pytest.approx(0.3 * calls[1][0], rel=1e-5)
    assert [first for _, first in calls] == [0, 3, 6, 9, 12]  # what failed is not drawn again
    for leaf in jax.tree.leaves((run.model, run.q, run.epochs)):
        assert np.isfinite(leaf).all()
    assert as_bytes(ahead) == as_bytes(run)


@pytest.mark.parametrize("n_groups", [1, 2])
def test_epochs_that_are_queued_ahead_are_the_same(world, monkeypatch, n_groups):
    """Through warm-up, plateau and cooldown, and into a mixture as prior."""
    start = init_model(0, replace(SETTINGS, n_groups=n_groups), world.schema, world.layout, world.values, world.seen)
    schedule = Schedule(max_epochs=120, batch_size=BATCH, tol=1.0)
    ends = []
    for steps in (training.MAX_STEPS_AHEAD, 0):
        monkeypatch.setattr(training, "MAX_STEPS_AHEAD", steps)
        ends.append(train(world.spec, start, world.data(), schedule, 0))
    assert ends[0].stopped == "plateau"
    assert as_bytes(ends[0]) == as_bytes(ends[1])


def test_an_epoch_is_every_row_once_and_a_batch_stands_for_all_of_them(world):
    data = world.data(seen=world.hidden(0.5))
    epoch = list(data.epoch(BATCH, np.random.default_rng(0)))
    rows, real = batches(N, BATCH, np.random.default_rng(0))
    assert len(epoch) == 3
    assert sorted(np.concatenate([batch.rows[batch.real] for batch in epoch])) == list(range(N))
    for batch, r, k in zip(epoch, rows, real, strict=True):
        np.testing.assert_array_equal(batch.rows, r)
        np.testing.assert_array_equal(batch.real, k)
        np.testing.assert_array_equal(batch.values, data.values[r])
        np.testing.assert_array_equal(batch.seen, data.seen[r])
        assert (float(batch.weight), batch.weight.dtype) == (3, np.float32)


# --- the weight of the covariance part of kl_u ---


def test_adam_and_natural_steps_have_one_objective():
    """With everything else held still both end at one q(v), whose S⁻¹ − I is 1/τ of the bound's."""
    world, weight = World(columns={"gaussian": 2}), 0.4
    gaps = world.data(seen=world.hidden(0.2))  # with gaps, no function shares a basis
    found = {}
    for optimizer, n_epochs, learning in (("natural", 40, 0.0), ("adam", 2500, 0.02)):
        state = start_state(world.spec, world.model(), optimizer)
        model, n = state.model, 0
        for _ in range(n_epochs):
            still = np.asarray(weight, np.float32)
            epoch = gaps.epoch(N, np.random.default_rng(0))
            at = rates(learning, 1.0)._replace(kl_covariance_weight=still)
            state, n, _ = run_epoch(world.spec, state._replace(model=model), epoch, 0, n, at)
        found[optimizer] = trained_posterior(refresh(state._replace(model=model), still))
    np.testing.assert_allclose(found["adam"].logdet, found["natural"].logdet, atol=0.3)
    np.testing.assert_allclose(found["adam"].m, found["natural"].m, atol=0.1)


def test_adams_covariance_is_restored_as_the_natural_one(rng):
    """S⁻¹ = I + τ (Λ − I), by the form that Adam moves and by natural parameters."""
    P, M, weight = 3, 4, 0.4
    q = LogCholesky(rng.normal(size=(P, M)), 0.3 * rng.normal(size=(P, M, M)) - 0.5 * np.eye(M))
    Lam = np.linalg.inv(np.asarray(unpack_doubled(posterior_of_log_cholesky(*q).S, M)))
    expected = posterior_of(with_full_kl(Natural(q.m, pack(Lam)), weight))
    gp = SimpleNamespace(bias=np.zeros(P))
    state = State(SimpleNamespace(gp=gp), q, None, None, None)
    ours = trained_posterior(finalise(state, weight))
    np.testing.assert_allclose(ours.S, expected.S, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.logdet, expected.logdet, rtol=1e-8)
    np.testing.assert_array_equal(ours.m, q.m)
    assert finalise(state, 1.0) is state


# --- a mixture as prior ---


@pytest.mark.parametrize("optimizer", ["natural", "adam"])
def test_groups_start_after_the_first_plateau_and_move_by_their_own_steps_alone(world, optimizer, monkeypatch):
    """Two thirds of the epochs at N(0, I), which Adam leaves as it is; then a mixture, updated after every epoch."""
    priors = []

    def recording(spec, state, *args):
        after, n, steps = run_epoch(spec, state, *args)
        priors.append((state.model.prior, after.model.prior, training.average(steps).groups))
        return after, n, steps

    monkeypatch.setattr(training, "run_epoch", recording)
    start = init_model(0, replace(SETTINGS, n_groups=2), world.schema, world.layout, world.values, world.seen)
    schedule = Schedule(max_epochs=6, batch_size=BATCH, optimizer=optimizer)
    run = train(world.spec, start, world.data(), schedule, 0)
    assert len(run.epochs) == 6
    for before, after, rows in priors:
        assert as_bytes(before) == as_bytes(after)
        assert rows.n_rows.sum() == pytest.approx(N, rel=1e-5)
    assert [as_bytes(before) == as_bytes(start.prior) for before, _, _ in priors] == [True] * 4 + [False] * 2
    expected = by_weight(update_prior(priors[-1][2], np.float32))
    assert as_bytes(run.model.prior) == as_bytes(expected)
    at_once = evaluate(world.spec, run, world.data(), 16)
    assert float(run.bound.kl_x) == pytest.approx(float(at_once.kl_x), rel=1e-4)


def test_groups_start_at_the_plateau_and_training_reaches_a_second_one(world):
    start = init_model(0, replace(SETTINGS, n_groups=2), world.schema, world.layout, world.values, world.seen)
    run = train(world.spec, start, world.data(), Schedule(max_epochs=500, batch_size=BATCH, tol=1e9), 0)
    assert (run.stopped, len(run.epochs)) == ("plateau", 3 * WINDOW + 4 * WINDOW)
