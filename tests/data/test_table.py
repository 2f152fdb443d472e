"""Coder and Table: coding, its undoing, and what must not matter."""

import json
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.core.types import DataError
from plurigp.data import KINDS, Coder, Column, Schema, Table, infer_schema
from plurigp.data.table import take_rows


@pytest.fixture
def every_kind(rng):
    """One column of every kind, a fifth of it gaps, and the schema that says so."""
    n = 60
    frame = pd.DataFrame(
        {
            "note": [f"free words {i}" for i in range(n)],
            "real": rng.normal(50, 12, n),
            "hetero": rng.normal(-3, 0.1, n),
            "flag": rng.choice(["no", "yes"], n),
            "hits": rng.binomial(12, 0.4, n).astype(float),
            "wins": rng.binomial(7, 0.5, n).astype(float),
            "percent": np.append(rng.uniform(1, 99, n - 2), [0.0, 100.0]),
            "share": rng.uniform(0.01, 0.99, n),
            "count": rng.poisson(3, n).astype(float),
            "group": rng.choice(["a", "b", "c"], n),
            "games": np.full(n, 7.0),
        }
    )
    for name in frame.columns[1:-1]:
        frame.loc[rng.random(n) < 0.2, name] = None
    frame.loc[[58, 59], "percent"] = [0.0, 100.0]
    declared = {
        "hetero": "gaussian_hetero",
        "hits": {"kind": "binomial", "trials": 12},
        "wins": {"kind": "binomial", "trials": "games"},
        "percent": {"kind": "beta", "bounds": [0, 100]},
    }
    return frame, infer_schema(frame, declared)


def slots(schema):
    """First slot of each used column."""
    widths = [KINDS[column.kind].n_slots for column in schema.used]
    return dict(zip([c.name for c in schema.used], np.cumsum([0, *widths[:-1]]), strict=True))


def test_hidden_cells_are_coded_like_gaps(every_kind, rng):
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    mask = rng.random((60, len(schema.used))) < 0.3
    names = [column.name for column in schema.used]
    gaps = frame.assign(**{name: frame[name].mask(mask[:, d]) for d, name in enumerate(names)})
    before = coder.table(frame).values.copy()
    hidden, expected = (table := coder.table(frame)).hidden(mask), coder.table(gaps)
    np.testing.assert_array_equal(hidden.values, expected.values)
    np.testing.assert_array_equal(hidden.seen, expected.seen)
    np.testing.assert_array_equal(table.values, before)
    trials = slots(schema)["wins"] + 1
    assert (hidden.values[:, trials] == 7).all()


def test_layout_of_values_and_seen(every_kind):
    frame, schema = every_kind
    table = Coder.fit(frame, schema).table(frame)
    names = [c.name for c in schema.used]
    assert names == ["real", "hetero", "flag", "hits", "wins", "percent", "share", "count", "group"]
    assert table.values.shape == (60, 11)
    assert table.values.dtype == np.float64
    assert table.seen.dtype == bool
    assert table.schema == Schema(schema.used)
    np.testing.assert_array_equal(table.seen, frame[names].notna().to_numpy())
    assert np.isfinite(table.values).all()
    assert table.index.equals(frame.index)


def test_each_kind_is_coded_as_documented(every_kind):
    frame, schema = every_kind
    table = Coder.fit(frame, schema).table(frame)
    at = slots(schema)

    def coded(name, slot=0):
        return table.values[frame[name].notna(), at[name] + slot]

    def raw(name):
        return frame[name].dropna()

    for name in ("real", "hetero"):
        np.testing.assert_allclose(coded(name), (raw(name) - raw(name).mean()) / raw(name).std(ddof=0), rtol=1e-12)
    np.testing.assert_array_equal(coded("flag"), raw("flag") == "yes")
    np.testing.assert_array_equal(coded("hits"), raw("hits"))
    np.testing.assert_array_equal(coded("hits", 1), 12)
    np.testing.assert_array_equal(table.values[:, at["wins"] + 1], 7)
    n = len(raw("percent"))
    np.testing.assert_allclose(coded("percent"), (raw("percent") / 100 * (n - 1) + 0.5) / n, rtol=1e-12)
    np.testing.assert_allclose(coded("share"), raw("share"), rtol=1e-12)
    np.testing.assert_array_equal(coded("count"), raw("count"))
    np.testing.assert_array_equal(coded("group"), raw("group").map({"a": 0, "b": 1, "c": 2}))


