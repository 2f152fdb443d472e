"""Rules, statistics, sources in the wild, suppression: each by a few events whose answer is plain to see."""

import numpy as np
import pandas as pd
import pytest

from plurigp.cohort import build_cohort, parse_specification
from plurigp.core.types import DataError
from plurigp.data import infer_schema

DAYS = pd.Timestamp("2020-03-01")


def events(*rows):
    """(patient, days from the index, code, value, unit)."""
    full = [(row + (None,) * 5)[:5] for row in rows]
    table = pd.DataFrame(full, columns=["patient", "time", "code", "value", "unit"])
    return table.assign(time=DAYS + pd.to_timedelta(table["time"], unit="D"))


def build(folder, tables, features, more="", source='form = "long"\npath = "."'):
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table.to_parquet(path, index=False)
    text = f"[source]\n{source}\n[index]\ncodes = ['start']\n{features}\n{more}"
    return build_cohort(parse_specification(text, folder=folder))


def feature(name, codes, **settings):
    settings = {"window": "['ever', 'ever']"} | settings
    lines = "\n".join(f"{key} = {value}" for key, value in settings.items())
    return f"[[feature]]\nname = '{name}'\ncodes = {codes}\n{lines}\n"


STARTS = [(1, 0, "start"), (2, 0, "start"), (3, 0, "start")]


def test_statistics(tmp_path):
    rows = [(1, 0, "lab", 1.0), (1, 10, "lab", 2.0), (1, 20, "lab", 6.0), (2, 5, "lab", 4.0), (2, 5, "lab", 3.0)]
    names = ("median", "mean", "first", "last", "min", "max", "slope", "count")
    text = "".join(feature(name, ["lab"], value=f"'{name}'", kind="'gaussian'") for name in names)
    table = build(tmp_path, {"events": events(*STARTS, *rows)}, text).table.set_index("patient")
    slope = np.polyfit([0, 10, 20], [1, 2, 6], 1)[0] * 365.25
    expected = [2.0, 3.0, 1.0, 6.0, 1.0, 6.0, pytest.approx(slope, rel=1e-11), 3.0]
    assert table.loc[1].tolist() == expected
    row = table.loc[2]
    assert row[["median", "mean", "first", "last", "count"]].tolist() == [3.5, 3.5, 3.0, 3.0, 2.0]
    assert np.isnan(row["slope"])
    assert table.loc[3].isna().all()


def test_counts_and_presence(tmp_path):
    rows = [
        (1, 1, "visit/a"),
        (1, 1, "visit/a"),
        (1, 1, "visit/b"),
        (1, 1.5, "visit/a"),
        (2, -1, "E11.9"),
        (2, 2, "E11"),
    ]
    text = feature("n", ["visit/*"], count="'events'") + feature("days", ["visit/*"], count="'days'")
    text += feature("later", ["E11*"], window="['1 day', 'ever']") + feature("dx", ["E*"], group=4)
    table = build(tmp_path, {"events": events(*STARTS, *rows)}, text).table
    assert table["n"].tolist() == [3, 0, 0]
    assert table["days"].tolist() == [1, 0, 0]
    assert table["later"].tolist() == [False, True, False]
    assert table[["dx_E11", "dx_E119"]].to_numpy().tolist() == [[False, False], [True, True], [False, False]]
    kept = build(tmp_path, {}, text, source='form = "long"\npath = "."\nduplicates = "keep"').table
    assert kept["n"].tolist() == [4, 0, 0]


def test_choice_of_columns(tmp_path):
    rows = [(1, 0, "A1"), (2, 0, "A1"), (1, 0, "B1"), (3, 0, "C1"), (3, 0, "D1")]
    made = {"events": events(*STARTS, *rows)}

    def columns(**settings):
        built = build(tmp_path, made, feature("x", ["A*", "B*", "C*", "D*"], group=1, **settings))
        return [name for name in built.table if name.startswith("x")], built

    assert columns()[0] == ["x_A", "x_B", "x_C", "x_D"]
    assert columns(top=2)[0] == ["x_A", "x_B"]  # ties by name
    assert columns(min_prevalence=0.5)[0] == ["x_A"]
    names, built = columns(only=["D", "Z"])
    assert names == ["x_D", "x_Z"]
    assert {c.name: c.kind for c in built.schema}["x_Z"] == "aside"


