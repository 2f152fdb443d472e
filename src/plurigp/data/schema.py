"""Schema: the columns of a table and their kinds; dict, TOML and table forms of it."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import pandas as pd

from plurigp.data import toml
from plurigp.data.column import ASIDE, Column, checked_fields
from plurigp.data.kinds import KINDS, check_kind
from plurigp.data.wording import amount, at, listing, nearest, show
from plurigp.types import DataError

__all__ = ["ASIDE", "Column", "Schema", "load_schema"]


@dataclass(frozen=True)
class Schema:
    """Every column of a table, in the table's order; those set aside are kept by name and left out of the model."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        twice = [name for name, n in Counter(self.names).items() if n > 1]
        if twice:
            raise DataError(f"the schema names column {show(twice[0], 80)} twice; name each column once.")
        for column in self.columns:
            check_kind(column)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns the model sees."""
        return tuple(column for column in self.columns if column.kind != ASIDE)

    @property
    def aside(self) -> tuple[Column, ...]:
        """The columns the model does not see."""
        return tuple(column for column in self.columns if column.kind == ASIDE)

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {show(name, 80)} in the schema.{nearest(name, self.names)}")

    def override(self, changes: Mapping) -> "Schema":
        """The schema with some columns declared anew: {"age": "gaussian"} or {"spo2": {"kind": "beta", "bounds": [0, 100]}}."""
        known_names(changes, self.names)
        columns = tuple(changed(column, changes[column.name]) if column.name in changes else column for column in self)
        return Schema(trials_aside(columns))

    def to_dict(self) -> dict:
        """Plain lists, strings and numbers, ready for JSON; `from_dict` restores it exactly."""
        return {"columns": [asdict(column) for column in self.columns]}

    @staticmethod
    def from_dict(saved: Mapping) -> "Schema":
        """The schema that `to_dict` wrote."""
        entries = saved.get("columns") if isinstance(saved, Mapping) else None
        if not isinstance(entries, list | tuple):
            raise DataError('a saved schema must hold a list under "columns".')
        return Schema(tuple(_column(entry, "the saved schema") for entry in entries))

    def to_toml(self) -> str:
        """The schema as a text to edit; dtypes are left out, since the table itself tells them."""
        return toml.dumps(self.columns)

    @staticmethod
    def from_toml(text: str, source: str = "schema") -> "Schema":
        """Reads what `to_toml` wrote and a person edited; `source` names the file in errors."""
        parsed = toml.loads(text, source)
        entries = parsed.pop("column", [])
        if parsed or not isinstance(entries, list):
            name = next(iter(parsed), "column")
            raise DataError(f"{source}: {show(name)} is not expected here; write one [[column]] table per column.")
        try:
            return Schema(tuple(_column(entry, "a [[column]] table") for entry in entries))
        except DataError as error:
            raise DataError(f"{source}: {error}") from None

    def summary(self, frame: pd.DataFrame | None = None) -> pd.DataFrame:
        """A table to print: column, kind, detail, reason, and the share of observed cells if the frame is given."""
        rows = {
            "column": [column.name for column in self],
            "kind": [column.kind for column in self],
            "detail": [detail(column) for column in self],
            "reason": [column.reason for column in self],
        }
        if frame is not None:
            share = [100.0 * float(frame[name].notna().mean()) for name in self.names]
            rows["observed %"] = pd.Series(share).round(1).tolist()
        return pd.DataFrame(rows)


def detail(column: Column) -> str:
    """What its kind needs to know, in a few words."""
    if column.kind == ASIDE:
        return ""
    if column.levels:
        return listing(column.levels, limit=5)
    if column.trials is not None:
        return f"out of {column.trials}" if isinstance(column.trials, int) else f"out of column {show(column.trials)}"
    return "" if column.bounds is None else f"from {amount(column.bounds[0])} to {amount(column.bounds[1])}"


def known_names(changes: Mapping, names: tuple[str, ...]) -> None:
    """Raises when a declaration names a column that the table does not have."""
    for name in changes:
        if name not in names:
            raise DataError(f"the schema names {at(name)}, which is not in the table.{nearest(name, names)}")


def changed(column: Column, change: object) -> Column:
    """The column as declared: a new kind drops the settings that do not belong to it."""
    given = declaration(column.name, change)
    kind = str(given.get("kind", column.kind))
    known = replace(column, kind=kind)
    check_kind(known)
    belongs = KINDS[kind].fields if kind in KINDS else ()
    for key in ("levels", "trials", "bounds"):
        if given.get(key) and key not in belongs:
            raise DataError(f"{at(column.name)}: {key} does not belong to kind {show(kind)}; leave it out.")
    kept = {key: getattr(column, key) for key in belongs}
    reason = "declared" if kind != column.kind or not column.reason else column.reason
    return Column(**{"name": column.name, "dtype": column.dtype, "reason": reason, **kept, **given, "kind": kind})


def declaration(name: str, change: object) -> dict:
    """What a person wrote about one column (a kind, a mapping or a Column) as checked settings."""
    if isinstance(change, Column):
        given = {key: getattr(change, key) for key in ("kind", "reason", "levels", "trials", "bounds")}
        return {key: value for key, value in given.items() if key == "kind" or value}
    if isinstance(change, str):
        return {"kind": change}
    if isinstance(change, Mapping):
        return checked_fields(name, change)
    raise DataError(f"{at(name)}: declare it as a kind or as a mapping of settings, not {show(change)}.")


def trials_aside(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Columns that hold the trials of a binomial are set aside; a name that is no column is an error."""
    names = tuple(column.name for column in columns)
    owners = {c.trials: c.name for c in columns if c.kind == "binomial" and isinstance(c.trials, str)}
    for trials, owner in owners.items():
        if trials not in names:
            raise DataError(f"{at(owner)}: its trials are in column {show(trials, 80)}, which is not in the table.{nearest(trials, names)}")
    return tuple(
        Column(c.name, ASIDE, f"holds the trials of {show(owners[c.name], 80)}", dtype=c.dtype) if c.name in owners else c
        for c in columns
    )


def load_schema(path: str | os.PathLike) -> Schema:
    """The schema in a TOML file; errors name the file."""
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{source}: not UTF-8 text; save the schema as UTF-8.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{source}: cannot be read as a schema ({why}); check the path.") from None
    return Schema.from_toml(text, source)


def _column(entry: object, where: str) -> Column:
    """One column from a parsed file."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not entry["name"].strip():
        raise DataError(f"{where} has no name; give each column name = \"...\".")
    name = entry["name"]
    if "kind" not in entry:
        raise DataError(f"{at(name)}: no kind; give kind = \"...\".")
    allowed = {field.name for field in fields(Column)}
    rest = {key: value for key, value in entry.items() if key not in ("name", "dtype")}
    given = checked_fields(name, rest)
    dtype = str(entry.get("dtype", "float64")) if "dtype" in allowed else "float64"
    return Column(**{"name": name, "dtype": dtype, **given})
