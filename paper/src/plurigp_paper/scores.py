"""Three scores of held-out rows: the paper's reconstruction, hidden cells, and density; each by the model's own
likelihoods or, for a Gaussian taken for levels, by the mass on the level."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float

from plurigp.answers.latent import PRIOR_DRAWS, latent, log_weights, propose
from plurigp.answers.predictor import Predictor, standard_draws
from plurigp.core.arrays import Array
from plurigp.estimator import PluriGP
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.encoder import LatentNormal
from plurigp.inference.gp.sparse import moments, project
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.layout import Block, Layout, arrange, rules_of
from plurigp.likelihoods.rules import gauss_hermite
from plurigp_paper.families import Mass, NoiseModel, tied

DRAWS = 20  # of x for every row; the last PRIOR_DRAWS come from the prior
NODES = 20  # of the expectation of a log mass
Groups = Mapping[str, str]  # column -> the group it is reported in


@dataclass(frozen=True, eq=False)
class Scorer:
    """A trained model with the likelihoods its cells are scored by, and those by which seen cells weigh draws of x."""

    predictor: Predictor
    weighting: Predictor
    log_units: np.ndarray  # [D] log d raw / d coded


def own_scorer(model: PluriGP) -> Scorer:
    """The model's own likelihoods, in the columns' own units."""
    own = _narrow(model.predictor_)
    return Scorer(own, own, model.coder_.log_units)


def mass_scorer(model: PluriGP, noise: NoiseModel, n_levels: int) -> Scorer:
    """A Gaussian-for-all model whose first n_levels columns are levels 0 and 1: those are scored by mass."""
    predictor, coder = model.predictor_, model.coder_
    (block,), (theta,) = predictor.layout.blocks, predictor.model.thetas
    assert predictor.layout.order == tuple(range(block.n_columns))
    log_sd = np.asarray((tied(theta) if noise.shared else theta)["log_sd"])
    cut = (0.5 - coder.shift) / coder.scale
    like = Mass(noise).likelihood()
    parts = (_part(block, 0, n_levels, like), _part(block, n_levels, block.n_columns, block.likelihood))
    layout = Layout(parts, predictor.layout.order, predictor.layout.slot_order)
    thetas = ({"log_sd": log_sd[:n_levels], "cut": cut[:n_levels]}, {"log_sd": log_sd[n_levels:]})
    rules = (gauss_hermite(NODES), *predictor.rules)
    judged = Predictor(eqx.tree_at(lambda m: m.thetas, predictor.model, thetas), predictor.q, layout, rules)
    units = np.where(np.arange(block.n_columns) < n_levels, 0.0, coder.log_units)
    return Scorer(_narrow(judged), _narrow(predictor), units)


def _part(block: Block, first: int, last: int, like: Any) -> Block:
    """Columns first … last of a block of one value and one function per column."""
    return Block(like, (first, last), (first, last), (first, last), (1,) * (last - first))


def exact_scorer(model: PluriGP, kinds: Mapping[str, Any]) -> Scorer:
    """The model's parameters with other likelihoods by kind, at their own numbers of quadrature points."""
    predictor = model.predictor_
    swapped = tuple(
        Block(kinds.get(b.likelihood.kind, b.likelihood), b.columns, b.slots, b.functions, b.n_functions)
        for b in predictor.layout.blocks
    )
    layout = Layout(swapped, predictor.layout.order, predictor.layout.slot_order)
    judged = _narrow(Predictor(predictor.model, predictor.q, layout, rules_of(layout, None)))
    return Scorer(judged, judged, model.coder_.log_units)


