"""Files that are either whole or not there, and text that no spreadsheet runs as a formula."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}  # of the text files that hold tables
PARQUET_SUFFIXES = (".parquet", ".pq")
STATISTICS_SUFFIXES = (".xlsx", ".dta", ".sav", ".zsav")  # of spreadsheets and statistics programs
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠].|[\t\r\n]", re.DOTALL)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path beside the target to write to; it takes the target's place only if all went well and is on the disk."""
    target = path.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        _flush(part)
        os.replace(part, target)
        _flush(target.parent)  # its entry: a power cut brings back the old file or the new one, each of them whole
    except OSError as error:  # a full disk does not say which file
        if error.errno is None or error.filename not in (None, str(part)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until the disk has it."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # some file systems cannot flush a folder
            raise
    finally:
        os.close(opened)


def without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Text that a spreadsheet would run as a formula gets an apostrophe in front; numbers stay numbers."""
    safe = frame.copy()
    for place, kind in enumerate(frame.dtypes):
        if not (hasattr(kind, "kind") and kind.kind in "biufcmM"):
            safe.isetitem(place, frame.iloc[:, place].astype(object).map(_quoted).to_numpy())
    return safe.rename(columns=_quoted)


def _quoted(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")  # a lone carriage return is not quoted and would end the row
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text.strip()) else text
