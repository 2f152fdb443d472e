"""Saved models: one safetensors file and one JSON manifest, both hashed and versioned. No pickle."""

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict
from numbers import Integral
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax
import numpy as np
from jaxtyping import jaxtyped
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import plurigp
from plurigp.answers.pit import KNOTS, identity_maps
from plurigp.core.files import whole_file
from plurigp.core.text import jsonable
from plurigp.core.types import DataError
from plurigp.data import Coder
from plurigp.estimator.fitting import FittedModel, as_history
from plurigp.estimator.saved_stage import stage_arrays, stage_from_arrays
from plurigp.inference.encoder import Encoder, FactorEncoder, FreeRows
from plurigp.inference.gp.kernels import Kernel, parse_kernel
from plurigp.inference.gp.sparse import Posterior, SparseGP
from plurigp.inference.model import Model, Settings
from plurigp.inference.prior import MixturePrior
from plurigp.likelihoods.evaluate import Thetas
from plurigp.likelihoods.layout import Layout, make_layout
from plurigp.likelihoods.registry import outside_modules

MODEL_FORMAT = 1
ARRAYS, MANIFEST = "model.safetensors", "model.json"
PIT_MAPS, INDICATOR_COLUMNS = "gaps.rank_maps", "encoder.watched"  # as first saved


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, ensure_ascii=True, allow_nan=False).encode()


def write_model(folder: str | Path, arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> Path:
    """Write both files, complete or not at all; an existing model in the folder is replaced."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; a model is saved into a folder of its own")
    others = [path for path in folder.glob("*") if not path.name.endswith(".part")]  # parts: of a save that was killed
    if others and not (folder / MANIFEST).exists():
        raise DataError(f"{folder}: holds other files and no model; choose an empty or a new folder")
    tensors = save_tensors({name: np.ascontiguousarray(a) for name, a in sorted(arrays.items())})
    body = {"format": MODEL_FORMAT, **manifest, "arrays_sha256": _digest(tensors)}
    text = json.dumps({**body, "manifest_sha256": _digest(_canonical(body))}, indent=1, sort_keys=True)
    folder.mkdir(parents=True, exist_ok=True)
    # The manifest takes its place first: a save that is killed between the two leaves a folder that can be saved to.
    with whole_file(folder / ARRAYS) as arrays_file, whole_file(folder / MANIFEST) as manifest_file:
        arrays_file.write_bytes(tensors)
        manifest_file.write_text(text + "\n", encoding="utf-8")
    return folder


def read_model(folder: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read and verify both files; every way they can be broken is named."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such model folder; give the folder that save() or `plurigp fit --out` wrote")
    for name in (MANIFEST, ARRAYS):
        if not (folder / name).is_file():
            raise DataError(f"{folder}: {name} is missing, so this is not a complete model; save it again")
    body = _read_manifest(folder / MANIFEST)
    tensors = (folder / ARRAYS).read_bytes()
    if body.get("arrays_sha256") != _digest(tensors):
        raise DataError(f"{folder / ARRAYS}: was changed or cut short (its hash differs); save the model again")
    try:
        return load_tensors(tensors), body
    except SafetensorError:
        raise DataError(f"{folder / ARRAYS}: is not a safetensors file; save the model again") from None


MAX_MANIFEST_BYTES = 50_000_000  # names and levels of a wide table take a few


def _read_manifest(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise DataError(
            f"{path}: is larger than {MAX_MANIFEST_BYTES // 10**6} MB and no plurigp manifest; save it again"
        )
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        body = {k: v for k, v in manifest.items() if k != "manifest_sha256"}
        stated, version = manifest["manifest_sha256"], int(body["format"])
        held = _digest(_canonical(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: is not a plurigp manifest; save the model again") from None
    if version > MODEL_FORMAT:
        raise DataError(f"{path}: format {version} is newer than this plurigp reads ({MODEL_FORMAT}); upgrade plurigp")
    if stated != held:
        raise DataError(f"{path}: was changed after saving (its hash differs); save the model again")
    return body


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


def load_fitted(arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> FittedModel:
    """The fitted model that was saved."""
    coder, settings = Coder.from_dict(manifest["coder"]), Settings(**manifest["settings"])
    layout = make_layout(coder.schema)
    maps = arrays.get(PIT_MAPS, identity_maps(len(layout.order)))  # older models have none
    if maps.shape != (len(layout.order), len(KNOTS)) or not (np.diff(maps) > 0).all():
        raise DataError(f"the saved model's array {PIT_MAPS!r} is not a PIT map per column; save the model again")
    model, q = model_from_arrays(arrays, settings, layout)
    history = as_history(dict(manifest["history"]))
    stage, elbo = stage_from_arrays(arrays, len(layout.order)), float(manifest["elbo"])
    return FittedModel(coder, settings, model, q, maps, elbo, str(manifest["stopped"]), history, stage)


def model_arrays(model: Model, q: Posterior) -> dict[str, np.ndarray]:
    """Every array of a trained model under its path in the model, such as "encoder.net_mean.w1"."""
    tree = {"encoder": model.encoder, "gp": model.gp, "theta": model.thetas, "prior": model.prior, "q": q}
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
            raise DataError(f"the saved model has no array {name!r}; save the model again")
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
    read = {} if make is FreeRows else {"indicator_columns": tuple(map(int, take(INDICATOR_COLUMNS)))}
    encoder = build(make, "encoder", **read)
    gp = build(SparseGP, "gp", kernel=build(Kernel, "gp.kernel", parts=parse_kernel(settings.kernel)))
    thetas: Thetas = tuple(
        {name.split(".")[2]: value for name, value in arrays.items() if name.startswith(f"theta.{number}.")}
        for number in range(len(layout.blocks))
    )
    prior = build(MixturePrior, "prior") if settings.n_groups > 1 else None
    q = build(Posterior, "q")
    with jaxtyped("context"):  # remembers the length of every named axis
        for name, annotation in annotations.items():
            if not isinstance(arrays[name], get_args(annotation)):
                found = f"array {name!r} ({'×'.join(map(str, arrays[name].shape))})"
                raise DataError(f"the saved model's {found} does not fit the others; save the model again")
    return Model(encoder, gp, thetas, prior), q
