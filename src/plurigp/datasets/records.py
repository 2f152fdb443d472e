"""The records of a simulated hospital: events of patients with planted subtypes, with all that makes records hard."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from plurigp.core.types import DataError

FIRST_DAY, N_DAYS = np.datetime64("2006-01-01"), 4700  # of index events: until 2018, with three leap days
GROUPS = (
    "E11", "I10", "F32", "G47", "K59", "N39", "M54", "I48", "J44", "E78", "F02", "R26", "H25", "M17", "L20", "D50",
    "K21", "N18", "I25", "E03", "G43", "J45", "M81", "F41",
)  # fmt: skip
INDEX_CODES = ("ICD10/G20", "ICD10/G20.1", "ICD10/G20.9")
VISITS = ("Visit/OP", "Visit/IP")
STATIC = ("patient", "time", "code", "value", "text", "unit")


@dataclass(frozen=True)
class LabTest:
    """A laboratory test: its code and unit, its mean and sd, and what goes wrong with it."""

    name: str
    code: str
    unit: str
    mean: float
    sd: float
    decimals: int = 1
    other_unit: str = ""  # in which a part of the values come
    factor: float = 1.0  # from the other unit to the unit
    detection_limit: float | None = None


LABS = (
    LabTest("creatinine", "LOINC/2160-0", "umol/L", 85.0, 14.0, 0, "mg/dL", 88.42),
    LabTest("haemoglobin", "LOINC/718-7", "g/L", 138.0, 12.0, 0, "g/dL", 10.0),
    LabTest("sodium", "LOINC/2951-2", "mmol/L", 140.0, 2.6, 0),
    LabTest("potassium", "LOINC/2823-3", "mmol/L", 4.2, 0.35, 1),
    LabTest("crp", "LOINC/1988-5", "mg/L", 5.0, 3.0, 1, detection_limit=2.0),
    LabTest("tsh", "LOINC/3016-3", "mU/L", 2.1, 0.7, 2),
    LabTest("glucose", "LOINC/2345-7", "mmol/L", 6.1, 1.1, 1, "mg/dL", 0.0555),
    LabTest("albumin", "LOINC/1751-7", "g/L", 40.0, 4.0, 0, "g/dL", 10.0),
    LabTest("vitamin_d", "LOINC/1989-3", "nmol/L", 62.0, 15.0, 0),
    LabTest("ferritin", "LOINC/2276-4", "ug/L", 110.0, 35.0, 0),
    LabTest("hba1c", "LOINC/4548-4", "%", 42.0, 8.0, 0),
    LabTest("neutrophils", "LOINC/770-8", "%", 58.0, 7.0, 0),
)


@dataclass(frozen=True, eq=False)
class SimulatedRecords:
    """Event tables in long form, and the truth: the planted subtype of each patient with an index event.

    `plurigp.datasets.omop_form` and `meds_form` give the same records in those forms.
    """

    events: pd.DataFrame  # patient, time, code, value, text, unit
    patients: pd.DataFrame  # patient, birth, sex, death
    periods: pd.DataFrame  # patient, start, end
    subtype: pd.Series  # by patient, from 0
    index_time: pd.Series  # by patient


def simulate_records(
    n_patients: int = 1000,
    n_subtypes: int = 3,
    n_labs: int = len(LABS),
    n_groups: int = len(GROUPS),
    separation: float = 1.6,
    without_index: float = 0.15,
    missing: float = 0.15,
    random_state: int | np.random.Generator | None = 0,
) -> SimulatedRecords:
    """Patients with a first Parkinson's diagnosis, their other diagnoses, laboratory values and visits around it.

    Visits are irregular; a part of the values has another unit, is below the limit of detection, implausible, entered
    twice or at the same minute as another; a patient lacks a test with probability `missing`; a part of the patients
    has no index event. `separation` is the distance of subtype means in sd of a laboratory value.
    """
    if not 1 <= n_labs <= len(LABS) or not 1 <= n_groups <= len(GROUPS):
        raise DataError(f"n_labs goes from 1 to {len(LABS)}, n_groups from 1 to {len(GROUPS)}; choose within.")
    if n_patients < 1 or n_subtypes < 1:
        raise DataError("n_patients and n_subtypes are at least 1; ask for more.")
    plan_rng, who_rng, event_rng, error_rng = np.random.default_rng(random_state).spawn(4)
    patient = 100_000 + np.sort(who_rng.choice(20 * n_patients, n_patients, replace=False))
    has_index = who_rng.random(n_patients) >= without_index
    subtype = who_rng.integers(n_subtypes, size=n_patients)
    index = FIRST_DAY + who_rng.integers(N_DAYS, size=n_patients).astype("timedelta64[D]")
    index = index.astype("datetime64[m]") + who_rng.integers(24 * 60, size=n_patients).astype("timedelta64[m]")
    parts = [
        _index_events(event_rng, patient[has_index], index[has_index]),
        _diagnoses(event_rng, plan_rng, patient, index, subtype, n_subtypes, GROUPS[:n_groups]),
        *(_lab_events(event_rng, error_rng, plan_rng, lab, patient, index, subtype, n_subtypes, separation, missing)
          for lab in LABS[:n_labs]),
        _visits(event_rng, patient, index),
    ]  # fmt: skip
    events = pd.concat(parts, ignore_index=True)
    twice = events.sample(frac=0.02, random_state=int(error_rng.integers(2**31)))
    events = pd.concat([events, twice]).sample(frac=1, random_state=int(error_rng.integers(2**31)))
    events = events.reset_index(drop=True)
    patients, periods = _people(who_rng, patient, index, events)
    return SimulatedRecords(
        events, patients, periods, pd.Series(subtype, patient)[has_index], pd.Series(index, patient)[has_index]
    )


def _frame(patient: np.ndarray, time: np.ndarray, code: object, **more: object) -> pd.DataFrame:
    columns = {"value": np.nan, "text": None, "unit": None} | more
    frame = pd.DataFrame({"patient": patient, "time": time.astype("datetime64[us]"), "code": code, **columns})
    return frame.astype({"code": "str", "text": "str", "unit": "str", "value": "float64"})[list(STATIC)]


def _around(rng: np.random.Generator, index: np.ndarray, earliest: int, latest: int) -> np.ndarray:
    """Minutes between two numbers of days around the index."""
    days = rng.integers(earliest, latest, size=len(index))
    return index + (days * 24 * 60 + rng.integers(24 * 60, size=len(index))).astype("timedelta64[m]")


def _index_events(rng: np.random.Generator, patient: np.ndarray, index: np.ndarray) -> pd.DataFrame:
    """The first diagnosis, and later ones."""
    again = rng.poisson(3, size=len(patient))
    who, when = np.repeat(patient, again), np.repeat(index, again)
    later = _around(rng, when, 1, 1400)
    first = _frame(patient, index, rng.choice(INDEX_CODES, len(patient)))
    return pd.concat([first, _frame(who, later, rng.choice(INDEX_CODES, len(who)))], ignore_index=True)


def _diagnoses(
    rng: np.random.Generator,
    plan: np.random.Generator,
    patient: np.ndarray,
    index: np.ndarray,
    subtype: np.ndarray,
    n_subtypes: int,
    groups: tuple[str, ...],
) -> pd.DataFrame:
    """Diagnoses whose frequency depends on the subtype, most of them within four years after the index event."""
    parts = []
    for group in groups:
        shares = 0.06 + 0.55 * plan.permutation(np.linspace(0, 1, n_subtypes)) * plan.random()
        has = rng.random(len(patient)) < shares[subtype]
        often = 1 + rng.poisson(0.8, size=has.sum())
        who, when = np.repeat(patient[has], often), np.repeat(index[has], often)
        codes = [f"ICD10/{group}{ending}" for ending in ("", ".0", ".1", ".9")]
        parts.append(_frame(who, _around(rng, when, -170, 1260), rng.choice(codes, len(who))))
        old = rng.random(len(patient)) < 0.05
        parts.append(_frame(patient[old], _around(rng, index[old], -1500, -200), rng.choice(codes, old.sum())))
    return pd.concat(parts, ignore_index=True)


def _lab_events(
    rng: np.random.Generator,
    errors: np.random.Generator,
    plan: np.random.Generator,
    lab: LabTest,
    patient: np.ndarray,
    index: np.ndarray,
    subtype: np.ndarray,
    n_subtypes: int,
    separation: float,
    missing: float,
) -> pd.DataFrame:
    """Several values per patient around a level of their own, with the errors of real records."""
    offsets = plan.permutation(np.arange(n_subtypes) - (n_subtypes - 1) / 2) * separation
    level = lab.mean + lab.sd * (offsets[subtype] + rng.standard_normal(len(patient)))
    often = np.where(rng.random(len(patient)) < missing, 0, 1 + rng.poisson(2.5, size=len(patient)))
    who, when = np.repeat(patient, often), np.repeat(index, often)
    near = rng.random(len(who)) < 0.75
    time = np.where(near, _around(rng, when, -183, 184), _around(rng, when, -900, 1200))
    time = np.where(rng.random(len(who)) < 0.03, np.roll(time, 1), time)  # two values at one minute
    low = lab.mean * 0.05
    value = np.maximum(np.repeat(level, often) + 0.3 * lab.sd * rng.standard_normal(len(who)), low)
    unit = np.full(len(who), lab.unit, dtype=object)
    if lab.other_unit:
        other = errors.random(len(who)) < 0.3
        value, unit[other] = np.where(other, value / lab.factor, value), lab.other_unit
    value = np.where(errors.random(len(who)) < 0.004, value * 1000, value)  # a lost decimal point
    digits = np.where(unit == lab.unit, lab.decimals, lab.decimals + 2)
    value = np.array([round(v, int(d)) for v, d in zip(value, digits, strict=True)])
    text = np.full(len(who), None, dtype=object)
    if lab.detection_limit is not None:
        below = value < lab.detection_limit
        value, text[below] = np.where(below, np.nan, value), f"<{lab.detection_limit:g}"
    lost = errors.random(len(who)) < 0.005
    unit[lost] = None
    return _frame(who, time, lab.code, value=value, text=text, unit=unit)


def _visits(rng: np.random.Generator, patient: np.ndarray, index: np.ndarray) -> pd.DataFrame:
    often = 1 + rng.poisson(4, size=len(patient))
    who, when = np.repeat(patient, often), np.repeat(index, often)
    return _frame(who, _around(rng, when, -700, 1500), rng.choice(VISITS, len(who), p=(0.8, 0.2)))


def _people(
    rng: np.random.Generator, patient: np.ndarray, index: np.ndarray, events: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Births (some on leap days), deaths, and observation from the first event to the last or to death."""
    day = index.astype("datetime64[D]")
    birth = day - rng.integers(45 * 365, 85 * 365, size=len(patient)).astype("timedelta64[D]")
    birth[::50] = np.datetime64("1948-02-29")
    seen = events.groupby("patient")["time"].agg(["min", "max"]).reindex(patient)
    start, end = (seen[name].to_numpy().astype("datetime64[D]") for name in ("min", "max"))
    dies = rng.random(len(patient)) < 0.2
    death = np.where(dies, end + rng.integers(1, 60, size=len(patient)).astype("timedelta64[D]"), np.datetime64("NaT"))
    sex = np.where(rng.random(len(patient)) < 0.45, "female", "male")
    last = np.where(dies, death, end)
    born, died, first, until = (days.astype("datetime64[us]") for days in (birth, death, start, last))
    patients = pd.DataFrame({"patient": patient, "birth": born, "sex": pd.array(sex, dtype="str"), "death": died})
    return patients, pd.DataFrame({"patient": patient, "start": first, "end": until})
