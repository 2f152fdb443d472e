"""Tables of every make (pandas, polars, NumPy, lists, dicts) as one pandas frame with checked names."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.text import at, nearest, show
from plurigp.core.types import DataError


def to_frame(X: object) -> pd.DataFrame:
    """The table as a pandas frame with text names, each once; cells are shared, not copied, where possible.

    The columns of an array are named x0, x1, ...
    """
    frame = _frame(X)
    check_shape(*frame.shape)
    return with_text_names(frame)


def check_shape(n_rows: int, n_columns: int) -> None:
    """Raises for a table without rows or columns, in scikit-learn's words."""
    for n, what in ((n_rows, "sample"), (n_columns, "feature")):
        if n < 1:
            shape = (n_rows, n_columns)
            raise DataError(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")


def _frame(X: object) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "tocsr") or hasattr(X, "tocoo"):
        raise TypeError("Sparse data was passed, but dense data is required; convert it with X.toarray().")
    if _is_polars(X):
        return _from_polars(X)
    if isinstance(X, Mapping):
        return _from_dict(X)
    if hasattr(X, "to_pandas") and not isinstance(X, pd.Series):
        return _frame(X.to_pandas())
    if isinstance(X, list | tuple):
        return _from_lists(X)
    if isinstance(X, str | bytes) or X is None:
        raise DataError(f"expected a table, got {show(X)}; read a file with read_table(path) first.")
    return _from_array(X if isinstance(X, np.ma.MaskedArray) else np.asarray(X))


def with_text_names(frame: pd.DataFrame, source: str = "the table") -> pd.DataFrame:
    """The frame with its names as text; an empty name or one used twice is an error."""
    labels: list[Any] = frame.columns.tolist()
    names = ["" if label is None or label != label else str(label) for label in labels]
    check_unique_names(names, source)
    return frame if names == labels else frame.set_axis(names, axis=1)


def check_unique_names(names: Sequence[str], source: str) -> None:
    """Raises for a column without a name, or with that of another."""
    for place, name in enumerate(names):
        if not name.strip():
            raise DataError(f"{source}: column {place + 1} has no name; name it, or leave row labels out.")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(f"{source}: the name of {at(twice[0])} occurs more than once; rename one of them.")


def check_present(names: Iterable[str], columns: pd.Index) -> None:
    """Raises for the first of these columns that a table lacks."""
    for name in names:
        if name not in columns:
            hint = nearest(name, columns)
            raise DataError(f"{at(name)} is missing from the table; add it (its cells may be gaps).{hint}")


def check_named(role: str, name: str, columns: pd.Index) -> None:
    """Raises where a parameter names a column that the table does not have."""
    if name not in columns:
        hint = nearest(name, columns)
        raise DataError(f"{role} = {show(name)}: is not a column of the table; correct the name.{hint}")


def _from_array(array: np.ndarray) -> pd.DataFrame:
    if array.dtype.names:
        raise DataError("structured arrays are not supported; pass pandas.DataFrame(X) instead.")
    if array.ndim == 0:
        raise DataError("Expected 2D array, got scalar array instead. Reshape your data to one row per sample.")
    if array.ndim == 1:
        raise DataError("Expected 2D array, got 1D array instead. Reshape your data: array.reshape(1, -1) is one row.")
    if array.ndim > 2:
        raise DataError(f"Found array with dim {array.ndim}, while dim <= 2 is required. Flatten each row.")
    if np.iscomplexobj(array):
        raise DataError("Complex data not supported; pass real and imaginary parts as columns.")
    frame = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])
    return frame.infer_objects() if array.dtype == object else frame


def _from_lists(rows: Sequence) -> pd.DataFrame:
    if not rows:
        raise DataError("Found array with 0 sample(s) (shape=(0,)) while a minimum of 1 is required.")
    if all(isinstance(row, Mapping) for row in rows):
        return pd.DataFrame(list(rows))
    if not all(isinstance(row, Sequence | np.ndarray) and not isinstance(row, str | bytes) for row in rows):
        return _from_array(np.empty(len(rows)))
    widths = [len(row) for row in rows]
    for place, width in enumerate(widths):
        if width != widths[0]:
            raise DataError(f"row {place} has {width} cells where row 0 has {widths[0]}; make all rows equally long.")
    array = np.empty((len(rows), widths[0]), dtype=object)
    for place, row in enumerate(rows):
        array[place] = list(row)
    return _from_array(array)


def _from_dict(columns: Mapping) -> pd.DataFrame:
    sizes = {name: len(cells) for name, cells in columns.items() if isinstance(cells, Sized) and type(cells) is not str}
    if len(sizes) < len(columns):
        name = next(name for name in columns if name not in sizes)
        raise DataError(f"{at(name)}: expected a list of cells, got one value; wrap it in a list.")
    first = next(iter(sizes.values()), 0)
    for name, size in sizes.items():
        if size != first:
            raise DataError(f"{at(name)}: {size} cells where the first column has {first}; make all equally long.")
    return pd.DataFrame(
        {name: _polars_column(cells) if _is_polars(cells) else cells for name, cells in columns.items()}
    )


def _is_polars(X: object) -> bool:
    return type(X).__module__.split(".")[0] == "polars"


def _from_polars(X: object) -> pd.DataFrame:
    import polars as pl

    if isinstance(X, pl.LazyFrame):
        raise DataError("a polars LazyFrame holds no cells yet; call .collect() first.")
    if not isinstance(X, pl.DataFrame):
        raise DataError("Expected 2D array, got 1D array instead. Reshape your data: pass a frame, not a series.")
    index = pd.RangeIndex(X.height)
    return pd.DataFrame({name: pd.Series(_polars_column(X[name]), index=index) for name in X.columns}, index=index)


def _polars_column(series: Any) -> Any:
    """One polars column without going through pyarrow: nulls stay nulls, integers stay integers."""
    import polars as pl

    dtype = series.dtype
    gaps = series.is_null().to_numpy()
    if dtype == pl.Boolean:
        return pd.arrays.BooleanArray(series.fill_null(False).to_numpy().copy(), gaps.copy())
    if dtype.is_decimal() or str(dtype).endswith("128"):  # whole numbers that NumPy has no type for
        return series.cast(pl.Float64).to_numpy()
    if dtype.is_integer() and gaps.any():
        return pd.arrays.IntegerArray(series.fill_null(0).to_numpy().copy(), gaps.copy())
    if dtype.is_numeric() or (dtype.is_temporal() and dtype != pl.Time):
        return series.to_numpy()
    if dtype == pl.String:
        return pd.array(series.to_list(), dtype="str")
    if isinstance(dtype, pl.Enum):
        return pd.Categorical(series.cast(pl.String).to_list(), categories=dtype.categories.to_list(), ordered=True)
    if dtype == pl.Categorical:
        return pd.Categorical(series.cast(pl.String).to_list())
    cells = np.empty(len(series), dtype=object)
    cells[:] = series.to_list()
    return cells
