"""The training loop: epochs of steps until the bound no longer rises, then a cooldown."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import Batch, Bound, BoundSpec
from plurigp.inference.compiling import Program
from plurigp.inference.divergence import raise_diverged
from plurigp.inference.gp.sparse import Posterior
from plurigp.inference.model import Model, encode
from plurigp.inference.parallel import on_every_device
from plurigp.inference.prior import MixturePrior, by_weight, start_prior, update_prior
from plurigp.inference.schedule import Plateau, Rates, Schedule, before_groups, rates_of
from plurigp.inference.snapshots import Snapshot
from plurigp.inference.steps import (
    EpochMetrics,
    State,
    compile_training,
    finalise,
    refresh,
    start_state,
    train_step,
    trained_posterior,
)

MIN_STEP_FACTOR = 1e-3  # how far step sizes are cut when epochs fail, before training gives up
FINAL_DRAWS = 4  # draws of x per row for the final bound; fewer above FINAL_ROWS rows, for the same precision
FINAL_ROWS = 5_000
REFRESH_EVERY = 8  # so many steps share one factorisation of q(v)
IN_FLIGHT = 32  # steps queued at once: an interrupt waits for those that are
MAX_STEPS_AHEAD = 8  # of an epoch that is queued before the last one's numbers are known
GROUP_ROWS = 5_000  # rows, at most, that a mixture as prior starts from
EAGER_STEPS = 100  # first steps, during warm-up, that each refactorise q(v): Λ grows fast


class Trained(NamedTuple):
    """A finished run."""

    model: Model
    q: Posterior
    bound: Bound  # of the whole table, at the final parameters
    epochs: list[EpochMetrics]
    stopped: str  # "plateau" or "max_epochs"


def run_epoch(
    spec: BoundSpec, state: State, epoch: Iterable[Batch], seed: int, first_step: int, rates: Rates
) -> tuple[State, int, list[EpochMetrics]]:
    """One pass over all batches; the number of the next step, and the parts of every step.

    Steps are queued one behind the other and may still be running: `average` waits for them.
    """
    steps, is_cautious = [], rates.caution > 0
    numbers = on_every_device(
        spec.mesh, (np.asarray(seed, np.int64), rates)
    )  # once, since it takes as long as a small array's sum
    for n, batch in enumerate(epoch):
        at = first_step + n
        if state.posterior is None or at % REFRESH_EVERY == 0 or (at < EAGER_STEPS and is_cautious):
            state = refresh(state, rates.kl_covariance_weight)
        state, step = train_step(spec, state, batch, numbers[0], at, numbers[1])
        steps.append(step)
        if n % IN_FLIGHT == IN_FLIGHT - 1:
            jax.block_until_ready(step)
    return state, first_step + len(steps), steps


def average(steps: list[Any]) -> Any:
    """Over the batches of an epoch, on the host."""
    return jax.tree.map(lambda *leaves: sum(np.asarray(leaf, float) for leaf in leaves) / len(leaves), *steps)


class QueuedEpoch(NamedTuple):
    """An epoch whose steps may still be running, and where the run stands after it."""

    rates: Rates
    state: State
    n_steps: int
    steps: list[EpochMetrics]
    rng: dict[str, Any]


@dataclass
class Loop:
    """A training run: what it works on, where it stands, and what is behind it."""

    spec: BoundSpec
    data: TrainingTable
    schedule: Schedule
    seed: int
    state: State
    on_epoch: Callable[[int, EpochMetrics], None] | None = None
    epochs: list[EpochMetrics] = field(default_factory=list)
    n_steps: int = 0
    step_factor: float = 1.0
    phase_start: int = 0
    has_groups: bool = False
    on_snapshot: Callable[[Snapshot], None] | None = None

    def __post_init__(self) -> None:
        self.rng = dict(np.random.default_rng([self.seed, 1]).bit_generator.state)  # of what shuffles the rows
        self.n_cells = max(float(self.data.count_cells().sum()), 1)
        n_batches = -(-self.data.n_rows // self.schedule.batch_size)
        self.runs_ahead = n_batches <= MAX_STEPS_AHEAD and self.spec.mesh is None

    def snapshot(self) -> Snapshot:
        """Where the run stands, between two epochs."""
        progress = (self.n_steps, self.step_factor, self.phase_start, self.has_groups)
        return Snapshot(self.state, tuple(self.epochs), *progress, self.rng)

    def restore(self, snapshot: Snapshot) -> None:
        """Stand where the run stood when the snapshot was taken."""
        self.state, self.epochs = on_every_device(self.spec.mesh, snapshot.state), list(snapshot.epochs)
        self.n_steps, self.step_factor = snapshot.n_steps, snapshot.step_factor
        self.phase_start, self.has_groups = snapshot.phase_start, snapshot.has_groups
        self.rng = snapshot.rng

    def until(self, ended: Callable[[Plateau], bool], max_epochs: int) -> None:
        """Epochs until a plateau has ended in this sense, or there are so many of them in all.

        Of a short epoch, the next one is queued before this one's numbers are read, so that the device does not wait
        for the host; if they say otherwise, it has not happened.
        """
        plateau, ahead = self._plateau(), None
        while not ended(plateau) and len(self.epochs) < max_epochs:
            queued = self._queue(plateau.factor(), ahead)
            more = self.runs_ahead and not self.has_groups and len(self.epochs) + 1 < max_epochs
            ahead = self._queue_behind(queued, plateau.factor(1)) if more else None
            epoch = self._settle(queued)
            if epoch is None:
                ahead = None
                continue
            if self.has_groups and epoch.groups is not None:
                self.set_prior(update_prior(epoch.groups, self.data.values.dtype))
            self.epochs.append(epoch)
            plateau.add(float(epoch.bound.total))
            if self.on_snapshot is not None:
                self.on_snapshot(self.snapshot())
            if self.on_epoch is not None:
                self.on_epoch(len(self.epochs), epoch)

    def _plateau(self) -> Plateau:
        """Of the present phase, with the epochs that a resumed run has behind it."""
        left = replace(self.schedule, max_epochs=self.schedule.max_epochs - self.phase_start)
        plateau = Plateau(left, self.n_cells)
        for epoch in self.epochs[self.phase_start :]:
            plateau.add(float(epoch.bound.total))
        return plateau

    def _queue(self, factor: float, ahead: QueuedEpoch | None) -> QueuedEpoch:
        """The coming pass over the table: the one that was queued ahead, if its step sizes have turned out right."""
        rates = rates_of(self.schedule, len(self.epochs), self.step_factor * factor, self.data.values.dtype)
        if ahead is not None and ahead.rates == rates:
            return ahead
        return self._run(rates, self.state, self.n_steps, self.rng)

    def _queue_behind(self, queued: QueuedEpoch, factor: float) -> QueuedEpoch:
        """The pass after that one, as it will be if nothing comes between."""
        rates = rates_of(self.schedule, len(self.epochs) + 1, self.step_factor * factor, self.data.values.dtype)
        return self._run(rates, queued.state, queued.n_steps, queued.rng)

    def _run(self, rates: Rates, state: State, n_steps: int, rng_state: dict[str, Any]) -> QueuedEpoch:
        rng = np.random.default_rng(0)
        rng.bit_generator.state = rng_state
        rows = self.data.epoch(self.schedule.batch_size, rng)
        after, n_steps, steps = run_epoch(self.spec, state, rows, self.seed, n_steps, rates)
        return QueuedEpoch(rates, after, n_steps, steps, dict(rng.bit_generator.state))

    def _settle(self, queued: QueuedEpoch) -> EpochMetrics | None:
        """The epoch's numbers; None if it failed, and then it has not happened and the next steps are smaller."""
        epoch = average(queued.steps)
        self.n_steps, self.rng = queued.n_steps, queued.rng  # draws that failed are not drawn again
        # The bound is that of the parameters before the last step, which may have been the one that failed.
        if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((epoch.bound.total, queued.state.model))):
            self.state = queued.state
            return epoch
        self.step_factor *= 0.3
        if self.step_factor < MIN_STEP_FACTOR:
            raise_diverged(self.spec, self.state, self.data, len(self.epochs) + 1, float(epoch.jitter))
        return None

    def start_groups(self, n_groups: int) -> None:
        """The first mixture, from where the encoder has put the rows, or some of them."""
        sample = self.data.sample
        chosen = np.sort(np.random.default_rng([self.seed, 2]).permutation(len(sample.rows))[:GROUP_ROWS])
        values, seen, rows = (part[chosen] for part in sample)
        q = _encode(self.state.model, self.spec.layout, values, seen, rows)
        self.set_prior(start_prior(q, n_groups, self.seed, values.dtype))
        self.phase_start, self.has_groups = len(self.epochs), True

    def set_prior(self, prior: MixturePrior) -> None:
        """Put a mixture in the place of the present one."""
        prior = on_every_device(self.spec.mesh, prior)
        self.state = self.state._replace(model=replace(self.state.model, prior=prior))