PEOPLE = pd.DataFrame(
    {
        "patient": [1, 2, 3, 4, 5, 6],
        "birth": pd.to_datetime(["1960-02-29", "2002-03-01", "2002-03-02", None, "1960-01-01", "1960-01-01"]),
        "gender": ["F", "male", "W", None, "m", "diverse"],
        "death": pd.to_datetime(["2020-03-11", None, None, None, "2020-02-01", None]),
    }
)
PERIODS = pd.DataFrame(
    {
        "patient": [1, 2, 3, 5, 6],
        "start": pd.to_datetime(["2019-03-01", "2019-03-02", "2010-01-01", "2010-01-01", "2010-01-01"]),
        "end": pd.to_datetime(["2020-03-31", "2021-01-01", "2020-03-02", "2021-01-01", "2021-01-01"]),
    }
)
SIX = [(n, 0, "start") for n in range(1, 7)]


def test_rules_in_their_order(tmp_path):
    rows = [*SIX, (6, -400, "cancer"), (5, 1, "cancer"), (5, 40, "start")]
    more = """
[eligibility]
age = [18, 100]
observed_before = "12 months"
observed_after = "1 day"
exclude = [{ name = "cancer", codes = ["cancer"], window = ["ever", "0 days"] }]
"""
    people = feature("age", "[]", demographic="'age'").replace("codes = []\nwindow = ['ever', 'ever']\n", "")
    built = build(tmp_path, {"events": events(*rows), "patients": PEOPLE, "periods": PERIODS}, people, more)
    left = [step.n_left for step in built.attrition]
    # 3 is 17 and 4 has no birth; 2 was observed a day too short; 6 had cancer
    assert left == [6, 6, 4, 3, 3, 2]
    assert built.table["patient"].tolist() == [1, 5]
    assert built.table["age"].tolist() == [60.0, 60.0]
    with pytest.raises(DataError, match=r"no patient is left: patients in the source: 6.*loosen"):
        build(tmp_path, {}, people, more.replace("[18, 100]", "[101, 120]"))


def test_index_dates_days_and_washout(tmp_path):
    rows = [*SIX, (1, 3, "start"), (2, 0.5, "start")]
    made = {"events": events(*rows), "patients": PEOPLE, "periods": PERIODS}
    base = "[[feature]]\nname = 'sex'\ndemographic = 'sex'\n"
    for setting, patients in (
        ("min_days = 2", [1]),
        ('washout = "1 year"', [1, 3, 5, 6]),
        ("from = 2020-03-02", None),
        ("until = 2020-03-01", [1, 2, 3, 4, 5, 6]),
    ):
        text = f"[source]\nform = 'long'\npath = '.'\n[index]\ncodes = ['start']\n{setting}\n{base}"
        for name, table in made.items():
            table.to_parquet(tmp_path / f"{name}.parquet")
        spec = parse_specification(text, folder=tmp_path)
        if patients is None:
            with pytest.raises(DataError, match="no patient is left"):
                build_cohort(spec)
        else:
            assert build_cohort(spec).table["patient"].tolist() == patients
    words = build_cohort(spec).table["sex"].tolist()
    assert words[:3] == ["female", "male", "female"]
    assert words[5] == "diverse"