def test_gaps_hold_a_stand_in_from_the_support(every_kind):
    frame, schema = every_kind
    gaps = frame.copy()
    gaps[[c.name for c in schema.used] + ["games"]] = np.nan
    table = Coder.fit(frame, schema).table(gaps)
    assert not table.seen.any()
    expected = [number for column in schema.used for number in KINDS[column.kind].stand_in]
    fixed = slots(schema)["hits"] + 1
    expected[fixed] = 12.0
    np.testing.assert_array_equal(table.values, np.tile(expected, (60, 1)))


def test_undo_gives_back_every_seen_cell(every_kind):
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    table = coder.table(frame)
    for d, column in enumerate(schema.used):
        seen = table.seen[:, d]
        raw = coder.undo(column.name, table.values[:, slots(schema)[column.name]])
        assert raw.name == column.name
        if column.levels:
            assert raw[seen].tolist() == frame[column.name][seen].tolist()
        else:
            np.testing.assert_allclose(raw[seen], frame[column.name][seen], rtol=1e-12, atol=1e-9)


def test_undo_rounds_to_what_the_kind_can_hold(every_kind):
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    assert coder.undo("count", np.array([2.4, -1.0, np.nan])).tolist()[:2] == [2.0, 0.0]
    assert coder.undo("flag", np.array([0.2, 0.8])).tolist() == ["no", "yes"]
    assert coder.undo("group", np.array([1.9, 7.0, -2.0])).tolist() == ["c", "c", "a"]
    assert coder.undo("percent", np.array([0.0, 1.0])).tolist() == [0.0, 100.0]
    assert coder.undo("flag", np.array([1.0, np.nan])).isna().tolist() == [False, True]
    assert coder.undo("real", np.array([np.nan])).isna().all()
    with pytest.raises(KeyError, match="no used column 'note'"):
        coder.undo("note", np.zeros(1))


def test_log_units_is_the_log_slope_of_undo(every_kind):
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    step = 1e-4
    for d, column in enumerate(schema.used):
        if column.kind in ("gaussian", "gaussian_hetero", "beta"):
            up, down = coder.undo(column.name, np.array([0.4 + step, 0.4 - step]))
            assert coder.log_units[d] == pytest.approx(np.log((up - down) / (2 * step)), rel=1e-8)
        else:
            assert coder.log_units[d] == 0.0


def test_units_come_from_the_training_rows_alone(every_kind):
    frame, schema = every_kind
    coder = Coder.fit(frame.iloc[:40], schema)
    whole = coder.table(frame)
    single = coder.table(frame.iloc[[50]])
    np.testing.assert_array_equal(whole.values[50], single.values[0])
    assert coder.shift[0] == pytest.approx(frame["real"].iloc[:40].mean(), rel=1e-12)


def test_a_hidden_value_cannot_come_through():
    gaps = np.array([False, True, False, True, False])

    def table(hidden):
        flags = pd.arrays.BooleanArray(np.array([True, bool(hidden), False, not hidden, True]), gaps)
        whole = pd.arrays.IntegerArray(np.array([1, hidden, 2, hidden, 9]), gaps)
        real = pd.arrays.FloatingArray(np.array([0.5, hidden, 2.25, -hidden, 9.0]), gaps)
        masked = np.ma.MaskedArray([0.5, hidden, 0.25, 0.75, 0.1], gaps)
        frame = pd.DataFrame({"flag": flags, "whole": whole, "real": real, "share": pd.Series(masked)})
        coder = Coder.fit(frame, infer_schema(frame))
        return coder, coder.table(frame)

    (one, first), (other, second) = table(0), table(77)
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert first.values.tobytes() == second.values.tobytes()
    assert first.seen.tobytes() == second.seen.tobytes()


