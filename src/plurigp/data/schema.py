"""Schema: the columns of a table and their kinds; its dict, TOML and printed forms."""

import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomlkit

from plurigp.core.text import amount, at, file_name, listing, nearest, printable, show
from plurigp.core.types import DataError
from plurigp.data.cells import are_among
from plurigp.data.column import ASIDE, ROLES, SETTINGS, Column, checked_settings
from plurigp.data.frames import check_present
from plurigp.data.kinds import KINDS, kind_of
from plurigp.data.missingness import with_indicators
from plurigp.data.sentinels import with_gaps_of
from plurigp.data.summary import SchemaSummary

MAX_SCHEMA_BYTES = 50_000_000


@dataclass(frozen=True)
class Schema:
    """Every column of a table, in the table's order; those set aside are kept by name and left out of the model."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        twice = [name for name, n in Counter(self.names).items() if n > 1]
        if twice:
            raise DataError(f"the schema names {at(twice[0])} twice; name each column once.")
        for column in (*self.used, *self.covariates):
            kind_of(column)
            _check_missing(column)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns the model describes."""
        return tuple(column for column in self.columns if column.used)

    @property
    def covariates(self) -> tuple[Column, ...]:
        """The columns that the model is given and does not describe."""
        return tuple(column for column in self.columns if column.covariate and column.kind != ASIDE)

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

    def matching(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with the columns of the fit, in their order: others left out, missing ones made up as gaps.

        Only columns set aside may be missing, unless another column is read together with them. Columns that say which
        cells are missing are made of those cells.
        """
        frame = with_indicators(self.with_gaps(frame), self.names)
        needed = {name for column in self.used for name in (column.name, column.companion) if name is not None}
        needed |= {column.name for column in self.covariates}
        check_present([name for name in self.names if name in needed], frame.columns)
        return frame.reindex(columns=list(self.names))

    def with_gaps(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with the values that the columns declare missing as gaps."""
        return with_gaps_of(frame, self.columns)

    def override(self, changes: Mapping) -> "Schema":
        """Some columns declared anew: {"age": "gaussian"} or {"spo2": {"kind": "beta", "bounds": [0, 100]}}."""
        check_names(changes, self.names)
        return Schema(companions_aside(tuple(changed(c, changes[c.name]) if c.name in changes else c for c in self)))

    def to_dict(self) -> dict:
        """Plain lists, text and numbers, ready for JSON; `from_dict` restores it exactly."""
        return {"columns": [column.to_dict() for column in self.columns]}

    @staticmethod
    def from_dict(saved: object) -> "Schema":
        """The schema that `to_dict` wrote."""
        entries = saved.get("columns") if isinstance(saved, Mapping) else None
        if not isinstance(entries, list | tuple):
            raise DataError('a saved schema must hold a list under "columns"; save it again.')
        return Schema(tuple(_column_from(entry) for entry in entries))

    def to_toml(self, suspected: Mapping[str, Sequence[float]] | None = None) -> str:
        """The schema as text to edit: reasons are comments, and dtypes are left to the table itself.

        So are, by column, numbers that are suspected to stand for gaps.
        """
        head = ["One [[column]] per column of the table. Change kind where the choice is wrong.", "Kinds:"]
        head += [f"  {kind.name}: {kind.about}" for kind in KINDS.values()]
        document, columns = tomlkit.document(), tomlkit.aot()
        for line in (*head, f"  {ASIDE}: not used by the model"):
            document.add(tomlkit.comment(line))
        for column in self:
            columns.append(_toml_table(column, (suspected or {}).get(column.name, ())))
        document.append("column", columns)
        return tomlkit.dumps(document)

    @staticmethod
    def from_toml(text: str, source: str = "schema") -> "Schema":
        """Reads what `to_toml` wrote and a person edited; `source` names the file in errors."""
        try:
            parsed = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"{source}: not valid TOML: {error}; correct it there.") from None
        except RecursionError:
            raise DataError(
                f"{source}: nested too deeply for a schema; write one [[column]] table per column."
            ) from None
        entries = parsed.pop("column", [])
        if parsed or not isinstance(entries, list):
            name = show(next(iter(parsed), "column"))
            raise DataError(f"{source}: {name} is not expected here; write one [[column]] table per column.")
        try:
            return Schema(tuple(_column_from(entry) for entry in entries))
        except DataError as error:
            raise DataError(f"{source}: {error}") from None

    def summary(self, frame: pd.DataFrame | None = None) -> SchemaSummary:
        """A frame that prints within 80 characters; with the table at hand also the share of observed cells."""
        lines = [(column.name, column.kind, detail(column), column.reason) for column in self]
        table = SchemaSummary(lines, columns=["column", "kind", "detail", "reason"])
        if frame is not None:
            frame = self.with_gaps(frame)
            shares = [round(100.0 * float(frame[name].notna().mean()), 1) for name in self.names]
            table.insert(3, "observed %", shares)
        return table


def detail(column: Column) -> str:
    """What its kind needs to know, and its role, in a few words."""
    roles = [
        *(["covariate"] if column.covariate else []),
        *([f"weight {column.weight:g}"] if column.weight != 1 else []),
        *([f"missing {listing(map(show, column.missing), limit=5)}"] if column.missing else []),
    ]
    return "; ".join(part for part in (*roles, _kind_detail(column)) if part)


def _kind_detail(column: Column) -> str:
    if column.levels:
        return listing(map(show, column.levels), limit=5)
    if column.trials is not None:
        return f"out of {show(column.trials)}"
    if column.upper or column.event:
        return f"with {show(column.companion)}"
    return "" if column.bounds is None else f"from {amount(column.bounds[0])} to {amount(column.bounds[1])}"


