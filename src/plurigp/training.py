"""The loop: natural gradients for q(v), Adam for the rest, batch by batch; optax lives here only."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float, Int, Key

from plurigp.arrays import Array, Scalar
from plurigp.bound import Batch, Bound, BoundSpec, Nudge, bound, no_nudge
from plurigp.data import batches
from plurigp.gp.sparse import Natural, Posterior, natural_step, posterior_of, posterior_of_root, prior, prior_posterior
from plurigp.model import Model

STEEPEST = 50.0  # gradients per row are cut to this norm: one wild batch must not fill Adam's memory
ADAM = optax.flatten(  # one vector: one kernel to compile instead of one per leaf
    optax.chain(optax.clip_by_global_norm(STEEPEST), optax.scale_by_adam())
)
WARM = 5  # epochs over which Adam's rate rises from zero: q(v) settles first, so that the start is not thrown away
WINDOW = 10  # epochs over which the bound is smoothed before a plateau is looked for
COOLING = 0.2  # share of the epochs spent letting both step sizes fall to COOLED of their value
COOLED = 0.03
CALMEST = 1e-3  # how far step sizes are cut when epochs fail, before training gives up
FINAL_DRAWS = 4  # draws of x per row for the final bound
REFRESH = 4  # at most this many batches share one factorisation of q(v); never more than an epoch


@dataclass(frozen=True)
class Schedule:
    """How long and how fast. `tol`: nats per observed cell that WINDOW epochs must gain for training to go on."""

    max_epochs: int = 300
    batch_size: int = 500
    learning_rate: float = 0.01
    natural_rate: float = 0.3
    tol: float = 3e-4
    optimizer: str = "natural"


class Root(NamedTuple):
    """q(v) in the form that Adam moves: mean and log-Cholesky root of S."""

    m: Float[Array, "P M"]
    root: Float[Array, "P M M"]


class State(NamedTuple):
    """All that changes in training."""

    model: Model
    q: Natural | Root
    now: Posterior | None  # q as mean and covariance at the last refresh; Adam on everything needs none
    adam: Any
    step: Int[Array, ""]


class Data(NamedTuple):
    """The training table in block order, on the device."""

    values: Float[Array, "N V"]
    seen: Bool[Array, "N D"]


class Epoch(NamedTuple):
    """One epoch: the bound's parts averaged over its batches, and the smallest sd of the encoded means."""

    bound: Bound
    spread: Float[Array, " Q"]
    jitter: Scalar


class Trained(NamedTuple):
    """A finished run."""

    model: Model
    q: Posterior
    bound: Bound  # of the whole table, at the final parameters
    epochs: list[Epoch]
    stopped: str  # "plateau" or "max_epochs"


def start_state(model: Model, n_inducing: int, optimizer: str) -> State:
    """q(v) at its prior and fresh Adam moments."""
    dtype = model.gp.bias.dtype
    natural = prior(len(model.gp.bias), n_inducing, dtype)
    if optimizer == "natural":
        return State(model, natural, prior_posterior(natural), ADAM.init(model), jnp.asarray(0))
    q = Root(natural.lam, jnp.zeros_like(natural.Lam))
    return State(model, q, None, ADAM.init((model, q)), jnp.asarray(0))


def posterior(q: Natural | Root) -> Posterior:
    """q(v) as mean and packed covariance."""
    return posterior_of(q) if isinstance(q, Natural) else posterior_of_root(q.m, q.root)


class Rates(NamedTuple):
    """Step sizes of an epoch, and how cautious the natural steps are."""

    learning: Scalar
    natural: Scalar
    caution: Scalar


def _adam(tree: Any, gradient: Any, adam: Any, rate: Scalar, weight: Scalar) -> tuple[Any, Any]:
    """Ascend; the gradient is brought to the scale of one row, so Adam's ε means the same for every table."""
    ascent, adam = ADAM.update(jax.tree.map(lambda g: g * weight, gradient), adam)
    return optax.apply_updates(tree, jax.tree.map(lambda u: (rate * u).astype(u.dtype), ascent)), adam