def test_outcomes(tmp_path):
    rows = [*SIX, (2, 0, "fall"), (2, 7, "fall"), (3, 9, "fall"), (5, 3, "fall")]
    more = "[[outcome]]\nname = 'fall'\ncodes = ['fall']\n"
    more += "[[outcome]]\nname = 'any'\ncodes = ['fall', 'death']\nkind = 'aside'\n"
    made = {"events": events(*rows), "patients": PEOPLE, "periods": PERIODS}
    built = build(tmp_path, made, feature("x", ["fall"]), more)
    table = built.table.set_index("patient")
    assert table["fall_days"].fillna(-1).tolist() == [
        30,
        7,
        1,
        -1,
        3,
        306,
    ]  # 3 fell after the end; 4 was never observed
    assert table["fall_event"].fillna(-1).tolist() == [0, 1, 0, -1, 1, 0]
    assert table["any_days"].fillna(-1).tolist() == [10, 7, 1, -1, 3, 306]
    kinds = {column.name: column for column in built.schema}
    assert kinds["fall_days"].kind == "weibull"
    assert kinds["fall_days"].event == "fall_event"
    assert kinds["any_days"].kind == "aside"
    assert "1 patients are not observed at their index date: their outcomes are gaps" in built.quality.notes
    assert "1 patients have fall after the end of their observation, where it does not count" in built.quality.notes
    assert infer_schema(built.table, built.schema) == built.schema


def test_required_values(tmp_path):
    rows = [*STARTS, (1, 0, "a", 1.0), (1, 1, "b", 2.0), (2, 0, "a", 1.0), (3, 0, "b", 5.0)]
    text = feature("a", ["a"], value="'median'") + feature("b", ["b"], value="'median'")
    for rule, patients in (("required = ['a']", [1, 2]), ("min_values = 2", [1]), ("required = ['b']", [1, 3])):
        built = build(tmp_path, {"events": events(*rows)}, text, f"[eligibility]\n{rule}\n")
        assert built.table["patient"].tolist() == patients


def test_units(tmp_path):
    rows = [*STARTS, (1, 0, "t", 98.6, "degF"), (2, 0, "t", 37.0, "Cel"), (3, 0, "t", 310.0, "K"), (3, 0, "t", 36.0)]
    plain = feature("t", ["t"], value="'median'")
    with pytest.raises(DataError, match=r"several units: .*'Cel'.*declare unit"):
        build(tmp_path, {"events": events(*rows)}, plain)
    factor = 5 / 9
    convert = f"{{ degF = [{factor!r}, {-32 * factor!r}], K = [1, -273.15] }}"
    built = build(tmp_path, {}, feature("t", ["t"], value="'median'", unit="'Cel'", convert=convert))
    assert built.table["t"].tolist() == [37.0, 37.0, 36.85]
    assert any("of 4 values are left out 1 without a unit" in note for note in built.quality.notes)
    taken = build(
        tmp_path, {}, feature("t", ["t"], value="'min'", unit="'Cel'", convert=convert.replace("K =", "'' = 1, K ="))
    )
    assert taken.table["t"].tolist() == [pytest.approx(37.0), 37.0, 36.0]


def test_limits(tmp_path):
    rows = [*STARTS, (1, 0, "crp", "<0.5"), (2, 0, "crp", "≥ 200"), (3, 0, "crp", "1-3"), (3, 1, "other", "?")]
    text = feature("crp", ["crp"], value="'last'")
    built = build(tmp_path, {"events": events(*rows)}, text)
    assert built.table["crp"].tolist() == ["<0.5", ">200", "1-3"]
    assert built.schema["crp"].kind.startswith("censored")
    with pytest.raises(DataError, match=r"limits such as \"<5\", which the kind gamma does not take"):
        build(tmp_path, {}, feature("crp", ["crp"], value="'last'", kind="'gamma'"))
    dropped = build(tmp_path, {}, feature("crp", ["crp"], value="'last'", limits="'drop'"))
    assert dropped.table["crp"].isna().all()
    assert any("3 limits, dropped as asked" in note for note in dropped.quality.notes)


