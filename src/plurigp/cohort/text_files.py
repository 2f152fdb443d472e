"""CSV files as tables of text: names and marks by the first line, no type guessed."""

import csv
import glob
import gzip
import re
from collections.abc import Sequence
from pathlib import Path

from plurigp.cohort.sql import literal
from plurigp.core.text import file_name
from plurigp.core.types import DataError
from plurigp.data.frames import check_unique_names

MAX_HEADER = 1_000_000  # bytes of the line of column names
CELL = re.compile(r"[0-9][0-9.,:/\-+T Z]*")  # a number or a date: nobody calls a column so
MARKS = (",", "\t", ";", "|")


def text_files(files: Sequence[Path], table: str) -> tuple[str, list[str]]:
    """An item of FROM that reads these files as one table, and the names of its columns."""
    by_header: dict[tuple[str, tuple[str, ...]], list[Path]] = {}
    for file in files:
        by_header.setdefault(_header(file), []).append(file)
    items = [_item(same, mark, names, table) for (mark, names), same in by_header.items()]
    every = list(dict.fromkeys(name for _, names in by_header for name in names))
    if len(items) == 1:
        return items[0], every
    return f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {item}' for item in items)})", every


def _item(files: Sequence[Path], mark: str, names: Sequence[str], table: str) -> str:
    """DuckDB is told everything and sniffs nothing. Vocabularies come with tabs and without quotes."""
    quote = literal("" if mark == "\t" and table.startswith("concept") else '"')
    listed = ", ".join(literal(glob.escape(str(file.resolve()))) for file in files)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv([{listed}], columns = {{{columns}}}, auto_detect = false, header = true, delim = {literal(mark)}, "
        f"quote = {quote}, escape = {quote})"
    )


def _header(file: Path) -> tuple[str, tuple[str, ...]]:
    """The mark between cells, and the names of the columns."""
    source = file_name(file)
    try:
        with gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb") as opened:
            first = opened.readline(MAX_HEADER).decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        raise DataError(f"{source}, line 1: not UTF-8 text; save it as UTF-8.") from None
    except (OSError, EOFError):
        raise DataError(f"{source}: cannot be read; check the file and its permissions.") from None
    if not first.strip() or "\x00" in first:
        raise DataError(f"{source}, line 1: no column names; the first line must hold them.")
    mark = max(MARKS, key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=mark))]
    if any(CELL.fullmatch(name) for name in names):
        raise DataError(f"{source}, line 1: cells where the column names should be; add a line of names above.")
    check_unique_names(names, f"{source}, line 1")
    return mark, tuple(names)
