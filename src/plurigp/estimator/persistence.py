"""Saved models: one safetensors file and one JSON manifest, both hashed and versioned. No pickle."""

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, jaxtyped

import plurigp
from plurigp.answers.pit import identity_maps
from plurigp.core.files import whole_file
from plurigp.core.forms import FormError
from plurigp.core.sealed import (
    CHANGED,
    DamagedError,
    digest,
    packed_arrays,
    read_sealed_json,
    sealed_json,
    unpacked_arrays,
)
from plurigp.core.text import jsonable
from plurigp.core.types import DataError
from plurigp.data import Coder
from plurigp.estimator.fitting import FittedModel, as_history
from plurigp.estimator.manifest import axis_lengths, check_arrays, check_manifest, check_pit_maps, check_thetas
from plurigp.estimator.saved_stage import stage_arrays, stage_from_arrays
from plurigp.inference.encoder import Encoder, FactorEncoder, FreeRows
from plurigp.inference.gp.kernels import parse_kernel
from plurigp.inference.gp.sparse import Posterior, SparseGP
from plurigp.inference.model import Covariates, Model, Settings
from plurigp.inference.prior import MixturePrior
from plurigp.likelihoods.evaluate import Thetas
from plurigp.likelihoods.layout import Layout, make_layout
from plurigp.likelihoods.registry import outside_modules

MODEL_FORMAT = 1
ARRAYS, MANIFEST = "model.safetensors", "model.json"
LEFT_BY_A_KILL = re.compile(r"\..*\.part|model-[0-9a-f]{16}\.safetensors")
HEX = re.compile("[0-9a-f]{64}")
MANIFEST_SEAL = "manifest_sha256"
MAX_MANIFEST_BYTES = 50_000_000  # names and levels of a wide table take a few
REMEDY = "save the model again"
PIT_MAPS, INDICATOR_COLUMNS = "gaps.rank_maps", "encoder.watched"  # as first saved


def _pending(arrays_sha256: str) -> str:
    """The name of arrays whose manifest has not yet, or just now, taken its place; never a path."""
    return f"model-{arrays_sha256[:16]}.safetensors" if HEX.fullmatch(arrays_sha256) else ARRAYS


