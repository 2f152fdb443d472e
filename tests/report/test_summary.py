import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from plurigp.report.page import render_report
from plurigp.report.summary import confirmed, portraits
from plurigp.report.tables import characteristics_table, risks_table, subtypes_table
from plurigp.report.words import (
    compared_values,
    counted,
    direction,
    fixed,
    in_words,
    number,
    p_is,
    p_value,
    percent,
    plot_text,
    risk_text,
    shown,
    signed,
    trait,
)


def text_of(html):
    """What a reader sees of it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def part_of(page, tag):
    """The text of the first element of the page that starts so."""
    start = page.index(f"<{tag}")
    return text_of(page[start : page.index(f"</{tag.split()[0]}>", start)])


def summary(result):
    """The text of the page's first section."""
    return part_of(render_report(result), 'section id="summary"')


def test_the_findings_in_words(result):
    text = summary(result)
    assert text.startswith("Summary 120 patients fall into three subtypes, two of them robust.")
    assert "patients 120 columns used 11 missing values 11% subtypes 3 of them robust 2 outliers 2" in text
    assert "more stable than in structureless tables, which are simulated without subtypes" in text
    assert "(p = 0.050, 19 structureless tables)" in text
    assert "Subtypes 1 and 2 pass both comparisons, with permuted labels and with structureless tables" in text
    assert "treat subtype 3 as tentative" in text
    assert (
        "The outcome “died”, which was not used in the fit, differs between the subtypes (log-rank p < 0.001)" in text
    )
    first = result.risks[(result.risks["subtype"] > 0) & (result.risks["time"] == 30)].sort_values("risk")
    for end, line in zip(("from", "to"), (first.iloc[0], first.iloc[-1]), strict=True):
        interval = f"95% interval {percent(line['low'])} to {percent(line['high'])}"
        assert f"{end} {percent(line['risk'])} ({interval}) in subtype {line['subtype']:.0f}" in text
    assert "its risk within 30 (days) ranges" in text
    assert "2 patients belong to clusters too small to be called subtypes" in text
    made = portraits(result)
    assert [portrait.robust for portrait in made] == [True, True, False]
    assert all("against" in portrait.sentence for portrait in made)
    assert all(portrait.outcome.startswith("died within 30 (days): ") for portrait in made)


def test_a_horizon_that_nobody_was_followed_to(result):
    unknown = result.risks.assign(**dict.fromkeys(("risk", "low", "high"), np.nan), at_risk=0)
    late = replace(result, risks=unknown)
    assert "differs between the subtypes (log-rank p < 0.001). Subtype 1" in summary(late)
    assert {p.outcome for p in portraits(late)} == {"died within 30 (days): follow-up too short"}
    assert {cell.text for row in risks_table(late).rows for cell in row[1:]} == {"follow-up too short"}


def test_an_outcome_that_could_not_be_tested(result):
    """It is known in one subtype only, or never happened."""
    page = render_report(replace(result, survival_tests=result.survival_tests.assign(statistic=np.nan, p=np.nan)))
    assert "was not compared between the subtypes (not tested: " in page
    assert "clearly differ" not in page
    assert "Log-rank test over the subtypes: not tested." in page


@pytest.mark.parametrize(
    ("measure", "low", "high", "said"),
    [
        ("mean difference", -np.inf, -1.2, "difference −3 (−1.2 or less)"),
        ("mean difference", -4.0, np.inf, "difference −3 (−4 or more)"),
        ("mean difference", -np.inf, np.inf, "difference −3 (no limits)"),
        ("log ratio", -np.inf, -1.0, "ratio 0.0498 (0.368 or less)"),
        ("log ratio", -4.0, np.inf, "ratio 0.0498 (0.0183 or more)"),
    ],
)
def test_an_interval_without_an_end(measure, low, high, said, result):
    lines = result.characteristics.assign(measure=measure, estimate=-3.0, low=low, high=high)
    shown_lines = characteristics_table(replace(result, characteristics=lines)).rows
    assert {row[-1].text for row in shown_lines} == {said}