def test_extra_columns_order_and_row_labels_do_not_matter(every_kind):
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    plain = coder.table(frame)
    turned = coder.table(frame[frame.columns[::-1]].assign(more=1).set_axis(["r"] * 60, axis=0))
    assert plain.values.tobytes() == turned.values.tobytes()
    assert turned.index.tolist() == ["r"] * 60


def test_columns_set_aside_may_be_absent_later(every_kind):
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    coder.table(frame.drop(columns="note"))
    with pytest.raises(DataError, match="column 'real' is missing from the table"):
        coder.table(frame.drop(columns="real"))
    with pytest.raises(DataError, match="column 'games' is missing"):
        coder.table(frame.drop(columns="games"))


def test_the_same_cells_in_other_clothes_code_alike(every_kind):
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    plain = coder.table(frame)
    for dressed in (
        frame.convert_dtypes(),
        frame.astype(object),
        frame.astype({"flag": "category", "group": "category"}),
    ):
        table = coder.table(dressed)
        np.testing.assert_array_equal(table.values, plain.values)
        np.testing.assert_array_equal(table.seen, plain.seen)
    as_text = frame.assign(real=[None if np.isnan(v) else repr(v) for v in frame["real"]])
    np.testing.assert_array_equal(coder.table(as_text).values, plain.values)


def test_arrow_and_polars_code_alike(every_kind):
    pl = pytest.importorskip("polars")
    frame, schema = every_kind
    coder = Coder.fit(frame, schema)
    plain = coder.table(frame)
    arrow = frame.convert_dtypes(dtype_backend="pyarrow")
    np.testing.assert_array_equal(coder.table(arrow).values, plain.values)
    columns = {name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame.columns}
    polars = coder.table(pl.DataFrame(columns))
    np.testing.assert_array_equal(polars.values, plain.values)
    np.testing.assert_array_equal(polars.seen, plain.seen)


def test_fit_completes_a_schema_written_by_hand():
    frame = pd.DataFrame({"sex": ["m", "f", None], "age": pd.array([40, None, 60], dtype="Int64")})
    coder = Coder.fit(frame, Schema((Column("sex", "bernoulli"), Column("age", "gaussian"))))
    assert coder.schema["sex"].levels == ("f", "m")
    assert [c.dtype for c in coder.schema] == ["str", "Int64"]
    assert coder.shift.tolist() == [0.0, 50.0]
    assert coder.scale.tolist() == [1.0, 10.0]


def test_a_column_that_lost_all_its_cells_is_set_aside_in_fit():
    frame = pd.DataFrame({"a": [1.5, 2.5, 4.0], "b": [1.0, 2.5, 7.0]})
    schema = infer_schema(frame)
    coder = Coder.fit(frame.assign(b=np.nan), schema)
    assert [c.name for c in coder.schema.used] == ["a"]
    assert coder.schema["b"].reason == "no observed cell"


def test_rows_and_columns_without_any_cell_are_allowed():
    frame = pd.DataFrame({"a": [1.5, np.nan, 4.0], "b": [0.0, np.nan, 7.25]})
    coder = Coder.fit(frame, infer_schema(frame))
    assert coder.table(frame).seen[1].tolist() == [False, False]
    empty = pd.DataFrame({"a": [None, None], "b": pd.Series([None, None], dtype=object)})
    assert not coder.table(empty).seen.any()


def test_a_constant_declared_gaussian_keeps_its_unit():
    frame = pd.DataFrame({"a": [3.0, 3.0]})
    coder = Coder.fit(frame, infer_schema(frame, {"a": "gaussian"}))
    assert (coder.shift[0], coder.scale[0]) == (3.0, 1.0)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e30, 2e99])
def test_very_small_and_very_large_numbers_are_standardised(size):
    frame = pd.DataFrame({"a": np.array([1.0, 2.0, 4.0]) * size})
    coder = Coder.fit(frame, infer_schema(frame, {"a": "gaussian"}))
    values = coder.table(frame).values[:, 0]
    assert values.std() == pytest.approx(1.0)
    np.testing.assert_allclose(coder.undo("a", values), frame["a"], rtol=1e-12)


