"""The bundled SUPPORT table: what is in it, what is kept out of it, and that the file is the one that was made."""

import gzip
import hashlib
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from plurigp.data.table import Coder
from plurigp.datasets import load_support
from plurigp.datasets.support import died_within
from plurigp.datasets.support_columns import BASELINE, FIELDS, OUTCOMES, SCORES

KINDS = {
    "gaussian": 10, "lognormal": 4, "zero_lognormal": 1, "student_t": 1, "bernoulli": 4, "categorical": 5,
    "binomial": 2, "beta": 1, "poisson": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def support():
    return load_support()


def test_size_and_kinds(support):
    assert support.table.shape == (9105, 29)
    assert pd.Series([column.kind for column in support.schema.columns]).value_counts().to_dict() == KINDS
    assert all(column.reason for column in support.schema.columns)


def test_schema_describes_the_table(support):
    assert [column.name for column in support.schema.columns] == list(support.table)
    assert [column.dtype for column in support.schema.columns] == [str(dtype) for dtype in support.table.dtypes]
    for column in support.schema.columns:
        seen = support.table[column.name].dropna()
        if column.kind in ("bernoulli", "categorical"):
            assert set(seen) == set(column.levels)
        if column.kind == "binomial":
            assert column.trials == 7
            assert set(seen) == set(range(8))
        if column.kind == "beta":
            assert seen.between(0, 1).all()


def test_data_layer_takes_it(support):
    coded = Coder.fit(support.table, support.schema).table(support.table)
    np.testing.assert_array_equal(coded.seen, support.table.notna())
    assert np.isfinite(coded.values).all()


def test_gaps_are_still_there(support):
    share = support.table.isna().mean()
    assert share.mean() == pytest.approx(0.1493, abs=1e-4)
    published = {
        "glucose": 4500,
        "urine_output": 4862,
        "albumin": 3372,
        "activity_limits_patient": 5641,
        "income": 2982,
    }
    assert {name: int(support.table[name].isna().sum()) for name in published} == published


def test_units_are_the_published_ones(support):
    means = {"age": 62.65, "creatinine": 1.771, "temperature": 37.1, "sodium": 137.57, "white_blood_cells": 12.35}
    for name, mean in means.items():
        assert support.table[name].mean() == pytest.approx(mean, rel=1e-3)
    assert support.table["bilirubin"].skew() > 4


def test_outcomes_and_scores_stay_out_of_the_table(support):
    names = [{field.source for field in group} for group in (BASELINE, SCORES, OUTCOMES)]
    assert names[0] & names[1] == set()
    assert names[1] & names[2] == set()
    assert names[0] & names[2] == {"dnr"}  # its two times are told apart
    assert not {"dzclass", "adlsc", "dnrday", "hday", "totmcst", "sno"} & set.union(*names)
    assert not set(support.table) & (set(support.outcomes) | set(support.scores))
    late = support.outcomes["later_do_not_resuscitate"].fillna(False)
    assert not (late & (support.table["do_not_resuscitate"] == "yes")).any()


def test_no_column_gives_the_outcome_or_another_column_away(support):
    coded = support.table.apply(
        lambda column: column.rank() if column.dtype.kind in "if" else column.astype("category").cat.codes
    )
    died = support.outcomes["died_within_180_days"].astype(float)
    assert coded.corrwith(died).abs().max() < 0.5
    between = coded.corr().abs().to_numpy() - np.eye(coded.shape[1])
    assert between.max() < 0.9


def test_outcomes_agree_with_each_other(support):
    outcomes = support.outcomes
    assert len(outcomes) == len(support.scores) == len(support.table)
    assert (outcomes["died"] | ~outcomes["died_in_hospital"]).all()
    in_hospital = outcomes[outcomes["died_in_hospital"]]
    assert (in_hospital["follow_up_days"] == in_hospital["length_of_stay"]).all()
    assert int(outcomes["died_within_180_days"].sum()) == 4265
    assert not outcomes["died_within_180_days"].isna().any()


def test_died_within_knows_censoring():
    died = pd.Series([True, True, True, False, False, False], dtype="boolean")
    days = pd.Series([10, 180, 181, 179, 180, 900])
    assert died_within(died, days, 180).tolist() == [True, True, False, pd.NA, False, False]


def test_a_caller_cannot_spoil_the_next_load(support):
    spoilt = load_support()
    spoilt.table.loc[:, "age"] = 0.0
    pd.testing.assert_frame_equal(load_support().table, support.table)


def test_file_is_the_one_the_script_made():
    folder = files("plurigp.datasets")
    raw = (folder / "support.csv.gz").read_bytes()
    assert (folder / "support.sha256").read_text() == f"{hashlib.sha256(raw).hexdigest()}  support.csv.gz\n"
    assert raw[3:8] == bytes(5), "the compressed file must carry no name and no time"
    assert len(raw) < 700_000
    assert gzip.decompress(raw).split(b"\n", 1)[0].decode() == ",".join(field.name for field in FIELDS)


def test_attribution_names_source_licence_and_every_column(support):
    for part in ("Knaus", "Annals of Internal Medicine", "Vanderbilt", "CC BY 4.0", "Changed by us"):
        assert part in support.attribution
    for f in FIELDS:
        assert f"| {f.name} | {f.source} | {f.role} | {f.kind} | {f.unit} | {f.meaning} |" in support.attribution
    assert list(support.dictionary["column"]) == [field.name for field in FIELDS]