def write_model(folder: str | Path, arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> Path:
    """Write both files, complete or not at all; an existing model in the folder is replaced in one step.

    The arrays are written under a name with their hash, then the manifest takes its place: from that moment on the
    folder holds the new model, and until then the old one, whatever happens. Renaming the arrays comes after.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; a model is saved into a folder of its own")
    others = [path for path in folder.glob("*") if not LEFT_BY_A_KILL.fullmatch(path.name)]
    if others and not (folder / MANIFEST).exists():
        raise DataError(f"{folder}: holds other files and no model; choose an empty or a new folder")
    tensors = packed_arrays(arrays)
    sha256 = digest(tensors)
    text = sealed_json({"format": MODEL_FORMAT, **manifest, "arrays_sha256": sha256}, MANIFEST_SEAL)
    pending = folder / _pending(sha256)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(pending) as arrays_file:
        arrays_file.write_bytes(tensors)
    with whole_file(folder / MANIFEST) as manifest_file:
        manifest_file.write_text(text, encoding="utf-8")
    os.replace(pending, folder / ARRAYS)
    for left in folder.iterdir():
        if LEFT_BY_A_KILL.fullmatch(left.name):
            left.unlink()
    return folder


def read_model(folder: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read and verify both files; every way they can be broken is named."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such model folder; give the folder that save() or `plurigp fit --out` wrote")
    if not (folder / MANIFEST).is_file():
        raise DataError(f"{folder}: {MANIFEST} is missing, so this is not a complete model; save it again")
    body = read_sealed_json(folder / MANIFEST, MODEL_FORMAT, REMEDY, MANIFEST_SEAL, MAX_MANIFEST_BYTES)
    with naming(folder / MANIFEST):
        check_manifest(body)
    pending = folder / _pending(body["arrays_sha256"])  # of a save that was killed before its last step
    arrays_file = pending if pending.is_file() else folder / ARRAYS
    if not arrays_file.is_file():
        raise DataError(f"{folder}: {ARRAYS} is missing, so this is not a complete model; save it again")
    with naming(folder / ARRAYS):
        tensors = arrays_file.read_bytes()
        if body["arrays_sha256"] != digest(tensors):
            raise DamagedError(CHANGED)
        arrays = unpacked_arrays(tensors)
        check_arrays(arrays)
    return arrays, body


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What a file holds and should not becomes an error that names the file."""
    try:
        yield
    except (DamagedError, FormError) as error:
        raise DataError(f"{path}: {error}; {REMEDY}") from None


# --- a fitted model as named arrays and a manifest ---


def save_fitted(folder: str | Path, fitted: FittedModel, params: dict[str, Any], features: Collection[object]) -> Path:
    """Write a fitted model; `params` are PluriGP's, `features` the table's columns: names, or else numbers."""
    seed = params["random_state"] if isinstance(params["random_state"], Integral) else None  # a generator is not kept
    manifest = {
        "plurigp": plurigp.__version__,
        "jax": jax.__version__,
        "params": jsonable(
            {**{name: value for name, value in params.items() if name != "schema"}, "random_state": seed}
        ),
        "schema_declared": params["schema"] is not None,
        "settings": asdict(fitted.settings),
        "coder": fitted.coder.to_dict(),
        "families": outside_modules(c.kind for c in fitted.coder.schema.used),
        "feature_names_in": [name for name in features if isinstance(name, str)],
        "n_features_in": len(features),
        "elbo": fitted.elbo,
        "stopped": fitted.stopped,
        "history": [[name, column.tolist()] for name, column in fitted.history.items()],
    }
    arrays = model_arrays(fitted.model, fitted.q) | stage_arrays(fitted.second_stage) | {PIT_MAPS: fitted.pit_maps}
    return write_model(folder, arrays, manifest)


def load_fitted(coder: Coder, arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> FittedModel:
    """The fitted model that was saved, whose coder is made already."""
    settings = Settings(**manifest["settings"])
    layout = make_layout(coder.schema)
    maps = arrays.get(PIT_MAPS, identity_maps(len(layout.order)))  # older models have none
    check_pit_maps(maps, layout)
    model, q = model_from_arrays(arrays, settings, layout)
    check_thetas(model.thetas, coder.schema, layout)
    history = as_history(dict(manifest["history"]))
    stage, elbo = stage_from_arrays(arrays, layout), float(manifest["elbo"])
    return FittedModel(coder, settings, model, q, maps, elbo, str(manifest["stopped"]), history, stage)


def model_arrays(model: Model, q: Posterior) -> dict[str, np.ndarray]:
    """Every array of a trained model under its path in the model, such as "encoder.net_mean.w1"."""
    tree: dict[str, Any] = {
        "encoder": model.encoder,
        "gp": model.gp,
        "theta": model.thetas,
        "prior": model.prior,
        "q": q,
    }
    tree |= {} if model.covariates is None else {"covariates": model.covariates}
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}
    if not isinstance(model.encoder, FreeRows):
        named[INDICATOR_COLUMNS] = np.asarray(model.encoder.indicator_columns, np.int32)
    return named


def model_from_arrays(arrays: dict[str, np.ndarray], settings: Settings, layout: Layout) -> tuple[Model, Posterior]:
    """The inverse of `model_arrays`; names, dtypes and shapes are checked before anything is built."""
    make = {"factors": FactorEncoder, "free": FreeRows}.get(settings.encoder, Encoder)
    parts: list[tuple[Any, str]] = [(make, "encoder"), (SparseGP, "gp"), (Posterior, "q")]
    parts += [(MixturePrior, "prior")] if settings.n_groups > 1 else []
    parts += [(Covariates, "covariates")] if layout.covariates is not None else []
    known: dict[str, Any] = {"gp.kernel.parts": parse_kernel(settings.kernel)}
    if make is not FreeRows:
        known["encoder.indicator_columns"] = _indicator_columns(arrays, layout)
        known |= {} if layout.covariates is not None else {"encoder.effects": None}
    lengths = axis_lengths(settings, layout, len(known.get("encoder.indicator_columns", ())))
    with jaxtyped("context"):  # remembers the length of every named axis
        for axis, length in lengths.items():
            isinstance(np.broadcast_to(0.0, length), Float[np.ndarray, axis])  # type: ignore[arg-type]  # binds the axis
        for name, annotation in chain.from_iterable(_array_fields(*part) for part in parts):
            if name in known:
                continue
            if name not in arrays:
                raise FormError(f"array {name!r} is missing")
            if not isinstance(arrays[name], get_args(annotation)):
                shape = "×".join(map(str, arrays[name].shape))
                raise FormError(f"array {name!r} ({shape}) does not fit the others")
    built = {path: _built(made, path, arrays | known) for made, path in parts}
    thetas: Thetas = tuple(
        {name.split(".")[2]: value for name, value in arrays.items() if name.startswith(f"theta.{number}.")}
        for number in range(len(layout.blocks))
    )
    if strange := [name for name, value in arrays.items() if name.startswith("theta.") and value.dtype.kind != "f"]:
        raise FormError(f"array {strange[0]!r} does not hold floating-point numbers")
    return Model(built["encoder"], built["gp"], thetas, built.get("prior"), built.get("covariates")), built["q"]


def _own_fields(make: Any) -> dict[str, Any]:
    """Fields and their annotations; those of a named tuple that have a default are None in a trained model."""
    optional = getattr(make, "_field_defaults", {})
    return {field: annotation for field, annotation in make.__annotations__.items() if field not in optional}


def _is_module(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, eqx.Module)


def _array_fields(make: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The array of every field of a module or named tuple and of the modules in it, and its annotation."""
    for field, annotation in _own_fields(make).items():
        name = f"{path}.{field}"
        yield from _array_fields(annotation, name) if _is_module(annotation) else [(name, annotation)]


def _built(make: Any, path: str, values: dict[str, Any]) -> Any:
    fields = {field: (annotation, f"{path}.{field}") for field, annotation in _own_fields(make).items()}
    return make(**{f: _built(a, name, values) if _is_module(a) else values[name] for f, (a, name) in fields.items()})


def _indicator_columns(arrays: dict[str, np.ndarray], layout: Layout) -> tuple[int, ...]:
    if INDICATOR_COLUMNS not in arrays:
        raise FormError(f"array {INDICATOR_COLUMNS!r} is missing")
    saved = arrays[INDICATOR_COLUMNS]
    columns = tuple(map(int, saved.ravel()))
    if saved.ndim != 1 or saved.dtype.kind != "i" or not set(columns) <= set(range(len(layout.order))):
        raise FormError(f"array {INDICATOR_COLUMNS!r} does not number columns of the schema")
    return columns
