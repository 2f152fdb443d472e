"""A folder of Parquet files as one long table, of which any range of rows is read by its row groups alone."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from plurigp.core.text import file_name, show
from plurigp.core.types import DataError
from plurigp.data.frames import check_unique_names
from plurigp.data.rows import PYARROW_ERRORS, is_parquet, require_pyarrow

SAMPLE_GROUPS = 32  # row groups, evenly spread, that a sample comes from at least, where there are so many


class RowGroup(NamedTuple):
    """Where some rows are: `first` is the number of the first one in the whole table."""

    file: Path
    number: int
    first: int
    n_rows: int


class SampledRows(NamedTuple):
    """Some rows of a table and their numbers in it."""

    frame: pd.DataFrame
    rows: np.ndarray  # [n]


class ParquetFolder:
    """The Parquet files of a folder, which have the same columns, in the order of their names.

    Opening it reads the files' footers only.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.source = path, file_name(path)
        require_pyarrow(self.source)
        self.files = sorted(file for file in path.iterdir() if is_parquet(file) and not file.name.startswith("."))
        if not self.files:
            raise DataError(f"{self.source}: holds no Parquet file; give a folder of .parquet files.")
        self.columns = _names(self.files[0])
        self.groups = list(self._row_groups())
        self.n_rows = self.groups[-1].first + self.groups[-1].n_rows if self.groups else 0
        if self.n_rows == 0:
            raise DataError(f"{self.source}: its files have column names but no rows; add rows.")

    def __len__(self) -> int:
        return self.n_rows

    def _row_groups(self) -> Iterator[RowGroup]:
        first = 0
        for file in self.files:
            if list(_names(file)) != list(self.columns):
                finding = f"has other columns than {show(self.files[0].name)}, or in another order"
                raise DataError(f"{file_name(file)}: {finding}; write all files of a table alike.")
            for number, n_rows in enumerate(_group_sizes(file)):
                yield RowGroup(file, number, first, n_rows)
                first += n_rows

    def rows_in(self, file: Path) -> int:
        """How many rows one of the files has."""
        return sum(group.n_rows for group in self.groups if group.file == file)

    def has_gaps(self, column: str) -> bool:
        """Whether a column has, or may have, a null somewhere, by the files' footers."""
        return any(_may_have_nulls(file, column) for file in self.files)

    def read(self, rows: range, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A range of rows; only row groups that hold some of them are read."""
        frames = []
        for group in self.groups:
            start, stop = max(rows.start, group.first), min(rows.stop, group.first + group.n_rows)
            if start < stop:
                frame = read_group(group, columns)
                frames.append(frame.iloc[start - group.first : stop - group.first])
        return pd.concat(frames, ignore_index=True)

    def sample(self, n_rows: int) -> SampledRows:
        """All rows, or so many of row groups that are spread evenly over the table; the same at every call."""
        if self.n_rows <= n_rows:
            return SampledRows(self.read(range(self.n_rows)), np.arange(self.n_rows))
        n_groups = max(SAMPLE_GROUPS, -(-n_rows * len(self.groups) // self.n_rows))
        chosen = [self.groups[n] for n in _evenly(len(self.groups), n_groups)]
        places = np.concatenate([np.arange(group.first, group.first + group.n_rows) for group in chosen])
        wanted, frames, found = _evenly(len(places), n_rows), [], 0
        for group in chosen:
            inside = wanted[(wanted >= found) & (wanted < found + group.n_rows)] - found
            frames.append(read_group(group).iloc[inside])
            found += group.n_rows
        return SampledRows(pd.concat(frames, ignore_index=True), places[wanted])


class ParquetRange:
    """A range of a folder's rows as a table whose columns are read one at a time."""

    def __init__(self, folder: ParquetFolder, rows: range) -> None:
        self.folder, self.rows = folder, rows
        self.columns, self.index = folder.columns, pd.RangeIndex(len(rows))
        self._last = pd.Series(dtype=object)

    def __getitem__(self, name: str) -> pd.Series:
        """One column; the last one is kept."""
        if self._last.name != name:
            self._last = self.folder.read(self.rows, [name])[name]
        return self._last


def read_group(group: RowGroup, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """All rows of a row group."""
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(group.file) as file:
            frame = file.read_row_group(group.number, columns=columns).to_pandas()
    except PYARROW_ERRORS:
        raise DataError(f"{file_name(group.file)}: row group {group.number} is not readable; write it again.") from None
    return frame.reset_index(drop=True)


def is_parquet_folder(path: object) -> bool:
    """Whether this is the path of a folder, the only kind of folder that holds a table."""
    return isinstance(path, str | Path) and Path(path).is_dir()


def _names(file: Path) -> pd.Index:
    from pyarrow.parquet import read_schema

    try:
        names = [str(name) for name in read_schema(file).names]
    except PYARROW_ERRORS:
        raise DataError(f"{file_name(file)}: not a readable Parquet file; write it again.") from None
    check_unique_names(names, file_name(file))
    return pd.Index(names)


def _group_sizes(file: Path) -> list[int]:
    from pyarrow.parquet import read_metadata

    footer = read_metadata(file)
    return [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]


def _may_have_nulls(file: Path, column: str) -> bool:
    from pyarrow.parquet import read_metadata

    footer = read_metadata(file)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for place in range(group.num_columns):
            if group.column(place).path_in_schema == column:
                statistics = group.column(place).statistics
                if statistics is None or not statistics.has_null_count or statistics.null_count:
                    return True
    return False


def _evenly(n: int, wanted: int) -> np.ndarray:
    """So many of n places, or all, spread evenly."""
    return np.arange(n) if wanted >= n else np.arange(wanted) * n // wanted
