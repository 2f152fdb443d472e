"""Whatever a table or file holds: it is read, fitted and filled, or refused in one line."""

import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from plurigp import DataError, PluriGP, load
from plurigp.data import Coder, infer_schema, read_table
from plurigp.data.schema import load_schema
from plurigp.study import read_config

LONG = (pytest.mark.trust, pytest.mark.timeout(14_400))
FILES = [pytest.param(60, id="some"), pytest.param(10_000, id="10000", marks=LONG)]
FITS = [pytest.param(6, id="some"), pytest.param(10_000, id="10000", marks=LONG)]
MAX_SECONDS = 30
SEED = int(os.environ.get("TRUST_SEED", "0"))
N = 12

EXTREME = st.sampled_from([0.0, -0.0, 1e308, -1e308, 1e-308, 5e-324, 1e16, -1.0, 0.5, 1.0, 2.0, 3.0, 100.0])
NUMBER = EXTREME | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 9).map(float)
WORD = st.sampled_from(["a", "b", "c"]) | st.text(max_size=4)
SCHEMA = {"real": "gaussian", "cost": "lognormal", "count": "poisson",
          "ward": {"kind": "categorical", "levels": list("abc")}, "flag": {"kind": "bernoulli", "levels": ["n", "y"]},
          "share": "beta"}  # fmt: skip
CELLS = {
    "real": NUMBER, "cost": EXTREME.map(abs) | st.floats(1e-9, 1e9), "count": st.integers(0, 9).map(float) | EXTREME,
    "ward": st.sampled_from("abc") | WORD, "flag": st.sampled_from("ny") | st.booleans(),
    "share": st.floats(0, 1) | NUMBER,
}  # fmt: skip
ORDINARY = {
    "real": st.floats(-1e6, 1e6), "cost": st.floats(1e-3, 1e6), "count": st.integers(0, 1000).map(float),
    "ward": st.sampled_from("abc"), "flag": st.sampled_from("ny"), "share": st.floats(0, 1),
}  # fmt: skip

VALID = b"age,ward,crp\n41,a,<0.5\n52,b,1.5\n,a,2\n63,c,>200\n"
PIECES = st.sampled_from([
    b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\r", b"\n\n", b'"', b",,", b";", b"\t", b"|", b"1e308", b"-inf", b"nan",
    b"\xe9", b"1,5", b"1.200,5", b"2020-01-05", b"=1+1", b"\x1b[2J", b"' or 1=1", b"9" * 400, b"007", b"NA", b"true",
    b"\xf0\x9f\x98\x80",
])  # fmt: skip


# Every column has a gap and two values, so that all tables have one layout and its program is compiled once.
FIRST_ROWS = pd.DataFrame(
    [[None] * 6, [0.0, 1.0, 1.0, "a", "n", 0.2], [1.0, 2.0, 3.0, "b", "y", 0.6]], columns=list(SCHEMA), dtype=object
)


def tables(of: dict[str, st.SearchStrategy]) -> st.SearchStrategy[pd.DataFrame]:
    """Twelve rows of the columns of one schema, so that programs are compiled once; a third of the cells are gaps."""
    columns = {name: st.lists(st.one_of(st.none(), cell, cell), min_size=N, max_size=N) for name, cell in of.items()}
    return st.fixed_dictionaries(columns).map(
        lambda cells: pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in cells.items()})
    )


@st.composite
def files(draw: Any) -> bytes:
    """A valid file with pieces put in, bytes changed, and an end that may be missing."""
    raw = bytearray(VALID if draw(st.booleans()) else VALID.replace(b",", b";").replace(b".", b","))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(raw)))
        raw[at:at] = draw(PIECES | st.binary(max_size=3))
    return bytes(raw[: draw(st.integers(0, len(raw)))] if draw(st.booleans()) else raw)


def each(count: int, strategy: st.SearchStrategy, act: Callable[[Any], None]) -> None:
    """Run it on so many examples: it ends in time, and what it refuses it refuses in one line."""
    found: Counter[str] = Counter()

    def check(example: Any) -> None:
        started = time.process_time()  # not the clock: other processes may be busy
        with warnings.catch_warnings(action="ignore"):
            try:
                act(example)
                found["worked"] += 1
            except DataError as error:
                assert "\n" not in str(error)
                found["refused"] += 1
        assert time.process_time() - started < MAX_SECONDS

    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    limits = settings(max_examples=count, deadline=None, suppress_health_check=slow, database=None)
    limits(seed(SEED)(given(strategy)(check)))()
    print(dict(found))
    assert set(found) == {"worked", "refused"}  # else the examples are all alike


@pytest.mark.parametrize("count", FILES)
def test_any_file_is_read_and_checked_or_refused(count, tmp_path):
    def act(raw: bytes) -> None:
        (tmp_path / "t.csv").write_bytes(raw)
        frame = read_table(tmp_path / "t.csv")
        Coder.fit(frame, infer_schema(frame)).table(frame)

    each(count, files(), act)


@pytest.mark.parametrize("count", FILES)
@pytest.mark.parametrize(
    ("read", "valid"),
    [
        (load_schema, b'[[column]]\nname = "a"\nkind = "ordinal"\nlevels = [1, 2, 3]\nbounds = [0, 1]\n'),
        (read_config, b'n_refits = 30\nhorizons = [1.5]\ntitle = "x"\n[model]\nkernel = "rbf"\n'),
    ],
    ids=["schema", "settings"],
)
def test_any_schema_file_and_any_settings_are_read_or_refused(count, read, valid, tmp_path):
    def act(raw: bytes) -> None:
        (tmp_path / "t.toml").write_bytes(raw)
        read(tmp_path / "t.toml")

    changed = st.builds(lambda at, piece, cut: (valid[:at] + piece + valid[at:])[:cut], st.integers(0, len(valid)),
                        PIECES | st.binary(max_size=4) | st.just(b"[" * 3000), st.integers(0, 4000))  # fmt: skip
    each(count, changed, act)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    cells = {"real": rng.normal(size=N), "cost": rng.lognormal(size=N), "count": rng.poisson(2, N).astype(float),
             "ward": rng.choice(list("abc"), N), "flag": rng.choice(list("ny"), N),
             "share": rng.beta(2, 2, N)}  # fmt: skip
    return tiny().fit(pd.DataFrame(cells)).save(tmp_path_factory.mktemp("tables") / "model")


def tiny() -> PluriGP:
    return PluriGP(2, schema=SCHEMA, n_inducing=3, max_epochs=1, calibrate=False, random_state=0)


@pytest.mark.parametrize("count", FITS)
def test_any_table_is_fitted_placed_and_filled_or_refused(count):
    def act(drawn: pd.DataFrame) -> None:
        frame = pd.concat([FIRST_ROWS, drawn], ignore_index=True)
        model = tiny().fit(frame)
        assert np.isfinite(model.transform(frame)).all()
        filled = model.impute(frame)
        used = [column.name for column in model.schema_.used]
        assert filled[used].notna().all(axis=None)

    each(count, tables(ORDINARY) | tables(CELLS), act)


@pytest.mark.parametrize("count", FILES)
def test_any_new_rows_are_placed_and_filled_or_refused(count, saved):
    model = load(saved)

    def act(frame: pd.DataFrame) -> None:
        assert np.isfinite(model.transform(frame)).all()
        assert model.impute(frame).notna().all(axis=None)

    each(count, tables(CELLS), act)
