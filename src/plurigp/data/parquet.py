"""A Parquet file as a table whose columns are read one at a time: raw cells of more than one are never in memory."""

import os
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from plurigp.core.text import file_name
from plurigp.core.types import DataError

PARQUET = (".parquet", ".pq")


def is_parquet(path: object) -> bool:
    """Whether this is the path of a Parquet file, by its suffix."""
    return isinstance(path, str | os.PathLike) and str(path).lower().endswith(PARQUET)


class ParquetTable:
    """What the data layer asks of a frame (columns, rows, one column), answered from the file."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        source = file_name(path)
        if find_spec("pyarrow") is None:
            raise DataError(f"{source}: Parquet files need pyarrow; install it with pip install plurigp[parquet].")
        from pyarrow.parquet import ParquetFile

        try:
            with ParquetFile(self.path) as file:
                self.columns = pd.Index([str(name) for name in file.schema_arrow.names])
                self.index = pd.RangeIndex(file.metadata.num_rows)
        except FileNotFoundError:
            raise DataError(f"{source}: no such file; check the path.") from None
        except (OSError, ValueError, TypeError, KeyError, RuntimeError):  # what pyarrow's own errors inherit from
            raise DataError(f"{source}: not a readable Parquet file; write it again.") from None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.index), len(self.columns)

    def __getitem__(self, name: str) -> pd.Series:
        """One column, read anew."""
        frame = pd.read_parquet(self.path, engine="pyarrow", columns=[name])
        return frame.reset_index(drop=True)[name]


Rows = pd.DataFrame | ParquetTable
