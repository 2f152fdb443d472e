"""Files as frames, with every cell that is not a number kept as text."""

import csv
import gzip
import io
import os
import re
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.core.files import PARQUET_SUFFIXES, SEPARATORS, STATISTICS_SUFFIXES
from plurigp.core.text import file_name, show
from plurigp.core.types import DataError
from plurigp.data.cells import is_gap_word, level_number, refuse
from plurigp.data.dialect import TextDialect, dialect_of
from plurigp.data.frames import check_unique_names, with_text_names
from plurigp.data.rows import PYARROW_ERRORS, require_pyarrow
from plurigp.data.sentinels import Missing, with_gaps_for
from plurigp.data.statistics_files import read_statistics_file

GAP_WORDS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", ".", "-", "?")
STANDARD_INPUT = "-"
_POINTED = re.compile(r"[<>≤≥= ]*[+-]?(?:\d+\.\d+|\d{1,3}(?:\.\d{3})+(?:,\d+)?)")
_LIMITS = re.compile(r"[<>≤≥=\d,+\- ]+")


def read_table(
    path: str | os.PathLike, sep: str | None = None, decimal: str | None = None, missing: Missing | None = None
) -> pd.DataFrame:
    """The table in a file, by its suffix, or CSV from standard input ("-"); errors name file, line and remedy.

    `sep` and `decimal` say how a text file separates its cells and writes its numbers; semicolons and decimal commas
    are recognised. `missing` names values that stand for gaps: [999] in every column, {"visits": [999]} in one.
    """
    return with_gaps_for(_read(path, sep, decimal), missing)


def _read(path: str | os.PathLike, sep: str | None, decimal: str | None) -> pd.DataFrame:
    if os.fspath(path) == STANDARD_INPUT:
        source = "standard input"
        frame = _read_text(_text_bytes(sys.stdin.buffer.read(), source), ",", source, sep, decimal)
        return _with_rows(frame, source)
    place, source = Path(path), file_name(path)
    _check_file(place, source)
    known = (*SEPARATORS, *PARQUET_SUFFIXES, *STATISTICS_SUFFIXES)
    suffix = next((suffix for suffix in known if place.name.lower().endswith(suffix)), "")
    if suffix in PARQUET_SUFFIXES:
        require_pyarrow(source)
        try:
            frame = pd.read_parquet(place, engine="pyarrow")
        except PYARROW_ERRORS:
            raise DataError(f"{source}: not a readable Parquet file; write it again.") from None
    elif suffix in STATISTICS_SUFFIXES:
        frame = read_statistics_file(place, suffix, source)
    elif suffix:
        raw = _text_bytes(_file_bytes(place, suffix.endswith(".gz"), source), source)
        frame = _read_text(raw, SEPARATORS[suffix], source, sep, decimal)
    else:
        unknown = f"unknown suffix {show(place.suffix)}; known: {', '.join(known)}"
        raise DataError(f"{source}: {unknown}. Convert or rename the file.")
    return _with_rows(frame, source)


def text_dialect(path: Path, sep: str | None, decimal: str | None) -> TextDialect:
    """How `read_table` reads this text file."""
    suffix = next(suffix for suffix in SEPARATORS if path.name.lower().endswith(suffix))
    raw = _text_bytes(_file_bytes(path, suffix.endswith(".gz"), str(path)), str(path))
    return dialect_of(raw, SEPARATORS[suffix], sep, decimal, str(path))


