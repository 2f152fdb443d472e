"""The database that runs the statements: DuckDB within this process, or a PostgreSQL server."""

import re
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from plurigp.cohort.sql import DUCKDB, POSTGRES, Dialect, identifier, literal
from plurigp.core.text import show
from plurigp.core.types import DataError

Columns = dict[str, np.ndarray]
CSV_LINE = re.compile(r"(?:Line|line|row)[: ]+([0-9]+)")
KINDS_OF_TYPES = (  # the first that fits the name of a type, as either database spells it
    (r"VARCHAR|CHAR.*|TEXT|BPCHAR|NAME|ENUM.*|UUID|CHARACTER.*", "text"),
    (r"BIGINT|INTEGER|SMALLINT|TINYINT|U\w*INT\w*|HUGEINT|INT[248]|INT", "integer"),
    (r"FLOAT|REAL|FLOAT4", "float32"),
    (r"DOUBLE.*|FLOAT8|DECIMAL.*|NUMERIC.*", "number"),
    (r"DATE", "date"),
    (r"TIMESTAMPTZ|TIMESTAMP.* WITH TIME ZONE", "timestamptz"),
    (r"TIMESTAMP.*|DATETIME.*", "timestamp"),
    (r"BOOL.*", "boolean"),
)


@runtime_checkable
class Engine(Protocol):
    """What the cohort needs of a database."""

    dialect: Dialect
    log: list[tuple[str, str]]  # title and statement of all that was run

    def run(self, title: str, statement: str) -> None:
        """Run a statement that leaves something behind in the database."""

    def fetch(self, title: str, statement: str) -> Columns:
        """Run a query; gaps are NaN in numbers, None elsewhere."""

    def columns(self, item: str, name: str) -> dict[str, str]:
        """Names and kinds of the columns of an item of FROM, called so in errors."""

    def close(self) -> None:
        """Let go of the connection and of temporary files."""


def kind_of_type(name: str) -> str:
    """text, integer, float32, number, date, timestamp, timestamptz, boolean, or other."""
    return next((kind for pattern, kind in KINDS_OF_TYPES if re.fullmatch(pattern, name.upper())), "other")


