"""One step of training: natural gradients for q(v), Adam for the rest; what it starts from and what it leaves."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Float, Int

from plurigp.core.arrays import Array, Scalar
from plurigp.inference.bound import Batch, Bound, BoundSpec, Perturbation, Trace, bound, no_perturbation
from plurigp.inference.compiling import Program, compile_in_background, program
from plurigp.inference.gp import sparse
from plurigp.inference.gp.linalg import inverse_root, pack, unpack_doubled
from plurigp.inference.gp.sparse import LogCholesky, MomentGradients, Natural, Posterior, SharedBasis
from plurigp.inference.model import Model
from plurigp.inference.parallel import (
    ROWS,
    SAME,
    n_devices,
    on_every_device,
    on_own_rows,
    shapes_on_every_device,
    total,
    wait_for_processes,
)
from plurigp.inference.prior import GroupStatistics
from plurigp.inference.schedule import Rates

MAX_GRAD_NORM = 50.0  # of the batch gradient per row, clipped: one extreme batch must not fill Adam's memory
ADAM = optax.chain(optax.clip_by_global_norm(MAX_GRAD_NORM), optax.scale_by_adam())


class State(NamedTuple):
    """All that changes in training."""

    model: Model
    q: Natural | LogCholesky
    shared: SharedBasis | None  # the functions that share a basis, if any
    posterior: Posterior | None  # the current mean and the covariance of the last refresh; Adam on everything has none
    adam: Any


class EpochMetrics(NamedTuple):
    """A step, or the average over an epoch's steps: the bound's parts, the sd of the encoded means, the jitter, and
    what the rows tell a mixture as prior, if there is one."""

    bound: Bound
    spread: Float[Array, " Q"]
    jitter: Scalar
    groups: GroupStatistics | None = None


def start_state(spec: BoundSpec, model: Model, optimizer: str) -> State:
    """q(v) at its prior and fresh Adam moments."""
    dtype, n_basis = model.gp.bias.dtype, model.n_basis
    natural = sparse.prior(spec.layout.n_functions - spec.n_shared, n_basis, dtype)
    if optimizer == "natural":
        shared = sparse.shared_basis_prior(spec.n_shared, n_basis, dtype) if spec.n_shared else None
        return on_every_device(spec.mesh, State(model, natural, shared, None, _no_moments(model)))
    q = LogCholesky(natural.lam, np.zeros((*natural.lam.shape, n_basis), dtype))
    return on_every_device(spec.mesh, State(model, q, None, None, _no_moments((model, q))))


def _no_moments(tree: Any) -> Any:
    """Adam's start is all zeros; made without compiling anything."""
    start = jax.eval_shape(lambda tree: ADAM.init(ravel_pytree(tree)[0]), tree)
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), start)


def _adam(tree: Any, gradient: Any, adam: Any, rate: Scalar, n_rows: Scalar) -> tuple[Any, Any]:
    """Ascend; the gradient is brought to the scale of one row, so Adam's ε means the same for every table.

    All leaves as one vector: one kernel to compile and to run instead of one per leaf.
    """
    flat, as_tree = ravel_pytree(gradient)
    per_row = 1 / n_rows
    ascent, adam = ADAM.update(flat * per_row, adam)
    return jax.tree.map(jnp.add, tree, as_tree(rate * ascent)), adam


def _natural_step(spec: BoundSpec, state: State, batch: Batch, key: Array, rates: Rates) -> tuple[State, EpochMetrics]:
    """One gradient of the bound by (model, perturbation): the model's part feeds Adam, the perturbation's part q(v)."""
    gp, stale, natural, shared = state.model.gp, state.posterior, state.q, state.shared
    assert stale is not None
    assert isinstance(natural, Natural)

    def objective(model: Model, perturbation: Perturbation) -> tuple[Scalar, tuple[Bound, Any]]:
        parts, trace = bound(spec, model, stale, batch, key, perturbation)
        return parts.total, (parts, trace)

    zeros = no_perturbation(spec, len(batch.values), batch.values.dtype)
    (by_model, by_moments), (parts, trace) = jax.grad(objective, (0, 1), has_aux=True)(state.model, zeros)
    by_model, metrics = _over_all_rows(spec, by_model, parts, trace)
    slopes, all_rows = MomentGradients(trace.A, trace.f_mean, *by_moments), partial(total, spec.mesh)
    natural = sparse.natural_step(
        gp, natural, slopes, rates.natural, rates.caution, rates.kl_covariance_weight, all_rows
    )
    if shared is not None:
        weight = jnp.tile(batch.row_counts / spec.n_draws, spec.n_draws).astype(slopes.A.dtype)
        shared = sparse.shared_basis_step(gp, shared, slopes, weight, rates.natural, all_rows)
    model, adam = _adam(state.model, by_model, state.adam, rates.learning, _n_rows(spec, batch))
    q = sparse.update_mean_with_stale_covariance(gp, stale, slopes, rates.natural, all_rows)
    return State(model, natural, shared, q, adam), metrics


