"""Saved models: one safetensors file and one JSON manifest, both hashed and versioned. No pickle."""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from plurigp.core.types import DataError
from plurigp.inference.encoder import Encoder, FactorEncoder, FreeRows, Network
from plurigp.inference.gp.kernels import Kernel, parse_kernel
from plurigp.inference.gp.sparse import Posterior, SparseGP
from plurigp.inference.model import Model, Settings
from plurigp.likelihoods.evaluate import Thetas
from plurigp.likelihoods.layout import Layout

FORMAT = 1
ARRAYS, MANIFEST = "model.safetensors", "model.json"
RANK_MAPS = "gaps.rank_maps"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, ensure_ascii=True, allow_nan=False).encode()


def write_model(folder: str | Path, arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> Path:
    """Write both files into a fresh folder, complete or not at all; an existing model there is replaced."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file; a model is saved into a folder of its own")
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        raise DataError(f"{folder}: holds other files and no model; choose an empty or a new folder")
    tensors = save_tensors({name: np.ascontiguousarray(a) for name, a in sorted(arrays.items())})
    body = {"format": FORMAT, **manifest, "arrays_sha256": _digest(tensors)}
    text = json.dumps({**body, "manifest_sha256": _digest(_canonical(body))}, indent=1, sort_keys=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        (fresh / ARRAYS).write_bytes(tensors)
        (fresh / MANIFEST).write_text(text + "\n", encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for name in (ARRAYS, MANIFEST):
            os.replace(fresh / name, folder / name)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
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


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        body = {k: v for k, v in manifest.items() if k != "manifest_sha256"}
        stated, version = manifest["manifest_sha256"], int(body["format"])
        held = _digest(_canonical(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: is not a plurigp manifest; save the model again") from None
    if version > FORMAT:
        raise DataError(f"{path}: format {version} is newer than this plurigp reads ({FORMAT}); upgrade plurigp")
    if stated != held:
        raise DataError(f"{path}: was changed after saving (its hash differs); save the model again")
    return body


# --- a model as named arrays ---

_NETWORKS = ("net_mean", "net_sd")
_NETWORK = ("w1", "b1", "w2", "b2")
_ENCODERS = {
    FactorEncoder: ("shift", "scale", "loadings", "log_precision"),
    Encoder: ("shift", "scale", "linear", "offset"),
}


def model_arrays(model: Model, q: Posterior) -> dict[str, np.ndarray]:
    """Every array of a trained model under a readable name."""
    gp, encoder = model.gp, model.encoder
    named = {
        "gp.Z": gp.Z,
        "gp.bias": gp.bias,
        "gp.log_scale": gp.log_scale,
        "gp.kernel.log_lengthscales": gp.kernel.log_lengthscales,
        "gp.kernel.log_weights": gp.kernel.log_weights,
        "q.m": q.m,
        "q.S": q.S,
        "q.trace": q.trace,
        "q.logdet": q.logdet,
    }
    for number, theta in enumerate(model.thetas):
        named |= {f"theta.{number}.{name}": value for name, value in theta.items()}
    if isinstance(encoder, FreeRows):
        named |= {"encoder.mean": encoder.mean, "encoder.log_sd": encoder.log_sd}
    else:
        named |= {f"encoder.{name}": getattr(encoder, name) for name in _ENCODERS[type(encoder)]}
        named["encoder.watched"] = np.asarray(encoder.watched, np.int32)
        for net in _NETWORKS:
            named |= {f"encoder.{net}.{name}": getattr(getattr(encoder, net), name) for name in _NETWORK}
    return {name: np.asarray(value) for name, value in named.items()}


def model_from_arrays(arrays: dict[str, np.ndarray], settings: Settings, layout: Layout) -> tuple[Model, Posterior]:
    """The inverse of `model_arrays`."""

    def take(name: str) -> np.ndarray:
        if name not in arrays:
            raise DataError(f"the saved model has no array {name!r}; save the model again")
        return arrays[name]

    def network(net: str) -> Network:
        return Network(*(take(f"encoder.{net}.{name}") for name in _NETWORK))

    encoder: FactorEncoder | Encoder | FreeRows
    if settings.encoder == "free":
        encoder = FreeRows(take("encoder.mean"), take("encoder.log_sd"))
    else:
        make = FactorEncoder if settings.encoder == "factors" else Encoder
        parts: list[Any] = [take(f"encoder.{name}") for name in _ENCODERS[make]]
        watched = tuple(int(column) for column in take("encoder.watched"))
        encoder = make(watched, *parts, *(network(name) for name in _NETWORKS))
    kernel = Kernel(parse_kernel(settings.kernel), take("gp.kernel.log_lengthscales"), take("gp.kernel.log_weights"))
    gp = SparseGP(kernel, take("gp.Z"), take("gp.bias"), take("gp.log_scale"))
    thetas: Thetas = tuple(
        {name.split(".")[2]: value for name, value in arrays.items() if name.startswith(f"theta.{number}.")}
        for number in range(len(layout.blocks))
    )
    q = Posterior(take("q.m"), take("q.S"), take("q.trace"), take("q.logdet"))
    return Model(encoder, gp, thetas), q


def rank_maps_from(arrays: dict[str, np.ndarray], unchanged: np.ndarray) -> np.ndarray:
    """The saved maps of ranks [D K]; a model from before there were any has the unchanged ones."""
    maps = arrays.get(RANK_MAPS, unchanged)
    if maps.shape != unchanged.shape or not (np.diff(maps) > 0).all():
        raise DataError(f"the saved model's array {RANK_MAPS!r} is not a map of ranks per column; save the model again")
    return maps
