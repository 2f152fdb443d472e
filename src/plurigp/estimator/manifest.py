"""What the manifest of a saved model must hold: types, ranges and sizes, checked before anything is built from it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plurigp.answers.pit import KNOTS
from plurigp.core.forms import (
    Form,
    FormError,
    choice_form,
    either_form,
    list_form,
    mapping_form,
    number_form,
    optional_form,
    record_form,
    text_form,
    truth_form,
    whole_form,
)
from plurigp.data import Coder, Schema
from plurigp.data.column import MAX_MISSING, MAX_MISSING_TEXT
from plurigp.estimator.parameters import CHOICES, MAX_QUADRATURE, check_parameters
from plurigp.inference.encoder import ENCODERS
from plurigp.inference.gp.kernels import parse_kernel
from plurigp.inference.model import Settings
from plurigp.likelihoods.evaluate import Thetas, cell_log_probs, column_starts, covariate_features, encoder_features
from plurigp.likelihoods.layout import Layout

MAX_COUNT = 2**31 - 1
MAX_SIZE = 100_000  # latent dimensions, inducing points, groups
LAYOUTS_KEPT = 64  # whose densities were traced: half of the time of loading a small model goes there
NAME, SHORT = text_form(10_000), text_form(1000)
COUNT, SIZE, SHARE = whole_form(1, MAX_COUNT), whole_form(1, MAX_SIZE), number_form(0.0, 1.0)
LEVEL = either_form(truth_form, text_form(), number_form())
QUADRATURE = whole_form(1, MAX_QUADRATURE)

COLUMN = record_form(
    {"name": NAME, "kind": SHORT},
    {
        "reason": text_form(),
        "levels": list_form(LEVEL, 1_000_000),
        "trials": optional_form(either_form(COUNT, NAME)),
        "bounds": optional_form(list_form(number_form(), length=2)),
        "upper": optional_form(NAME),
        "event": optional_form(NAME),
        "other": optional_form(NAME),
        "dtype": SHORT,
        "weight": number_form(0.0, above=True),
        "covariate": truth_form,
        "missing": list_form(either_form(text_form(MAX_MISSING_TEXT), number_form()), MAX_MISSING),
    },
)
SCHEMA = record_form({"columns": list_form(COLUMN, 1_000_000)})
NUMBERS, SCALES = list_form(number_form()), list_form(number_form(0.0, above=True))
UNITS = {"schema": SCHEMA, "shift": NUMBERS, "scale": SCALES, "squeeze": list_form(number_form(0.0))}
CODER = record_form(UNITS, {"covariates": record_form(UNITS)})
PARAMS = {
    "n_components": either_form(SIZE, choice_form("auto")), "n_groups": SIZE, "n_inducing": SIZE, "kernel": SHORT,
    "hiding": either_form(SHARE, choice_form("auto")), "refine": truth_form,
    "calibrate": truth_form, "kl_weight": number_form(0.0), "kl_covariance_weight": SHARE,
    "n_quadrature": optional_form(either_form(mapping_form(QUADRATURE, 1000), QUADRATURE)),
    "pool_rare_levels": whole_form(0, MAX_COUNT),
    "n_shards": COUNT,
    "batch_size": COUNT, "max_epochs": optional_form(COUNT), "tol": number_form(0.0), "n_init": COUNT,
    "learning_rate": number_form(0.0), "device": optional_form(SHORT),
    "random_state": optional_form(whole_form(0, 2**32 - 1)), "verbose": either_form(truth_form, whole_form(0, 1000)),
    "column_weights": optional_form(mapping_form(number_form(0.0, above=True), 1_000_000)),
    "views": optional_form(mapping_form(list_form(NAME, 1_000_000), 100_000)),
    "covariates": optional_form(list_form(NAME, 1_000_000)),
    **{name: choice_form(*known) for name, known in CHOICES.items()},
}  # fmt: skip
SETTINGS: dict[str, Form] = {
    "n_components": SIZE, "n_inducing": SIZE, "kernel": SHORT, "encoder": choice_form(*ENCODERS), "n_hidden": SIZE,
    "start": choice_form(*CHOICES["start"]), "lengthscale": number_form(0.0, above=True),
}  # fmt: skip


def _history(value: Any, place: str) -> None:
    """A list of columns, each a name and its numbers, all equally long."""
    list_form(list_form(lambda *_: None, length=2), 1000)(value, place)
    n_epochs = None
    for number, (name, numbers) in enumerate(value):
        NAME(name, f"{place}[{number}][0]")
        list_form(number_form(), length=n_epochs)(numbers, f"{place}[{number}][1]")
        n_epochs = len(numbers)


MANIFEST_FORM = record_form(
    {
        "format": whole_form(1, MAX_COUNT),
        "plurigp": SHORT,
        "jax": SHORT,
        "params": record_form({}, PARAMS),  # older models lack the newer ones
        "schema_declared": truth_form,
        "settings": record_form(SETTINGS, {"n_groups": SIZE}),
        "coder": CODER,
        "feature_names_in": list_form(NAME, 1_000_000),
        "n_features_in": COUNT,
        "elbo": number_form(),
        "stopped": SHORT,
        "history": _history,
        "arrays_sha256": text_form(64),
    },
    {"families": mapping_form(SHORT, 1000)},
)


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Every field by its form, then what fields say of each other."""
    MANIFEST_FORM(manifest, "")
    for place in ("params", "settings"):
        _named(place, parse_kernel, manifest[place].get("kernel", "rbf"))
    if manifest["feature_names_in"] and len(manifest["feature_names_in"]) != manifest["n_features_in"]:
        raise FormError("field 'feature_names_in' must name n_features_in columns")


