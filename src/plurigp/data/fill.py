"""Puts point values into the gaps of a column without touching its observed cells or its dtype."""

from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.data.cells import plain_level, spell
from plurigp.data.column import Column

CANNOT_HOLD = (TypeError, ValueError, OverflowError)


def fill_gaps(series: pd.Series, gaps: np.ndarray, raw: pd.Series) -> pd.Series:
    """The series with raw[gaps] in its gaps; its dtype is kept wherever that dtype can hold the values."""
    places = np.flatnonzero(gaps & raw.notna().to_numpy(dtype=bool))
    if len(places) == 0:
        return series
    if isinstance(series.dtype, pd.SparseDtype):
        series = pd.Series(np.asarray(series), index=series.index, name=series.name)
    filled, values = series.copy(), raw.iloc[places].to_numpy(dtype=object)
    try:
        filled.iloc[places] = _fitting(values, series)
    except CANNOT_HOLD:  # hand back plain objects
        filled = series.astype(object)
        filled.iloc[places] = values
        return filled.infer_objects()
    return filled


def in_dtype(raw: pd.Series, column: Column) -> pd.Series:
    """A whole column of raw values in the dtype it had at fit, where that is possible."""
    if raw.dtype == column.dtype or raw.isna().any():
        return raw
    if column.dtype == "category":
        return raw.astype(pd.CategoricalDtype(list(column.levels) or None))
    try:
        values = _fitting(raw.to_numpy(dtype=object), pd.Series([], dtype=column.dtype))
        return pd.Series(values, dtype=column.dtype, name=raw.name, index=raw.index)
    except CANNOT_HOLD:
        return raw


def _fitting(values: np.ndarray, series: pd.Series) -> Any:
    """The values in the form that the series' dtype takes; ValueError where there is none."""
    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _categories(values, dtype.categories)
    what = pdt.infer_dtype(series, skipna=True) if pdt.is_object_dtype(dtype) else ""
    if pdt.is_bool_dtype(dtype) or what == "boolean":
        return np.array([bool(value) for value in values], dtype=object)
    if pdt.is_float_dtype(dtype):
        limits = np.finfo(np.dtype(getattr(dtype, "numpy_dtype", dtype)))
        return np.clip(values.astype(np.float64), limits.min, limits.max).astype(limits.dtype)
    if pdt.is_integer_dtype(dtype):
        bounds = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        return np.array([min(max(round(float(v)), int(bounds.min)), int(bounds.max)) for v in values], dtype=object)
    if what == "integer":
        return np.array([round(float(value)) for value in values], dtype=object)
    if pdt.is_string_dtype(dtype) and what in ("", "string"):
        return np.array(_spelled(values, series), dtype=object)
    return values


def _spelled(values: np.ndarray, series: pd.Series) -> list[str]:
    """Levels as they are spelled; numbers to six digits, whole where the column's own numbers are whole."""
    if not all(isinstance(value, float) for value in values):
        return [spell(value) for value in values]
    seen = series.dropna().astype(str)
    whole = len(seen) > 0 and not seen.str.contains(".", regex=False).any()
    return [spell(round(value) if whole else float(f"{value:.6g}")) for value in values]


def _categories(values: np.ndarray, categories: pd.Index) -> pd.Index:
    """The categories that the values are; ValueError if one is none of them."""
    known = {plain_level(category): code for code, category in enumerate(categories.tolist())}
    codes = [known.get(plain_level(value), -1) for value in values]
    if -1 in codes:
        raise ValueError("not a category")
    return categories[codes]
