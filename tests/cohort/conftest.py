"""Simulated records with the hard cases added, the paper's specification, and a PostgreSQL server of the tests' own."""

import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from plurigp.cohort import parse_specification
from plurigp.datasets import simulate_records

PAPER = (Path(__file__).parents[2] / "docs" / "cohort" / "parkinson.toml").read_text()


@pytest.fixture(scope="session")
def paper() -> str:
    return PAPER


def event(patient, time, code, value=None, unit=None, text=None):
    return {"patient": patient, "time": pd.Timestamp(time), "code": code, "value": value, "text": text, "unit": unit}


def hard_cases() -> list[dict]:
    """Times are UTC; the specification's clocks are those of Helsinki."""
    creatinine = ("LOINC/2160-0", "umol/L")
    rows = [
        # 22:30 on 28 February in London is half past midnight on the leap day in Helsinki
        event(1, "2012-02-28 22:30", "ICD10/G20"),
        event(1, "2012-02-29 09:00", "ICD10/G20.1"),
        event(1, "2011-08-28 23:30", "ICD10/E11"),  # 29 August, the first day of the window
        event(1, "2011-08-28 20:30", "ICD10/I10"),  # the day before
        event(1, "2015-08-29 12:00", "ICD10/F32.1"),  # the last day
        event(1, "2015-08-29 22:30", "ICD10/G47"),  # the day after
        # the last of August minus six months is the last of February
        event(2, "2012-08-31 10:00", "ICD10/G20.9"),
        event(2, "2012-02-29 10:00", creatinine[0], 70, creatinine[1]),
        event(2, "2012-02-28 10:00", creatinine[0], 900, creatinine[1]),
        event(2, "2013-02-28 21:59", creatinine[0], 80, creatinine[1]),
        event(2, "2013-02-28 22:01", creatinine[0], 950, creatinine[1]),
        # duplicates, ties at one minute, an unknown unit, an implausible value, a value without unit
        event(3, "2010-06-15 08:00", "ICD10/G20"),
        *[event(3, "2010-06-16 08:00", creatinine[0], 60, creatinine[1])] * 3,
        event(3, "2010-06-16 08:00", creatinine[0], 100, creatinine[1]),
        event(3, "2010-06-17 08:00", creatinine[0], 1.0, "mg/dL"),
        event(3, "2010-06-18 08:00", creatinine[0], 5, "furlongs"),
        event(3, "2010-06-18 08:00", creatinine[0], 50000, creatinine[1]),
        event(3, "2010-06-18 08:00", creatinine[0], 77, None),
        event(3, "2010-06-18 08:00", creatinine[0], None, creatinine[1], "haemolysed"),
        event(3, "2010-06-18 08:00", creatinine[0], None, creatinine[1]),
        # limits: the median lies below a limit, between a limit and a value, and at a value
        event(4, "2010-01-10 08:00", "ICD10/G20"),
        event(4, "2010-01-11 08:00", "LOINC/1988-5", None, "mg/L", "<2"),
        event(5, "2010-01-10 08:00", "ICD10/G20"),
        event(5, "2010-01-11 08:00", "LOINC/1988-5", None, "mg/L", "<2"),
        event(5, "2010-01-12 08:00", "LOINC/1988-5", 7.5, "mg/L"),
        event(6, "2010-01-10 08:00", "ICD10/G20"),
        event(6, "2010-01-11 08:00", "LOINC/1988-5", None, "mg/L", "<2"),
        event(6, "2010-01-12 08:00", "LOINC/1988-5", 7.5, "mg/L"),
        event(6, "2010-01-13 08:00", "LOINC/1988-5", None, "mg/L", "> 500"),
        event(7, "2010-01-10 08:00", "ICD10/I10"),  # never an index event
        event(8, "2010-01-10 08:00", "ICD10/G200"),  # begins with G20 all the same
        event(9, "2010-01-10 08:00", "ICD9/G20"),  # another vocabulary
    ]
    return rows