def natural_train_step(spec: BoundSpec, state: State, batch: Batch, key: Array, rates: Rates) -> tuple[State, Epoch]:
    """One gradient of the bound by (model, nudge): the model's part feeds Adam, the nudge's part q(v)."""
    q, natural = state.now, state.q
    assert q is not None
    assert isinstance(natural, Natural)

    def objective(model: Model, nudge: Nudge) -> tuple[Scalar, tuple[Bound, Any]]:
        parts, trace = bound(spec, model, q, batch, key, nudge)
        return parts.total, (parts, trace)

    nudge = no_nudge(spec, len(batch.values), batch.values.dtype)
    slopes, (parts, trace) = jax.grad(objective, argnums=(0, 1), has_aux=True)(state.model, nudge)
    natural = natural_step(
        state.model.gp,
        natural,
        trace.A,
        trace.f_mean,
        slopes[1].f_mean,
        slopes[1].f_var,
        rates.natural,
        rates.caution,
    )
    per_row = 1 / (batch.weight * len(batch.values))
    model, adam = _adam(state.model, slopes[0], state.adam, rates.learning, per_row)
    return State(model, natural, state.now, adam, state.step + 1), Epoch(parts, trace.spread, trace.jitter)


def adam_train_step(spec: BoundSpec, state: State, batch: Batch, key: Array, rates: Rates) -> tuple[State, Epoch]:
    """Adam on everything, q(v) included: the paper's way."""

    def objective(tree: tuple[Model, Root]) -> tuple[Scalar, tuple[Bound, Any]]:
        model, q = tree
        parts, trace = bound(spec, model, posterior_of_root(*q), batch, key)
        return parts.total, (parts, trace)

    slopes, (parts, trace) = jax.grad(objective, has_aux=True)((state.model, state.q))
    per_row = 1 / (batch.weight * len(batch.values))
    (model, q), adam = _adam((state.model, state.q), slopes, state.adam, rates.learning, per_row)
    return State(model, q, None, adam, state.step + 1), Epoch(parts, trace.spread, trace.jitter)


def batch_of(data: Data, rows: Int[Array, " B"], real: Bool[Array, " B"], n_batches: int) -> Batch:
    """The rows of a batch; every batch stands for n_batches times its rows, so that their average is the bound."""
    weight = jnp.asarray(n_batches, data.values.dtype)
    return Batch(data.values[rows], data.seen[rows], rows, real, weight)


@partial(jax.jit, static_argnames=("spec",))
def run_epoch(
    spec: BoundSpec,
    state: State,
    data: Data,
    rows: Int[Array, "K B"],
    real: Bool[Array, "K B"],
    key: Key[Array, ""],
    rates: Rates,
) -> tuple[State, Epoch]:
    """One pass over all batches, compiled once per spec and shape."""
    train_step = natural_train_step if isinstance(state.q, Natural) else adam_train_step
    refresh = min(REFRESH, len(rows))

    def body(state: State, rows_real: tuple[Array, Array]) -> tuple[State, Epoch]:
        if isinstance(state.q, Natural):
            due = state.step % refresh == 0
            state = state._replace(now=jax.lax.cond(due, posterior_of, lambda _: state.now, state.q))
        batch = batch_of(data, *rows_real, len(rows))
        return train_step(spec, state, batch, jax.random.fold_in(key, state.step), rates)

    state, steps = jax.lax.scan(body, state, (rows, real))
    return state, jax.tree.map(lambda leaf: leaf.mean(0), steps)


@dataclass
class Plateau:
    """Decides when the main phase ends and how far the cooling after it has come."""

    schedule: Schedule
    n_cells: int
    totals: list[float] = field(default_factory=list)
    cooling_from: int | None = None
    cooling_until: int | None = None

    def add(self, total: float) -> None:
        self.totals.append(total)
        done, longest = len(self.totals), self.schedule.max_epochs
        if self.cooling_from is None and (done >= (1 - COOLING) * longest or self._flat()):
            self.cooling_from = done
            self.cooling_until = min(longest, done + max(WINDOW, round(COOLING / (1 - COOLING) * done)))

    def _flat(self) -> bool:
        if len(self.totals) < 3 * WINDOW:
            return False
        late, early = np.mean(self.totals[-WINDOW:]), np.mean(self.totals[-2 * WINDOW : -WINDOW])
        return bool(late - early < self.schedule.tol * self.n_cells)

    @property
    def factor(self) -> float:
        """What both step sizes are multiplied with in the coming epoch."""
        if self.cooling_from is None or self.cooling_until is None:
            return 1.0
        share = (len(self.totals) - self.cooling_from) / max(self.cooling_until - self.cooling_from, 1)
        return float(COOLED**share)

    @property
    def finished(self) -> bool:
        return self.cooling_until is not None and len(self.totals) >= self.cooling_until