def test_what_fits_no_code_is_said(tmp_path):
    made = {"events": events(*STARTS, (1, 0, "a"))}
    built = build(
        tmp_path, made, feature("a", ["a", "aa*"]) + feature("b", ["b"]) + feature("v", ["w"], value="'mean'")
    )
    assert "a: no code of the source fits aa*" in built.quality.notes
    assert {c.name: c.kind for c in built.schema} == {"patient": "aside", "a": "bernoulli", "b": "aside", "v": "aside"}
    with pytest.raises(DataError, match="the source has no code that fits start"):
        build(tmp_path, {"events": events((1, 0, "a"))}, feature("a", ["a"]))


def test_small_cells_are_hidden(tmp_path):
    rows = (
        [(n, 0, "start") for n in range(40)]
        + [(n, 0, "rare") for n in range(3)]
        + [(n, 0, "common") for n in range(20)]
    )
    people = pd.DataFrame({"patient": range(43), "sex": ["f"] * 39 + ["x"] + ["m"] * 3})
    text = feature("rare", ["rare"]) + feature("common", ["common"]) + "[[feature]]\nname='sex'\ndemographic='sex'\n"
    built = build(
        tmp_path,
        {"events": events(*rows), "patients": people},
        text,
        "[output]\nsuppress_below = 5\npatient_ids = false",
    )
    assert list(built.table) == ["common", "sex"]
    assert built.table["sex"].isna().sum() == 1
    shown = built.quality.attrition
    assert shown["patients left"].tolist() == ["45", "40"]
    assert shown["removed"].tolist() == ["", "<5"]
    assert built.quality.columns["gaps"].tolist() == ["0", "<5"]


WILD = [
    {"patient": "PATIENT_ID", "time": "DateTime", "code": "Code", "value": "Result", "unit": "Units"},
    {"patient": "subject_id", "time": "timestamp", "code": "code", "value": "numeric_value", "unit": "unit"},
]


@pytest.mark.parametrize("names", WILD)
def test_names_in_the_wild(tmp_path, names):
    table = events(*STARTS, (1, 0, "a", 1.0, "g")).rename(columns=names)
    assert build(tmp_path, {"EVENTS": table}, feature("a", ["a"], value="'mean'", unit="'g'")).table["a"][0] == 1.0


def test_columns_that_cannot_be_told(tmp_path):
    table = events(*STARTS, (1, 0, "a", 1.0))
    twice = table.assign(valuenum=1.0, result=2.0).drop(columns="value")
    with pytest.raises(
        DataError, match=r"'valuenum' and 'result' could all be the value; name one under \[source.columns\]"
    ):
        build(tmp_path, {"events": twice}, feature("a", ["a"]))
    chosen = 'form = "long"\npath = "."\ncolumns = { value = "result" }'
    assert build(tmp_path, {}, feature("a", ["a"], value="'mean'"), source=chosen).table["a"][0] == 2.0
    with pytest.raises(DataError, match=r"no column for the code \(looked for 'code'.*it has 'patient', 'time'"):
        build(tmp_path, {"events": table.drop(columns="code")}, feature("a", ["a"]))
    wrong = 'form = "long"\npath = "."\ncolumns = { code = "cods" }'
    with pytest.raises(DataError, match=r"has no column 'cods'\. Did you mean 'code'\?"):
        build(tmp_path, {"events": table}, feature("a", ["a"]), source=wrong)
    with pytest.raises(DataError, match=r'there is no table "events" \(there are: other\)'):
        build(tmp_path / "b", {"other": table}, feature("a", ["a"]))


TIMES = {
    None: [
        "2020-03-01",
        "2020-03-01T23:59:59.5",
        "2020-03-01 22:30:00Z",
        "2020-02-30",
        "2020-02-29T10:00+02:00",
        "soon",
    ],
    "%d.%m.%Y %H:%M": [
        "1.3.2020 00:00",
        "01.03.2020 23:59",
        "2.3.2020 00:30",
        "30.02.2020 10:00",
        "29.02.2020 10:00",
        "x",
    ],
}


