"""Where tables lie: names that differ, tables that are missing, files that are broken, users without rights."""

import gzip
import os
import re
import signal
import threading
import time
from pathlib import Path

import duckdb
import pandas as pd
import psycopg
import pytest

from plurigp.cohort import build_cohort, parse_specification
from plurigp.cohort.engines import DuckDB, PostgreSQL, kind_of_type, refusal
from plurigp.core.types import DataError

EVENTS = pd.DataFrame({"patient": [1, 2, 2], "time": ["2020-01-01"] * 3, "code": ["start", "start", "E11"]})
PEOPLE = pd.DataFrame({"patient": [1, 2], "year_of_birth": [1950, 1960], "sex": ["f", "m"]})
AGE = "[[feature]]\nname = 'age'\ndemographic = 'age'\n"
DX = "[[feature]]\nname = 'dx'\ncodes = ['E11']\nwindow = ['ever', 'ever']\n"


def built(folder, source, features=DX):
    text = f"[source]\n{source}\n[index]\ncodes = ['start']\n{features}"
    return build_cohort(parse_specification(text, folder=folder))


def test_tables_of_other_names(tmp_path):
    EVENTS.to_csv(tmp_path / "ev_2024.csv", index=False)
    (tmp_path / "people").mkdir()
    PEOPLE[:1].to_parquet(tmp_path / "people" / "a.parquet")
    PEOPLE[1:].to_parquet(tmp_path / "people" / "b.parquet")
    source = "form = 'long'\npath = '.'\ntables = { events = 'ev_2024.csv', patients = 'people' }"
    assert built(tmp_path, source, AGE).table["age"].tolist() == [69.0, 59.0]
    assert built(tmp_path, source.replace("'people'", "'people/*.parquet'"), AGE).table["age"].tolist() == [69.0, 59.0]
    assert built(tmp_path, source.replace("'ev_2024.csv'", "'EV_2024'")).table["dx"].tolist() == [False, True]
    with pytest.raises(DataError, match=r"there is no table for 'events'; there are ev_2024, people"):
        built(tmp_path, source.replace("ev_2024.csv", "ev.csv"))


def test_a_pattern_of_files_and_compressed_text(tmp_path):
    for n in (0, 1):
        with gzip.open(tmp_path / f"shard{n}.csv.gz", "wt") as file:
            EVENTS.iloc[[n]].to_csv(file, index=False)
    assert len(built(tmp_path, "form = 'long'\npath = 'shard*.csv.gz'").table) == 2
    (tmp_path / "x.xlsx").write_text("x")
    with pytest.raises(DataError, match="unknown format"):
        built(tmp_path, "form = 'long'\npath = 'x.xlsx'")


def test_tables_of_a_database(tmp_path):
    with duckdb.connect(tmp_path / "h.duckdb") as connection:
        connection.execute("CREATE SCHEMA raw")
        connection.execute("CREATE TABLE raw.ev AS SELECT 1 AS patient, DATE '2020-01-01' AS time, 'start' AS code")
    source = "form = 'long'\npath = 'h.duckdb'\nschema = 'raw'\ntables = { events = 'EV' }"
    assert len(built(tmp_path, source).table) == 1
    with pytest.raises(DataError, match="there is no table for 'events'; there are ev"):
        built(tmp_path, source.replace("'EV'", "'evs'"))
    with duckdb.connect(tmp_path / "h.duckdb") as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS patient, 1950 AS yob")
    other = source.replace("'EV' }", "'EV', patients = 'main.people' }")
    assert built(tmp_path, other, AGE).table["age"].tolist() == [69.0]
    with pytest.raises(DataError, match="'none' holds no table"):
        built(tmp_path, source.replace("'raw'", "'none'"))
    (tmp_path / "bad.duckdb").write_text("no database")
    with pytest.raises(DataError, match=r"opening bad.duckdb: DuckDB stopped"):
        built(tmp_path, "form = 'long'\npath = 'bad.duckdb'")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfep\x00", "not UTF-8"),
        (b"", "no column names"),
        (b"patient,,code\n", "column 2 has no name"),
        (b"\n1,2,3\n", "no column names"),
        (b"7001,2020-01-01,G20\n", "line 1: cells where the column names should be; add a line of names above"),
    ],
)
def test_first_lines_that_are_none(tmp_path, content, said):
    (tmp_path / "events.csv").write_bytes(content)
    with pytest.raises(DataError, match=said):
        built(tmp_path, "form = 'long'\npath = 'events.csv'")
    (tmp_path / "events.csv").unlink()
    (tmp_path / "events.csv.gz").write_bytes(content or b"x")
    with pytest.raises(DataError, match="cannot be read"):
        built(tmp_path, "form = 'long'\npath = 'events.csv.gz'")


