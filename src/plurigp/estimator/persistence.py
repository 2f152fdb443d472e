"""Saved models: one safetensors file and one JSON manifest, both hashed and versioned. No pickle."""

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
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
from plurigp.inference.encoder import Encoder, FactorEncoder, FreeRows
from plurigp.inference.gp.kernels import Kernel, parse_kernel
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
    body = read_sealed_json(folder / MANIFEST, MODEL_FORMAT, REMEDY, MANIFEST_SEAL)
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
    return write_model(folder, model_arrays(fitted.model, fitted.q) | {PIT_MAPS: fitted.pit_maps}, manifest)


def load_fitted(coder: Coder, arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> FittedModel:
    """The fitted model that was saved, whose coder is made already."""
    settings = Settings(**manifest["settings"])
    layout = make_layout(coder.schema)
    maps = arrays.get(PIT_MAPS, identity_maps(len(layout.order)))  # older models have none
    check_pit_maps(maps, layout)
    model, q = model_from_arrays(arrays, settings, layout)
    check_thetas(model.thetas, coder.schema, layout)
    history = as_history(dict(manifest["history"]))
    return FittedModel(coder, settings, model, q, maps, float(manifest["elbo"]), str(manifest["stopped"]), history)


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
    """The inverse of `model_arrays`; axes of one name, such as Q or M, must have one length in all arrays."""
    annotations: dict[str, Any] = {}

    def take(name: str) -> np.ndarray:
        if name not in arrays:
            raise FormError(f"array {name!r} is missing")
        return arrays[name]

    def build(make: Any, path: str, **known: Any) -> Any:
        """A module or named tuple: each field is known, an array of its name, or built in turn."""
        optional = getattr(make, "_field_defaults", {})  # of a named tuple; None in a trained model
        for field, annotation in make.__annotations__.items():
            name = f"{path}.{field}"
            if field in known or field in optional:
                continue
            if isinstance(annotation, type) and issubclass(annotation, eqx.Module):
                known[field] = build(annotation, name)
            else:
                known[field], annotations[name] = take(name), annotation
        return make(**known)

    make = {"factors": FactorEncoder, "free": FreeRows}.get(settings.encoder, Encoder)
    read: dict[str, Any] = {}
    if make is not FreeRows:
        read = {"indicator_columns": _indicator_columns(take(INDICATOR_COLUMNS), layout)}
        read |= {} if layout.covariates is not None else {"effects": None}
    encoder = build(make, "encoder", **read)
    gp = build(SparseGP, "gp", kernel=build(Kernel, "gp.kernel", parts=parse_kernel(settings.kernel)))
    thetas: Thetas = tuple(
        {name.split(".")[2]: value for name, value in arrays.items() if name.startswith(f"theta.{number}.")}
        for number in range(len(layout.blocks))
    )
    prior = build(MixturePrior, "prior") if settings.n_groups > 1 else None
    covariates = None if layout.covariates is None else build(Covariates, "covariates")
    q = build(Posterior, "q")
    lengths = axis_lengths(settings, layout, len(read.get("indicator_columns", ())))
    _check_axes(arrays, annotations, lengths)
    model = Model(encoder, gp, thetas, prior, covariates)
    if q.m.shape[1] != model.n_basis:
        raise FormError("array 'q.m' does not fit 'gp.Z'")
    return model, q


def _check_axes(arrays: dict[str, np.ndarray], annotations: dict[str, Any], lengths: dict[str, int]) -> None:
    """Every array has the axes that its annotation names, and axes of one name have one length."""
    with jaxtyped("context"):  # remembers the length of every named axis
        for axis, length in lengths.items():
            isinstance(np.broadcast_to(0.0, length), Float[np.ndarray, axis])  # type: ignore[arg-type]  # binds the axis
        for name, annotation in annotations.items():
            if not isinstance(arrays[name], get_args(annotation)):
                found = f"array {name!r} ({'×'.join(map(str, arrays[name].shape))})"
                raise FormError(f"{found} does not fit the others")


def _indicator_columns(saved: np.ndarray, layout: Layout) -> tuple[int, ...]:
    columns = tuple(map(int, saved.ravel()))
    if saved.ndim != 1 or saved.dtype.kind != "i" or not set(columns) <= set(range(len(layout.order))):
        raise FormError(f"array {INDICATOR_COLUMNS!r} does not number columns of the schema")
    return columns
