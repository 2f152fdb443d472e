"""Bad inputs for tables and their files: what is done with each, and what the message must say.

Each case is (name, act, pattern): act(folder) performs the call, which must raise a DataError of one line whose text
matches the pattern. Files are written into the folder.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from plurigp.data import Coder, infer_schema, read_table, to_frame

Act = Callable[[Path], object]
ROWS = 30
GOOD = {
    "age": np.linspace(20, 80, ROWS),
    "sex": ["m", "f", "f"] * (ROWS // 3),
    "ward": ["a", "b", "c"] * (ROWS // 3),
    "visits": [0, 1, 3] * (ROWS // 3),
    "share": np.linspace(0.05, 0.95, ROWS),
    "hits": [1, 2, 3] * (ROWS // 3),
    "shots": [5, 6, 7] * (ROWS // 3),
}
KINDS = {"visits": "poisson", "share": "beta", "hits": {"kind": "binomial", "trials": "shots"}}


def reads(content: str | bytes, name: str = "bad.csv") -> Act:
    """Reads a file with this content."""

    def act(folder: Path) -> object:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return read_table(folder / name)

    return act


def path(name: str) -> Act:
    """Reads a path that holds no file."""
    return lambda folder: read_table(folder / name)


def good(**changes: object) -> pd.DataFrame:
    """The good table with some columns changed."""
    return pd.DataFrame({**GOOD, **changes})


def cell(name: str, row: int, value: object) -> pd.DataFrame:
    """The good table with one cell changed."""
    cells = good()[name].tolist()
    cells[row] = value
    return good(**{name: pd.Series(cells, dtype=object)})


def infers(frame: object, overrides: object = None) -> Act:
    """Infers a schema."""
    return lambda folder: infer_schema(frame, overrides)


def fits(frame: object, overrides: object = None) -> Act:
    """Infers a schema and fits a coder."""
    return lambda folder: Coder.fit(frame, infer_schema(frame, overrides))


def codes(frame: object) -> Act:
    """Fits on the good table, then codes this one."""
    return lambda folder: Coder.fit(good(), infer_schema(good(), KINDS)).table(frame)


def declares(text: str, name: str = "schema.toml") -> Act:
    """Infers with a schema file of this content."""

    def act(folder: Path) -> object:
        (folder / name).write_text(text, encoding="utf-8")
        return infer_schema(good(), folder / name)

    return act


def one(kind: str, more: str = "") -> str:
    """A schema file that declares the age."""
    return f'[[column]]\nname = "age"\nkind = "{kind}"\n{more}\n'


def corrupt_parquet() -> bytes:
    return b"PAR1" + bytes(range(256)) + b"PAR1"


FILES: list[tuple[str, Act, str]] = [
    ("file: absent", path("none.csv"), r"none\.csv: no such file; check"),
    ("file: a folder", lambda folder: read_table(folder), r"is a folder, not a file"),
    ("file: a path no system takes", lambda folder: read_table("a\0b.csv"), r"'a\\x00b\.csv': no such file"),
    ("file: unknown suffix", reads("a,b\n1,2\n", "bad.ods"), r"bad\.ods: unknown suffix '\.ods'; known: \.csv"),
    ("file: no Excel file", reads("a,b\n1,2\n", "bad.xlsx"), r"bad\.xlsx: not a readable Excel file"),
    ("file: no suffix", reads("a,b\n1,2\n", "bad"), r"bad: unknown suffix ''"),
    ("file: empty", reads(""), r"bad\.csv: the file is empty"),
    ("file: only blank lines", reads("\n \n\n"), r"bad\.csv: the file is empty"),
    ("file: header without rows", reads("a,b\n"), r"bad\.csv: there are column names but no rows"),
    ("file: no header", reads("1,2.5\n3,4\n"), r"bad\.csv, line 1: only numbers.*add a line of names"),
    ("file: empty name", reads("a,,c\n1,2,3\n"), r"bad\.csv, line 1: column 2 has no name"),
    ("file: row labels without a name", reads(",a\n0,1.5\n"), r"line 1: column 1 has no name.*leave row labels out"),
    ("file: duplicate names", reads("a,b,a\n1,2,3\n"), r"line 1: the name of column 'a' occurs more than once"),
    ("file: names that differ by spaces", reads("a,b, a\n1,2,3\n"), r"column 'a' occurs more than once"),
    ("file: a short row", reads("a,b,c\n1,2,3\n4,5\n"), r"bad\.csv, line 3: 2 cells where there are 3 column names"),
    ("file: a long row", reads("a,b\n1,2\n3,4,5\n"), r"bad\.csv, line 3: 3 cells where there are 2 column names"),
    ("file: every row too long", reads("a,b\n1,2,\n3,4,\n"), r"bad\.csv, line 2: 3 cells"),
    ("file: a quote left open", reads('a,b\n1,"x\n2,y\n'), r"bad\.csv, line 2: a quote is opened and never closed"),
    ("file: semicolons", reads("a;b\n1;2\n"), r"separated by ';'; save it with ','"),
    ("file: tabs in a csv", reads("a\tb\n1\t2\n"), r"separated by '\\t'; save it with ','"),
    ("file: commas in a tsv", reads("a,b\n1,2\n", "bad.tsv"), r"separated by ','; save it with '\\t'"),
    (
        "file: latin-1",
        reads("name\nAnn\nZoé\n".encode("latin-1")),
        r"bad\.csv, line 3: not UTF-8 text; save it as UTF-8",
    ),
    ("file: utf-16", reads("a,b\n1,2\n".encode("utf-16")), r"UTF-16 text; save it as UTF-8"),
    ("file: binary", reads(b"\x89PNG\r\n\x00\x01\x02"), r"is not text"),
    (
        "file: broken gzip",
        reads(gzip.compress(b"a,b\n1,2\n" * 50)[:-15], "bad.csv.gz"),
        r"bad\.csv\.gz: cannot be read",
    ),
    ("file: plain text named gz", reads("a,b\n1,2\n", "bad.csv.gz"), r"bad\.csv\.gz: cannot be read"),
    ("file: corrupt parquet", reads(corrupt_parquet(), "bad.parquet"), r"bad\.parquet: not a readable Parquet file"),
    ("file: empty parquet", reads(b"", "bad.parquet"), r"bad\.parquet: not a readable Parquet file"),
]

TABLES: list[tuple[str, Act, str]] = [
    ("table: no rows", infers(good().iloc[:0]), r"0 sample\(s\) \(shape=\(0, 7\)\)"),
    ("table: no columns", infers(good()[[]]), r"0 feature\(s\) \(shape=\(30, 0\)\)"),
    ("table: one dimension", infers(np.ones(3)), r"Expected 2D array, got 1D array instead.*Reshape your data"),
    ("table: complex numbers", infers(np.eye(3) * 1j), r"Complex data not supported"),
    ("table: ragged lists", infers([[1, 2], [3]]), r"row 1 has 1 cells where row 0 has 2"),
    ("table: unequal columns", lambda folder: to_frame({"a": [1, 2], "b": [1]}), r"column 'b': 1 cells"),
    ("table: duplicate names", infers(pd.DataFrame([[1, 2]], columns=["a", "a"])), r"column 'a' occurs more than once"),
    ("table: empty name", infers(pd.DataFrame([[1, 2]], columns=["a", ""])), r"column 2 has no name"),
    ("table: a path instead", infers("table.csv"), r"read_table"),
    ("table: a list in a cell", infers(cell("age", 3, [1, 2])), r"column 'age', row 3: a cell of type list.*aside"),
    ("table: a dict in a cell", infers(cell("ward", 4, {})), r"column 'ward', row 4: a cell of type dict"),
    ("table: infinity", infers(cell("age", 5, np.inf)), r"column 'age', row 5: the value is infinite; correct it"),
    ("table: minus infinity", infers(cell("age", 5, -np.inf)), r"row 5: the value is infinite"),
    ("table: 1e308", infers(cell("age", 6, 1e308)), r"column 'age', row 6: the value is beyond 1e\+100"),
    (
        "table: nothing usable",
        fits(pd.DataFrame({"a": [1, 1], "b": [None] * 2})),
        r"no usable column is left.*'a': constant",
    ),
    ("table: one row", fits(pd.DataFrame({"a": [1.5], "b": ["x"]})), r"no usable column is left.*1 sample"),
]

DECLARED: list[tuple[str, Act, str]] = [
    ("declared: no such column", infers(good(), {"aeg": "gaussian"}), r"column 'aeg'.*not in the table.*mean 'age'"),
    (
        "declared: unknown kind",
        infers(good(), {"age": "normal"}),
        r"column 'age': unknown kind 'normal'; known: gaussian.*mean 'gaussian'",
    ),
    ("declared: misspelt kind", infers(good(), {"age": "guassian"}), r"Did you mean 'gaussian'\?"),
    ("declared: unknown setting", infers(good(), {"age": {"kinds": "beta"}}), r"unknown setting 'kinds'.*mean 'kind'"),
    ("declared: no mapping", infers(good(), 3), r"a schema is a mapping"),
    (
        "declared: text as gaussian",
        infers(good(), {"ward": "gaussian"}),
        r"column 'ward', row 0: text in a column of numbers",
    ),
    (
        "declared: dates as gaussian",
        infers(good(day=pd.Timestamp(0)), {"day": "gaussian"}),
        r"column 'day': dates are not",
    ),
    (
        "declared: dates as levels",
        infers(good(day=pd.Timestamp(0)), {"day": "categorical"}),
        r"column 'day': holds dates",
    ),
    (
        "declared: three values as bernoulli",
        infers(good(), {"ward": "bernoulli"}),
        r"needs 2 levels, not 3 .*categorical",
    ),
    ("declared: one value as bernoulli", infers(good(x="y"), {"x": "bernoulli"}), r"column 'x'.*levels, not 1 \('y'\)"),
    (
        "declared: one level as categorical",
        infers(good(x="y"), {"x": "categorical"}),
        r"column 'x'.*levels, not 1 \('y'\)",
    ),
    (
        "declared: levels too few",
        infers(good(), {"ward": {"levels": ["a", "b"]}}),
        r"row 2: level 'c' is not among the",
    ),
    ("declared: a level twice", infers(good(), {"ward": {"levels": ["a", "a"]}}), r"one value twice"),
    (
        "declared: negative count",
        infers(cell("visits", 2, -1), {"visits": "poisson"}),
        r"row 2: the value is not a whole number from 0 up",
    ),
    (
        "declared: broken count",
        infers(cell("visits", 7, 1.5), {"visits": "poisson"}),
        r"row 7: the value is not a whole",
    ),
    (
        "declared: proportion of 1.2",
        infers(cell("share", 9, 1.2), {"share": "beta"}),
        r"'share', row 9: the proportion lies outside 0 to 1; correct",
    ),
    (
        "declared: percent as share",
        infers(good(), {"age": "beta"}),
        r"'age', row 0: .*outside 0 to 1.*bounds = \[0, 100\]",
    ),
    (
        "declared: bounds reversed",
        infers(good(), {"share": {"kind": "beta", "bounds": [1, 0]}}),
        r"the lower one first",
    ),
    (
        "declared: binomial without trials",
        infers(good(), {"hits": "binomial"}),
        r"column 'hits': binomial needs trials",
    ),
    (
        "declared: trials in no column",
        infers(good(), {"hits": {"kind": "binomial", "trials": "shot"}}),
        r"column 'hits': its trials are in column 'shot', which is not in the table.*mean 'shots'",
    ),
    (
        "declared: trials below successes",
        infers(cell("shots", 4, 1), KINDS),
        r"'hits', row 4: more successes than trials",
    ),
    ("declared: trials missing", infers(cell("shots", 4, None), KINDS), r"'hits', row 4: successes without trials"),
    (
        "declared: settings of another kind",
        infers(good(), {"age": {"kind": "gaussian", "trials": 3}}),
        r"does not belong",
    ),
]

SCHEMA_FILES: list[tuple[str, Act, str]] = [
    (
        "schema file: absent",
        lambda folder: infer_schema(good(), folder / "no.toml"),
        r"no\.toml: cannot be read as a schema",
    ),
    ("schema file: malformed", declares("[[column]]\nname = age\n"), r"schema\.toml: not valid TOML: .*line 2"),
    ("schema file: unknown kind", declares(one("real")), r"schema\.toml: column 'age': unknown kind 'real'"),
    ("schema file: no kind", declares('[[column]]\nname = "age"\n'), r"schema\.toml: column 'age': has no kind"),
    (
        "schema file: no name",
        declares('[[column]]\nkind = "beta"\n'),
        r"schema\.toml: a column of the schema has no name",
    ),
    ("schema file: a name twice", declares(one("beta") * 2), r"schema\.toml: the schema names column 'age' twice"),
    ("schema file: no such column", declares(one("beta").replace("age", "agee")), r"schema\.toml names column 'agee'"),
    ("schema file: another table", declares("[columns]\n"), r"schema\.toml: 'columns' is not expected"),
    (
        "schema file: wrong bounds",
        declares(one("beta", "bounds = [1]")),
        r"schema\.toml: column 'age': bounds must be two",
    ),
]

LATER: list[tuple[str, Act, str]] = [
    ("later: a column missing", codes(good().drop(columns="age")), r"column 'age' is missing from the table; add it"),
    ("later: the trials missing", codes(good().drop(columns="shots")), r"column 'shots' is missing from the table"),
    ("later: a renamed column", codes(good().rename(columns={"age": "Age"})), r"'age' is missing.*Did you mean 'Age'"),
    (
        "later: a level unseen in fit",
        codes(cell("ward", 17, "z")),
        r"'ward', row 17: level 'z' was not seen in fit; known: 'a'",
    ),
    (
        "later: a third value",
        codes(cell("sex", 8, "x")),
        r"column 'sex', row 8: level 'x' was not seen in fit; known: 'f', 'm'",
    ),
    ("later: a hostile level", codes(cell("ward", 2, "a\nb" * 99)), r"level 'a\\nba\\nb.*\.\.\. was not seen"),
    ("later: text among numbers", codes(cell("age", 11, "old")), r"column 'age', row 11: text in a column of numbers"),
    ("later: infinity", codes(cell("age", 12, np.inf)), r"column 'age', row 12: the value is infinite"),
    ("later: a sentinel", codes(cell("age", 13, 1e50)), r"column 'age', row 13: .*standard deviations.*sentinel"),
    (
        "later: negative count",
        codes(cell("visits", 14, -2)),
        r"column 'visits', row 14: the value is not a whole number from 0 up",
    ),
    (
        "later: proportion of 1.2",
        codes(cell("share", 15, 1.2)),
        r"column 'share', row 15: the proportion lies outside",
    ),
    (
        "later: trials below successes",
        codes(cell("hits", 16, 9)),
        r"column 'hits', row 16: more successes than trials",
    ),
    ("later: dates among numbers", codes(good(age=pd.Timestamp(0))), r"column 'age': dates are not numbers"),
    ("later: no rows", codes(good().iloc[:0]), r"0 sample\(s\)"),
    (
        "later: a broken coder",
        lambda folder: Coder.from_dict({"schema": {"columns": []}, "shift": [1]}),
        r"a saved coder",
    ),
    ("later: a broken schema", lambda folder: Coder.from_dict({}), r"a saved schema must hold a list"),
]

CASES = FILES + TABLES + DECLARED + SCHEMA_FILES + LATER