def checked_coder(manifest: Mapping[str, Any], defaults: Mapping[str, Any]) -> Coder:
    """The coder, once schema, parameters and features agree with each other."""
    coder: Coder = _named("coder", Coder.from_dict, manifest["coder"])
    _named("params", check_parameters, {**defaults, **manifest["params"]})
    names = manifest["feature_names_in"]
    same = len(coder.schema) == manifest["n_features_in"] and (not names or list(coder.schema.names) == names)
    if not coder.schema.used or not same:
        raise FormError("field 'coder.schema.columns' must hold the columns of 'feature_names_in', some of them used")
    return coder


def _named(place: str, build: Any, *given: Any) -> Any:
    """What is built of a field; what the builder refuses is an error of that field."""
    try:
        return build(*given)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise FormError(f"field {place!r}: {error}") from None


# --- arrays ---


def check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    """Every number is finite: one that is not would spread into every answer."""
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise FormError(f"array {name!r} holds numbers that are not finite")


def axis_lengths(settings: Settings, layout: Layout, n_indicators: int) -> dict[str, int]:
    """The lengths that the named axes of a model's arrays must have."""
    Q, M, P = settings.n_components, settings.n_inducing, layout.n_functions
    E, given = _n_features(layout), {}
    if layout.covariates is not None:
        given = {"L": _n_covariate_features(layout), "covariates": len(layout.covariates.order)}
    G = M + given.get("L", 0)  # of the basis: inducing points and covariates
    sizes = given | {"Q": Q, "M": M, "G": G, "P": P, "O": P, "T": G * (G + 1) // 2, "E": E}
    sizes["I"] = E + n_indicators + given.get("L", 0)  # what the networks read
    return sizes | {"parts": len(parse_kernel(settings.kernel)), "K": settings.n_groups}


@lru_cache(LAYOUTS_KEPT)
def _n_features(layout: Layout) -> int:
    return int(jax.eval_shape(lambda values: encoder_features(layout, values), _one_row(layout)).shape[1])


@lru_cache(LAYOUTS_KEPT)
def _n_covariate_features(layout: Layout) -> int:
    return int(jax.eval_shape(lambda values: covariate_features(layout, values), _one_row(layout)).shape[1])


def _one_row(layout: Layout) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((1, layout.n_slots), jnp.float32)


def check_thetas(thetas: Thetas, schema: Schema, layout: Layout) -> None:
    """Names and shapes of the likelihoods' own parameters, as the start of a fit to this schema has them."""
    V, D = layout.n_slots, len(layout.order)
    known = column_starts(schema, layout, np.zeros((1, V)), np.zeros((1, D), bool))[1]
    for number, (own, start) in enumerate(zip(thetas, known, strict=True)):
        for name, array in own.items():
            if name not in start or array.shape != start[name].shape or array.dtype.kind != "f":
                raise FormError(f"array 'theta.{number}.{name}' does not fit the columns of the schema")
    shapes = tuple(tuple(sorted((name, array.shape) for name, array in own.items())) for own in thetas)
    if (missing := _missing_parameter(layout, shapes)) is not None:
        raise FormError(f"an array 'theta.….{missing}' is missing")


@lru_cache(LAYOUTS_KEPT)
def _missing_parameter(layout: Layout, shapes: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]) -> str | None:
    """The first parameter that a density asks for and the blocks, with arrays of these shapes, do not have."""
    thetas: Thetas = tuple({name: np.zeros(shape) for name, shape in own} for own in shapes)
    f = jax.ShapeDtypeStruct((layout.n_functions,), jnp.float32)
    try:
        jax.eval_shape(lambda values, f: cell_log_probs(layout, thetas, values, f), _one_row(layout), f)
    except KeyError as error:
        return str(error.args[0])
    return None


def check_pit_maps(maps: np.ndarray, layout: Layout) -> None:
    """A rising map per column."""
    if maps.shape != (len(layout.order), len(KNOTS)) or not (np.diff(maps) > 0).all():
        raise FormError("the PIT maps are not a rising map per column")