def check_names(changes: Mapping, names: tuple[str, ...], source: str = "the schema") -> None:
    """Raises when a declaration names a column that the table does not have."""
    unknown = [name for name in changes if name not in set(names)]
    if unknown:
        hint = nearest(unknown[0], names)
        raise DataError(f"{source} names {at(unknown[0])}, which is not in the table; correct the name.{hint}")


def changed(column: Column, change: object) -> Column:
    """The column as declared; settings of its old kind that the new kind does not have are dropped."""
    given = declaration(column.name, change)
    kind = given.get("kind", column.kind)
    if kind == ASIDE:
        reason, missing = given.get("reason", "declared"), given.get("missing", ())
        return Column(column.name, ASIDE, reason, dtype=column.dtype, missing=missing)
    settings = kind_of(replace(column, kind=kind)).settings
    for key in SETTINGS:
        if given.get(key) and key not in settings:
            raise DataError(f"{at(column.name)}: {key} does not belong to kind {show(kind)}; leave it out.")
    kept = {key: getattr(column, key) for key in (*settings, *ROLES)}
    reason = column.reason if kind == column.kind and column.reason else "declared"
    return Column(**{"name": column.name, "dtype": column.dtype, "reason": reason, **kept, **given, "kind": kind})


def declaration(name: str, change: object) -> dict[str, Any]:
    """What a person wrote about one column (a kind, a mapping or a Column) as checked settings."""
    if isinstance(change, str):
        return {"kind": change}
    if isinstance(change, Mapping):
        return checked_settings(name, change)
    if isinstance(change, Column):
        given = {key: getattr(change, key) for key in ("kind", "reason", *SETTINGS, *ROLES)}
        return checked_settings(name, {key: value for key, value in given.items() if value})
    raise DataError(f"{at(name)}: declare it as a kind or as a mapping of settings, not {show(change)}.")


def companions_aside(columns: tuple[Column, ...], also: Iterable[str] = ()) -> tuple[Column, ...]:
    """Columns read together with another are set aside; a name found neither here nor in `also` is an error."""
    names = {column.name for column in columns} | set(also)
    owners = {c.companion: c for c in columns if c.kind != ASIDE and c.companion is not None}
    for companion, owner in owners.items():
        if companion not in names or companion == owner.name:
            where = f"column {show(companion, 80)}, which is not in the table"
            where = "itself" if companion == owner.name else where
            hint = nearest(companion, names - {owner.name})
            raise DataError(f"{at(owner.name)}: its {_role(owner)} are in {where}; correct the name.{hint}")
    for column in columns:
        if column.name in owners and column.missing:
            owner = owners[column.name]
            finding = (
                f"{at(column.name)}: holds the {_role(owner)} of {show(owner.name, 80)} and is read with its missing"
            )
            raise DataError(f"{finding}; declare these values there, for both columns.")
    reasons = {name: f"holds the {_role(owner)} of {show(owner.name, 80)}" for name, owner in owners.items()}
    return tuple(Column(c.name, ASIDE, reasons[c.name], dtype=c.dtype) if c.name in reasons else c for c in columns)


def _role(owner: Column) -> str:
    return "upper bounds" if owner.upper else "events" if owner.event else "trials"


def load_schema(path: str | os.PathLike) -> Schema:
    """The schema in a TOML file; errors name the file."""
    source = file_name(path)
    try:
        if Path(path).stat().st_size > MAX_SCHEMA_BYTES:
            raise DataError(f"{source}: is larger than {MAX_SCHEMA_BYTES // 10**6} MB and no schema; check the path.")
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{source}: not UTF-8 text; save the schema as UTF-8.") from None
    except DataError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a path that no file system takes
        why = getattr(error, "strerror", None) or show(str(error))
        raise DataError(f"{source}: cannot be read as a schema ({why}); check the path.") from None
    return Schema.from_toml(text, source)


def _check_missing(column: Column) -> None:
    if column.missing and (both := are_among(column.levels, column.missing)).any():
        level = show(column.levels[int(np.argmax(both))])
        raise DataError(f"{at(column.name)}: {level} is both a level and missing; remove it from one of the two.")


def _toml_table(column: Column, suspected: Sequence[float]) -> tomlkit.items.Table:
    """One [[column]] table: the reason as a comment, and only the settings that its kind has."""
    table = tomlkit.table()
    if column.reason:
        table.add(tomlkit.comment(printable(column.reason)))
    settings = () if column.kind == ASIDE else kind_of(column).settings
    declared = {key: getattr(column, key) for key in ("name", "kind", *(key for key in SETTINGS if key in settings))}
    for key, value in declared.items():
        if value not in (None, ()):
            table.add(key, list(value) if isinstance(value, tuple) else value)
    for key in ROLES:
        if getattr(column, key) != getattr(Column, key):  # not its default
            value = getattr(column, key)
            table.add(key, list(value) if isinstance(value, tuple) else value)
    if suspected:
        codes = listing(map(amount, suspected))
        table.add(tomlkit.comment(f"missing = [{codes}]  # remove the first # if these numbers stand for gaps"))
    try:
        table.as_string().encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{at(column.name)}: is not valid Unicode and cannot be written as TOML; rename it.") from None
    return table


def _column_from(entry: object) -> Column:
    """One column from a parsed file."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(name, str) or not name.strip():
        raise DataError('a column of the schema has no name; give it name = "...".')
    settings = checked_settings(name, {key: value for key, value in entry.items() if key not in ("name", "dtype")})
    if "kind" not in settings:
        raise DataError(f'{at(name)}: has no kind; give it kind = "...".')
    return Column(name=name, dtype=str(entry.get("dtype", "float64")), **settings)