def _adam_step(spec: BoundSpec, state: State, batch: Batch, key: Array, rates: Rates) -> tuple[State, EpochMetrics]:
    """Adam on everything, q(v) included, with the objective of the natural steps; the paper's way at weight 1."""
    share = 1 / n_devices(spec.mesh)  # of what is no sum over rows

    def objective(tree: tuple[Model, LogCholesky]) -> tuple[Scalar, tuple[Bound, Any]]:
        model, q = tree
        posterior = sparse.posterior_of_log_cholesky(*q)
        parts, trace = bound(spec, model, posterior, batch, key)
        kl = parts.kl_u - (1 - rates.kl_covariance_weight) * sparse.kl_covariance(posterior)
        return sum(parts.expected_log_prob) - parts.kl_x - share * kl, (parts, trace)

    slopes, (parts, trace) = jax.grad(objective, has_aux=True)((state.model, state.q))
    slopes, metrics = _over_all_rows(spec, slopes, parts, trace)
    (model, q), adam = _adam((state.model, state.q), slopes, state.adam, rates.learning, _n_rows(spec, batch))
    return State(model, q, None, None, adam), metrics


def _n_rows(spec: BoundSpec, batch: Batch) -> Scalar:
    """Of the table, as far as a batch tells."""
    return batch.weight * (len(batch.values) * n_devices(spec.mesh))


def _over_all_rows(spec: BoundSpec, gradient: Any, parts: Bound, trace: Trace) -> tuple[Any, EpochMetrics]:
    """The gradient and the metrics of a whole batch."""
    rows = (gradient, parts.expected_log_prob, parts.kl_x, trace.positions, trace.groups)
    gradient, fit, kl_x, positions, groups = total(spec.mesh, rows)
    return gradient, EpochMetrics(Bound(fit, kl_x, parts.kl_u), positions.spread, trace.jitter, groups)


def _compiled_step(
    spec: BoundSpec, state: State, batch: Batch, seed: Int[Array, ""], step: Int[Array, ""], rates: Rates
) -> tuple[State, Array | None, EpochMetrics]:
    """Of q(v) as mean and covariance only the mean has moved, and only that comes back: the rest would be copied."""
    one_step = _natural_step if isinstance(state.q, Natural) else _adam_step

    def own_rows(
        state: State, batch: Batch, seed: Array, step: Array, rates: Rates
    ) -> tuple[State, Array | None, EpochMetrics]:
        after, metrics = one_step(spec, state, batch, _key(seed, step), rates)
        m = None if after.posterior is None else after.posterior.m
        return after._replace(posterior=None), m, metrics

    by_rows = jax.tree.map(lambda leaf: ROWS if leaf.ndim else SAME, batch)
    return on_own_rows(spec.mesh, own_rows, (SAME, by_rows, SAME, SAME, SAME))(state, batch, seed, step, rates)


_STEPS = {quick: Program(_compiled_step, quick, static_argnames=("spec",)) for quick in (False, True)}


def train_step(
    spec: BoundSpec, state: State, batch: Batch, seed: int | Int[Array, ""], step: int, rates: Rates
) -> tuple[State, EpochMetrics]:
    """One batch; compiled once per spec and shape. `step` is its number since training began."""
    number = np.asarray(seed, np.int64) if isinstance(seed, int) else seed
    after, m, epoch = _STEPS[spec.quick](spec, state, batch, number, np.int32(step), rates)
    return after._replace(posterior=None if state.posterior is None else state.posterior._replace(m=m)), epoch


def _key(seed: Int[Array, ""], step: Int[Array, ""]) -> Array:
    """Of a step's draws: Philox counts from (seed, step) on, which costs less than to hash them into a fresh key."""
    words = jnp.stack([seed, step, jnp.zeros_like(step), jnp.zeros_like(step)]).astype(jnp.uint32)
    return jax.random.wrap_key_data(words, impl="rbg")


