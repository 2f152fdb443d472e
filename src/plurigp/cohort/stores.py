"""Where the tables of a source lie: files in a folder, a DuckDB database, or a PostgreSQL server."""

import glob
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from plurigp.cohort.engines import DuckDB, Engine, PostgreSQL
from plurigp.cohort.secrets import looks_like_address
from plurigp.cohort.specification import Source
from plurigp.cohort.sql import identifier, literal
from plurigp.cohort.text_files import text_files
from plurigp.core.files import PARQUET_SUFFIXES, SEPARATORS
from plurigp.core.text import file_name, listing, nearest, show
from plurigp.core.types import DataError

DATABASES = (".duckdb", ".db", ".ddb")
READABLE = (*SEPARATORS, *PARQUET_SUFFIXES)
ATTACHED = "records"
E = TypeVar("E", bound=Engine)


@dataclass(frozen=True)
class Relation:
    """A table of the source: an item of FROM, and its columns with their kinds."""

    name: str
    item: str
    columns: Mapping[str, str]
    is_text: bool = False  # a CSV file, of which every cell is text


@runtime_checkable
class Store(Protocol):
    """Finds tables by name."""

    @property
    def engine(self) -> Engine:
        """The engine that reads them."""

    def find(self, name: str) -> Relation | None:
        """The table of that name, in any case of letters; None where there is none."""

    def known(self) -> list[str]:
        """The names of all tables."""

    def shards(self, without: tuple[str, ...]) -> Relation | None:
        """All files but those of these tables, as one table; None where tables are not files."""


def open_store(source: Source, memory: str | None = None, threads: int | None = None) -> Store:
    """The store that a source names, with the engine that reads it."""
    if source.connect is not None:
        if looks_like_address(source.connect) and not source.connect.startswith(("postgresql://", "postgres://")):
            raise DataError("source, connect: only PostgreSQL servers are reached; write postgresql://host/database.")
        return _opened(
            PostgreSQL(source.connect), lambda server: DatabaseStore(server, source, source.schema or "public")
        )
    assert source.path is not None  # one of the two is given: checked when the file was read
    _check_path(source.path)
    return _opened(DuckDB(memory, threads), lambda engine: _local_store(engine, source))


def _local_store(engine: DuckDB, source: Source) -> Store:
    path = Path(source.path or "")
    if path.suffix.lower() in DATABASES and path.is_file():
        engine.attach(path, ATTACHED)
        engine.only_reads([])
        return DatabaseStore(engine, source, source.schema or "main", ATTACHED)
    store = FileStore(engine, source)
    engine.only_reads(store.folders)
    return store


def _opened(engine: E, make: Callable[[E], Store]) -> Store:
    """The store on an engine, which is closed if that fails."""
    try:
        return make(engine)
    except BaseException:
        engine.close()
        raise


def _check_path(path: Path) -> None:
    try:
        found = path.exists() or bool(glob.glob(str(path), recursive=True))
    except (OSError, ValueError):
        found = False
    if not found:
        raise DataError(f"source, path: {file_name(path)}: no such file or folder; check the path.")


@dataclass
class DatabaseStore:
    """Tables and views of one schema of a database."""

    engine: Engine
    source: Source
    schema: str
    catalog: str | None = None

    def __post_init__(self) -> None:
        self._names = self._tables_of(self.schema)
        if not self._names:
            raise DataError(f"source, schema: {show(self.schema, 60)} holds no table; name the schema of the records.")

    def _tables_of(self, schema: str) -> list[str]:
        where = "" if self.catalog is None else f" AND table_catalog = {literal(self.catalog)}"
        found = self.engine.fetch(
            "the tables of the schema",
            "SELECT CAST(table_name AS VARCHAR) AS name FROM information_schema.tables "
            f"WHERE table_schema = {literal(schema)}{where} ORDER BY 1",
        )
        return [str(name) for name in found["name"]]

    def known(self) -> list[str]:
        return self._names

    def find(self, name: str) -> Relation | None:
        asked = self.source.tables.get(name, name)
        schema, names = self.schema, self._names
        if "." in asked and asked not in names:  # of another schema, such as that of the vocabularies
            schema, asked = asked.split(".", 1)
            names = self._tables_of(schema)
        same = [own for own in names if own == asked] or [own for own in names if own.lower() == asked.lower()]
        if len(same) > 1:
            raise DataError(f"source: two tables are called {show(name)} but for upper case; name one under tables.")
        if not same:
            if name in self.source.tables:
                raise missing(self, name)
            return None
        parts = [part for part in (self.catalog, schema, same[0]) if part is not None]
        item = ".".join(map(identifier, parts))
        return Relation(same[0], item, self.engine.columns(item, same[0]))

    def shards(self, without: tuple[str, ...]) -> Relation | None:
        return None


