"""Table 1: the same figures as the tableone package for what both print, hostile names, every form."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp import table_one
from plurigp.core.types import DataError
from plurigp.datasets import load_support, simulate_cohort
from plurigp.study.findings import descriptives

MEANS, MEDIANS = ["age", "heart_rate", "sodium"], ["creatinine", "urea_nitrogen", "n_comorbidities"]
LEVELS = ["sex", "race", "diabetes", "cancer"]


@pytest.fixture(scope="module")
def support():
    made = load_support()
    frame = made.table.assign(died=made.outcomes["died"], status=np.where(made.outcomes["died"], "dead", "alive"))
    return frame, {column.name: column for column in made.schema}


@pytest.fixture(scope="module")
def two_groups(support):
    return table_one(support[0], by="status", schema=support[1])


# --- beside the tableone package ---


def packaged(frame: pd.DataFrame, by: str):
    tableone = pytest.importorskip("tableone")
    return tableone.TableOne(
        frame[[*MEANS, *MEDIANS, *LEVELS, by]].astype(dict.fromkeys(LEVELS, "object")),
        columns=[*MEANS, *MEDIANS, *LEVELS], categorical=LEVELS, continuous=[*MEANS, *MEDIANS], nonnormal=MEDIANS,
        groupby=by, pval=True, smd=True, htest_name=True, decimals=6, pval_digits=9, dip_test=False, normal_test=False,
        tukey_test=False, ttest_equal_var=False, include_null=False,
    )  # fmt: skip


@pytest.mark.parametrize("by", ["status", "diagnosis_group"])
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_the_figures_are_those_of_the_tableone_package(support, by):
    theirs = packaged(support[0], by)
    printed = theirs.tableone
    printed.columns = printed.columns.get_level_values(1)
    figures = table_one(support[0], by=by, schema=support[1]).figures
    groups = [name for name in figures["group"].unique() if name]
    checked = 0
    for line in figures.to_dict("records"):
        group = line["group"] or "Overall"
        column, level = line["column"], line["level"]
        if column not in (*MEANS, *MEDIANS, *LEVELS):
            continue
        if column in LEVELS:
            found = printed.loc[(f"{column}, n (%)", level), group]
            count, share = re.fullmatch(r"(\d+) \(([\d.]+)\)", found).groups()
            assert (line["count"], 100 * line["share"]) == (int(count), pytest.approx(float(share), abs=1e-6))
        else:
            how = "mean (SD)" if column in MEANS else "median [Q1,Q3]"
            found = [float(part) for part in re.findall(r"-?[\d.]+", printed.loc[(f"{column}, {how}", ""), group])]
            own = ("mean", "sd") if column in MEANS else ("median", "q1", "q3")
            assert [line[name] for name in own] == pytest.approx(found, abs=1e-6), column
        checked += 1
    assert checked > 10 * len(groups)
    compare_tests(printed, figures)


def compare_tests(printed: pd.DataFrame, figures: pd.DataFrame) -> None:
    """p-values, and where there are two groups the standardised differences."""
    smd_heads = [head for head in printed.columns if str(head).startswith("SMD")]
    for column, own in figures.groupby("column"):
        if column not in (*MEANS, *MEDIANS, *LEVELS):
            continue
        rows = printed[[str(label).startswith(f"{column}, ") for label in printed.index.get_level_values(0)]].iloc[0]
        said = str(rows["P-Value"])
        assert (
            own["p"].iloc[0] < 1e-9
            if said.startswith("<")
            else own["p"].iloc[0] == pytest.approx(float(said), abs=1e-9)
        )
        theirs = np.array([float(rows[head]) for head in smd_heads])
        ours = abs(own["smd"].iloc[0])
        if np.isnan(theirs).any():  # a level that two groups both lack leaves theirs without an inverse
            assert ours >= np.nanmax(np.abs(theirs)) - 5.1e-4, column
        else:
            assert ours == pytest.approx(np.abs(theirs).max(), abs=5.1e-4), column


# --- what is printed ---


def test_a_table_of_support_as_a_clinician_reads_it(two_groups):
    frame = two_groups.frame.set_index("Characteristic")
    assert list(frame.columns[:4]) == ["Missing", "Overall (n = 9,105)", "alive (n = 2,904)", "dead (n = 6,201)"]
    assert frame.loc["age, mean (SD)"].tolist()[1:] == [
        "62.7 (15.6)", "58.6 (16.7)", "64.6 (14.7)", "+0.38", "< 0.001", "Welch's t",
    ]  # fmt: skip
    assert frame.loc["creatinine, median [Q1, Q3]"].iloc[1] == "1.2 [0.9, 1.9]"
    assert frame.loc["n_comorbidities, median [Q1, Q3]"].iloc[1] == "2 [1, 3]"
    assert frame.loc["diabetes, n (%)"].iloc[1] == "1,778 (19.5%)"
    assert frame.loc["heart_rate, mean (SD)", "Missing"] == "1 (<0.1%)"
    assert "race" not in frame.index
    assert frame.loc["   white"].iloc[1] == "7,191 (79.3%)"
    assert any("not adjusted" in note for note in two_groups.notes)


def test_several_groups_and_truth_values_and_nobody(support):
    frame, schema = support
    by_truth = table_one(frame, by="died", schema=schema, columns=["age"])
    assert by_truth.groups == ("died: no", "died: yes")
    several = table_one(frame, by="diagnosis_group", schema=schema, columns=["age", "cancer"])
    assert len(several.groups) == 8
    assert several.columns[0].test == descriptives.ANOVA
    assert not several.lines[0].smd.startswith("+")
    everybody = table_one(frame, schema=schema, columns=["age", "sex"])
    assert everybody.heads == ["Characteristic", "Missing", "Overall (n = 9,105)"]


def test_means_and_medians_can_be_asked_for(support):
    frame, schema = support
    made = table_one(
        frame, by="status", schema=schema, columns=["age", "creatinine"], median=["age"], mean=["creatinine"]
    )
    assert [line.how for line in made.lines] == ["median [Q1, Q3]", "mean (SD)"]


# --- small tables with every sort of cell ---


@pytest.fixture
def small():
    return pd.DataFrame(
        {
            "arm": ["a", "b", None] * 12,
            "troponin": (["<0.1"] * 20 + ["0.5", "0.7"] * 8),
            "days": np.arange(36) + 1.0,
            "event": [1, 0, 1, 1] * 9,
            "grade": [1, 2, 3] * 6 + [1, 1, 2] * 6,
            "constant": [1.5, None] * 18,
            "rare": ["no"] * 34 + ["yes"] * 2,
        }
    )


KINDS = {
    "troponin": "censored_lognormal",
    "days": {"kind": "weibull", "event": "event"},
    "grade": "ordinal",
    "constant": "gaussian",
    "rare": "bernoulli",
}


def test_limits_times_ordered_levels_and_small_counts(small):
    made = table_one(small, by="arm", schema=KINDS)
    by_name = {column.column.name: column for column in made.columns}
    assert set(by_name) == set(KINDS)
    tests = {name: column.test for name, column in by_name.items()}
    assert tests == {
        "troponin": descriptives.CENSORED, "days": descriptives.LOG_RANK, "grade": descriptives.KRUSKAL,
        "constant": "", "rare": descriptives.FISHER,
    }  # fmt: skip
    lines = {line.label: line for line in made.lines}
    assert lines["troponin"].cells[0].startswith("<0.1 [<0.1")
    assert "events)" in lines["days"].cells[0]
    assert any("12 rows left out: no arm is known" in note for note in made.notes)
    assert any("detection limits" in note for note in made.notes)
    known = small.dropna(subset="arm")
    counts = pd.crosstab(known["arm"], known["rare"]).to_numpy()
    assert by_name["rare"].p == pytest.approx(stats.fisher_exact(counts).pvalue)
    figures = made.figures.query("column == 'days' and group == 'a'")
    assert figures["count"].item() == known.loc[known["arm"] == "a", "event"].sum()


def test_a_group_without_a_cell_has_no_figures():
    frame = pd.DataFrame({"arm": ["a"] * 6 + ["b"] * 6, "x": [1.0, 2, 3, 4, 5, 6] + [None] * 6, "y": np.arange(12.0)})
    made = table_one(frame, by="arm", schema={"x": "gaussian", "y": "gaussian"})
    assert made.lines[0].cells[2] == "–"
    assert math.isnan(made.columns[0].p)
    assert math.isnan(made.columns[0].smd)


def test_standardised_differences_where_nothing_varies():
    frame = pd.DataFrame({"arm": ["a", "b"] * 6, "z": ["u"] * 12})
    made = table_one(frame, by="arm", schema={"z": {"kind": "categorical", "levels": ["u", "v", "w"]}})
    assert math.isnan(made.columns[0].smd)
    assert made.columns[0].test == ""
    apart = frame.assign(z=["u", "v"] * 6)
    assert table_one(apart, by="arm", schema={"z": "bernoulli"}).lines[0].smd == "∞"


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        ({"by": "arms"}, "Did you mean 'arm'"),
        ({"by": "days"}, "36 groups"),
        ({"by": "arm", "columns": ["event"]}, "is not a described column"),
        ({"by": "arm", "median": ["grade"]}, "no plain numbers"),
    ],
)
def test_what_cannot_be_described_is_refused(small, options, finding):
    with pytest.raises(DataError, match=finding):
        table_one(small, schema=KINDS, **options)


def test_subtypes_are_described_and_not_tested_in_the_columns_they_were_found_in(result):
    cohort = simulate_cohort(120, 3, 4, 5, 2, random_state=5)
    aside = {name: 0 for name in result.columns["column"] if name not in cohort.table}
    frame = cohort.table.assign(**aside, outcome=cohort.subtype % 2)
    schema = {column.name: column for column in cohort.schema.used}
    made = table_one(frame, by=result, schema=schema | {"outcome": "bernoulli"})
    assert made.groups == ("Subtype 1", "Subtype 2", "Subtype 3")
    assert made.sizes == (118, *np.bincount(result.clusters.subtype)[1:])
    tested = [column.column.name for column in made.columns if column.test]
    assert tested == ["outcome"]
    assert np.isfinite([column.smd for column in made.columns if column.column.name != "outcome"]).all()
    assert any("2 rows left out: outliers" in note for note in made.notes)
    assert any("subtypes were found in" in note for note in made.notes)
    with pytest.raises(DataError, match="not the table that was studied"):
        table_one(frame.iloc[:50], by=result, schema=schema)


# --- its forms ---

HOSTILE = "<img src=x onerror=alert(1)>|=1+1|`*_"


@pytest.fixture
def hostile():
    frame = pd.DataFrame(
        {"arm": ["=cmd|' /C calc'!A0", "@b"] * 20, HOSTILE: np.arange(40.0), "+z": ["<b>", "-2+3"] * 20}
    )
    kinds = {HOSTILE: "gaussian", "+z": "bernoulli"}
    return table_one(frame, by="arm", schema=kinds, title="<script>alert(2)</script>\x07")


def test_hostile_names_stay_text(hostile):
    page = hostile.to_html()
    assert "<img" not in page
    assert "<script" not in page
    assert "&lt;img src=x" in page
    assert "<img" not in hostile._repr_html_()
    markdown = hostile.to_markdown()
    assert "<img" not in markdown
    heads = [line for line in markdown.splitlines() if line.startswith("| Characteristic")]
    assert len(re.findall(r"(?<!\\)\|", heads[0])) == len(hostile.heads) + 1
    for cell in pd.read_csv(pd.io.common.StringIO(hostile.to_csv()), header=None, dtype=str).stack():
        assert not re.match(r"[=@\t\r]|[+-](?![\d.]+$)", cell), cell


def test_every_form_is_written(hostile, tmp_path):
    for suffix, write in (("csv", hostile.to_csv), ("html", hostile.to_html), ("md", hostile.to_markdown)):
        text = write(tmp_path / f"t.{suffix}")
        assert (tmp_path / f"t.{suffix}").read_text(encoding="utf-8") == text
    docx = pytest.importorskip("docx")
    hostile.to_docx(tmp_path / "t.docx")
    document = docx.Document(str(tmp_path / "t.docx"))
    table = document.tables[0]
    assert [cell.text for cell in table.rows[0].cells] == hostile.heads
    assert len(table.rows) == 1 + len(hostile.lines)
    assert table.rows[1].cells[0].text.startswith(HOSTILE)
    assert document.paragraphs[0].text == hostile.title
    assert "age" not in repr(hostile)


def test_word_needs_its_package(hostile, tmp_path, monkeypatch):
    import builtins

    real = builtins.__import__

    def without_docx(name, *rest):
        if name.startswith("docx"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_docx)
    with pytest.raises(DataError, match=r"plurigp\[docx\]"):
        hostile.to_docx(tmp_path / "t.docx")
    assert not Path(tmp_path / "t.docx").exists()


def test_gaps_are_counted_where_there_are_no_groups():
    table = pd.DataFrame({"age": [50.0, 61.5, np.nan, 72.25] * 5, "sex": ["f", "m", "m", None] * 5})
    made = table_one(table, schema={"age": "gaussian", "sex": "bernoulli"})
    assert [line.missing for line in made.lines] == ["5 (25.0%)", "5 (25.0%)"]


def test_whole_weights_describe_repeated_rows(rng):
    """Shares, means, medians and differences are those of the repeated rows; counts are of the rows there are."""
    n = 80
    table = pd.DataFrame({"arm": rng.choice(["a", "b"], n), "age": rng.normal(60, 9, n), "ill": rng.random(n) < 0.4})
    table = table.assign(crp=np.exp(rng.normal(size=n)).round(1), w=rng.integers(1, 4, n))
    schema = {"age": "gaussian", "ill": "bernoulli", "crp": "lognormal"}
    ours = table_one(table, "arm", schema, weights="w").figures
    repeated = table.loc[table.index.repeat(table["w"])].drop(columns="w")
    theirs = table_one(repeated, "arm", schema).figures
    assert list(ours["column"]) == list(theirs["column"])
    np.testing.assert_allclose(ours["share"], theirs["share"], rtol=1e-12)
    np.testing.assert_allclose(ours["mean"], theirs["mean"], rtol=1e-12)
    np.testing.assert_allclose(ours["smd"], theirs["smd"], rtol=0.02)  # rows, not weights, are the n of n − 1
    own = ours[(ours["column"] == "crp") & (ours["group"] == "a")].iloc[0]
    cells = repeated.loc[repeated["arm"] == "a", "crp"]
    due = np.quantile(cells, (0.25, 0.5, 0.75), method="inverted_cdf")
    np.testing.assert_array_equal(own[["q1", "median", "q3"]].to_numpy(float), due)
    assert ours["count"].iloc[-1] <= theirs["count"].iloc[-1]
    assert set(ours["test"]) == {"design-based Wald", "design-based rank"}