@pytest.mark.parametrize("written", TIMES)
@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_dates_in_text(tmp_path, request, written, engine):
    """In Helsinki half past ten in the evening UTC is the next day; there is no 30 February."""
    table = pd.DataFrame({"patient": range(6), "time": TIMES[written], "code": "start"})
    zone = "time_zone = 'Europe/Helsinki'\n" + (f"time_format = '{written}'\n" if written else "")
    if engine == "postgres":
        request.getfixturevalue("load_postgres")(f"dates {written}", {"events": table})
        place = f"connect = \"{request.getfixturevalue('postgres')}\"\nschema = 'dates {written}'"
    else:
        table.to_csv(tmp_path / "events.csv", index=False)
        place = "path = 'events.csv'"
    for since, patients in (("2020-03-02", [2]), ("2020-03-01", [0, 1, 2]), ("2020-01-01", [0, 1, 2, 4])):
        text = f"[source]\nform = 'long'\n{place}\n{zone}[index]\ncodes = ['start']\nfrom = {since}\n"
        text += feature("a", ["start"])
        assert build_cohort(parse_specification(text, folder=tmp_path)).table["patient"].tolist() == patients


def test_a_wrong_time_format(tmp_path):
    source = 'form = "long"\npath = "."\ntime_format = "%d/%m"'
    with pytest.raises(DataError, match="must hold %Y, %m and %d"):
        build(tmp_path, {"events": events(*STARTS).astype({"time": str})}, feature("a", ["a"]), source=source)


def test_ids_of_two_types_and_leading_zeros(tmp_path):
    table = events(*STARTS).assign(patient=["007", "08", "x9"])
    people = pd.DataFrame({"patient": [8, 9], "birth": ["1950-01-01"] * 2})
    age = "[[feature]]\nname='age'\ndemographic='age'\n"
    built = build(tmp_path, {"events": table, "patients": people}, age)
    assert built.table["patient"].tolist() == ["007", "08", "x9"]
    assert built.attrition[0].n_left == 5  # two known patients and three that only events know


def test_meds_of_other_makes(tmp_path):
    """Older names, shards beside metadata, sex and birth by other codes."""
    rows = events((1, 0, "start"), (1, -8000, "META_BIRTH"), (1, 5, "lab", 3.0), (2, 0, "start"), (2, 9, "MEDS_DEATH"))
    static = pd.DataFrame({"patient": [1, 2], "time": pd.NaT, "code": ["SEX//Female", "Gender/M"]}).astype(
        rows.dtypes[:3]
    )
    table = pd.concat([rows, static]).rename(columns={"patient": "patient_id", "time": "timestamp"})
    tables = {
        "0": table[:4].drop(columns="unit"),
        "train/1": table[4:].drop(columns="unit"),
        "metadata/codes": pd.DataFrame({"code": ["x"]}),
    }
    text = (
        feature("lab", ["lab"], value="'mean'")
        + feature("sexes", ["SEX//*"], group=6)
        + "[[feature]]\nname='sex'\ndemographic='sex'\n[[feature]]\nname='age'\ndemographic='age'\n"
    )
    more = "[[outcome]]\nname='death'\ncodes=['death']\nkind='aside'\n"
    table = build(tmp_path, tables, text, more, 'form = "meds"\npath = "."').table
    assert table["sexes_Female"].tolist() == [True, False]  # static events have no time and lie in an open window
    assert table["sex"].tolist() == ["female", "male"]
    assert table["age"].fillna(-1).tolist() == [21.0, -1.0]
    assert table["death_event"].tolist() == [0.0, 1.0]
    assert table["death_days"].tolist() == [5.0, 9.0]