def _with_rows(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    if len(frame) == 0:
        raise DataError(f"{source}: there are column names but no rows; add rows.")
    return with_text_names(frame, source)


def _check_file(place: Path, source: str) -> None:
    try:
        found, is_folder = place.exists(), place.is_dir()
    except (OSError, ValueError):  # a path that no file system takes
        found, is_folder = False, False
    if is_folder:
        raise DataError(f"{source}: is a folder, not a file; name the file in it.")
    if not found:
        raise DataError(f"{source}: no such file; check the path.")


def _read_text(raw: bytes, usual: str, source: str, declared: str | None, decimal: str | None) -> pd.DataFrame:
    dialect = dialect_of(raw, usual, declared, decimal, source)
    sep = dialect.sep
    header = _header(raw, sep, source)
    names = header.cells
    quick = _quick_count(raw, sep, len(names))
    if quick is None:
        _check_widths(raw, sep, len(names), source)
    body = raw[header.end :]
    if not body.strip():
        return pd.DataFrame(columns=names)
    frame = _parse(body, dialect, header, source, None)
    if quick is not None and quick != len(frame) + 1:  # a stray quote misled the quick count
        _check_widths(raw, sep, len(names), source)
    for column, name in enumerate(names):
        if not pdt.is_numeric_dtype(frame[name].dtype):
            frame.isetitem(column, _tidy(frame[name], dialect.decimal).array)
    if _holds_padded(raw, sep):
        _keep_padded(frame, _parse(body, dialect, header, source, str))
    return frame


def _file_bytes(place: Path, zipped: bool, source: str) -> bytes:
    try:
        return gzip.decompress(place.read_bytes()) if zipped else place.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        why = show(str(getattr(error, "strerror", None) or error), 80)
        raise DataError(f"{source}: cannot be read ({why}); check the file and its permissions.") from None


def _text_bytes(raw: bytes, source: str) -> bytes:
    """The file as UTF-8 bytes without a byte-order mark; what is not text is an error."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{source}: is UTF-16 text; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8').")
    if b"\x00" in raw:
        raise DataError(f"{source}: is not text (it holds zero bytes); save the table as CSV or Parquet.")
    if not raw.strip():
        raise DataError(f"{source}: the file is empty; it needs a line of column names, then rows.")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        remedy = "save it as UTF-8 (in a spreadsheet: 'CSV UTF-8')"
        raise DataError(f"{source}, line {line}: not UTF-8 text; {remedy}.") from None
    return raw if b"\n" in raw else raw.replace(b"\r", b"\n")


class _Record(NamedTuple):
    """One record of a text file: its cells, the line it starts on, the next line, and the byte after it."""

    cells: list[str]
    line: int
    next_line: int
    end: int


def _records(raw: bytes, sep: str, source: str) -> Iterator[_Record]:
    """The records that are not blank, one by one: slow, but it knows the lines."""
    last, end, line = "", 0, 1

    def lines() -> Iterator[str]:
        nonlocal last, end
        for last in io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8", newline=""):
            end += len(last.encode())
            yield last

    reader = csv.reader(lines(), delimiter=sep, skipinitialspace=True)
    try:
        for cells in reader:
            if len(cells) > 1 or reader.line_num > line or last.strip(" \t\r\n"):
                yield _Record(cells, line, reader.line_num + 1, end)
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{source}, line {line}: {error}; correct the line.") from None


def _header(raw: bytes, sep: str, source: str) -> _Record:
    """The first line, which holds the names; numbers there mean that the header is missing."""
    header = next(_records(raw, sep, source))
    names = [cell.strip() for cell in header.cells]
    other = next((mark for mark in ";\t|," if mark in names[0]), "") if len(names) == 1 else ""
    if other:
        remedy = f"save it with {show(sep)} instead, or pass --sep (sep={show(other)} in Python)"
        raise DataError(f"{source}: cells seem to be separated by {show(other)}; {remedy}.")
    if any(names) and not any(np.isnan(level_number(name)) for name in names if name):
        raise DataError(f"{source}, line 1: only numbers where the column names should be; add a line of names above.")
    check_unique_names(names, f"{source}, line 1")
    return header._replace(cells=names)


def _quick_count(raw: bytes, sep: str, width: int) -> int | None:
    """How many lines are not blank, if every one is `width` cells wide as far as a count of bytes can tell."""
    data = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", dtype=np.uint8)
    newline, mark = data == ord("\n"), data == ord(sep)
    if b'"' in raw:
        inside = np.logical_xor.accumulate(data == ord('"'))
        if inside[-1]:
            return None
        newline, mark = newline & ~inside, mark & ~inside
    ends = np.flatnonzero(newline)
    counts = np.diff(np.searchsorted(np.flatnonzero(mark), ends), prepend=0)
    lengths = np.diff(ends, prepend=-1) - 1
    blank = (lengths == 0) | ((lengths == 1) & (data[ends - 1] == ord("\r")))
    return int((~blank).sum()) if (blank | (counts == width - 1)).all() else None


def _check_widths(raw: bytes, sep: str, width: int, source: str) -> None:
    """The slow look, record by record, that finds the line of a row that is too short or too long."""
    for record in _records(raw, sep, source):
        if len(record.cells) != width:
            finding = f"{len(record.cells)} cells where there are {width} column names"
            remedy = "correct the line, or quote cells that hold the separator"
            raise DataError(f"{source}, line {record.line}: {finding}; {remedy}.")


def _parse(body: bytes, dialect: TextDialect, header: _Record, source: str, dtype: type | None) -> pd.DataFrame:
    """pandas reads the rows: numbers and truth values become such, everything else stays text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.BytesIO(body), sep=dialect.sep, decimal=dialect.decimal, header=None, names=header.cells,
                dtype=dtype, na_values=list(GAP_WORDS), keep_default_na=False, skipinitialspace=True, index_col=False,
                low_memory=False,
            )  # fmt: skip
    except (ValueError, pd.errors.ParserWarning) as error:  # pandas' parser errors are ValueErrors
        quote = re.search(r"EOF inside string starting at row (\d+)", str(error))
        if quote:
            line = header.next_line + int(quote[1])
            raise DataError(f"{source}, line {line}: a quote is opened and never closed; close or remove it.") from None
        raise DataError(f"{source}: not a readable table ({show(str(error), 120)}); correct the file.") from None