def test_a_continuum_in_words(graded):
    text = summary(graded)
    assert text.startswith(
        "Summary 120 patients: no subtypes were detected. They are treated as a continuum, described by three strata."
    )
    assert "so the patients are treated as a continuum" in text
    assert "not agree significantly better than in structureless tables" in text
    assert "which are simulated without subtypes (p = 0.15, 19 " in text
    assert "To describe the continuum, it was divided into three strata. Their borders are arbitrary" in text
    assert "differs between the strata (log-rank p < 0.001): its risk within 30 (days)" in text
    assert "subtypes found 0 strata 3" in text
    made = portraits(graded)
    assert [portrait.name for portrait in made] == ["Stratum 1", "Stratum 2", "Stratum 3"]
    assert {(portrait.robust, portrait.badge) for portrait in made} == {(False, "part of a continuum")}
    assert all("against" in portrait.sentence for portrait in made)
    assert "Limitations That no subtypes were found does not rule them out" in text
    assert "clusters too small to be called strata" in text


def test_one_group_in_words(lone):
    text = summary(lone)
    assert text.startswith("Summary 120 patients: no subtypes were detected. They are treated as a continuum.")
    assert "do not agree significantly better than in structureless tables" in text
    assert "strata" not in text
    assert "Stratum" not in text


@pytest.mark.parametrize(("choice", "whose"), [("given", "requested"), ("paper", "of the paper’s mixture")])
def test_groups_asked_for_where_there_is_no_structure(graded, choice, whose):
    page = render_report(replace(graded, facts=graded.facts | {"choice": choice, "n_subtypes": 3}))
    text = part_of(page, 'section id="summary"')
    assert text.startswith(
        "Summary 120 patients: no subtypes were detected. They are treated as a continuum, described by three strata."
    )
    assert f"divided into three strata, the number {whose}. " in text
    assert "Stratum 3" in text
    assert f"The number is the one {whose} (orange diamond)." in text_of(page)


@pytest.mark.parametrize(("level", "needed"), [(0.05, 19), (0.01, 99), (0.4, 2)])
def test_too_few_structureless_tables_say_nothing(result, level, needed):
    facts = result.facts | {"structured": None, "structure_p": 1.0, "n_references": 1, "level": level}
    assert f"needs n_references = {needed} or more; this study has 1." in summary(replace(result, facts=facts))


@pytest.mark.parametrize("untested", [{"structured": None, "n_references": 0}, {"n_permutations": 0}])
def test_what_was_not_tested_is_not_called_anything(result, untested):
    """Neither robust nor not robust: in the headline, figures, sentences, portraits and table."""
    bare = replace(result, facts=result.facts | untested | {"n_robust": None})
    bare = replace(bare, subtypes=bare.subtypes.assign(robust=False))
    page = render_report(bare)
    text = part_of(page, 'section id="summary"')
    assert "120 patients fall into three clusters; whether they are robust subtypes was not tested." in text
    assert "robustness not tested –" in text
    assert {(portrait.robust, portrait.badge) for portrait in portraits(bare)} == {(False, "not tested")}
    assert {row[-1].text for row in subtypes_table(bare).rows} == {"not tested"}
    setting = "n_permutations = 1000" if "n_permutations" in untested else "n_references = 19 or more"
    assert f"Run the study with {setting} to test it" in text_of(page)
    for verdict in ("none of them robust", "No subtype is robust", "tentative", "how robust"):
        assert verdict not in text + subtypes_table(bare).caption


def test_hostile_names_in_the_words_of_a_continuum(hostile_graded):
    text = unescape(render_report(hostile_graded))
    assert f"The outcome “{shown(hostile_graded.facts['event_column'], 60)}”, which was not used" in text


def test_what_does_not_hold_when_tested_is_not_claimed(result):
    table = result.characteristics.copy()
    table.loc[table["rows"] == "split", "q"] = 0.9
    made = portraits(replace(result, characteristics=table))
    assert {portrait.sentence[:13] for portrait in made} == {"No difference"}
    turned = result.characteristics.copy()
    turned.loc[turned["rows"] == "split", "effect"] *= -1
    assert confirmed(turned)["tested_q"].isna().all()