def missing(store: Store, name: str) -> DataError:
    """The error for a table that the specification names and the source lacks."""
    hint = nearest(name, store.known())
    return DataError(f"source, tables: there is no table for {show(name)}; there are {listing(store.known())}.{hint}")


@dataclass
class FileStore:
    """CSV, TSV and Parquet files: one per table, or a folder of shards per table."""

    engine: DuckDB
    source: Source

    def __post_init__(self) -> None:
        path = self.source.path
        assert path is not None
        self.folders: list[Path] = []
        if path.is_dir():
            self._files: dict[str, list[Path]] = {}
            for entry in sorted(path.iterdir()):
                shards = readable(sorted(entry.rglob("*"))) if entry.is_dir() else readable([entry])
                if shards and not entry.name.startswith((".", "__")):
                    self._files.setdefault(_stem(entry).lower(), []).extend(shards)
        else:
            files = [path] if path.is_file() else [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
            self._files = {"events": readable(files)}
            if not self._files["events"]:
                raise DataError(f"source, path: {file_name(path)}: unknown format; known: {', '.join(READABLE)}.")
        base = path if path.is_dir() else path.parent
        for name, other in self.source.tables.items():
            place = base / Path(other)
            found = readable(sorted(place.rglob("*"))) if place.is_dir() else readable([place])
            found = found or readable([Path(match) for match in sorted(glob.glob(str(place), recursive=True))])
            if found:
                self._files[name] = found
            elif other.lower() in self._files:
                self._files[name] = self._files[other.lower()]
            else:
                raise missing(self, name)
        parents = {file.resolve().parent for files in self._files.values() for file in files}
        self.folders = sorted(parents)
        self._found: dict[str, Relation | None] = {}

    def known(self) -> list[str]:
        return sorted(self._files)

    def find(self, name: str) -> Relation | None:
        if name not in self._found:
            files = self._files.get(name.lower())
            self._found[name] = None if files is None else self._relation(name, files)
        return self._found[name]

    def shards(self, without: tuple[str, ...]) -> Relation | None:
        files = [file for name, listed in self._files.items() if name not in without for file in listed]
        return self._relation("data", files) if files else None

    def _relation(self, name: str, files: list[Path]) -> Relation:
        suffixes = {_suffix(file).removesuffix(".gz") for file in files}
        if len(suffixes) > 1:
            raise DataError(f"source: the files of {show(name)} are of several formats; keep one of them.")
        (suffix,) = suffixes
        if suffix in PARQUET_SUFFIXES:
            listed = ", ".join(literal(glob.escape(str(file.resolve()))) for file in files)
            item = f"read_parquet([{listed}], union_by_name = true)"
            return Relation(name, item, self.engine.columns(item, name))
        item, columns = text_files(files, name)
        return Relation(name, item, dict.fromkeys(columns, "text"), is_text=True)


def readable(files: list[Path]) -> list[Path]:
    """Those that hold a table and are not hidden."""
    return [file for file in files if file.is_file() and _suffix(file) and not file.name.startswith((".", "_"))]


def _suffix(file: Path) -> str:
    return next((suffix for suffix in READABLE if file.name.lower().endswith(suffix)), "")


def _stem(entry: Path) -> str:
    return entry.name if entry.is_dir() else entry.name[: -len(_suffix(entry)) or None]
