"""Tables with some observed cells hidden, as a frame for plurigp and as numbers and codes for the peers."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from plurigp.answers.heldout import hide_cells
from plurigp.data import Schema, infer_schema
from plurigp.datasets import load_support

SETTINGS = {"n_components": 10, "kernel": "linear+rbf", "random_state": 0}  # for every table
SUPPORT = "support"
COUNTS = ("poisson", "negative_binomial", "zero_inflated_poisson", "binomial")


@dataclass(frozen=True, eq=False)
class Hidden:
    """A table, what is shown of it, and the error of what is put into the gaps."""

    name: str
    frame: pd.DataFrame
    shown: pd.DataFrame
    schema: Schema

    @cached_property
    def kinds(self) -> list[str]:
        """ "category", "ordinal", "count" or "number" of every column."""
        return [_kind(self.frame[name].dtype) for name in self.frame]

    @cached_property
    def numbers(self) -> np.ndarray:
        return self.as_numbers(self.frame)

    @cached_property
    def hidden(self) -> np.ndarray:
        return (self.shown.isna() & self.frame.notna()).to_numpy()

    def as_numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """Numbers, codes of categories, ranks of ordinals; NaN at gaps."""
        columns = []
        for name, series in frame.items():
            if isinstance(dtype := self.frame[name].dtype, pd.CategoricalDtype):
                codes = dtype.categories.get_indexer(series.astype(dtype.categories.dtype)).astype(float)
                columns.append(np.where(codes < 0, np.nan, codes))
            else:
                columns.append(series.to_numpy(float, na_value=np.nan))
        return np.stack(columns, 1)

    def errors(self, filled: np.ndarray) -> list[float]:
        """Per column, on its hidden cells."""
        out = []
        for d, kind in enumerate(self.kinds):
            at = self.hidden[:, d]
            y, ours = self.numbers[at, d], filled[at, d]
            if kind == "category":
                out.append(np.mean(y != ours))
            elif kind == "ordinal":
                out.append(np.mean(np.abs(y - ours)) / len(self.frame.iloc[:, d].dtype.categories))
            else:
                out.append(np.sqrt(np.mean((y - ours) ** 2)) / np.ptp(self.numbers[~np.isnan(self.numbers[:, d]), d]))
        return [float(error) for error in out]


def _kind(dtype: object) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordinal" if dtype.ordered else "category"
    return "count" if pd.api.types.is_integer_dtype(dtype) else "number"


def read_hidden(table: str, rate: int, draw: int) -> Hidden:
    """One draw of `rate` percent of the cells of a folder's table, or of SUPPORT's patients."""
    if table == SUPPORT:
        support = load_support()
        frame = _coded(support.table, support.schema)
        return Hidden(SUPPORT, frame, hide_cells(frame, support.schema, rate / 100, draw), support.schema)
    folder = Path(table)
    frame = _read(folder)
    hidden = np.zeros(frame.shape, bool)
    places = pd.read_csv(folder / f"Missing{rate}_{draw}.csv", header=None).to_numpy() - 1
    hidden[places[:, 0], places[:, 1]] = True
    shown = pd.DataFrame({name: frame[name].mask(hidden[:, d]) for d, name in enumerate(frame)})
    return Hidden(folder.name, frame, shown, _no_proportions(infer_schema(shown, None)))


def _no_proportions(schema: Schema) -> Schema:
    """As inferred, but the format has no proportions: numbers that happen to lie below one may well exceed it."""
    return Schema(tuple(replace(c, kind="gaussian", reason="") if c.kind == "beta" else c for c in schema))


def _coded(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Columns with levels as pandas' categories in the schema's order."""
    out = frame.copy()
    for column in schema.used:
        if column.levels:
            levels = pd.CategoricalDtype(list(column.levels), ordered=column.kind == "ordinal")
            out[column.name] = frame[column.name].astype(levels)
        elif column.kind in COUNTS:
            out[column.name] = frame[column.name].astype("Int64")
    return out[[column.name for column in schema.used]]


def _read(folder: Path) -> pd.DataFrame:
    types = pd.read_csv(folder / "data_types.csv")["type"]
    raw = pd.read_csv(folder / "data.csv", header=None)
    columns = {}
    for d, kind in enumerate(types):
        y = raw[d]
        if kind in ("cat", "ordinal"):
            levels = [f"{int(v):02d}" for v in sorted(y.dropna().unique())]
            spelled = y.map(lambda v: f"{int(v):02d}", na_action="ignore")
            columns[f"c{d}"] = spelled.astype(pd.CategoricalDtype(levels, ordered=kind == "ordinal"))
        else:
            columns[f"c{d}"] = y.astype("Int64") if kind == "count" else y
    return pd.DataFrame(columns)