def test_what_patients_have_is_told_before_what_they_lack(result):
    table = result.characteristics.copy()
    one = table[(table["subtype"] == 1) & (table["rows"] == "all")].iloc[:1]
    lines = pd.concat([one] * 2, ignore_index=True).assign(column="cancer", kind="categorical", level=["no", "yes"])
    lines["effect"], lines["q"], lines["inside"], lines["outside"] = [-9.0, 6.0], 1e-9, [0.1, 0.8], [0.9, 0.1]
    both = pd.concat([lines, lines.assign(rows="split"), table], ignore_index=True)
    sentence = portraits(replace(result, characteristics=both))[0].sentence
    assert "more often cancer: yes" in sentence
    assert "cancer: no" not in sentence
    both.loc[(both["column"] == "cancer") & (both["level"] == "yes"), "effect"] = 1.0
    assert "less often cancer: no" in portraits(replace(result, characteristics=both))[0].sentence


def test_thin_studies_say_so(result):
    facts = result.facts | {"n_refits": 4, "n_references": 4, "level": 0.2, "stopped": "max_epochs", "notes": ["a\nb"]}
    text = summary(replace(result, facts=facts))
    for words in ("smallest possible p-value is 0.2", "only 4 refits", "level 20%", "number of epochs", "a\\nb"):
        assert words in text


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (number(1234567.8), "1,234,568"),
        (number(0.04604), "0.046"),
        (number(-25.04), "−25"),
        (number(1e-9), "1.00e-09"),
        (number(0.0), "0"),
        (number(np.nan), "–"),
        (percent(0.005), "0.5%"),
        (percent(0.514), "51%"),
        (percent(np.nan), "–"),
        (signed(-0.001), "0.00"),
        (signed(0.5, 1), "+0.5"),
        (p_value(0.0004), "< 0.001"),
        (p_is(0.03), "p = 0.030"),
        (p_is(1e-9, "q"), "q < 0.001"),
        (counted(1, "patient"), "1 patient"),
        (risk_text({"risk": 0.25, "low": 0.1, "high": 0.5}), "25.0% (10.0% to 50.0%)"),
        (risk_text({"risk": np.nan, "low": np.nan, "high": np.nan}), "follow-up too short"),
        (in_words(3), "three"),
        (in_words(12), "12"),
        (percent(None), "–"),
        (fixed(0.9), "0.90"),
        (fixed(None), "–"),
        (compared_values({"inside": 0.0981, "outside": 0.799, "measure": "mean difference"}), ("0.098", "0.799")),
        (compared_values({"inside": 1234.5, "outside": -12.3, "measure": "mean difference"}), ("1,234", "−12")),
        (number(-np.inf), "−∞"),
        (p_is(np.nan), "not tested"),
        (
            compared_values({"inside": 5.0, "outside": np.nan, "measure": "mean difference"}),
            ("5", "outside the measured range"),
        ),
        (compared_values({"inside": 0.5, "outside": 0.0, "measure": "log odds ratio"}), ("50%", "0%")),
        (compared_values({"inside": 12.0, "outside": np.nan, "measure": "log hazard ratio"}), ("12", "not reached")),
        (direction(True, "log hazard ratio"), "later"),
        (direction(False, "log odds ratio"), "less often"),
        (trait("cost", "any", "zero_lognormal"), "cost: any"),
        (trait("diabetes", "True", "bernoulli"), "diabetes"),
        (trait("sex", "male", "bernoulli"), "sex: male"),
        (trait("stage", "1", "categorical"), "stage: 1"),
        (shown("a\u202eb"), "a\\u202eb"),
        (shown("x" * 300, 5), "xxxx…"),
        (plot_text("<b>&$"), "&lt;b&gt;&amp;&#36;"),
    ],
)
def test_numbers_and_names(said, expected):
    assert said == expected
