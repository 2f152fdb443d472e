"""The paper's recipe, from records of every form and engine, is the table of a plain pandas reference."""

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest

from plurigp.cohort import build_cohort
from plurigp.datasets import long_form, meds_form, omop_form, write_records

ZONE = "Europe/Helsinki"

LABS = {  # code: (name, unit, {other unit: factor}, range)
    "LOINC/2160-0": ("creatinine", "umol/L", {"mg/dL": 88.42}, (10, 2000)),
    "LOINC/718-7": ("haemoglobin", "g/L", {"g/dL": 10}, (30, 250)),
    "LOINC/2951-2": ("sodium", "mmol/L", {}, (90, 200)),
    "LOINC/2823-3": ("potassium", "mmol/L", {}, (1, 10)),
    "LOINC/1988-5": ("crp", "mg/L", {}, (0, 600)),
    "LOINC/3016-3": ("tsh", "mU/L", {}, (0, 100)),
    "LOINC/2345-7": ("glucose", "mmol/L", {"mg/dL": 0.0555}, (1, 60)),
    "LOINC/1751-7": ("albumin", "g/L", {"g/dL": 10}, (5, 80)),
    "LOINC/1989-3": ("vitamin_d", "nmol/L", {}, (1, 500)),
    "LOINC/2276-4": ("ferritin", "ug/L", {}, (1, 5000)),
    "LOINC/4548-4": ("hba1c", "1", {"%": 0.01}, (0, 1)),
    "LOINC/770-8": ("neutrophils", "1", {"%": 0.01}, (0, 1)),
}


def usable_bounds(row, unit, factors, allowed):
    """(low, high) in the unit, or None."""
    if pd.notna(row.value):
        low = high = float(row.value)
    elif isinstance(row.text, str) and row.text.strip()[:1] in "<>" and row.text.strip():
        limit = float(row.text.strip()[1:])
        low, high = (-np.inf, limit) if row.text.strip()[0] == "<" else (limit, np.inf)
    else:
        return None
    if row.unit != unit and row.unit not in factors:
        return None
    factor = factors.get(row.unit, 1)
    low, high = low * factor, high * factor
    if any(np.isfinite(end) and not allowed[0] <= end <= allowed[1] for end in (low, high)):
        return None
    return low, high


def middle(numbers):
    ordered = sorted(numbers)
    a, b = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(f"{(a + b) / 2:.12g}")  # as documented: to twelve significant digits


def spelled(low, high):
    def number(x):
        return str(int(x)) if x == int(x) else repr(x)

    if low == high:
        return number(low)
    return (
        f"<{number(high)}"
        if np.isinf(low)
        else f">{number(low)}"
        if np.isinf(high)
        else f"{number(low)}-{number(high)}"
    )


def reference_table(events: pd.DataFrame, zone: str) -> pd.DataFrame:
    """`time` of the events in UTC."""
    events = events.assign(time=events["time"].dt.tz_localize("UTC").dt.tz_convert(zone).dt.tz_localize(None))
    events["day"] = events["time"].dt.normalize()
    rows = []
    for patient, own in events.sort_values("time").groupby("patient"):
        index_days = own.loc[own["code"].str.startswith("ICD10/G20"), "day"]
        if len(index_days) == 0:
            continue
        index = index_days.min()
        row = {"patient": patient}
        start, end = index - pd.DateOffset(months=6), index + pd.DateOffset(months=42)
        for code in own.loc[(own["day"] >= start) & (own["day"] <= end), "code"]:
            if code.startswith("ICD10/"):
                row[f"dx_{code[6:].replace('.', '')[:3]}"] = True
        end = index + pd.DateOffset(months=6)
        near = own[(own["day"] >= start) & (own["day"] <= end)]
        for code, (name, unit, factors, allowed) in LABS.items():
            found = {
                (one.time, bounds)
                for one in near[near["code"] == code].itertuples()
                if (bounds := usable_bounds(one, unit, factors, allowed)) is not None
            }
            if found:
                row[name] = tuple(middle(ends) for ends in zip(*(bounds for _, bounds in found), strict=True))
        rows.append(row)
    table = pd.DataFrame(rows)
    groups = sorted(name for name in table if name.startswith("dx_"))
    frequent = [name for name in groups if table[name].notna().sum() >= 0.02 * len(table)]
    out = {"patient": table["patient"].to_numpy()}
    out |= {name: table[name].notna().to_numpy() for name in frequent}
    for name, *_ in LABS.values():
        bounds = table[name]
        has_limits = any(isinstance(b, tuple) and b[0] != b[1] for b in bounds)
        cells = [(spelled(*b) if has_limits else b[0]) if isinstance(b, tuple) else None for b in bounds]
        out[name] = pd.Series(cells, dtype="str" if has_limits else "float64")
    return pd.DataFrame(out)


@pytest.fixture(scope="module")
def expected(records):
    return reference_table(records.events, ZONE)


@pytest.fixture(scope="module")
def zoned(records):
    """Times with their zone."""
    return replace(records, events=records.events.assign(time=records.events["time"].dt.tz_localize("UTC")))


@pytest.fixture(scope="module")
def local(records):
    """Times on the clocks of the specification, without a zone."""
    time = records.events["time"].dt.tz_localize("UTC").dt.tz_convert(ZONE).dt.tz_localize(None)
    days = time.dt.normalize().groupby(records.events["patient"]).agg(start="min", end="max").reset_index()
    death = days["patient"].map(records.patients.set_index("patient")["death"])
    return replace(records, events=records.events.assign(time=time), periods=days.assign(end=death.fillna(days["end"])))


