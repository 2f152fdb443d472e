"""Output files and folders: checked before any work is done, and overwritten only with --force."""

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
    """Refuse a table that could not be written."""
    if table_suffix(path) == ".parquet" and find_spec("pyarrow") is None:
        raise CommandError(f"{path}: Parquet needs pyarrow; pip install 'plurigp[parquet]', or write a .csv file.")
    check_file(path, force)


def check_file(path: Path, force: bool) -> None:
    """Refuse a file that exists or could not be written."""
    if path.exists() and not path.is_file():
        raise CommandError(f"{path}: is not a regular file; choose another path.")
    if path.exists() and path.stat().st_size and not force:
        raise CommandError(f"{path}: already exists; pass --force to overwrite it.")
    _check_parent(path)


def check_folder(path: Path, force: bool) -> None:
    """Refuse a folder that is not empty or could not be written."""
    if path.exists() and not path.is_dir():
        raise CommandError(f"{path}: is a file; --out must name a folder.")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise CommandError(f"{path}: is not empty; choose another --out, or pass --force to overwrite it.")
    _check_parent(path)


def table_suffix(path: Path) -> str:
    """The format by the end of the file's name."""
    for suffix in (*SEPARATORS, ".parquet"):
        if path.name.lower().endswith(suffix):
            return suffix
    raise CommandError(f"{path}: unknown format; the name must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet.")


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
    parent = next(folder for folder in path.resolve().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise CommandError(f"{path}: cannot be written: no permission to write in {parent}; choose another --out.")
    path.resolve().parent.mkdir(parents=True, exist_ok=True)
