"""Frames, arrays and facts on disk: JSON and safetensors that come back exactly, CSV for people. No pickle."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from plurigp.core.files import whole_file, without_formulas
from plurigp.core.types import DataError

DTYPES = {"f": "float64", "i": "int64", "b": "bool"}  # by dtype kind; everything else is text


def plain(value: Any) -> Any:
    """As JSON keeps it: NumPy numbers become Python's, and what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def frame_to_plain(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame without its row labels: names, dtypes and cells; `frame_from_plain` restores it.

    An infinite number, such as an end of an interval, is kept as text, because null is a number that is not known.
    """
    dtypes = [DTYPES.get(str(getattr(dtype, "kind", "O")), "str") for dtype in frame.dtypes]
    columns = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    cells = [plain([str(v) if isinstance(v, float) and math.isinf(v) else v for v in column]) for column in columns]
    return {"names": [str(name) for name in frame.columns], "dtypes": dtypes, "cells": cells}


def frame_from_plain(saved: Mapping[str, Any]) -> pd.DataFrame:
    """The frame that `frame_to_plain` took apart."""
    parts = zip(saved["names"], saved["dtypes"], saved["cells"], strict=True)
    columns = {name: pd.Series(cells, dtype=pd.api.types.pandas_dtype(dtype)) for name, dtype, cells in parts}
    return pd.DataFrame(columns)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Sorted, so that equal content means equal bytes."""
    text = json.dumps(plain(content), indent=1, sort_keys=True, allow_nan=False)
    with whole_file(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; a file that holds none is named."""
    with _errors_name(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError
        return content


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any] | None = None) -> None:
    """Named arrays in one file, with facts as JSON in its header."""
    named = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    header = None if facts is None else {"facts": json.dumps(plain(facts), sort_keys=True, allow_nan=False)}
    with whole_file(path) as part:
        part.write_bytes(save_tensors(named, header))


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the facts; a broken file is named."""
    with _errors_name(path):
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        return load_tensors(content), json.loads(header.get("facts", "{}"))


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """A frame for people and spreadsheets: no row labels, numbers to the last digit, no formulas."""
    with whole_file(path) as part:
        without_formulas(frame).to_csv(part, index=False, lineterminator="\n")


def read_csv(path: Path) -> pd.DataFrame:
    """A CSV of numbers that `write_csv` wrote, each to its last digit; True and False are one and zero."""
    with _errors_name(path):
        text = pd.read_csv(path, dtype="str", keep_default_na=False)
        cells = {name: text[name].replace({"": "nan", "True": "1", "False": "0"}) for name in text.columns}
        return pd.DataFrame({name: np.array(column.tolist(), dtype=np.float64) for name, column in cells.items()})


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """What goes wrong while a file is read becomes an error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: is not there; give the folder of a finished study.") from None
    except (SafetensorError, ValueError, AttributeError, RecursionError):
        raise DataError(f"{path}: was changed or cut short; run the study again into a new folder.") from None
