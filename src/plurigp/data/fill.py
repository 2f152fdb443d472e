"""Puts point values into the gaps of a column without touching its observed cells or its dtype."""

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.data.cells import category_levels, plain_level, spell


def fill_gaps(series: pd.Series, gaps: np.ndarray, raw: pd.Series) -> pd.Series:
    """The series with raw[gaps] in its gaps; its dtype is kept wherever that dtype can hold the values."""
    places = np.flatnonzero(gaps & raw.notna().to_numpy())
    if len(places) == 0:
        return series
    values = raw.iloc[places].to_numpy(dtype=object)
    if isinstance(series.dtype, pd.CategoricalDtype):
        return _fill_category(series, places, values)
    filled = series.copy()
    try:
        filled.iloc[places] = fitted(values, series)
    except (TypeError, ValueError, OverflowError):
        filled = series.astype(object)
        filled.iloc[places] = values
    return filled


def fitted(values: np.ndarray, series: pd.Series) -> object:
    """The values in the form that the series' dtype takes."""
    dtype = series.dtype
    if pdt.is_bool_dtype(dtype):
        return [bool(value) for value in values]
    if pdt.is_integer_dtype(dtype):
        limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        return [int(min(max(round(value), limits.min), limits.max)) for value in values]
    if pdt.is_float_dtype(dtype):
        limit = np.finfo(getattr(dtype, "numpy_dtype", dtype)).max
        return np.clip(values.astype(np.float64), -float(limit), float(limit))
    if isinstance(dtype, pd.StringDtype):
        return _spelled(values, series.dropna())
    if dtype == object:
        return _like_objects(values, series)
    return values


def _spelled(values: np.ndarray, seen: pd.Series) -> list[str]:
    """Text: levels as they are, numbers to six digits, whole where the column's own numbers are whole."""
    if all(isinstance(value, str) for value in values):
        return list(values)
    whole = not seen.astype(str).str.contains(".", regex=False).any()
    return [spell(round(value) if whole else float(f"{value:.6g}")) for value in values]


def _like_objects(values: np.ndarray, series: pd.Series) -> np.ndarray:
    """Whole numbers among whole numbers, text among text; else the values as they are."""
    what = pdt.infer_dtype(series, skipna=True)
    filling = np.empty(len(values), dtype=object)
    if what == "string":
        filling[:] = _spelled(values, series.dropna())
    elif what == "integer":
        filling[:] = [int(round(value)) for value in values]
    elif what == "boolean":
        filling[:] = [bool(value) for value in values]
    else:
        filling[:] = values
    return filling


def _fill_category(series: pd.Series, places: np.ndarray, values: np.ndarray) -> pd.Series:
    """By place among the categories; a value that is no category makes the column a plain one."""
    known = {level: code for code, level in enumerate(category_levels(series.cat.categories))}
    codes = [known.get(plain_level(value), -1) for value in values]
    if min(codes) < 0:
        filled = series.astype(object)
        filled.iloc[places] = values
        return filled.infer_objects()
    filled = series.copy()
    filled.iloc[places] = series.cat.categories[codes]
    return filled


def in_dtype(raw: pd.Series, dtype: str) -> pd.Series:
    """A whole column of raw values in the dtype it had at fit, where that is possible."""
    if dtype == "category":
        return raw.astype("category")
    try:
        target = pd.Series([], dtype=dtype)
        gaps = raw.isna().to_numpy()
        if gaps.any() and not pdt.is_extension_array_dtype(target.dtype) and not pdt.is_float_dtype(target.dtype):
            return raw
        empty = pd.Series([None] * len(raw), dtype=dtype if gaps.any() or pdt.is_extension_array_dtype(target.dtype) else object)
    except (TypeError, ValueError):
        return raw
    del empty
    values = fitted(raw.to_numpy(dtype=object), target) if not gaps.any() else raw
    return pd.Series(values, dtype=dtype, name=raw.name, index=raw.index)
