"""Table: coded numbers for the model. Coder: fitted on the training rows, it codes tables and undoes the coding."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types as pdt

from plurigp.core.text import at, nearest, show
from plurigp.core.types import DataError
from plurigp.data.column import ASIDE, Column
from plurigp.data.fill import fill_gaps, in_dtype
from plurigp.data.kinds import kind_of, settled
from plurigp.data.numeric import Units
from plurigp.data.rows import Rows, to_rows
from plurigp.data.scale import warn_out_of_scale
from plurigp.data.schema import Schema, companions_aside
from plurigp.data.sentinels import warn_sentinels
from plurigp.data.weights import repeated_by_weight


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as the model takes them: a gap holds a stand-in from its kind's domain, and False in `seen`."""

    values: np.ndarray  # float64 [N V]: the used columns one after another, W slots each
    seen: np.ndarray  # bool [N D]
    schema: Schema  # used columns only
    index: pd.Index  # the frame's own row labels
    covariates: np.ndarray | None = None  # float64 [N _]: the coded covariates, one after another

    def hidden(self, mask: np.ndarray) -> "Table":
        """The same rows with the cells in `mask` [N D] as gaps, all slots of a cell; trials of successes stay known."""
        values, first = self.values.copy(), 0
        for d, column in enumerate(self.schema):
            stand_in = kind_of(column).stand_in
            n_hidden = len(stand_in) if column.trials is None else 1
            values[mask[:, d], first : first + n_hidden] = stand_in[:n_hidden]
            first += len(stand_in)
        return replace(self, values=values, seen=self.seen & ~mask)


def take_rows(table: Table, rows: np.ndarray) -> Table:
    """Some rows of a table, by number."""
    covariates = None if table.covariates is None else table.covariates[rows]
    taken = replace(table, values=table.values[rows], seen=table.seen[rows], index=table.index[rows])
    return replace(taken, covariates=covariates)


class CodedColumn(NamedTuple):
    """Values [N W] and seen [N] of one column."""

    values: np.ndarray
    seen: np.ndarray


