"""JSON and arrays that carry the hash of their content, so that a changed byte is found before anything is built."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from plurigp.core.text import jsonable, show
from plurigp.core.types import DataError

SEAL = "sha256"  # the key under which JSON keeps its own hash
NUMPY_DTYPES = {  # by the name that safetensors gives each; a file of ours holds no others
    "F64": "float64", "F32": "float32", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip
MAX_JSON_BYTES = 200_000_000
CHANGED = "was changed or cut short (its hash differs)"


class DamagedError(ValueError):
    """A file's content is not what was written; the message is the finding, without the file's name."""


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


# --- JSON ---


def sealed_json(body: Mapping[str, Any], key: str = SEAL) -> str:
    """The object as sorted JSON with the hash of its content under `key`; equal content gives equal text."""
    return json.dumps({**body, key: _content_digest(body)}, indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_sealed_json(
    path: Path, newest: int, remedy: str, key: str = SEAL, most: int = MAX_JSON_BYTES
) -> dict[str, Any]:
    """The object that `sealed_json` wrote, checked and without its hash; a format above `newest` is named as such."""
    if path.stat().st_size > most:
        raise DataError(f"{path}: is larger than {most // 10**6} MB and not written by plurigp; {remedy}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_float=_as_written, parse_constant=_as_written)
        stated, version = content.pop(key, None), content.get("format")
        held = _content_digest(content)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: is not JSON as plurigp writes it; {remedy}") from None
    if isinstance(version, int) and version > newest:
        raise DataError(f"{path}: format {version} is newer than this plurigp reads ({newest}); upgrade plurigp")
    if stated is None:
        raise DataError(f"{path}: holds no hash of its content; {remedy}")
    if stated != held:
        raise DataError(f"{path}: {CHANGED}; {remedy}")
    return content


def _content_digest(body: Mapping[str, Any]) -> str:
    return digest(json.dumps(body, sort_keys=True, ensure_ascii=True, allow_nan=False).encode())


def _as_written(text: str) -> float:
    """A number spelled as Python spells it: other spellings of the same number were not written here."""
    number = float(text)
    if repr(number) != text or text in ("nan", "inf", "-inf"):
        raise ValueError(text)
    return number


# --- arrays ---


def packed_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Named arrays as a safetensors file without metadata; its hash is kept elsewhere."""
    return save_tensors(_in_order(arrays))


def sealed_arrays(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> bytes:
    """The same with facts, and the hash of both, in the header."""
    named, about = _in_order(arrays), json.dumps(jsonable(facts), sort_keys=True, allow_nan=False)
    return save_tensors(named, {"facts": json.dumps({"facts": about, SEAL: _arrays_digest(named, about)})})


def unsealed_arrays(raw: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and facts that `sealed_arrays` wrote, checked."""
    arrays, metadata = _loaded(raw)
    try:
        about = json.loads(metadata["facts"])
        stated, facts = about[SEAL], json.loads(about["facts"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise DamagedError("holds no hash of its content") from None
    if stated != _arrays_digest(arrays, about["facts"]):
        raise DamagedError(CHANGED)
    return arrays, facts


def unpacked_arrays(raw: bytes) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file of ours; other dtypes, and shapes that its bytes do not fill, are refused."""
    return _loaded(raw)[0]


def _loaded(raw: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    try:
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        metadata = header.pop("__metadata__", {})
        for name, entry in header.items():
            if entry["dtype"] not in NUMPY_DTYPES:
                raise DamagedError(
                    f"array {show(name, 80)} has dtype {show(entry['dtype'])}, which plurigp never writes"
                )
        return load_tensors(raw), metadata
    except DamagedError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedError("is not a safetensors file") from None


def _in_order(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.asarray(array, order="C") for name, array in sorted(arrays.items())}  # a scalar stays one


def _arrays_digest(arrays: Mapping[str, np.ndarray], about: str) -> str:
    content = hashlib.sha256(about.encode())
    for name, array in sorted(arrays.items()):
        content.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        content.update(array.tobytes())
    return content.hexdigest()
