"""Simulated records in the forms that hospitals share them: long tables, the OMOP common data model, MEDS."""

from pathlib import Path

import numpy as np
import pandas as pd

from plurigp.core.types import DataError
from plurigp.datasets.records import SimulatedRecords

FIRST_CONCEPT = 2_000_000_001  # OMOP keeps ids from two thousand millions for a site's own
BELOW, EQUAL, ABOVE = 4171756, 4172703, 4172704  # operators
SEXES = {"female": 8532, "male": 8507}
UNCODED = 0


def long_form(records: SimulatedRecords) -> dict[str, pd.DataFrame]:
    """Tables events, patients and periods."""
    return {"events": records.events, "patients": records.patients, "periods": records.periods}


def meds_form(records: SimulatedRecords, n_shards: int = 3) -> dict[str, pd.DataFrame]:
    """Shards of subject_id, time, code, numeric_value, text_value and unit; birth, sex and death are events."""
    people, own = records.patients, records.events
    sex = pd.DataFrame({"subject_id": people["patient"], "code": "GENDER//" + people["sex"].str[0].str.upper()})
    births = pd.DataFrame({"subject_id": people["patient"], "time": people["birth"], "code": "MEDS_BIRTH"})
    deaths = pd.DataFrame({"subject_id": people["patient"], "time": people["death"], "code": "MEDS_DEATH"})
    events = own.rename(columns={"patient": "subject_id", "value": "numeric_value", "text": "text_value"})
    table = pd.concat([sex, births, deaths.dropna(subset="time"), events], ignore_index=True)
    table["numeric_value"] = table["numeric_value"].astype("float32")
    table["time"] = table["time"].astype("datetime64[us]")
    table = table.sort_values(["subject_id", "time"], na_position="first", kind="stable").reset_index(drop=True)
    columns = ["subject_id", "time", "code", "numeric_value", "text_value", "unit"]
    shard = table["subject_id"].rank(method="dense").astype(int) % n_shards
    return {f"data/train/{i}": table.loc[shard == i, columns].reset_index(drop=True) for i in range(n_shards)}


def omop_form(records: SimulatedRecords) -> dict[str, pd.DataFrame]:
    """Tables of OMOP 5.4: diagnoses by a source concept of ICD10 and a standard one of SNOMED, values by LOINC."""
    events = records.events
    concepts, ids, standard = _concepts(events)
    vocabulary = events["code"].str.split("/").str[0]
    parts = {name: events[vocabulary == name].reset_index(drop=True) for name in ("ICD10", "LOINC", "Visit")}
    tables = {
        "person": _person(records.patients),
        "death": _deaths(records.patients),
        "observation_period": _periods(records.periods),
        "condition_occurrence": _rows(parts["ICD10"], "condition_occurrence_id", "condition", "condition_start").assign(
            condition_concept_id=parts["ICD10"]["code"].map(standard).astype("int64"),
            condition_source_concept_id=parts["ICD10"]["code"].map(ids).astype("int64"),
            condition_source_value=parts["ICD10"]["code"].str.split("/").str[1],
        ),
        "measurement": _measurements(parts["LOINC"], ids),
        "visit_occurrence": _rows(parts["Visit"], "visit_occurrence_id", "visit", "visit_start").assign(
            visit_concept_id=parts["Visit"]["code"].map(ids).astype("int64")
        ),
        "concept": concepts,
        "concept_ancestor": _ancestors(ids, standard),
    }
    return tables


def _concepts(events: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int], dict[str, int]]:
    """The table concept; ids of codes; ids of the standard concept of each diagnosis (one per three characters)."""
    codes = sorted(events["code"].unique())
    ids = {code: FIRST_CONCEPT + number for number, code in enumerate(codes)}
    diagnoses = [code for code in codes if code.startswith("ICD10/")]
    groups = sorted({code.split("/")[1][:3] for code in diagnoses})
    group_ids = {group: FIRST_CONCEPT + len(codes) + number for number, group in enumerate(groups)}
    units = sorted(events["unit"].dropna().unique())
    rows = [(number, *code.split("/", 1), None if code in diagnoses else "S") for code, number in ids.items()]
    rows += [(number, "SNOMED", f"{int(group_ids[group]) % 1000:06}", "S") for group, number in group_ids.items()]
    first_unit = FIRST_CONCEPT + len(codes) + len(groups)
    rows += [(first_unit + number, "UCUM", unit, "S") for number, unit in enumerate(units)]
    columns = ["concept_id", "vocabulary_id", "concept_code", "standard_concept"]
    concepts = pd.DataFrame(rows, columns=columns).assign(concept_name=lambda t: "simulated " + t["concept_code"])
    return concepts, ids, {code: group_ids[code.split("/")[1][:3]] for code in diagnoses}


def _ancestors(ids: dict[str, int], standard: dict[str, int]) -> pd.DataFrame:
    pairs = [(group, group) for group in sorted(set(standard.values()))]
    pairs += [(group, ids[code]) for code, group in standard.items()]
    return pd.DataFrame(pairs, columns=["ancestor_concept_id", "descendant_concept_id"])


def _rows(events: pd.DataFrame, number: str, prefix: str, start: str) -> pd.DataFrame:
    return pd.DataFrame({
        number: np.arange(1, len(events) + 1),
        "person_id": events["patient"],
        f"{start}_date": events["time"].dt.normalize(),
        f"{start}_datetime": events["time"],
    })  # fmt: skip


def _measurements(events: pd.DataFrame, ids: dict[str, int]) -> pd.DataFrame:
    parts = events["text"].str.extract(r"^\s*([<>])\s*([0-9.]+)\s*$")
    limits = parts[1].astype("float64")
    return _rows(events, "measurement_id", "measurement", "measurement").assign(
        measurement_concept_id=events["code"].map(ids).astype("int64"),
        operator_concept_id=parts[0].map({"<": BELOW, ">": ABOVE}).fillna(EQUAL).astype("int64"),
        value_as_number=events["value"].fillna(limits),
        unit_concept_id=UNCODED,
        unit_source_value=events["unit"],
        measurement_source_value=events["code"].str.split("/").str[1],
        value_source_value=events["text"],
    )


def _person(patients: pd.DataFrame) -> pd.DataFrame:
    birth = patients["birth"].dt
    return pd.DataFrame({
        "person_id": patients["patient"],
        "gender_concept_id": patients["sex"].map(SEXES),
        "year_of_birth": birth.year, "month_of_birth": birth.month, "day_of_birth": birth.day,
        "gender_source_value": patients["sex"],
    })  # fmt: skip


def _deaths(patients: pd.DataFrame) -> pd.DataFrame:
    died = patients.dropna(subset="death").reset_index(drop=True)
    return pd.DataFrame({"person_id": died["patient"], "death_date": died["death"]})


def _periods(periods: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({
        "observation_period_id": np.arange(1, len(periods) + 1),
        "person_id": periods["patient"],
        "observation_period_start_date": periods["start"],
        "observation_period_end_date": periods["end"],
    })  # fmt: skip


FORMS = {"long": long_form, "omop": omop_form, "meds": meds_form}


def write_records(records: SimulatedRecords, folder: str | Path, form: str = "long", suffix: str = ".parquet") -> Path:
    """The records in one of their forms as files, one per table; returns the folder."""
    if form not in FORMS or suffix not in (".parquet", ".csv"):
        raise DataError(f"form is one of {', '.join(FORMS)}, suffix .parquet or .csv; choose among them.")
    for name, table in FORMS[form](records).items():
        path = Path(folder) / f"{name}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False)
    return Path(folder)
