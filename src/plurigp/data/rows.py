"""Rows: an input table whose columns are parsed on first use and kept."""

import os
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.core.files import PARQUET_SUFFIXES
from plurigp.core.text import file_name
from plurigp.core.types import DataError
from plurigp.data.cells import ColumnCells, cells_of, without_values
from plurigp.data.column import Column
from plurigp.data.frames import check_present, check_shape, to_frame
from plurigp.data.kinds import kind_of, read_cells

MAX_STACKED_ROWS = 32  # up to so many rows, columns that are read alike are read in one call


@runtime_checkable
class ColumnSource(Protocol):
    """A table that is not in memory, whose columns are read one at a time."""

    columns: pd.Index
    index: pd.RangeIndex

    def __getitem__(self, name: str) -> pd.Series: ...


class ParquetTable:
    """A Parquet file as a table whose columns are read one at a time, so that it may be larger than memory."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self._last = pd.Series(dtype=object)
        source = file_name(path)
        require_pyarrow(source)
        from pyarrow.parquet import ParquetFile

        try:
            with ParquetFile(self.path) as file:
                self.columns = pd.Index([str(name) for name in file.schema_arrow.names])
                self.index = pd.RangeIndex(file.metadata.num_rows)
        except FileNotFoundError:
            raise DataError(f"{source}: no such file; check the path.") from None
        except PYARROW_ERRORS:
            raise DataError(f"{source}: not a readable Parquet file; write it again.") from None

    def __getitem__(self, name: str) -> pd.Series:
        """One column; the last one is kept."""
        if self._last.name != name:
            frame = pd.read_parquet(self.path, engine="pyarrow", columns=[name])
            self._last = frame.reset_index(drop=True)[name]
        return self._last


PYARROW_ERRORS = (OSError, ValueError, TypeError, KeyError, RuntimeError)  # what pyarrow's own errors inherit from


def require_pyarrow(source: str) -> None:
    """An error that names the file where pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise DataError(f"{source}: Parquet files need pyarrow; install it with pip install plurigp[parquet].")


def is_parquet(path: object) -> bool:
    """Whether this is the path of a Parquet file, by its suffix."""
    return isinstance(path, str | os.PathLike) and str(path).lower().endswith(PARQUET_SUFFIXES)


@dataclass(frozen=True, eq=False)
class CellBounds:
    """Two bounds per cell [N]: equal where the value is known, infinite (or zero) where open, NaN at gaps.

    The value is a number in the column's units, the place of a level, or successes as a share of their trials.
    """

    low: np.ndarray
    high: np.ndarray

    @property
    def seen(self) -> np.ndarray:
        """[N] False at gaps, as in a coded Table."""
        return ~np.isnan(self.low)

    @property
    def exact(self) -> np.ndarray:
        """[N] whether the value is known."""
        return self.low == self.high

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, rows: np.ndarray) -> "CellBounds":
        """Some of the cells, by number or by a mask."""
        return CellBounds(self.low[rows], self.high[rows])


class Rows:
    """A table, and of a table in memory the parsed cells and checked numbers of its columns, kept once asked for.

    Of a Parquet file only the last column is kept, so it is read once by every pass over its columns.
    """

    def __init__(self, source: pd.DataFrame | ColumnSource) -> None:
        self.source, self.columns, self.index = source, source.columns, source.index
        self.in_memory = isinstance(source, pd.DataFrame)
        self._cells: dict[str, ColumnCells] = {}
        self._numbers: dict[tuple, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.index)

    @property
    def frame(self) -> pd.DataFrame:
        """The table as a frame in memory."""
        if not isinstance(self.source, pd.DataFrame):
            raise DataError("a Parquet file is read column by column here; read it with read_table(path) first.")
        return self.source

    def __getitem__(self, name: str) -> pd.Series:
        """One raw column; a column that is not there is an error."""
        check_present([name], self.columns)
        return self.source[name]

    def cells(self, name: str) -> ColumnCells:
        """The parsed cells of one column."""
        if name not in self._cells:
            cells = cells_of(self[name], name)
            if not self.in_memory:
                self._cells.clear()
            self._cells[name] = cells
        return self._cells[name]

    def column_cells(self, column: Column) -> ColumnCells:
        """The same, with the values that the column declares missing as gaps."""
        return without_values(self.cells(column.name), column.missing)

    def numbers(self, column: Column) -> np.ndarray:
        """Checked raw numbers [N R] of one column, NaN at gaps, read together with its companion where it has one."""
        key = column.reading
        if key in self._numbers:
            return self._numbers[key]
        companion = None
        if column.companion is not None:
            companion = without_values(self.cells(column.companion), column.missing)
        numbers = read_cells(column, self.column_cells(column), companion)
        if self.in_memory:
            self._numbers[key] = numbers
        return numbers

    def observed(self, column: Column) -> CellBounds:
        """What is known of the cells of one column in its own units, limits included."""
        numbers = self.numbers(column)
        if kind_of(column).has_bounds:
            return CellBounds(numbers[:, 0], np.where(np.isnan(numbers[:, 0]), np.nan, numbers[:, 1]))
        value = numbers[:, 0] if column.trials is None else numbers[:, 0] / numbers[:, 1]
        return CellBounds(value, value)

    def read_stacked(self, columns: Sequence[Column]) -> None:
        """Of a few rows, read the columns that are read alike as one long column.

        Reading a column costs some hundred microseconds however few its rows, so a single row would wait for them.
        """
        if not self.in_memory or len(self) > MAX_STACKED_ROWS:
            return
        objects = dict(zip(self.columns, self.frame.to_numpy(dtype=object).T, strict=True))
        dtypes = dict(zip(self.columns, self.frame.dtypes, strict=True))
        alike: dict[Hashable, list[Column]] = {}
        for column in columns:
            name = column.name
            if column.companion is None and name in objects and name not in self._cells and _is_plain(dtypes[name]):
                alike.setdefault((column.reading[1:], dtypes[name].name), []).append(column)
        for group in alike.values():
            with suppress(DataError):  # each of them alone will name the column and row
                cells = cells_of(np.concatenate([objects[column.name] for column in group]), group[0].name)
                parts = np.split(read_cells(group[0], without_values(cells, group[0].missing)), len(group))
                self._numbers |= {column.reading: part for column, part in zip(group, parts, strict=True)}


def to_rows(X: object) -> Rows:
    """A table of any make as Rows; a Parquet file given by its path stays a file read column by column."""
    if isinstance(X, Rows):
        return X
    if is_parquet(X):
        X = ParquetTable(X)  # type: ignore[arg-type]  # is_parquet says that it is a path
        check_shape(len(X.index), len(X.columns))
    return Rows(X if isinstance(X, ParquetTable) else to_frame(X))


def _is_plain(dtype: Any) -> bool:
    """Whether the cells alone, as objects, say all that the column says; objects may be of several sorts."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    return isinstance(dtype, pd.StringDtype) or (pdt.is_numeric_dtype(dtype) and not isinstance(dtype, pd.SparseDtype))
