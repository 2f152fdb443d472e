"""Ways to damage files: single bits, cuts, and changes of a field or an array whose hash is put right again."""

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from plurigp.core.sealed import (
    SEAL,
    digest,
    packed_arrays,
    sealed_arrays,
    sealed_json,
    unpacked_arrays,
    unsealed_arrays,
)
from plurigp.estimator.persistence import ARRAYS, MANIFEST, MANIFEST_SEAL

HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, 10**30, -(10**30), 0.5, -0.5, 1e-320, 1e300, -1e300, 1e308, "", "x",
    "nan", "inf", "-inf", "x" * 10_000, "\x1b[2J", "<script>alert(1)</script>", "../../../etc/passwd",
    "__import__('os')", [], [[]], {}, [None], {"a": 1}, [0] * 100, "gaussian", "categorical", "free",
    "float64", "linear+rbf",
)  # fmt: skip


OTHER_DTYPES = ("BF16", "F8_E4M3", "F8_E5M2", "F16")  # that no file of ours holds
ODD_NUMBERS = (np.nan, np.inf, 1e300, -1e30, -1, 0, 127)


def flipped(raw: bytes, rng: random.Random) -> bytes:
    """One bit changed."""
    content = bytearray(raw)
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def cuts(raw: bytes) -> Iterator[bytes]:
    """Cut short at every hundredth."""
    yield from (raw[: len(raw) * share // 100] for share in range(100))


def places(content: Any, path: tuple = ()) -> Iterator[tuple]:
    """The path of every field, list and item; of a long list the first, middle and last item."""
    if isinstance(content, dict):
        for key in content:
            yield (*path, key)
            yield from places(content[key], (*path, key))
    elif isinstance(content, list):
        for number in sorted({0, len(content) // 2, len(content) - 1} - {-1, len(content)}):
            yield (*path, number)
            yield from places(content[number], (*path, number))


def mutated(content: dict[str, Any], rng: random.Random) -> tuple[dict[str, Any], str]:
    """A field replaced, scaled, removed, doubled, renamed, or given a neighbour; and where."""
    changed = copy.deepcopy(content)
    path = rng.choice(list(places(content)))
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    last, act = path[-1], rng.choice(("replace", "replace", "replace", "scale", "remove", "double", "rename", "nest"))
    value = parent[last]
    if act == "scale" and isinstance(value, int | float) and not isinstance(value, bool):
        parent[last] = rng.choice((-value, value * 1e6, value + 1, value / 3))
    elif act == "remove":
        del parent[last]
    elif act == "double" and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(value))
    elif act == "rename" and isinstance(parent, dict):
        parent[f"{last}_"] = parent.pop(last)
    elif act == "nest":
        parent[last] = [value]
    else:
        parent[last] = copy.deepcopy(rng.choice(HOSTILE_VALUES))
    return changed, ".".join(map(str, path))


def mutated_arrays(arrays: dict[str, np.ndarray], rng: random.Random) -> tuple[dict[str, np.ndarray], str]:
    """An array removed, renamed, reshaped, cut, of another dtype, or with a number that it should not hold."""
    name = rng.choice(sorted(arrays))
    array, changed = arrays[name], dict(arrays)
    others = ("float16", "float64", "float32", "int64", "int32", "uint8", "bool", "int8")
    acts = {
        "remove": lambda: changed.pop(name),
        "rename": lambda: changed.update({rng.choice((f"{name}_", "theta.0.x", "theta.99.y", "a")): changed.pop(name)}),
        "cut": lambda: changed.update({name: array[: len(array) // 2] if array.ndim else array}),
        "flatten": lambda: changed.update({name: array.ravel()}),
        "widen": lambda: changed.update({name: np.concatenate([array, array]) if array.ndim else array}),
        "axis": lambda: changed.update({name: array[None]}),
        "turn": lambda: changed.update({name: array.T}),
        "empty": lambda: changed.update({name: array[:0] if array.ndim else array}),
        "dtype": lambda: changed.update({name: np.nan_to_num(array).astype(rng.choice(others))}),
        "value": lambda: changed.update({name: _with(array, rng.choice(ODD_NUMBERS), rng)}),
    }  # fmt: skip
    act = rng.choice(sorted(acts))
    with np.errstate(all="ignore"):
        acts[act]()
    return changed, f"{name} ({act})"


def _with(array: np.ndarray, value: float, rng: random.Random) -> np.ndarray:
    out = array.copy()
    if out.size and (np.isfinite(value) or out.dtype.kind == "f"):
        out.ravel()[rng.randrange(out.size)] = np.asarray(value).astype(out.dtype)
    return out


def of_other_dtype(raw: bytes, dtype: str) -> bytes:
    """A safetensors file whose first array claims a dtype that we never write; its bytes stay as many."""
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    name = next(name for name, entry in header.items() if name != "__metadata__" and entry["shape"])
    start, end = header[name]["data_offsets"]
    width = 1 if dtype.startswith(("F8", "I8")) else 2
    header[name] |= {"dtype": dtype, "shape": [(end - start) // width]}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw[8 + size :]


def mutated_cell(text: str, rng: random.Random) -> tuple[str, str]:
    """One cell of a CSV file replaced; and in which line."""
    lines = text.splitlines()
    line = rng.randrange(len(lines))
    cells = lines[line].split(",")
    cells[rng.randrange(len(cells))] = rng.choice(("", "x", "1e308", "-1", "nan", "inf", "=1", "99", "0.5,0.5"))
    lines[line] = ",".join(cells)
    return "\n".join(lines) + "\n", f"line {line}"


def mutated_content(name: str, raw: bytes, rng: random.Random) -> bytes:
    """One change to what a file of this name holds, by its structure; a ValueError where it has none."""
    if name.endswith(".json"):
        return json.dumps(mutated(json.loads(raw), rng)[0]).encode()
    if name.endswith(".csv"):
        return mutated_cell(raw.decode(), rng)[0].encode()
    if rng.random() < 0.03:
        return of_other_dtype(raw, rng.choice(OTHER_DTYPES))
    return packed_arrays(mutated_arrays(unpacked_arrays(raw), rng)[0])


# --- hashes put right ---


def put_in_model(folder: Path, name: str, raw: bytes) -> None:
    """The content of one file of a model replaced, and hashes put right wherever they can be."""
    _put(folder, folder / MANIFEST, MANIFEST_SEAL, name, raw)


def put_in_study(folder: Path, name: str, raw: bytes) -> None:
    """The same for a study."""
    listing = folder / ("study.json" if name == "study.json" else "result.json")
    if name.endswith(".safetensors"):
        with suppress(ValueError):
            raw = sealed_arrays(unpacked_arrays(raw), {})
    _put(folder, listing, SEAL, name, raw)


def _put(folder: Path, listing: Path, seal: str, name: str, raw: bytes) -> None:
    """`listing` is the JSON file that holds its own hash and those of the others."""
    try:
        body = json.loads(raw if listing.name == name else listing.read_bytes())
        body.pop(seal, None)
        if listing.name != name:
            (folder / name).write_bytes(raw)
            if name == ARRAYS:
                body["arrays_sha256"] = digest(raw)
            else:
                body["files"][name] = digest(raw)
        listing.write_text(sealed_json(body, seal))
    except (ValueError, TypeError, AttributeError, RecursionError):  # no hash to put right: no object, infinities
        listing.write_bytes(raw)


def mutate_model(folder: Path, rng: random.Random) -> str:
    """One change to the manifest or to the arrays, signed as if it had been saved so; what was changed."""
    if rng.random() < 0.7:
        body = json.loads((folder / MANIFEST).read_text())
        body.pop(MANIFEST_SEAL)
        body, what = mutated(body, rng)
        put_in_model(folder, MANIFEST, json.dumps(body).encode())
        return what
    arrays, what = mutated_arrays(unpacked_arrays((folder / ARRAYS).read_bytes()), rng)
    raw = packed_arrays(arrays)
    if rng.random() < 0.1:
        raw = of_other_dtype(raw, rng.choice(OTHER_DTYPES))
    put_in_model(folder, ARRAYS, raw)
    return what


def mutate_fit(folder: Path, rng: random.Random) -> str:
    """One change to an array or a fact of a finished fit of a study, signed."""
    path = rng.choice(sorted(folder.glob("fits/*.safetensors")))
    arrays, facts = unsealed_arrays(path.read_bytes())
    if rng.random() < 0.8:
        arrays, what = mutated_arrays(arrays, rng)
    else:
        facts, what = mutated(facts, rng)
    path.write_bytes(sealed_arrays(arrays, facts))
    return f"{path.name}: {what}"


def mutate_result(folder: Path, rng: random.Random) -> str:
    """One change to result.json, to its arrays or to the tables of its rows, signed."""
    chosen = rng.random()
    if chosen < 0.75:
        body = json.loads((folder / "result.json").read_text())
        body.pop(SEAL)
        body, what = mutated(body, rng)
        put_in_study(folder, "result.json", json.dumps(body).encode())
    elif chosen < 0.9:
        arrays, what = mutated_arrays(unpacked_arrays((folder / "arrays.safetensors").read_bytes()), rng)
        put_in_study(folder, "arrays.safetensors", packed_arrays(arrays))
    else:
        path = folder / rng.choice(("assignments.csv", "latent.csv"))
        text, line = mutated_cell(path.read_text(), rng)
        put_in_study(folder, path.name, text.encode())
        what = f"{path.name}, {line}"
    return what