def _tidy(column: pd.Series, decimal: str) -> pd.Series:
    """Text stripped, gap words gone, numbers that only spaces or other gap words hid; truth values with gaps in the
    nullable dtype."""
    if pdt.infer_dtype(column, skipna=True) == "boolean":
        return column.astype("boolean")
    codes, distinct = pd.factorize(column)
    texts = [str(text) for text in distinct]
    if decimal == ",":
        _refuse_points(column, codes, texts)
    tidied = [_with_points(text.strip()) if decimal == "," else text.strip() for text in texts]
    gaps = [text in GAP_WORDS for text in tidied]
    numbers = np.array([np.nan if gap else level_number(text) for text, gap in zip(tidied, gaps, strict=True)])
    loose = [gap or is_gap_word(text) for text, gap in zip(tidied, gaps, strict=True)]
    if (np.isnan(numbers) == loose).all() and not np.isnan(numbers).all():  # among numbers, n/a is a gap
        return pd.Series(np.append(numbers, np.nan)[codes])
    words = pd.Series([None if gap else text for text, gap in zip(tidied, gaps, strict=True)] + [None], dtype="str")
    return column.astype("str") if texts == tidied else words.iloc[codes].reset_index(drop=True)


def _refuse_points(column: pd.Series, codes: np.ndarray, texts: list[str]) -> None:
    """Beside decimal commas, 1.200 may be a thousand or one: it is not guessed."""
    pointed = np.array([*(_POINTED.fullmatch(text.strip()) is not None for text in texts), False])
    finding = "a point in a number, where the decimal mark is a comma"
    refuse(pointed[codes], column.name, f"{finding}; remove separators of thousands, or write a comma.")


def _with_points(text: str) -> str:
    """A number or limit with a decimal comma, with a point."""
    return re.sub(r"(?<=\d),(?=\d)", ".", text) if _LIMITS.fullmatch(text) else text


def _holds_padded(raw: bytes, sep: str) -> bool:
    """Whether some cell starts with a zero and another digit ("007")."""
    data = np.frombuffer(raw, dtype=np.uint8)
    zeros = np.flatnonzero(data[1:-1] == ord("0")) + 1
    before, after = data[zeros - 1], data[zeros + 1]
    return bool((np.isin(before, [*f'{sep}\n" '.encode()]) & (after >= ord("0")) & (after <= ord("9"))).any())


def _keep_padded(frame: pd.DataFrame, texts: pd.DataFrame) -> None:
    """Columns of numbers with leading zeros are codes: they stay text."""
    for place, name in enumerate(frame.columns):
        text = texts[name].str.strip()
        if pdt.is_numeric_dtype(frame[name].dtype) and text.str.fullmatch(r"[+-]?0[0-9]+").any():
            frame.isetitem(place, text.array)
