"""Frames, arrays and facts on disk: JSON and safetensors that come back exactly, CSV for people. No pickle."""

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.files import whole_file, without_formulas
from plurigp.core.forms import FormError
from plurigp.core.sealed import (
    CHANGED,
    DamagedError,
    digest,
    read_sealed_json,
    sealed_arrays,
    sealed_json,
    unsealed_arrays,
)
from plurigp.core.text import jsonable
from plurigp.core.types import DataError

ANEW = "run the study again into a new folder."
DTYPES = {"f": "float64", "i": "int64", "b": "bool"}  # by dtype kind; everything else is text


def frame_to_plain(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame without its row labels: names, dtypes and cells; `frame_from_plain` restores it.

    An infinite number, such as an end of an interval, is kept as text, because null is a number that is not known.
    """
    dtypes = [DTYPES.get(str(getattr(dtype, "kind", "O")), "str") for dtype in frame.dtypes]
    columns = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    cells = [jsonable([str(v) if isinstance(v, float) and math.isinf(v) else v for v in column]) for column in columns]
    return {"names": [str(name) for name in frame.columns], "dtypes": dtypes, "cells": cells}


def frame_from_plain(saved: Mapping[str, Any]) -> pd.DataFrame:
    """The frame that `frame_to_plain` took apart."""
    parts = zip(saved["names"], saved["dtypes"], saved["cells"], strict=True)
    columns = {name: pd.Series(cells, dtype=pd.api.types.pandas_dtype(dtype)) for name, dtype, cells in parts}
    return pd.DataFrame(columns)


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """Sorted and with its hash; equal content means equal bytes."""
    return sealed_json(jsonable(content)).encode()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """One file of `json_bytes`."""
    write_whole({path: json_bytes(content)})


def read_json(path: Path, newest: int = 0, remedy: str = ANEW) -> dict[str, Any]:
    """The object that `write_json` wrote; a changed file, or one of a format above `newest`, is named."""
    with errors_name(path, remedy):
        return read_sealed_json(path, newest, remedy)


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any] | None = None) -> None:
    """Named arrays in one file, with facts as JSON, and the hash of both, in its header."""
    write_whole({path: sealed_arrays(arrays, facts or {})})


def read_arrays(
    path: Path, remedy: str = ANEW, sha256: str | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the facts; a file that was changed, or that is not the one with this hash, is named."""
    with errors_name(path, remedy):
        return unsealed_arrays(_whole_bytes(path, sha256))


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A frame for people and spreadsheets: no row labels, numbers to the last digit, no formulas."""
    return without_formulas(frame).to_csv(index=False, lineterminator="\n").encode()


def read_csv(path: Path, sha256: str) -> pd.DataFrame:
    """A CSV of numbers that `csv_bytes` made, each to its last digit; True and False are one and zero."""
    with errors_name(path):
        text = pd.read_csv(io.BytesIO(_whole_bytes(path, sha256)), dtype="str", keep_default_na=False)
        cells = {name: text[name].replace({"": "nan", "True": "1", "False": "0"}) for name in text.columns}
        return pd.DataFrame({name: np.array(column.tolist(), dtype=np.float64) for name, column in cells.items()})


def _whole_bytes(path: Path, sha256: str | None) -> bytes:
    raw = path.read_bytes()
    if sha256 is not None and digest(raw) != sha256:
        raise DamagedError(CHANGED)
    return raw


def write_whole(files: Mapping[Path, bytes]) -> None:
    """Write all files or none: every one is complete before the first takes its place; the last takes it last."""
    with ExitStack() as stack:
        parts = [(stack.enter_context(whole_file(path)), content) for path, content in reversed(list(files.items()))]
        for part, content in parts:
            part.write_bytes(content)


@contextmanager
def errors_name(path: Path, remedy: str = ANEW) -> Iterator[None]:
    """What goes wrong while a file is read becomes an error that names it."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: is not there; give the folder of a finished study.") from None
    except (DamagedError, FormError) as error:
        raise DataError(f"{path}: {error}; {remedy}") from None
    except (ValueError, AttributeError, RecursionError):
        raise DataError(f"{path}: was changed or cut short; {remedy}") from None