def _rates(schedule: Schedule, n_done: int, factor: float, dtype: Any) -> Rates:
    """Adam warms up while the natural steps are cautious; after WARM epochs both are themselves."""
    warm = min(n_done / WARM, 1.0)
    return Rates(
        jnp.asarray(schedule.learning_rate * factor * warm, dtype),
        jnp.asarray(schedule.natural_rate * factor, dtype),
        jnp.asarray(1.0 - warm, dtype),
    )


def train(
    spec: BoundSpec,
    model: Model,
    data: Data,
    schedule: Schedule,
    seed: int,
    on_epoch: Callable[[int, Epoch], None] | None = None,
) -> Trained:
    """Train until the plateau and its cooling are over. Same seed, machine and versions give the same bytes."""
    n_rows = len(data.values)
    state = start_state(model, len(model.gp.Z), schedule.optimizer)
    plateau = Plateau(schedule, max(int(data.seen.sum()), 1))
    rng = np.random.default_rng([seed, 1])
    key = jax.random.fold_in(jax.random.key(seed), 2)
    epochs: list[Epoch] = []
    calm = 1.0
    while not plateau.finished:
        rows, real = batches(n_rows, schedule.batch_size, rng)
        rates = _rates(schedule, len(epochs), calm * plateau.factor, data.values.dtype)
        after, epoch = run_epoch(spec, state, data, jnp.asarray(rows), jnp.asarray(real), key, rates)
        epoch = jax.tree.map(np.asarray, epoch)
        if not np.isfinite(epoch.bound.total):  # forget this epoch and go on more calmly
            calm *= 0.3
            if calm < CALMEST:
                raise FloatingPointError(
                    f"the bound is not finite in epoch {len(epochs) + 1} (jitter {float(epoch.jitter):.1e}), "
                    "however small the steps; try dtype='float64', or check the columns for extreme values"
                )
            continue
        state = after
        epochs.append(epoch)
        plateau.add(float(epoch.bound.total))
        if on_epoch is not None:
            on_epoch(len(epochs), epoch)
    stopped = "max_epochs" if len(epochs) >= schedule.max_epochs else "plateau"
    q, final = _settle(spec, state, data, schedule, key)
    return Trained(state.model, q, final, epochs, stopped)


def _settle(
    spec: BoundSpec, state: State, data: Data, schedule: Schedule, key: Key[Array, ""]
) -> tuple[Posterior, Bound]:
    """q(v) at its last refresh and the bound, by epochs that take no step: nothing new has to be compiled."""
    still = Rates(*(jnp.zeros((), data.values.dtype) for _ in Rates._fields))
    rows, real = (jnp.asarray(a) for a in batches(len(data.values), schedule.batch_size, np.random.default_rng(0)))
    state = state._replace(step=jnp.zeros_like(state.step))
    bounds = []
    for n in range(FINAL_DRAWS):
        after, epoch = run_epoch(spec, state, data, rows, real, jax.random.fold_in(key, n), still)
        bounds.append(epoch.bound)
    q = posterior(state.q) if after.now is None else after.now
    return q, jax.tree.map(lambda *parts: np.mean(parts, dtype=np.float64), *bounds)


@partial(jax.jit, static_argnames=("spec",))
def _evaluate_batch(spec: BoundSpec, model: Model, q: Posterior, batch: Batch, key: Array) -> Bound:
    return bound(spec, model, q, batch, key)[0]


def evaluate(
    spec: BoundSpec, model: Model, q: Posterior, data: Data, batch_size: int, seed: int, n_draws: int = 4
) -> Bound:
    """The full-table bound at fixed parameters, averaged over batches, with more draws of x than training takes."""
    rows, real = batches(len(data.values), batch_size, np.random.default_rng(seed))
    key = jax.random.fold_in(jax.random.key(seed), 3)
    spec = replace(spec, n_draws=n_draws)
    parts = [
        _evaluate_batch(
            spec, model, q, batch_of(data, jnp.asarray(r), jnp.asarray(k), len(rows)), jax.random.fold_in(key, n)
        )
        for n, (r, k) in enumerate(zip(rows, real, strict=True))
    ]
    return jax.tree.map(lambda *leaves: np.mean(leaves), *parts)