def check(built, expected):
    pd.testing.assert_frame_equal(built.table, expected, check_exact=True)
    assert built.attrition[0].n_left == 159
    assert built.attrition[-1].n_left == len(expected)


def test_the_reference_knows_the_hard_cases(expected):
    """The test itself can fail: each hard case is one that a simpler rule would get wrong."""
    row = expected.set_index("patient").loc
    assert 7 not in expected["patient"].to_list()
    assert 9 not in expected["patient"].to_list()
    assert 8 in expected["patient"].to_list()
    assert row[1, ["dx_E11", "dx_I10", "dx_F32", "dx_G47"]].tolist() == [True, False, True, False]
    assert row[2, "creatinine"] == 75
    assert row[3, "creatinine"] == 88.42  # of 60, 88.42 and 100
    assert row[[4, 5, 6], "crp"].tolist() == ["<2", "<4.75", "7.5"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_files_with_zones(tmp_path, zoned, expected, specified, suffix):
    write_records(zoned, tmp_path / "records", "long", suffix)
    check(build_cohort(specified(tmp_path)), expected)


def test_a_duckdb_database(tmp_path, zoned, expected, specified):
    with duckdb.connect(tmp_path / "hospital.duckdb") as connection:
        for name, frame in long_form(zoned).items():
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name.upper()} AS SELECT * FROM frame")
            connection.unregister("frame")
    check(build_cohort(specified(tmp_path, path="hospital.duckdb")), expected)


@pytest.mark.parametrize("form", ["long", "omop", "meds"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_forms_in_files(tmp_path, local, expected, specified, form, suffix):
    write_records(local, tmp_path / "records", form, suffix)
    check(build_cohort(specified(tmp_path, form=form)), expected)


def test_postgresql_with_zones(tmp_path, postgres, load_postgres, zoned, expected, specified):
    load_postgres("zoned", long_form(zoned))
    check(build_cohort(specified(tmp_path, path=None, connect=postgres, schema="zoned")), expected)


@pytest.mark.parametrize("form", ["long", "omop", "meds"])
def test_forms_in_postgresql(tmp_path, postgres, load_postgres, local, expected, specified, form):
    tables = {"long": long_form, "omop": omop_form}.get(form, one_table)(local)
    load_postgres(form, tables)
    check(build_cohort(specified(tmp_path, path=None, form=form, connect=postgres, schema=form)), expected)


def one_table(records):
    return {"data": pd.concat(meds_form(records).values(), ignore_index=True)}


FURTHER = """
[eligibility]
age = [50, 90]
observed_before = "1 month"
observed_after = "3 months"
min_values = 2
required = ["slope"]
exclude = [{ name = "asthma", codes = ["ICD10/J45*"], window = ["ever", "0 days"] }]
[[outcome]]
name = "death"
codes = ["death"]
[[outcome]]
name = "fall"
codes = ["ICD10/R26*", "ICD10/M81*"]
"""
STATISTICS = "".join(
    f'  {{ name = "{name}", codes = ["LOINC/1988-5", "LOINC/2276-4"], value = "{name}", window = "all" }},\n'
    for name in ("mean", "first", "last", "min", "max", "slope", "count")
)
PEOPLE = """  { name = "age", demographic = "age" }, { name = "sex", demographic = "sex" },
  { name = "year", demographic = "index_year" },
  { name = "visits", codes = ["Visit/*"], count = "events", window = "diagnoses" },
  { name = "visit_days", codes = ["Visit/*"], count = "days", window = "diagnoses" },
"""


def further(text):
    """The paper's specification with everything else that there is."""
    units = ', unit = "1", convert = { "mg/L" = 1, "ug/L" = 1 } }'
    text = text.replace("[windows]", "[windows]\nall = ['-2 years', 'ever']")
    return text.replace("\n]\n", "\n" + STATISTICS.replace(" }", units) + PEOPLE + "]\n", 1)


@pytest.fixture(scope="module")
def everything(tmp_path_factory, paper, local, specified):
    """Statistics, demographics, counts, rules and outcomes from Parquet files of the long form."""
    folder = tmp_path_factory.mktemp("everything")
    write_records(local, folder / "records", "long", ".parquet")
    built = build_cohort(specified(folder, FURTHER, further(paper)))
    assert len(built.table) > 20
    assert {"slope", "death_days", "fall_event", "visit_days"} <= set(built.table.columns)
    return built


def check_everything(one, expected):
    pd.testing.assert_frame_equal(one.table, expected.table, check_exact=True)
    assert one.attrition == expected.attrition
    assert one.schema == expected.schema


@pytest.mark.parametrize("form", ["long", "omop", "meds"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_all_else_is_the_same_in_files(tmp_path, paper, local, specified, everything, form, suffix):
    write_records(local, tmp_path / "records", form, suffix)
    check_everything(build_cohort(specified(tmp_path, FURTHER, further(paper), form=form)), everything)


@pytest.mark.parametrize("form", ["long", "omop", "meds"])
def test_all_else_is_the_same_in_postgresql(
    tmp_path, paper, postgres, load_postgres, local, specified, everything, form
):
    load_postgres(f"all_{form}", {"long": long_form, "omop": omop_form}.get(form, one_table)(local))
    settings = {"path": None, "form": form, "connect": postgres, "schema": f"all_{form}"}
    check_everything(build_cohort(specified(tmp_path, FURTHER, further(paper), **settings)), everything)
