"""A trained model as plain JSON: all that the page's scripts need to answer as `plurigp.answers` does."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from plurigp.answers.latent import N_PROPOSALS, PRIOR_DRAWS
from plurigp.answers.pit import KNOTS
from plurigp.answers.predictor import Predictor, standard_draws
from plurigp.core.text import show
from plurigp.core.types import DataError
from plurigp.data import KINDS, Column
from plurigp.data.numeric import COUNT, NOT_NEGATIVE, POSITIVE, proportion_range
from plurigp.estimator import PluriGP
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.encoder import Encoder, FactorEncoder, Network
from plurigp.inference.gp.kernels import gram
from plurigp.inference.gp.linalg import whitening
from plurigp.likelihoods.families.censored import MEAN_POINTS
from plurigp.likelihoods.families.censored_gamma import PANELS
from plurigp.likelihoods.registry import outside_modules
from plurigp.likelihoods.rules import Rule, gauss_hermite
from plurigp.likelihoods.softmax import COARSE, FINE, Grid

VALUE_DRAWS = 32  # of x, for expected values: as `PluriGP.impute` takes
GAP_DRAWS = 200  # of y per gap, for intervals: as `PluriGP.describe_gaps` takes
DOMAINS = {POSITIVE: "positive", NOT_NEGATIVE: "not negative", COUNT: "count"}


def model_content(model: PluriGP) -> dict[str, Any]:
    """The model for the page; refused where the page could not answer as Python does."""
    predictor = model.predictor_
    encoder = _supported_encoder(model, predictor)
    layout, Q = predictor.layout, predictor.n_components
    return {
        "Q": Q,
        "M": len(predictor.model.gp.Z),
        "P": layout.n_functions,
        "order": list(layout.order),
        "columns": _columns(model, predictor),
        "rules": [_rule(rule) for rule in predictor.rules],
        "grids": {"fine": _grid(FINE), "coarse": _grid(COARSE), "legendre": _points(*PANELS[8])},
        "encoder": _encoder(predictor, encoder),
        "gp": _gp(predictor),
        "prior": _prior(predictor),
        "prior_draws": PRIOR_DRAWS,
        "noise": {"values": packed(standard_draws(VALUE_DRAWS, Q)), "gaps": packed(standard_draws(N_PROPOSALS, Q))},
        "n_gap_draws": GAP_DRAWS,
        "knots": KNOTS.tolist(),
    }


def _supported_encoder(model: PluriGP, predictor: Predictor) -> FactorEncoder | Encoder:
    encoder = predictor.model.encoder
    if not isinstance(encoder, FactorEncoder | Encoder):
        raise DataError(
            "this model has no encoder (encoder='free'), so a page cannot place a new row; fit it again with "
            "encoder='factors'."
        )
    if predictor.refined:
        raise DataError(
            "this model has refine=True and places rows by optimisation, which the page cannot repeat; "
            "load it, call set_params(refine=False) and save it again."
        )
    if predictor.layout.covariates is not None:
        raise DataError(
            f"column {show(model.schema_.covariates[0].name, 80)}: is a covariate, which the page cannot ask for; "
            "fit the model without covariates."
        )
    if predictor.layout.column_weights is not None:
        raise DataError(
            "this model weighs its columns (column_weights, views or weight in the schema), which the page does not; "
            "fit it again without weights."
        )
    for kind, module in outside_modules(column.kind for column in model.schema_.used).items():
        names = [column.name for column in model.schema_.used if column.kind == kind]
        raise DataError(
            f"column {show(names[0], 80)}: kind {kind!r} comes from {module!r}, outside plurigp, and the page has no "
            "script for it; fit the model with the column as another kind, or set it aside."
        )
    return encoder


# --- arrays ---


def packed(array: Any) -> dict[str, Any]:
    """An array in base64, little-endian: whole numbers as they are, others in single precision where that is exact."""
    values = np.asarray(array)
    if values.dtype.kind not in "ui":
        narrow = values.astype(np.float32)
        values = narrow if np.array_equal(narrow.astype(np.float64), values) else values.astype(np.float64)
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return {"dtype": values.dtype.str[1:], "data": base64.b64encode(values.tobytes()).decode()}


def _plain(value: Any) -> Any:
    return np.asarray(value, np.float64).tolist()


# --- columns ---


def _columns(model: PluriGP, predictor: Predictor) -> list[dict[str, Any]]:
    """In the schema's order, each with its place among functions and its family's parameters."""
    found: dict[int, dict[str, Any]] = {}
    for number, block in enumerate(predictor.layout.blocks):
        theta, start = predictor.model.thetas[number], block.functions[0]
        for c, place in enumerate(predictor.layout.order[slice(*block.columns)]):
            end = start + block.n_functions[c]
            own = {name: _plain(value)[c] for name, value in theta.items()}
            found[place] = _column(model, place) | {
                "rule": number, "width": block.width, "functions": [start, end], "theta": own,
            }  # fmt: skip
            start = end
    return [found[place] for place in sorted(found)]


def _column(model: PluriGP, place: int) -> dict[str, Any]:
    coder, column = model.coder_, model.schema_.used[place]
    kind, G = KINDS[column.kind], np.asarray(model.pit_maps_[place], float)
    return {
        "name": column.name,
        "kind": kind.name,
        "label": kind.label,
        "coding": kind.code.__name__,
        "decoding": kind.decode.__name__,
        "domain": None if kind.domain is None else DOMAINS[kind.domain],
        "has_bounds": kind.has_bounds,
        "yes_or_no": kind.yes_or_no,
        "positive": kind.positive,
        "stand_in": list(kind.stand_in),
        "units": {name: float(getattr(coder, name)[place]) for name in ("shift", "scale", "squeeze")},
        "levels": list(column.levels) or None,
        "trials": column.trials,
        "range": _range(column),
        "event": column.event,
        "whole": column.dtype.lower().startswith(("int", "uint")),
        "pit_map": None if np.array_equal(G, KNOTS) else G.tolist(),
    }


def _range(column: Column) -> list[float] | None:
    return list(proportion_range(column)) if "bounds" in KINDS[column.kind].settings else None


# --- rules ---


def _points(points: Any, weights: Any) -> dict[str, Any]:
    return {"points": _plain(points), "weights": _plain(weights)}


def _rule(rule: Rule) -> dict[str, Any]:
    """With the short rule by which families with bounds take their means."""
    short = gauss_hermite(min(len(rule.points), MEAN_POINTS))
    own = _points(rule.points, rule.weights)
    return own | {"adaptive": rule.adaptive, "short": _points(short.points, short.weights)}


def _grid(grid: Grid) -> dict[str, Any]:
    return {"rule": _points(grid.rule.points, grid.rule.weights), "n_points": grid.n_points}


# --- encoder, decoder, prior ---


def _network(network: Network) -> dict[str, Any]:
    return {name: packed(getattr(network, name)) for name in ("w1", "b1", "w2", "b2")}


def _encoder(predictor: Predictor, encoder: FactorEncoder | Encoder) -> dict[str, Any]:
    parts = ("loadings", "log_precision") if isinstance(encoder, FactorEncoder) else ("linear", "offset")
    arrays = {name: packed(getattr(encoder, name)) for name in ("shift", "scale", *parts)}
    return {
        "type": "factors" if isinstance(encoder, FactorEncoder) else "networks",
        "indicators": [predictor.layout.order[column] for column in encoder.indicator_columns],
        "net_mean": _network(encoder.net_mean),
        "net_sd": _network(encoder.net_sd),
        **arrays,
    }


def _gp(predictor: Predictor) -> dict[str, Any]:
    """The kernel, and W = Lz⁻¹, so that the page needs no factorisation of k(Z, Z)."""
    gp, q = predictor.model.gp, predictor.q
    with jax_runtime():
        W = np.asarray(whitening(gram(gp.kernel, gp.Z, gp.Z))[0])
    n_parts = len(gp.kernel.parts)
    return {
        "parts": list(gp.kernel.parts),
        "lengthscales": packed(np.exp(gp.kernel.log_lengthscales)),
        "weights": packed(np.exp(gp.kernel.log_weights) if n_parts > 1 else np.ones(n_parts)),
        "Z": packed(gp.Z),
        "W": packed(W),
        "bias": packed(gp.bias),
        "scale": packed(np.exp(gp.log_scale)),
        "m": packed(q.m),
        "S": packed(q.S),
    }


def _prior(predictor: Predictor) -> Mapping[str, Any] | None:
    prior = predictor.model.prior
    return None if prior is None else {name: packed(getattr(prior, name)) for name in ("log_weights", "means", "roots")}
