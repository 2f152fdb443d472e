"""Files (CSV, TSV, Parquet) as frames, with every cell that is not a number kept as text."""

import csv
import gzip
import io
import os
import re
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from plurigp.data.frames import named, to_frame
from plurigp.data.wording import show
from plurigp.types import DataError

__all__ = ["GAPS", "read_table", "to_frame"]

GAPS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", ".", "-", "?")
SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".parquet": "", ".pq": ""}
_PADDED = re.compile(rb'(?:^|[,\t\n\r])"?\s*[+-]?0[0-9]')


def read_table(path: str | os.PathLike) -> pd.DataFrame:
    """The table in a file, by its suffix; errors name the file, the line and the remedy."""
    place = Path(path)
    source = show(str(path), 200)[1:-1]
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if place.name.lower().endswith(s)), None)
    if place.is_dir():
        raise DataError(f"{source}: is a folder, not a file; name the file in it.")
    if not place.exists():
        raise DataError(f"{source}: no such file; check the path.")
    if suffix is None:
        raise DataError(f"{source}: unknown suffix {show(place.suffix)}; known: {', '.join(SUFFIXES)}. Convert the file.")
    frame = _read_text(place, suffix, source) if SUFFIXES[suffix] else _read_parquet(place, source)
    if len(frame) == 0:
        raise DataError(f"{source}: has a header but no rows; add rows.")
    return named(frame, source)


def _read_parquet(path: Path, source: str) -> pd.DataFrame:
    try:
        import pyarrow.parquet  # noqa: F401  # only to say clearly that it is missing
    except ImportError:
        raise DataError(f"{source}: Parquet files need pyarrow; install it with: pip install plurigp[parquet].") from None
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        why = show(str(error).split("\n")[0], 80)
        raise DataError(f"{source}: not a readable Parquet file ({why}); write it again.") from None


def _read_text(path: Path, suffix: str, source: str) -> pd.DataFrame:
    raw = _bytes(path, suffix.endswith(".gz"), source)
    sep = SUFFIXES[suffix]
    names = _header(raw, sep, source)
    _check_widths(raw, sep, len(names), source)
    frame = _parse(raw, sep, source)
    frame.columns = names
    if _PADDED.search(raw):
        _keep_padded(frame, raw, sep, source)
    return frame


def _bytes(path: Path, zipped: bool, source: str) -> bytes:
    """The file's text as UTF-8 bytes with \\n or \\r\\n line ends; what is not text is an error."""
    try:
        raw = gzip.decompress(path.read_bytes()) if zipped else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{source}: cannot be read ({show(str(error), 80)}); check the file and its permissions.") from None
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{source}: is UTF-16 text; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8').")
    if b"\x00" in raw:
        raise DataError(f"{source}: is not text (it holds zero bytes); save the table as CSV or Parquet.")
    if not raw.strip():
        raise DataError(f"{source}: the file is empty; it needs a header line and rows.")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"{source}, line {line}: not UTF-8 text; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8').") from None
    return raw if b"\n" in raw else raw.replace(b"\r", b"\n")


def _lines(raw: bytes, sep: str) -> "csv._reader":
    return csv.reader(io.StringIO(raw.decode("utf-8"), newline=""), delimiter=sep, skipinitialspace=True)


def _header(raw: bytes, sep: str, source: str) -> list[str]:
    """The names in the first line; numbers there mean that the header is missing."""
    names = next((cells for cells in _lines(raw, sep) if cells), [])
    names = [name.strip() for name in names]
    if len(names) == 1:
        for other in ";\t|,":
            if other != sep and other in names[0]:
                raise DataError(f"{source}: cells seem to be separated by {show(other)}; save it with {show(sep)} between cells.")
    if all(_is_number(name) for name in names if name) and any(names):
        raise DataError(f"{source}, line 1: all numbers where the column names should be; add a header line.")
    for place, name in enumerate(names):
        if not name:
            raise DataError(f"{source}, line 1: column {place + 1} has no name; name it, or write the file without row labels.")
        if name in names[:place]:
            raise DataError(f"{source}, line 1: column name {show(name, 80)} occurs twice; rename one.")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_widths(raw: bytes, sep: str, width: int, source: str) -> None:
    """Every row must have as many cells as the header: a quick count of bytes, and a slow look where it is in doubt."""
    if _all_wide(raw, sep, width):
        return
    lines = _lines(raw, sep)
    try:
        before = 1
        for cells in lines:
            if cells and len(cells) != width:
                what = "too many" if len(cells) > width else "too few"
                raise DataError(
                    f"{source}, line {before}: {len(cells)} cells where the header has {width} names ({what}); "
                    "correct the line, or quote cells that hold the separator."
                )
            before = lines.line_num + 1
    except csv.Error as error:
        raise DataError(f"{source}, line {lines.line_num}: {error}; correct the line.") from None


def _all_wide(raw: bytes, sep: str, width: int) -> bool:
    """Whether a count of separators outside quotes finds every line as wide as the header; blank lines do not count."""
    data = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", dtype=np.uint8)
    outside = ~np.logical_xor.accumulate(data == ord('"')) if b'"' in raw else np.ones(1, dtype=bool)
    if not outside[-1]:
        return False
    ends = np.flatnonzero((data == ord("\n")) & outside)
    seps = np.flatnonzero((data == ord(sep)) & outside)
    counts = np.diff(np.searchsorted(seps, ends), prepend=0)
    lengths = np.diff(ends, prepend=-1) - 1
    blank = (lengths == 0) | ((lengths == 1) & (data[np.maximum(ends - 1, 0)] == ord("\r")))
    return bool((blank | (counts == width - 1)).all())


def _parse(raw: bytes, sep: str, source: str, dtype: type | None = None) -> pd.DataFrame:
    try:
        frame = pd.read_csv(
            io.BytesIO(raw),
            sep=sep,
            dtype=dtype,
            na_values=list(GAPS),
            keep_default_na=False,
            skipinitialspace=True,
            index_col=False,
            low_memory=False,
        )
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"{source}: not a readable table ({show(str(error), 120)}); correct the file.") from None
    for place, name in enumerate(frame.columns):
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            frame.isetitem(place, _tidy(frame[name], dtype is None))
    return frame


def _tidy(column: pd.Series, to_numbers: bool) -> pd.Series:
    """Text without spaces around it, gap words gone; truth values with gaps in the nullable dtype."""
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        return column.astype("boolean")
    text = column.astype("str").str.strip()
    text = text.where(~text.isin(GAPS))
    numbers = pd.to_numeric(text, errors="coerce")
    return numbers if to_numbers and bool((numbers.notna() == text.notna()).all()) else text


def _keep_padded(frame: pd.DataFrame, raw: bytes, sep: str, source: str) -> None:
    """Numbers with leading zeros ("007") are codes: their columns stay text."""
    texts = _parse(raw, sep, source, dtype=str)
    for place in range(frame.shape[1]):
        text = texts.iloc[:, place]
        if text.str.fullmatch(r"[+-]?0[0-9]+").any():
            frame.isetitem(place, text)
