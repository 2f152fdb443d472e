"""Table: coded numbers for the model. Coder: fitted on the training rows, it codes frames and undoes the coding."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from plurigp.data.cells import Cells, cells_of
from plurigp.data.column import Column
from plurigp.data.fill import fill_gaps, in_dtype
from plurigp.data.frames import to_frame
from plurigp.data.infer import settled
from plurigp.data.kinds import Units, kind_of
from plurigp.data.schema import Schema, trials_aside
from plurigp.data.wording import at, nearest, show
from plurigp.types import DataError


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as the model takes them: a gap holds a stand-in from the kind's support, and False in `seen`."""

    values: np.ndarray  # float64 [N V]: the used columns one after another, W slots each
    seen: np.ndarray  # bool [N D]
    schema: Schema  # used columns only
    index: pd.Index  # the frame's own row labels


@dataclass(frozen=True, eq=False)
class Coder:
    """What was learned from the training rows alone: levels, means, deviations, bounds."""

    schema: Schema  # all columns, those set aside too
    shift: np.ndarray  # float64 [D]
    scale: np.ndarray  # float64 [D]
    squeeze: np.ndarray  # float64 [D]: the number of cells in the squeezing rule of proportions, 0 = not squeezed

    @staticmethod
    def fit(frame: object, schema: Schema) -> "Coder":
        """Completes the schema from the training rows and measures the units of its columns."""
        table = to_frame(frame)
        schema = _settle(table, schema)
        units = [_units(column, table) for column in schema.used]
        shift, scale, squeeze = (np.array(part, dtype=np.float64) for part in zip(*units, strict=True))
        return Coder(schema, shift, scale, squeeze)

    def table(self, frame: object) -> Table:
        """Checks and codes a frame; columns the schema does not use are ignored, a missing one is an error."""
        table = to_frame(frame)
        values, seen = [], []
        for column, units in zip(self.schema.used, self._units(), strict=True):
            kind = kind_of(column)
            raw = _read(column, table)
            present = ~np.isnan(raw[:, 0])
            coded = raw.copy()
            coded[:, 0] = kind.code(column, raw[:, 0], units)
            values.append(np.where(np.isnan(coded), np.array(kind.stand_in), coded))
            seen.append(present)
        return Table(np.concatenate(values, axis=1), np.stack(seen, axis=1), Schema(self.schema.used), table.index)

    @property
    def log_units(self) -> np.ndarray:
        """log |d raw / d coded| per used column [D]; 0 for discrete kinds. Raw log density = coded - log_units."""
        n = self.squeeze
        return np.log(self.scale) + np.where(n > 0, np.log(np.maximum(n, 2) / (np.maximum(n, 2) - 1)), 0.0)

    def undo(self, name: str, coded: np.ndarray) -> pd.Series:
        """Coded values of one column in its raw units or levels; NaN stays a gap."""
        place, column = self._place(name)
        raw = kind_of(column).decode(np.asarray(coded, dtype=np.float64), self._units()[place])
        if not column.levels:
            return pd.Series(raw, name=name)
        gaps = np.isnan(raw)
        chosen = np.where(gaps, 0, np.minimum(raw, len(column.levels) - 1)).astype(int)
        levels = pd.Series(list(column.levels), name=name)
        return levels.iloc[chosen].reset_index(drop=True).where(~gaps) if gaps.any() else levels.iloc[chosen].reset_index(drop=True)

    def frame(self, coded: np.ndarray, index: pd.Index | None = None) -> pd.DataFrame:
        """A frame of the used columns from coded values [N D], in the dtypes of the fit."""
        columns = self.schema.used
        series = [in_dtype(self.undo(c.name, coded[:, d]), c.dtype) for d, c in enumerate(columns)]
        table = pd.DataFrame(dict(zip((c.name for c in columns), series, strict=True)))
        return table if index is None else table.set_axis(index, axis=0)

    def fill(self, frame: object, coded: np.ndarray) -> pd.DataFrame:
        """The frame with the gaps of its used columns filled from coded values [N D]; observed cells as they were."""
        table = to_frame(frame)
        filled = (frame if isinstance(frame, pd.DataFrame) else table).copy()
        for d, column in enumerate(self.schema.used):
            series = _series(column.name, table)
            gaps = ~cells_of(series, column.name).seen
            if gaps.any():
                place = int(table.columns.get_loc(column.name))
                filled.isetitem(place, fill_gaps(series, gaps, self.undo(column.name, coded[:, d])))
        return filled

    def to_dict(self) -> dict:
        """JSON-safe and exact: floats are written so that they read back the same."""
        parts = {"shift": self.shift, "scale": self.scale, "squeeze": self.squeeze}
        return {"schema": self.schema.to_dict(), **{key: part.tolist() for key, part in parts.items()}}

    @staticmethod
    def from_dict(saved: Mapping) -> "Coder":
        """The coder that `to_dict` wrote."""
        schema = Schema.from_dict(saved.get("schema", {}))
        parts = [np.array(saved.get(key, ()), dtype=np.float64) for key in ("shift", "scale", "squeeze")]
        if any(part.shape != (len(schema.used),) for part in parts):
            raise DataError("a saved coder must hold shift, scale and squeeze for every used column; save it again.")
        return Coder(schema, *parts)

    def _units(self) -> list[Units]:
        return [Units(*map(float, unit)) for unit in zip(self.shift, self.scale, self.squeeze, strict=True)]

    def _place(self, name: str) -> tuple[int, Column]:
        for place, column in enumerate(self.schema.used):
            if column.name == name:
                return place, column
        raise KeyError(f"no used column {show(name, 80)}.{nearest(name, [c.name for c in self.schema.used])}")


def _settle(table: pd.DataFrame, schema: Schema) -> Schema:
    """The schema with levels and dtypes from the training rows; at least one column must stay in use."""
    columns = []
    for column in schema:
        if column.name in table.columns:
            column = replace(column, dtype=str(table[column.name].dtype))
        if column in Schema((column,)).used:
            column = settled(column, _cells(column.name, table))
        columns.append(column)
    whole = Schema(trials_aside(tuple(columns)))
    if not whole.used:
        few = " The table has 1 sample (one row)." if len(table) == 1 else ""
        reasons = "; ".join(f"{show(c.name)}: {c.reason}" for c in whole.columns[:3])
        raise DataError(f"no usable column is left: all {len(whole)} are set aside ({reasons}).{few} Declare a kind, or add rows.")
    return whole


def _series(name: str, table: pd.DataFrame) -> pd.Series:
    if name not in table.columns:
        raise DataError(f"{at(name)} is missing from the table; add it (its cells may be gaps).{nearest(name, table.columns)}")
    return table[name]


def _cells(name: str, table: pd.DataFrame) -> Cells:
    return cells_of(_series(name, table), name)


def _read(column: Column, table: pd.DataFrame) -> np.ndarray:
    """Checked raw numbers [N W] of one column, with its trials where it has some."""
    trials = _cells(column.trials, table) if isinstance(column.trials, str) else None
    return kind_of(column).read(column, _cells(column.name, table), trials)


def _units(column: Column, table: pd.DataFrame) -> Units:
    raw = _read(column, table)[:, 0]
    return kind_of(column).units(column, raw[~np.isnan(raw)])