def test_tables_that_two_formats_claim(tmp_path):
    EVENTS.to_csv(tmp_path / "events.csv", index=False)
    EVENTS.to_parquet(tmp_path / "events.parquet")
    with pytest.raises(DataError, match="are of several formats"):
        built(tmp_path, "form = 'long'\npath = '.'")


def test_demographics_that_the_source_lacks(tmp_path):
    EVENTS.to_csv(tmp_path / "events.csv", index=False)
    with pytest.raises(DataError, match="no table patients with a date of birth"):
        built(tmp_path, "form = 'long'\npath = '.'", AGE)
    with pytest.raises(DataError, match="sex is asked for"):
        built(tmp_path, "form = 'long'\npath = '.'", AGE.replace("'age'", "'sex'"))
    (tmp_path / "m" / "metadata").mkdir(parents=True)
    EVENTS.to_parquet(tmp_path / "m" / "metadata" / "codes.parquet")
    with pytest.raises(DataError, match=r'there is no folder "data" of shards'):
        built(tmp_path, "form = 'meds'\npath = 'm'")


def test_too_little_memory():
    engine = DuckDB("1MB", 1)
    try:
        with pytest.raises(DataError, match="allow it more with --memory"):
            engine.run(
                "a large step", "CREATE TEMP TABLE t AS SELECT hash(i) AS a FROM range(10000000) r(i) ORDER BY a"
            )
    finally:
        engine.close()


@pytest.fixture
def _hears_ctrl_c():
    """Where tests run in the background of a shell, SIGINT is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_hears_ctrl_c")
def test_ctrl_c_ends_a_statement_and_leaves_nothing():
    engine = DuckDB(threads=1)
    killer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    killer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine.run(
            "for ever", "CREATE TEMP TABLE t AS SELECT count(*) AS n FROM range(10000000000) a(i), range(1000) b(j)"
        )
    assert time.monotonic() - started < 10
    assert engine.fetch("still there", "SELECT 1 AS n")["n"].tolist() == [1]
    spill = Path(engine.fetch("where", "SELECT current_setting('temp_directory') AS f")["f"][0])
    assert spill.is_dir()
    engine.close()
    assert not spill.exists()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("VARCHAR", "text"), ("int4", "integer"), ("UBIGINT", "integer"), ("FLOAT", "float32"), ("float8", "number"),
     ("DECIMAL(18,3)", "number"), ("TIMESTAMP WITH TIME ZONE", "timestamptz"), ("TIMESTAMP_NS", "timestamp"),
     ("date", "date"), ("bool", "boolean"), ("STRUCT(a INTEGER)", "other"), ("bpchar", "text")],
)  # fmt: skip
def test_types(name, kind):
    assert kind_of_type(name) == kind


def test_refusals_hold_nothing_of_the_address():
    assert refusal('connection to server at "hunter2" failed: Connection refused') == REFUSED
    assert "hunter2" not in refusal("something about hunter2 that nobody knows")


REFUSED = "nothing listens there; check host and port"


def test_a_user_who_may_not(postgres, load_postgres):
    load_postgres("closed", {"events": EVENTS})
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'x'")
        connection.execute("GRANT USAGE ON SCHEMA closed TO stranger")
    address = re.sub(r"//.*@", "//stranger:x@", postgres)
    with pytest.raises(DataError, match="'closed' holds no table"):  # which it may not even see
        built(None, f"form = 'long'\nconnect = '{address}'\nschema = 'closed'")
    engine = PostgreSQL(address)
    try:
        with pytest.raises(DataError, match="this user may not; ask for the right"):
            engine.run("reading", "SELECT * FROM closed.events")
        with pytest.raises(DataError, match=r"reading: PostgreSQL stopped \(UndefinedTable, 42P01\)"):
            engine.run("reading", "SELECT * FROM nothing")
    finally:
        engine.close()


def test_tables_that_differ_in_upper_case(postgres, load_postgres):
    load_postgres("cases", {"Events": EVENTS, "EVENTS": EVENTS})
    source = f"form = 'long'\nconnect = '{postgres}'\nschema = 'cases'"
    with pytest.raises(DataError, match="two tables are called 'events' but for upper case"):
        built(None, source)
    assert len(built(None, source + "\ntables = { events = 'EVENTS' }").table) == 2
