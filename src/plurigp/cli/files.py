"""Results on disk: nothing is overwritten unasked, and a file is either whole or not there."""

import gzip
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from plurigp.cli.errors import CommandError
from plurigp.core.files import SEPARATORS, whole_file, without_formulas

if TYPE_CHECKING:
    import pandas as pd


def check_table(path: Path, force: bool) -> None:
    """Refuse a table that could not be written, before any work is done for it."""
    if table_suffix(path) == ".parquet" and find_spec("pyarrow") is None:
        raise CommandError(
            f"{path}: writing Parquet needs pyarrow; pip install 'plurigp[parquet]', or name a .csv file."
        )
    check_file(path, force)


def check_file(path: Path, force: bool) -> None:
    """The same for any file."""
    if path.exists() and not path.is_file():
        raise CommandError(f"{path}: is not a regular file; name another.")
    if path.exists() and path.stat().st_size and not force:
        raise CommandError(f"{path}: is there already; name another or say --force.")
    _check_parent(path)


def check_folder(path: Path, force: bool) -> None:
    """The same for a folder."""
    if path.exists() and not path.is_dir():
        raise CommandError(f"{path}: is a file; --out must name a folder.")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise CommandError(f"{path}: is not empty; name another --out or say --force.")
    _check_parent(path)


def table_suffix(path: Path) -> str:
    """Which format the name asks for."""
    for suffix in (*SEPARATORS, ".parquet"):
        if path.name.lower().endswith(suffix):
            return suffix
    raise CommandError(f"{path}: cannot tell the format; end the name in .csv, .tsv, .csv.gz, .tsv.gz or .parquet.")


def write_table(frame: "pd.DataFrame", path: Path, spreadsheet_safe: bool = False) -> None:
    """The frame without its row labels, as CSV, TSV or Parquet by suffix."""
    suffix = table_suffix(path)
    with whole_file(path) as part:
        if suffix == ".parquet":
            frame.to_parquet(part, index=False)
            return
        safe = without_formulas(frame) if spreadsheet_safe else frame
        text = safe.to_csv(sep=SEPARATORS[suffix], index=False, lineterminator="\n").encode()
        part.write_bytes(gzip.compress(text, mtime=0) if suffix.endswith(".gz") else text)


def _check_parent(path: Path) -> None:
    parent = path.resolve().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise CommandError(f"{path}: cannot be written, {parent} does not allow it; name another --out.")
    path.resolve().parent.mkdir(parents=True, exist_ok=True)
