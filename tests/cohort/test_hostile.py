"""Hostile text in specifications, data and paths does nothing but produce a clear error, or a column with that name."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.cohort import build_cohort, parse_specification
from plurigp.cohort.output import quality_page, write_side_files
from plurigp.cohort.sql import DUCKDB, identifier, literal
from plurigp.core.types import DataError

EVIL = [
    "x'; DROP TABLE plurigp_cohort; --",
    'x"; DROP TABLE plurigp_cohort; --',
    "x\\'; SELECT 1; --",
    "$$; SELECT 1; $$",
    "x') OR 1=1 --",
    "</table><script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "{{ 7 * 7 }}",
    "%s %(x)s {0}",
    "naïve ☃ \u202e",
    "a\nb\tc",
    "..\\..\\x",
]
IN_MEMORY = duckdb.connect()
SPEC = """
[source]
form = "long"
path = {path}

[index]
codes = [{index}]

[[feature]]
name = {name}
codes = [{code}]
window = ["ever", "ever"]

[[feature]]
name = "value"
codes = [{code}]
value = "median"
window = ["ever", "ever"]
unit = {unit}
"""


def spelled(text):
    """As TOML spells it."""
    import tomlkit

    return tomlkit.item(text).as_string()


def records(text):
    rows = [(p, f"2020-01-0{p}", code, v, text) for p in (1, 2, 3) for code, v in (("start", None), (text, float(p)))]
    return pd.DataFrame(rows, columns=["patient", "time", "code", "value", "unit"])


@pytest.mark.parametrize("text", EVIL)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_codes_units_and_names(tmp_path, text, suffix):
    path = tmp_path / f"events{suffix}"
    getattr(records(text), "to_csv" if suffix == ".csv" else "to_parquet")(path, index=False)
    spec = SPEC.format(
        path=spelled("events" + suffix), index='"start"', name=spelled(text), code=spelled(text), unit=spelled(text)
    )
    built = build_cohort(parse_specification(spec, folder=tmp_path))
    assert built.table[text].all()
    assert built.table["value"].tolist() == [1.0, 2.0, 3.0]
    page = quality_page(built, text)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page or "<script>" not in text
    write_side_files(built, tmp_path / "table.parquet", "title")
    for line in (tmp_path / "table.attrition.csv").read_text().splitlines():
        assert not line.startswith("=")


@pytest.mark.parametrize("text", EVIL)
def test_postgresql(postgres, load_postgres, text):
    schema = f"evil {abs(hash(text))} '\" ;"
    load_postgres(schema, {"events": records(text)})
    spec = SPEC.format(path='"x"', index='"start"', name=spelled(text), code=spelled(text), unit=spelled(text))
    source = f'connect = "{postgres}"\nschema = {spelled(schema)}'
    built = build_cohort(parse_specification(spec.replace('path = "x"', source)))
    assert built.table[text].all()
    assert built.table["value"].tolist() == [1.0, 2.0, 3.0]
    assert "cret" not in built.sql


@pytest.mark.parametrize("name", ["it's.csv", 'a"b.csv', "[abc].csv", "a*b.csv", "x;DROP.csv", "☃.csv", "a b.csv"])
def test_file_names(tmp_path, name):
    records("lab").to_csv(tmp_path / name, index=False)
    spec = SPEC.format(path=spelled(name), index='"start"', name='"n"', code='"lab"', unit='"lab"')
    assert len(build_cohort(parse_specification(spec, folder=tmp_path)).table) == 3


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../etc/passwd", "/dev/zero", "no/such", "x\u0000y", "a" * 5000, "/proc/self/mem"]
)
def test_paths_that_are_no_records(tmp_path, path):
    spec = SPEC.format(path=spelled(path), index='"start"', name='"n"', code='"lab"', unit='"u"')
    with pytest.raises(DataError) as caught:
        build_cohort(parse_specification(spec, folder=tmp_path))
    assert "root:" not in str(caught.value)


def test_column_names_of_tables(tmp_path):
    evil = {"patient": 'p"; DROP', "code": "c'--", "time": "t;", "value": "=v", "unit": "{u}"}
    records("lab").rename(columns=evil).to_parquet(tmp_path / "events.parquet")
    spec = SPEC.format(path='"events.parquet"', index='"start"', name='"n"', code='"lab"', unit='"lab"')
    columns = "\n".join(f"{role} = {spelled(name)}" for role, name in evil.items())
    built = build_cohort(parse_specification(f"{spec}\n[source.columns]\n{columns}\n", folder=tmp_path))
    assert len(built.table) == 3


def test_a_view_in_a_database_cannot_read_files(tmp_path):
    (tmp_path / "secret.csv").write_text("patient,time,code\n1,2020-01-01,start\n")
    with duckdb.connect(tmp_path / "evil.duckdb") as connection:
        connection.execute(f"CREATE VIEW events AS SELECT * FROM read_csv('{tmp_path}/secret.csv', header = true)")
    spec = SPEC.format(path='"evil.duckdb"', index='"start"', name='"n"', code='"lab"', unit='"u"')
    with pytest.raises(DataError, match="DuckDB stopped"):
        build_cohort(parse_specification(spec, folder=tmp_path))


def test_no_cell_in_errors(tmp_path):
    """Not those of a broken CSV file either, which DuckDB quotes."""
    (tmp_path / "events.csv").write_text(
        'patient,time,code\n1,2020-01-01,start\n2,"SECRETCELL,x,y\n3,SECRETCELL,z,z,z\n'
    )
    spec = SPEC.format(path='"events.csv"', index='"start"', name='"n"', code='"lab"', unit='"u"')
    with pytest.raises(DataError) as caught:
        build_cohort(parse_specification(spec, folder=tmp_path))
    assert "SECRETCELL" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://bob:hunter2@127.0.0.1:1/db",
        "postgresql://bob:hunter2@[::1/db",
        "postgresql://bob:hunter2:hunter2@127.0.0.1:port/db",
        "host=127.0.0.1 port=1 password=hunter2",
        "password='hunter2",
        "mysql://bob:hunter2@db/x",
        "hunter2",
    ],
)
def test_passwords_never_show(tmp_path, monkeypatch, address):
    spec = SPEC.replace("path = {path}", f"connect = {spelled(address)}").format(
        index='"start"', name='"n"', code='"lab"', unit='"u"'
    )
    (tmp_path / "spec.toml").write_text(spec)
    for debug in ("", "1"):
        monkeypatch.setenv("PLURIGP_DEBUG", debug)
        done = CliRunner().invoke(app, ["cohort", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "t.csv")])
        assert done.exit_code == 1
        assert "hunter2" not in done.output
        assert done.stderr.splitlines()[-1].startswith("error: ")


def test_a_wrong_password(postgres):
    wrong = postgres.replace("se%27cret", "hunter2")
    spec = SPEC.replace("path = {path}", f'connect = "{wrong}"').format(
        index='"start"', name='"n"', code='"l"', unit='"u"'
    )
    with pytest.raises(DataError, match="password is wrong") as caught:
        build_cohort(parse_specification(spec))
    assert "hunter2" not in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",))))
def test_a_literal_is_its_text_and_a_name_is_a_name(text):
    assert IN_MEMORY.execute(f"SELECT {literal(text)} AS x").fetchone() == (text,)
    found = IN_MEMORY.execute(f"SELECT 1 AS {identifier(text or 'x')}")
    assert [column[0] for column in found.description] == [text or "x"]


@pytest.mark.parametrize("text", ["1", " 1.5 ", "-2e3", ".5", "1e999", "0x10", "1,5", "NaN", "", "1 2", "１"])
def test_numbers_in_text(text):
    with duckdb.connect() as connection:
        (found,) = connection.execute(f"SELECT {DUCKDB.number(literal(text))}").fetchone()
    expected = {"1": 1.0, " 1.5 ": 1.5, "-2e3": -2000.0, ".5": 0.5}.get(text)
    assert found == expected
    assert found is None or np.isfinite(found)