def _narrow(predictor: Predictor) -> Predictor:
    """float32 is enough for a score and takes half the time."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), predictor)


# --- the sums over draws of x ---


@jax.jit
def _whole_rows(
    p: Predictor, values: Array, seen: Array, chosen: Array, qx: LatentNormal, noise: Array
) -> tuple[Float[Array, "B D"], Float[Array, " B"], Float[Array, " B"]]:
    """E_q(x) E_q(f|x) log p(y|f) of every cell; log p of the row's seen cells; the same of the `chosen` columns."""
    proposals = propose(p.model.prior, qx, noise)

    def one_draw(x: Array) -> tuple[Array, Array, Array]:
        f = moments(p.model.gp, p.q, project(p.model.gp, x))
        expected = evaluate.expected_log_probs(p.layout, p.model.thetas, values, seen, *f, p.rules)
        cells = evaluate.predictive_log_probs(p.layout, p.model.thetas, values, seen, *f, p.rules)
        return jnp.concatenate(expected, 1), cells.sum(1), jnp.where(chosen, cells, 0).sum(1)

    expected, rows, some = jax.lax.map(one_draw, proposals.x)

    def density(log_probs: Array) -> Array:
        return jax.nn.logsumexp(log_probs + proposals.log_ratio, axis=0) - np.log(len(noise))

    return expected[: len(noise) - PRIOR_DRAWS].mean(0), density(rows), density(some)


@jax.jit
def _hidden_cells(
    p: Predictor, scorer: Predictor, truth: Array, known: Array, seen: Array, qx: LatentNormal, noise: Array
) -> Float[Array, "B D"]:
    """log Σ_s w_s p(y_d|x_s): the weights by the model itself from the seen cells, the cells by the scorer."""
    proposals = propose(p.model.prior, qx, noise)

    def one_draw(x: Array) -> tuple[Array, Array]:
        f = moments(p.model.gp, p.q, project(p.model.gp, x))
        own = evaluate.predictive_log_probs(p.layout, p.model.thetas, truth, seen, *f, p.rules)
        cells = evaluate.predictive_log_probs(scorer.layout, scorer.model.thetas, truth, known, *f, scorer.rules)
        return own.sum(1), cells

    rows, cells = jax.lax.map(one_draw, proposals.x)
    weights = log_weights(proposals.log_ratio, rows)
    return jax.nn.logsumexp(weights[:, :, None] + cells, axis=0)


def score(
    model: PluriGP, truth: pd.DataFrame, shown: pd.DataFrame, groups: Groups, scorer: Scorer | None = None
) -> dict[str, dict[str, float]]:
    """All three scores of held-out rows by group of columns, in the columns' own units.

    reconstruction: nats per row, the paper's; cells: nats per cell that `shown` hides; density: nats per row, of all
    columns and of those in the group "real" alone.
    """
    scorer = scorer or own_scorer(model)
    noise = standard_draws(DRAWS, scorer.predictor.n_components).astype(np.float32)
    tables = [model.coder_.table(frame) for frame in (truth, shown)]
    qx = [_as_float32(latent(model.predictor_, table)) for table in tables]
    layout = scorer.predictor.layout
    (values, known), (_, seen) = (arrange(layout, table) for table in tables)
    values = values.astype(np.float32)
    order = list(layout.order)
    names = [column.name for column in model.schema_.used]
    group = np.array([groups[names[d]] for d in order])
    units = scorer.log_units[order]
    with jax_runtime():
        expected, rows, some = (
            np.asarray(part, float)
            for part in _whole_rows(scorer.predictor, values, known, group == "real", qx[0], noise)
        )
        cells = np.asarray(_hidden_cells(scorer.weighting, scorer.predictor, values, known, seen, qx[1], noise), float)
    hidden = known & ~seen
    in_units = np.where(known, expected - units, 0)
    return {
        "reconstruction": {g: float(in_units[:, group == g].sum(1).mean()) for g in np.unique(group)},
        "cells": {g: float((cells - units)[hidden & (group == g)].mean()) for g in np.unique(group)},
        "hidden": {g: int((hidden & (group == g)).sum()) for g in np.unique(group)},
        "density": {
            "all": float((rows - known @ units).mean()),
            "real": float((some - (known & (group == "real")) @ units).mean()),
        },
    }


def _as_float32(q: LatentNormal) -> LatentNormal:
    return LatentNormal(*(np.asarray(part, np.float32) for part in q))