@program(quick=True)  # factorisations and products, which XLA does not write itself
def _refreshed(
    q: Natural, shared: SharedBasis | None, log_scale: Float[Array, " P"], kl_covariance_weight: Scalar
) -> Posterior:
    own = sparse.posterior_of(q)
    if shared is None:
        return own
    return sparse.append_shared_basis(own, shared, jnp.exp(log_scale[len(q.lam) :]), kl_covariance_weight)


def refresh(state: State, kl_covariance_weight: Scalar) -> State:
    """q(v) factorised anew."""
    if not isinstance(state.q, Natural):
        return state
    return state._replace(posterior=_refreshed(state.q, state.shared, state.model.gp.log_scale, kl_covariance_weight))


@Program
def _log_cholesky_with_full_kl(q: LogCholesky, kl_covariance_weight: Scalar) -> LogCholesky:
    """That of the S that the full KL gives: S⁻¹ = I + τ (Λ − I) with Λ the inverse of the S that was learned."""
    S = unpack_doubled(sparse.posterior_of_log_cholesky(*q).S, q.m.shape[1])
    R, _ = inverse_root(S)
    full = sparse.posterior_of(sparse.with_full_kl(Natural(q.m, pack(jnp.matmul(R.mT, R))), kl_covariance_weight)).whole
    assert full is not None
    L = jnp.matmul(full, inverse_root(full)[0].mT)  # L Lᵀ = S, so L = S L⁻ᵀ
    log_diagonal = jnp.log(jnp.diagonal(L, axis1=1, axis2=2))
    return LogCholesky(q.m, jnp.tril(L, -1) + log_diagonal[:, :, None] * jnp.eye(L.shape[-1], dtype=L.dtype))


def finalise(state: State, kl_covariance_weight: float) -> State:
    """q(v) factorised a last time, unless Adam moves it: m where training left it, S as the full KL gives it."""
    weight, one = (np.asarray(value, state.model.gp.bias.dtype) for value in (kl_covariance_weight, 1.0))
    if isinstance(state.q, LogCholesky):
        return state if weight == 1 else state._replace(q=_log_cholesky_with_full_kl(state.q, weight))
    learned = Natural(*map(np.asarray, state.q))
    last, wide = refresh(state, weight).posterior, refresh(state._replace(q=sparse.with_full_kl(learned, weight)), one)
    assert last is not None
    assert wide.posterior is not None
    return state._replace(posterior=wide.posterior._replace(m=last.m))


def trained_posterior(state: State) -> Posterior:
    """q(v) with every function's S written out, once and so in NumPy: nothing has to be compiled for it."""
    if isinstance(state.q, LogCholesky):
        return sparse.posterior_of_log_cholesky(*state.q)
    assert state.posterior is not None
    return sparse.expand_shared_basis(jax.tree.map(np.asarray, state.posterior._replace(whole=None)))


def running_shapes(state: State) -> State:
    """The state as every step finds it, with q(v) factorised; that part by its shapes alone."""
    if not isinstance(state.q, Natural):
        return state
    weight = np.ones((), state.model.gp.bias.dtype)
    return state._replace(posterior=jax.eval_shape(_refreshed, state.q, state.shared, state.model.gp.log_scale, weight))


def compile_training(spec: BoundSpec, state: State, batch: Batch, rates: Rates) -> None:
    """Compile the step and the refresh side by side, both ahead of their first call."""
    running = []
    if isinstance(state.q, Natural):
        refreshing = (state.q, state.shared, state.model.gp.log_scale, rates.kl_covariance_weight)
        running.append(compile_in_background((_refreshed, refreshing)))
    running_state = running_shapes(state)
    if running_state.posterior is not None:
        everywhere = shapes_on_every_device(spec.mesh, running_state.posterior)
        running_state = running_state._replace(posterior=everywhere)
    seed, rates = on_every_device(spec.mesh, (np.asarray(0), rates))
    step = (spec, running_state, batch, seed, np.int32(0), rates)
    running.append(compile_in_background((_STEPS[spec.quick], step)))
    for compilation in running:
        compilation.result()
    if spec.mesh is not None:
        wait_for_processes()  # a first step that starts half a minute early finds no peer and fails