def cdm(concept_id=(10, 11, 12, 20), upper=False):
    """A small OMOP database: 10 is an ancestor of 11; 12 is a source concept."""
    concept = pd.DataFrame({"concept_id": concept_id, "vocabulary_id": ["SNOMED", "SNOMED", "ICD10CM", "LOINC"],
                            "concept_code": ["1", "11", "E11.9", "7-1"]})  # fmt: skip
    person = pd.DataFrame({"person_id": [1, 2, 3], "gender_concept_id": [8507, 8532, 0],
                           "year_of_birth": [1950, 1960, 1970],
                           "month_of_birth": [2, None, None], "day_of_birth": [30, None, None]})  # fmt: skip
    start = pd.Timestamp("2020-01-01")
    condition = pd.DataFrame({
        "person_id": [1, 2, 3], "condition_concept_id": [11, 0, 10], "condition_start_date": start,
        "condition_source_concept_id": [12, 12, 0], "condition_source_value": ["E11.9", "E119", "dm"],
    })  # fmt: skip
    measurement = pd.DataFrame({
        "person_id": [1, 2], "measurement_concept_id": 20, "measurement_date": start,
        "operator_concept_id": [4171756, 0], "value_as_number": [0.5, 3.0], "unit_source_value": "mg",
    })  # fmt: skip
    ancestor = pd.DataFrame({"ancestor_concept_id": [10, 10], "descendant_concept_id": [10, 11]})
    tables = {"concept": concept, "person": person, "condition_occurrence": condition, "measurement": measurement,
              "concept_ancestor": ancestor}  # fmt: skip
    return {n.upper(): t.rename(columns=str.upper) for n, t in tables.items()} if upper else tables


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize(
    ("code", "patients"),
    [
        ("ancestor/10", [1, 3]),
        ("concept/11", [1]),
        ("concept/12", [1, 2]),
        ("SNOMED/1*", [1, 3]),
        ("ICD10CM/E11*", [1, 2]),
        ("source/E119", [2]),
        ("source/dm", [3]),
    ],
)
def test_omop_codes(tmp_path, upper, code, patients):
    for name, table in cdm(upper=upper).items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    text = f"[source]\nform = 'omop'\npath = '.'\n[index]\ncodes = ['{code}']\n"
    text += feature("v", ["LOINC/7-1"], value="'last'")
    built = build_cohort(parse_specification(text, folder=tmp_path))
    assert built.table["patient"].tolist() == patients
    cells = dict(zip(built.table["patient"], built.table["v"].astype(object).fillna("gap"), strict=True))
    assert {n: str(cell).removesuffix(".0") for n, cell in cells.items()} == {
        n: {1: "<0.5", 2: "3", 3: "gap"}[n] for n in patients
    }


def test_omop_births(tmp_path):
    """30 February is no day, and a year alone is its first of July."""
    for name, table in cdm().items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    text = "[source]\nform = 'omop'\npath = '.'\n[index]\ncodes = ['ICD10CM/*', 'SNOMED/*']\n"
    text += "[[feature]]\nname='age'\ndemographic='age'\n"
    built = build_cohort(parse_specification(text, folder=tmp_path))
    assert built.table["age"].tolist() == [69.0, 59.0, 49.0]
    assert "3 patients have a year of birth only; 1 July is taken" in built.quality.notes


def test_omop_groups_by_ancestor(tmp_path):
    for name, table in cdm().items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    grouped = feature("dx", ["ancestor/10", "ancestor/12"], group="'ancestor'")
    text = f"[source]\nform = 'omop'\npath = '.'\n[index]\ncodes = ['ICD10CM/*', 'SNOMED/*']\n{grouped}"
    table = build_cohort(parse_specification(text, folder=tmp_path)).table
    assert table["dx_10"].tolist() == [True, False, True]
    assert table["dx_12"].tolist() == [True, True, False]


def test_omop_without_what_it_needs(tmp_path):
    tables = cdm()
    for name in ("person", "condition_occurrence"):
        tables[name].to_parquet(tmp_path / f"{name}.parquet")
    base = "[source]\nform = 'omop'\npath = '.'\n[index]\ncodes = ['{}']\n" + feature("x", ["concept/11"])
    assert len(build_cohort(parse_specification(base.format("concept/11"), folder=tmp_path)).table) == 1
    with pytest.raises(DataError, match="need the OMOP table concept_ancestor"):
        build_cohort(parse_specification(base.format("ancestor/10"), folder=tmp_path))
    (tmp_path / "person.parquet").unlink()
    with pytest.raises(DataError, match='there is no table "person"'):
        build_cohort(parse_specification(base.format("concept/11"), folder=tmp_path))


