"""The evidence lower bound of a batch, in named parts."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Bool, Float, Int, Key

from plurigp.core.arrays import Array, Scalar
from plurigp.inference.encoder import PositionSums, position_sums
from plurigp.inference.gp.sparse import Posterior, kl_u, moments
from plurigp.inference.model import Model, encode, project_rows
from plurigp.inference.parallel import drawn_for_own_rows
from plurigp.inference.prior import GroupStatistics, group_statistics, kl_to_prior
from plurigp.likelihoods.evaluate import Sampler, expected_log_probs, weigh_columns
from plurigp.likelihoods.layout import Layout
from plurigp.likelihoods.rules import Rule


@dataclass(frozen=True)
class BoundSpec:
    """What stays fixed in a training run (hashable: one compilation per spec and shape)."""

    layout: Layout
    rules: tuple[Rule, ...]
    kl_weight: float = 1.0  # η: 1 is the ELBO, more pulls positions towards the prior
    n_draws: int = 1  # N_x
    sampling: bool = False  # E over f by draws instead of quadrature
    hiding: float = 0.0  # up to this share of a row's cells is hidden from the encoder, though not from the bound
    n_shared: int = 0  # functions, the last ones, whose q(v) share a basis in training
    quick: bool = False  # so few cells that a step is compiled for longer than it runs
    mesh: Mesh | None = None  # devices over which the rows of a batch are spread


class Batch(NamedTuple):
    """Rows of the table in block order; `real` is False for padding, `weight` = number of batches ≈ N/B.

    Of a weighted table, `row_weights` have mean one over all its rows, and `weight` is times their mean.
    """

    values: Float[Array, "B V"]
    seen: Bool[Array, "B D"]
    rows: Int[Array, " B"]
    real: Bool[Array, " B"]
    weight: Scalar
    row_weights: Float[Array, " B"] | None = None

    @property
    def row_counts(self) -> Float[Array, " B"]:
        """How much each row counts in the bound; padding does not."""
        counts = self.weight * self.real
        return counts if self.row_weights is None else counts * self.row_weights


class Bound(NamedTuple):
    """The parts; expected_log_prob has one entry per block, in the layout's order."""

    expected_log_prob: tuple[Scalar, ...]
    kl_x: Scalar
    kl_u: Scalar

    @property
    def total(self) -> Any:
        return sum(self.expected_log_prob) - self.kl_x - self.kl_u


class Perturbation(NamedTuple):
    """Zeros added to the moments of f, so that a gradient by them is ∂bound/∂f_mean and ∂bound/∂f_var."""

    f_mean: Float[Array, "P S"]
    f_var: Float[Array, "P S"]


class Trace(NamedTuple):
    """What natural gradients, the check for a collapsed map and a mixture as prior need from inside the bound."""

    A: Float[Array, "M S"]
    f_mean: Float[Array, "P S"]
    positions: PositionSums
    jitter: Scalar
    groups: GroupStatistics | None  # of a mixture, weighted like the bound's parts


def no_perturbation(spec: BoundSpec, n_rows: int, dtype: jnp.dtype) -> Perturbation:
    """Zeros for a batch of n_rows."""
    shape = (spec.layout.n_functions, spec.n_draws * n_rows)
    return Perturbation(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype))


def _kept(key: Key[Array, ""], spec: BoundSpec, shape: tuple[int, ...]) -> Bool[Array, "B D"]:
    """False at random, for each row in a share of its own between zero and `hiding`."""
    k_row, k_cell = jax.random.split(jax.random.fold_in(key, 1))

    def even(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "B _"]:
        return drawn_for_own_rows(spec.mesh, lambda shape: jax.random.uniform(key, shape, jnp.float32), shape, 0)

    return even(k_cell, shape) >= spec.hiding * even(k_row, (shape[0], 1))


def _normals(key: Key[Array, ""], shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, "S B Q"]:
    """Standard normals by their quantile function, in a loop over two halves: XLA keeps a loop's result, and would
    compute anything else again in every fused loop that reads it."""
    n = math.prod(shape)
    above = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype))
    even = jax.random.uniform(key, (2, (n + 1) // 2), dtype, above, 1)
    return jax.lax.map(lambda half: math.sqrt(2) * jax.lax.erf_inv(half), even).reshape(-1)[:n].reshape(shape)


def _sampler(spec: BoundSpec, key: Key[Array, ""], dtype: Any) -> Sampler:
    """Standard normals for every block, rows last."""

    def normals(block: int, shape: tuple[int, ...]) -> Float[Array, "C J H B"]:
        own = jax.random.fold_in(key, block)
        return drawn_for_own_rows(spec.mesh, lambda shape: jax.random.normal(own, shape, dtype), shape, 3)

    return normals


def _row_sum(terms: Float[Array, "S ..."], row_weights: Float[Array, " B"] | None) -> Scalar:
    """Σ_n w_n Σ terms of row n, over all draws."""
    if row_weights is None:
        return terms.sum()
    return (terms.reshape(-1, len(row_weights), terms[0].size).sum((0, 2)) * row_weights).sum()


def bound(
    spec: BoundSpec,
    model: Model,
    q: Posterior,
    batch: Batch,
    key: Key[Array, ""],
    perturbation: Perturbation | None = None,
) -> tuple[Bound, Trace]:
    """(N/B) Σ_n w_n [ Σ_d w_d o_nd E log p(y_nd|f) − η KL(q(x_n)‖p) ] − Σ_p KL(q(v_p)‖p), E over x by draws.

    Over several devices, the sums are over the rows of this one.
    """
    shown = batch.seen & _kept(key, spec, batch.seen.shape) if spec.hiding else batch.seen
    qx = encode(model, spec.layout, batch.values, shown, batch.rows)
    shape, dtype = (spec.n_draws, *qx.mean.shape), qx.mean.dtype
    noise = drawn_for_own_rows(spec.mesh, lambda shape: _normals(key, shape, dtype), shape, 1)
    x = qx.at(noise).reshape(-1, qx.mean.shape[1])  # [S Q], S = n_draws · B
    rows = project_rows(model, spec.layout, x, batch.values)
    f_mean, f_var = moments(model.gp, q, rows)
    if perturbation is not None:
        f_mean, f_var = f_mean + perturbation.f_mean, f_var + perturbation.f_var
    values, seen = (jnp.tile(part, (spec.n_draws, 1)) for part in (batch.values, batch.seen & batch.real[:, None]))
    normals = _sampler(spec, jax.random.fold_in(key, 2), dtype) if spec.sampling else None
    cells = expected_log_probs(spec.layout, model.thetas, values, seen, f_mean, f_var, spec.rules, normals)
    weighed = weigh_columns(spec.layout, cells)
    fit = tuple(batch.weight * _row_sum(block, batch.row_weights) / spec.n_draws for block in weighed)
    kl = _row_sum(jnp.where(batch.real, kl_to_prior(model.prior, qx), 0), batch.row_weights)
    kl_rows = batch.weight * spec.kl_weight * kl
    groups = None if model.prior is None else group_statistics(model.prior, qx, batch.row_counts)
    return Bound(fit, kl_rows, kl_u(q)), Trace(rows.A, f_mean, position_sums(qx, batch.real), rows.jitter, groups)