@dataclass(frozen=True, eq=False)
class Coder:
    """What was learned from the training rows alone (levels, means, deviations, bounds), and its two uses."""

    schema: Schema  # all columns, those set aside too
    shift: np.ndarray  # float64 [D]: raw = shift + scale * coded
    scale: np.ndarray  # float64 [D]
    squeeze: np.ndarray  # float64 [D]: the number of cells n in the squeezing of proportions, 0 = not squeezed
    covariates: "Coder | None" = None  # of the covariates, which it codes as it would code modelled columns

    @staticmethod
    def fit(frame: object, schema: Schema, weights: np.ndarray | None = None) -> "Coder":
        """Completes the schema from the training rows and measures the units of its columns, rows by their weights."""
        rows = to_rows(frame)
        counted = slice(None) if weights is None else repeated_by_weight(weights, len(rows))
        measured = {column.name: _measured(column, rows, counted) for column in schema}
        columns = companions_aside(tuple(column for column, _ in measured.values()), rows.columns)
        if not any(column.used for column in columns):
            few = "; the table has only 1 sample (row)" if len(rows) == 1 else ""
            reasons = "; ".join(f"{show(column.name)}: {column.reason}" for column in columns[:3])
            finding = f"no usable column is left, all {len(columns)} are set aside ({reasons}){few}"
            raise DataError(f"{finding}. Declare a kind for one of them.")
        given = Schema(tuple(replace(column, covariate=False) for column in Schema(columns).covariates))
        units = {name: own for name, (_, own) in measured.items()}
        covariates = Coder(given, *_unit_arrays(given, units)) if len(given) else None
        return Coder(Schema(columns), *_unit_arrays(Schema(columns), units), covariates)

    def table(self, frame: object) -> Table:
        """Checks and codes a table; further columns are ignored, a missing one is an error."""
        rows = to_rows(frame)
        coded = list(self.coded_columns(rows))
        values = np.concatenate([column.values for column in coded], axis=1)
        seen = np.stack([column.seen for column in coded], axis=1)
        return Table(values, seen, self._used, rows.index, self.covariate_values(rows))

    def covariate_values(self, frame: object) -> np.ndarray | None:
        """Coded covariates [N _], if the model has any; a gap in one is an error."""
        if self.covariates is None:
            return None
        table = self.covariates.table(frame)
        for d, column in enumerate(table.schema):
            if not table.seen[:, d].all():
                finding = f"{at(column.name, int(np.argmin(table.seen[:, d])))}: a covariate has a gap"
                remedy = "fill it, leave the row out, or fit with covariates_missing='model'"
                raise DataError(f"{finding}; {remedy} (--model-gapped-covariates).")
        return table.values

    def coded_columns(self, rows: Rows) -> Iterator[CodedColumn]:
        """One used column after another."""
        rows.read_stacked(self._used.columns)
        for column, units in zip(self._used, self._units, strict=True):
            kind, numbers = kind_of(column), rows.numbers(column)
            coded = kind.code(column, numbers, units)
            yield CodedColumn(np.where(np.isnan(coded), kind.stand_in, coded), ~np.isnan(numbers[:, 0]))

    @property
    def log_units(self) -> np.ndarray:
        """log |d raw / d coded| per used column [D]: raw log density = coded one - log_units.

        Zero for discrete kinds, and for those whose cells carry their own.
        """
        n = np.maximum(self.squeeze, 2.0)
        units = np.log(self.scale) + np.where(self.squeeze > 0, np.log(n / (n - 1)), 0.0)
        return np.where([kind_of(column).unit_per_cell for column in self.schema.used], 0.0, units)

    def undo(self, name: str, coded: np.ndarray) -> pd.Series:
        """Coded values of one column in its raw units or levels; NaN stays a gap."""
        if name not in self._used:
            raise KeyError(f"no used column {show(name, 80)}.{nearest(name, self._used.names)}")
        return self._undo(self._used.names.index(name), coded)

    def frame(self, coded: np.ndarray, index: pd.Index | None = None) -> pd.DataFrame:
        """A frame of the used columns from coded values [N D], in the dtypes of the fit where possible."""
        filled = {c.name: in_dtype(_storable(c, self._undo(d, coded[:, d])), c) for d, c in enumerate(self._used)}
        return pd.DataFrame(filled) if index is None else pd.DataFrame(filled).set_axis(index, axis=0)

    def fill(self, frame: object, coded: np.ndarray, fill_limits: bool = False) -> pd.DataFrame:
        """The frame with the gaps of its used columns filled from coded values [N D]; observed cells as they were.

        With `fill_limits`, censored cells become numbers too.
        """
        rows = to_rows(frame)
        filled = (frame if isinstance(frame, pd.DataFrame) else rows.frame).copy()
        for d, column in enumerate(self._used):
            known = rows.numbers(column)
            gaps = np.isnan(known[:, 0])
            limits = (known[:, 0] < known[:, -1]) & (fill_limits and kind_of(column).has_bounds)
            if not (gaps | limits).any():
                continue
            raw = _within_trials(column, _storable(column, self._undo(d, coded[:, d])), known)
            for name in (column.name, column.upper):
                if name is not None:
                    # where limits are filled, the column becomes one of plain numbers: known values, else filled ones
                    exact = known[:, 0] == known[:, -1]
                    series = raw.where(~exact, known[:, 0]).array if limits.any() else fill_gaps(rows[name], gaps, raw)
                    filled.isetitem(rows.columns.get_loc(name), series)  # type: ignore[arg-type]  # keeps its dtype
        return filled

    def to_dict(self) -> dict:
        """JSON-safe and exact: `from_dict` restores every float to the bit."""
        parts = {"shift": self.shift, "scale": self.scale, "squeeze": self.squeeze}
        own = {"schema": self.schema.to_dict(), **{key: part.tolist() for key, part in parts.items()}}
        return own if self.covariates is None else {**own, "covariates": self.covariates.to_dict()}

    @staticmethod
    def from_dict(saved: object) -> "Coder":
        """The coder that `to_dict` wrote."""
        saved = saved if isinstance(saved, Mapping) else {}
        schema = Schema.from_dict(saved.get("schema", {}))
        try:
            parts = [np.array(saved.get(key, ()), dtype=np.float64) for key in ("shift", "scale", "squeeze")]
        except (TypeError, ValueError):
            parts = []
        if len(parts) != 3 or any(p.shape != (len(schema.used),) or not np.isfinite(p).all() for p in parts):
            raise DataError("a saved coder must hold shift, scale and squeeze of every used column; save it again.")
        covariates = Coder.from_dict(saved["covariates"]) if schema.covariates else None
        if covariates is not None and covariates.schema.names != tuple(c.name for c in schema.covariates):
            raise DataError("a saved coder must hold the units of its covariates; save it again.")
        return Coder(schema, parts[0], parts[1], parts[2], covariates)

    @cached_property
    def _used(self) -> Schema:
        return Schema(self.schema.used)

    @cached_property
    def _units(self) -> tuple[Units, ...]:
        return tuple(starmap(Units, zip(self.shift.tolist(), self.scale.tolist(), self.squeeze.tolist(), strict=True)))

    def _undo(self, d: int, coded: np.ndarray) -> pd.Series:
        column = self._used.columns[d]
        raw = kind_of(column).decode(np.asarray(coded, dtype=np.float64), self._units[d])
        if not column.levels:
            return pd.Series(raw, name=column.name)
        gaps = np.isnan(raw)
        places = np.where(gaps, 0, np.minimum(raw, len(column.levels) - 1)).astype(np.int64)
        levels = pd.Series(list(column.levels), name=column.name).iloc[places].reset_index(drop=True)
        return levels.astype(object).where(~gaps) if gaps.any() else levels


def _unit_arrays(schema: Schema, units: Mapping[str, Units]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shift, scale and squeeze of the used columns."""
    shift, scale, squeeze = np.array([units[column.name] for column in schema.used], dtype=np.float64).T.copy()
    return shift, scale, squeeze


def _measured(column: Column, rows: Rows, counted: np.ndarray | slice) -> tuple[Column, Units]:
    """One column of the schema with its dtype and levels from the training rows, and its units from those counted."""
    if column.name in rows.columns:
        column = replace(column, dtype=str(rows[column.name].dtype))
    if column.kind != ASIDE:
        column = settled(column, rows.column_cells(column))
    if column.kind == ASIDE:  # declared, or no cell is left
        return column, Units()
    numbers = rows.numbers(column)
    warn_out_of_scale(column, numbers[:, 0])
    warn_sentinels(column, numbers[:, 0])
    seen = ~np.isnan(numbers[:, 0])
    if seen[counted].any():  # else, for want of others, by rows of no weight
        numbers, seen = numbers[counted], seen[counted]
    return column, kind_of(column).units(column, numbers[seen])


def _storable(column: Column, raw: pd.Series) -> pd.Series:
    """Positive values of a column of whole numbers stay above zero when they are rounded."""
    whole = kind_of(column).positive and pdt.is_integer_dtype(column.dtype)
    return raw.clip(lower=1.0) if whole else raw


def _within_trials(column: Column, raw: pd.Series, known: np.ndarray) -> pd.Series:
    """Filled successes never exceed the trials of their row, where those are known."""
    if column.trials is None:
        return raw
    trials = known[:, 1]
    return raw.where(np.isnan(trials) | (raw.to_numpy() <= trials), trials)