def test_vocabularies_as_they_are_downloaded(tmp_path):
    """Tabs, no quoting, names that begin with a quote; semicolons elsewhere; a byte-order mark."""
    tables = cdm()
    concept = tables.pop("concept").assign(concept_name=['"Foo', 'a "b" c', '"x" y', "z"])
    concept.to_csv(tmp_path / "CONCEPT.csv", sep="\t", index=False, quoting=3, quotechar="~")
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", sep=";", index=False, encoding="utf-8-sig")
    text = "[source]\nform = 'omop'\npath = '.'\n[index]\ncodes = ['{}']\n" + feature("x", ["concept/11"])
    assert build_cohort(parse_specification(text.format("ICD10CM/E11*"), folder=tmp_path)).table[
        "patient"
    ].tolist() == [1, 2]
    with pytest.raises(
        DataError, match=r"no code that fits ICD10/E11 \(its codes begin with 'SNOMED/', 'ICD10CM/', 'LOINC/'\)"
    ):
        build_cohort(parse_specification(text.format("ICD10/E11"), folder=tmp_path))


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "events.csv").write_bytes(b"patient,time,code\n1,2020-01-01,start\n2,2020-01-01,M\xe4nty\n")
    text = f"[source]\nform = 'long'\npath = 'events.csv'\n[index]\ncodes = ['start']\n{feature('a', ['start'])}"
    with pytest.raises(DataError, match="save it as UTF-8"):
        build_cohort(parse_specification(text, folder=tmp_path))


def test_times_that_cannot_be_read_are_said(tmp_path):
    table = pd.DataFrame({"patient": range(4), "time": ["01/02/2020"] * 4, "code": "start"})
    table.to_csv(tmp_path / "events.csv", index=False)
    text = f"[source]\nform = 'long'\npath = 'events.csv'\n[index]\ncodes = ['start']\n{feature('a', ['start'])}"
    with pytest.raises(DataError, match="none of the index events has a readable time; write time_format"):
        build_cohort(parse_specification(text, folder=tmp_path))
    table.assign(time=["2020-1-31", "2020-01-31", "01/02/2020", ""]).to_csv(tmp_path / "events.csv", index=False)
    built = build_cohort(parse_specification(text, folder=tmp_path))
    assert built.table["patient"].tolist() == [0, 1]
    assert "index events without a readable time are left out: 50.0% of all" in built.quality.notes


def test_shards_of_text_and_rows_of_other_lengths(tmp_path):
    """Columns in another order, empty cells too many; a row too short is an error with its line."""
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "0.csv").write_text("patient,time,code\n1,2020-01-01,start,,\n")
    (tmp_path / "events" / "1.csv").write_text("code;patient;time;extra\nstart;2;2020-01-02;x\n")
    text = f"[source]\nform = 'long'\npath = '.'\n[index]\ncodes = ['start']\n{feature('a', ['start'])}"
    assert build_cohort(parse_specification(text, folder=tmp_path)).table["patient"].tolist() == [1, 2]
    (tmp_path / "events" / "0.csv").write_text("patient,time,code\n1,2020-01-01,start\n1,2020-01-01\n")
    with pytest.raises(DataError, match="in a CSV file, at line 3"):
        build_cohort(parse_specification(text, folder=tmp_path))
    (tmp_path / "events" / "0.csv").write_text("patient,time,code,code\n1,2020-01-01,start,x\n")
    with pytest.raises(DataError, match=r"0.csv, line 1: the name of column 'code' occurs more than once"):
        build_cohort(parse_specification(text, folder=tmp_path))