@pytest.fixture(scope="session")
def records():
    simulated = simulate_records(150, random_state=3)
    more = pd.DataFrame(hard_cases()).astype(simulated.events.dtypes)
    events = pd.concat([simulated.events, more], ignore_index=True).sample(frac=1, random_state=1, ignore_index=True)
    ids = sorted(more["patient"].unique())
    born = {"birth": pd.Timestamp("1950-02-28"), "sex": "female", "death": pd.NaT}
    people = pd.DataFrame([{"patient": i, **born} for i in ids]).astype(simulated.patients.dtypes)
    days = more.groupby("patient")["time"].agg(start="min", end="max").reset_index().apply(
        lambda column: column.dt.normalize() if column.name != "patient" else column
    )  # fmt: skip
    return replace(
        simulated,
        events=events,
        patients=pd.concat([simulated.patients, people], ignore_index=True),
        periods=pd.concat([simulated.periods, days.astype(simulated.periods.dtypes)], ignore_index=True),
    )


@pytest.fixture(scope="session")
def specified():
    """The paper's specification of another source: `specified(folder, form="omop", path="cdm")`."""

    def made(folder, more="", text=PAPER, **source):
        settings = {"form": "long", "path": "records", "time_zone": "Europe/Helsinki"} | source
        lines = "\n".join(f"{key} = {value!r}" for key, value in settings.items() if value is not None)
        head, _, tail = text.partition("[source]")
        return parse_specification(f"{head}[source]\n{lines}\n\n[{tail.split('[', 1)[1]}{more}", folder=folder)

    return made


# --- PostgreSQL ---


def server_programs() -> Path | None:
    """The folder of Debian's server programs, newest first, or the one on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    found = [folder for folder in folders if (folder / "initdb").exists()]
    return found[0] if found else Path(on_path).parent if on_path else None


def as_other_user(command: list[str]) -> list[str]:
    """The server refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@pytest.fixture(scope="session")
def postgres():
    """The address of a server on a free port of the loopback, with a password; skipped where none is installed."""
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="plurigp-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    secret = folder / "secret"
    secret.write_text("se'cret p@ss")
    if os.geteuid() == 0:
        shutil.chown(secret, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, log = folder / "data", folder / "log"
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": folder}
    control = str(programs / "pg_ctl")
    subprocess.run(
        as_other_user([str(programs / "initdb"), "-D", str(data), "-U", "tester", "-A", "scram-sha-256",
                       f"--pwfile={secret}", "-E", "UTF8", "--no-sync"]), **quiet)  # fmt: skip
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    subprocess.run(as_other_user([control, "-D", str(data), "-l", str(log), "-o", options, "-w", "start"]), **quiet)
    try:
        yield f"postgresql://tester:se%27cret%20p%40ss@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run(as_other_user([control, "-D", str(data), "-m", "immediate", "-w", "stop"]), **quiet)
        shutil.rmtree(folder, ignore_errors=True)


PG_TYPES = {"i": "bigint", "f": "double precision", "M": "timestamp", "b": "boolean"}


@pytest.fixture
def load_postgres(postgres):
    """Frames as tables of a schema: `load_postgres("cdm", {"person": frame})`."""
    import psycopg
    from psycopg import sql

    def load(schema: str, tables: dict[str, pd.DataFrame]) -> None:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
            for name, frame in tables.items():
                columns = sql.SQL(", ").join(
                    sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(column_type(frame[column].dtype)))
                    for column in frame.columns
                )
                target = sql.Identifier(schema, name)
                connection.execute(sql.SQL("CREATE TABLE {} ({})").format(target, columns))
                with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(target)) as copy:
                    for row in frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None):
                        copy.write_row(row)

    return load


def column_type(kind) -> str:
    if isinstance(kind, pd.DatetimeTZDtype):
        return "timestamptz"
    return "real" if str(kind) == "float32" else PG_TYPES.get(getattr(kind, "kind", "O"), "text")