_encode = Program(encode, static_argnames=("layout",))


def train(
    spec: BoundSpec,
    model: Model,
    data: TrainingTable,
    schedule: Schedule,
    seed: int,
    on_epoch: Callable[[int, EpochMetrics], None] | None = None,
    resumed: Snapshot | None = None,
    on_snapshot: Callable[[Snapshot], None] | None = None,
) -> Trained:
    """Train until the plateau and its cooling are over. Same seed, machine and versions give the same bytes, also where
    the run goes on from a snapshot of itself.

    A mixture is N(0, I) until a first plateau, so that the map finds the groups; then it is learned with the map.
    """
    start = start_state(spec, model, schedule.optimizer)
    loop = Loop(spec, data, schedule, seed, start, on_epoch, on_snapshot=on_snapshot)
    if resumed is not None:
        loop.restore(resumed)
    first = next(data.epoch(schedule.batch_size, np.random.default_rng(0)))
    compile_training(spec, loop.state, first, rates_of(schedule, 0, 1.0, data.values.dtype))
    if model.prior is not None and not loop.has_groups:
        loop.until(lambda plateau: plateau.reached, before_groups(schedule))
        loop.start_groups(model.prior.n_groups)
    loop.until(lambda plateau: plateau.finished, schedule.max_epochs)
    if loop.state.model.prior is not None:
        loop.set_prior(by_weight(loop.state.model.prior))
    stopped = "max_epochs" if len(loop.epochs) >= schedule.max_epochs else "plateau"
    q, final = _final(spec, loop.state, data, schedule, seed)
    return Trained(loop.state.model, q, final, loop.epochs, stopped)


def _final(
    spec: BoundSpec, state: State, data: TrainingTable, schedule: Schedule, seed: int
) -> tuple[Posterior, Bound]:
    """q(v) factorised a last time, and the bound by steps of size zero: nothing new has to be compiled."""
    dtype = data.values.dtype
    still = Rates(*(np.zeros((), dtype) for _ in Rates._fields))._replace(kl_covariance_weight=np.ones((), dtype))
    state = on_every_device(spec.mesh, finalise(state, schedule.kl_covariance_weight))
    number, still = on_every_device(spec.mesh, (np.asarray(seed, np.int64), still))
    bounds: list[Bound] = []
    for n in range(max(1, min(FINAL_DRAWS, FINAL_DRAWS * FINAL_ROWS // data.n_rows))):
        for batch in data.epoch(schedule.batch_size, np.random.default_rng(n)):
            bounds.append(train_step(spec, state, batch, number, -1 - len(bounds), still)[1].bound)
    return trained_posterior(state), average(bounds)