@dataclass
class DuckDB:
    """DuckDB in this process, with files as tables; it spills to a temporary folder beyond `memory`."""

    memory: str | None = None
    threads: int | None = None
    log: list[tuple[str, str]] = field(default_factory=list)
    dialect: Dialect = DUCKDB

    def __post_init__(self) -> None:
        import duckdb

        self._worker = ThreadPoolExecutor(max_workers=1)
        self._spill = tempfile.mkdtemp(prefix="plurigp-cohort-")
        config: dict[str, Any] = {
            "autoinstall_known_extensions": "false",  # nothing is downloaded
            "autoload_known_extensions": "false",
            "temp_directory": self._spill,
            "preserve_insertion_order": "false",
        }
        config |= {key: value for key, value in (("memory_limit", self.memory), ("threads", self.threads)) if value}
        try:
            self._connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error:
            shutil.rmtree(self._spill, ignore_errors=True)
            raise DataError("--memory or --threads is not understood; write --memory 4GB --threads 2.") from None

    def attach(self, path: Path, name: str) -> None:
        """A DuckDB database, to read from."""
        self._guarded(f"opening {path.name}", f"ATTACH {literal(str(path))} AS {identifier(name)} (READ_ONLY)")

    def only_reads(self, folders: list[Path]) -> None:
        """From now on nothing but these folders is reachable, whatever a view in an attached database says."""
        listed = ", ".join(literal(str(folder)) for folder in [*folders, Path(self._spill)])
        self._connection.execute(f"SET allowed_directories = [{listed}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def run(self, title: str, statement: str) -> None:
        self.log.append((title, statement))
        self._guarded(title, statement)

    def fetch(self, title: str, statement: str) -> Columns:
        self.log.append((title, statement))
        found = self._guarded(title, statement, lambda result: result.fetchnumpy())
        return {name: _plain(array) for name, array in found.items()}

    def columns(self, item: str, name: str) -> dict[str, str]:
        rows = self._guarded(f"table {show(name)}", f"DESCRIBE SELECT * FROM {item}", lambda r: r.fetchall())
        return {str(row[0]): kind_of_type(str(row[1])) for row in rows}

    def close(self) -> None:
        self._worker.shutdown()
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def _interruptible(self, work: Callable[[], Any]) -> Any:
        """Another thread runs the statement, because Python handles Ctrl-C only between two of its own instructions."""
        running = self._worker.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            self._connection.interrupt()
            wait([running])
            raise

    def _guarded(self, title: str, statement: str, take: Callable[[Any], Any] = lambda result: None) -> Any:
        """DuckDB's own messages quote cells; ours do not."""
        import duckdb

        try:
            return self._interruptible(lambda: take(self._connection.execute(statement)))
        except duckdb.OutOfMemoryException:
            raise DataError(f"{title}: DuckDB ran out of memory; allow it more with --memory.") from None
        except duckdb.Error as error:
            kind = type(error).__name__.removesuffix("Exception")
            line = CSV_LINE.search(str(error)) if "CSV" in str(error) else None
            where = f" in a CSV file, at line {line[1]}" if line else ""
            not_text = re.search("unicode|utf-?8", str(error), re.IGNORECASE)
            remedy = "save it as UTF-8" if not_text else "check the file or the table"
            raise DataError(f"{title}: DuckDB stopped ({kind} error{where}); {remedy}.") from None


def _plain(array: np.ndarray) -> np.ndarray:
    """Without a mask: NaN, NaT or None stand for gaps."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    gaps = np.ma.getmaskarray(array)
    plain = np.array(array.data, dtype=np.float64 if array.dtype.kind in "iubf" else array.dtype)
    plain[gaps] = {"f": np.nan, "M": np.datetime64("NaT")}.get(plain.dtype.kind)
    return plain


SESSION = (
    "standard_conforming_strings = on",  # a backslash in a literal is a backslash
    "client_encoding = 'UTF8'",
    "extra_float_digits = 1",  # numbers in text are exact
    "jit = off",  # compiling the long expressions takes longer than running them
)


@dataclass
class PostgreSQL:
    """A PostgreSQL server. Only queries and temporary tables are run on it."""

    address: str = field(repr=False)
    log: list[tuple[str, str]] = field(default_factory=list)
    dialect: Dialect = POSTGRES

    def __post_init__(self) -> None:
        if find_spec("psycopg") is None:
            raise DataError("PostgreSQL needs psycopg; pip install 'plurigp[cohort]'.")
        import psycopg

        try:
            self._connection = psycopg.connect(self.address, autocommit=True, connect_timeout=15)
            for setting in SESSION:
                self._guarded("the start of the session", f"SET {setting}")
        except (psycopg.Error, UnicodeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"the PostgreSQL server could not be reached: {refusal(str(error))}.") from None

    def run(self, title: str, statement: str) -> None:
        self.log.append((title, statement))
        self._guarded(title, statement)
        created = re.match(r"CREATE TEMP TABLE (\w+)", statement)
        if created:
            self._guarded(title, f"ANALYZE {created[1]}")

    def fetch(self, title: str, statement: str) -> Columns:
        self.log.append((title, statement))
        names, rows = self._guarded(title, statement, lambda c: ([d.name for d in c.description], c.fetchall()))
        return {name: _array([row[place] for row in rows]) for place, name in enumerate(names)}

    def columns(self, item: str, name: str) -> dict[str, str]:
        described = self._guarded(
            f"table {show(name)}", f"SELECT * FROM {item} LIMIT 0", lambda cursor: list(cursor.description)
        )
        types = self._connection.adapters.types
        return {d.name: kind_of_type(getattr(types.get(d.type_code), "name", "other")) for d in described}

    def close(self) -> None:
        self._connection.close()

    def _guarded(self, title: str, statement: str, take: Callable[[Any], Any] = lambda cursor: None) -> Any:
        """The server's own messages quote cells; ours do not."""
        import psycopg

        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement.encode())
                return take(cursor)
        except psycopg.errors.InsufficientPrivilege:
            remedy = "ask for the right to read the tables and to make temporary ones"
            raise DataError(f"{title}: PostgreSQL says that this user may not; {remedy}.") from None
        except psycopg.Error as error:
            kind = f"{type(error).__name__}, {error.sqlstate or 'no code'}"
            raise DataError(f"{title}: PostgreSQL stopped ({kind}); check the tables that the source names.") from None


REFUSALS = {
    "password authentication failed": "the user or the password is wrong; correct it",
    "no password supplied": "it wants a password; put it into PGPASSWORD or the file .pgpass",
    "connection refused": "nothing listens there; check host and port",
    "could not translate host name": "the host is not known; check its name",
    "failed to resolve host": "the host is not known; check its name",
    "timeout": "it did not answer in time; check host and port",
    "does not exist": "the database or the user does not exist there; check their names",
    "no pg_hba.conf entry": "it does not accept this user from here; ask its administrator",
}


def refusal(message: str) -> str:
    """Why a connection failed, in words that cannot hold a part of the connection string."""
    known = (why for phrase, why in REFUSALS.items() if phrase in message.lower())
    return next(known, 'check the connection string ("postgresql://user@host:port/database")')


def _array(cells: list[Any]) -> np.ndarray:
    """Numbers with NaN at gaps where all cells are numbers, else objects with None."""
    if all(isinstance(cell, bool) for cell in cells) and cells:
        return np.array(cells)
    if all(cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)) for cell in cells):
        has_gaps = any(cell is None for cell in cells)
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64 if has_gaps else None)
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array