def test_proportions_stay_inside_even_in_float32():
    frame = pd.DataFrame({"p": np.linspace(1e-12, 1 - 1e-12, 30)})
    coder = Coder.fit(frame, infer_schema(frame, {"p": "beta"}))
    assert coder.squeeze[0] == 0
    new = coder.table(pd.DataFrame({"p": [0.0, 1.0, 1e-12, 1 - 1e-12]})).values.astype(np.float32)
    assert ((new > 0) & (new < 1)).all()


def test_squeezing_only_where_training_cells_touch_an_edge():
    inside = pd.DataFrame({"p": np.linspace(0.1, 0.9, 30)})
    edge = pd.DataFrame({"p": np.linspace(0.0, 0.9, 30)})
    schema = Schema((Column("p", "beta"),))
    assert Coder.fit(inside, schema).squeeze.tolist() == [0.0]
    assert Coder.fit(edge, schema).squeeze.tolist() == [30.0]


@given(st.lists(st.floats(-1e90, 1e90), min_size=2, max_size=20), st.floats(-1e3, 1e3))
def test_coder_goes_through_json_to_the_bit(values, bound):
    frame = pd.DataFrame({"a": values, "p": np.linspace(bound, bound + 1, len(values))})
    schema = Schema((Column("a", "gaussian"), Column("p", "beta", bounds=(bound, bound + 1)), Column("id", "aside")))
    frame["p"] = frame["p"].clip(bound, bound + 1)
    coder = Coder.fit(frame, schema)
    again = Coder.from_dict(json.loads(json.dumps(coder.to_dict())))
    assert again.schema == coder.schema
    for part in ("shift", "scale", "squeeze"):
        assert getattr(again, part).tobytes() == getattr(coder, part).tobytes()
    assert again.table(frame).values.tobytes() == coder.table(frame).values.tobytes()


@pytest.mark.parametrize("spoil", [{"shift": []}, {"scale": ["x"]}, {"squeeze": None}, {"schema": 3}])
def test_a_saved_coder_that_is_broken_is_an_error(spoil):
    frame = pd.DataFrame({"a": [1.5, 2.5, 4.0]})
    saved = Coder.fit(frame, infer_schema(frame)).to_dict()
    with pytest.raises(DataError):
        Coder.from_dict(saved | spoil)


def test_a_hundred_thousand_rows_take_no_loop_over_rows(rng):
    n = 100_000
    frame = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "text": rng.choice(["a", "b", "c"], n),
            "count": rng.poisson(2, n),
            "share": rng.uniform(size=n),
            "flag": rng.random(n) < 0.5,
        }
    )
    coder = Coder.fit(frame, infer_schema(frame))
    start = time.perf_counter()
    assert coder.table(frame).values.shape == (n, 5)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize("kind", ["lognormal", "gamma"])
def test_small_values_of_whole_positive_columns_can_be_read_again(kind):
    frame = pd.DataFrame({"days": pd.array([1, 2, 40, None], dtype="Int64"), "z": [1.0, 2.5, 4.0, 3.0]})
    coder = Coder.fit(frame, Schema((Column("days", kind), Column("z", "gaussian"))))
    low = np.array([[0.01, 0.0]] * 4)
    for made in (coder.frame(low), coder.fill(frame, low)):
        assert made["days"].min() == 1
        assert made["days"].dtype == "Int64"
        coder.table(made)


def test_rows_are_taken_with_their_covariates():
    coded = Table(
        np.arange(6.0).reshape(3, 2), np.ones((3, 2), bool), Schema(()), pd.RangeIndex(3), np.arange(3.0)[:, None]
    )
    taken = take_rows(coded, np.array([2, 0]))
    np.testing.assert_array_equal(taken.covariates, [[2.0], [0.0]])
    np.testing.assert_array_equal(taken.values, [[4.0, 5.0], [0.0, 1.0]])
    assert take_rows(replace(coded, covariates=None), np.array([1])).covariates is None
