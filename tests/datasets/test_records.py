"""Simulated records: repeatable, with the errors that they promise, the same in every form."""

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.datasets import long_form, meds_form, omop_form, simulate_records, write_records


@pytest.fixture(scope="module")
def records():
    return simulate_records(200, random_state=5)


def test_a_seed_fixes_the_records(records):
    again = simulate_records(200, random_state=5)
    for name, table in long_form(records).items():
        pd.testing.assert_frame_equal(table, long_form(again)[name])
    assert not records.events.equals(simulate_records(200, random_state=6).events)


def test_what_goes_wrong_in_them(records):
    events = records.events
    labs = events[events["code"].str.startswith("LOINC/")]
    assert events.duplicated().mean() == pytest.approx(0.02, abs=0.01)
    assert set(labs.loc[labs["code"] == "LOINC/2160-0", "unit"].dropna()) == {"umol/L", "mg/dL"}
    assert labs["text"].str.startswith("<").any()
    assert labs["unit"].isna().any()
    without = set(records.patients["patient"]) - set(records.subtype.index)
    assert 10 < len(without) < 60
    assert not events.loc[events["patient"].isin(without), "code"].str.startswith("ICD10/G20").any()
    assert ((records.patients["birth"].dt.month == 2) & (records.patients["birth"].dt.day == 29)).any()
    assert labs.duplicated(["patient", "code", "time"]).any()


def test_subtypes_differ(records):
    lab = records.events[(records.events["code"] == "LOINC/2951-2") & (records.events["value"] < 1000)]
    means = lab.groupby(lab["patient"].map(records.subtype))["value"].mean()
    assert np.ptp(means) > 4


def test_forms_hold_the_same(records):
    meds = pd.concat(meds_form(records).values())
    omop = omop_form(records)
    n = len(records.events)
    extra = len(records.patients) * 2 + records.patients["death"].notna().sum()
    assert len(meds) == n + extra
    assert meds["numeric_value"].dtype == "float32"
    assert sum(len(omop[name]) for name in ("condition_occurrence", "measurement", "visit_occurrence")) == n
    assert omop["concept"]["concept_id"].is_unique


def test_files(records, tmp_path):
    folder = write_records(records, tmp_path / "r", "meds")
    assert len(list(folder.glob("data/train/*.parquet"))) == 3
    assert pd.read_csv(write_records(records, tmp_path / "c", "long", ".csv") / "periods.csv").shape == (200, 3)
    with pytest.raises(DataError, match="form is one of"):
        write_records(records, tmp_path, "fhir")
    with pytest.raises(DataError, match="n_labs goes from 1"):
        simulate_records(n_labs=99)
    with pytest.raises(DataError, match="at least 1"):
        simulate_records(0)
