from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from plurigp.report.page import render_report
from plurigp.report.summary import confirmed, summarise
from plurigp.report.tables import characteristics, risks, subtypes
from plurigp.report.words import (
    counted,
    direction,
    drawn,
    few,
    fixed,
    levels,
    number,
    p_is,
    percent,
    probability,
    shown,
    signed,
    trait,
)


def test_the_findings_in_words(result):
    summary = summarise(result)
    assert summary.headline == "120 patients fall into three subtypes, two of them robust."
    assert ("120", "patients") in summary.figures
    text = " ".join(summary.sentences)
    assert "more reproducible than what structureless data give" in text
    assert "p = 0.050, from 19 comparison tables" in text
    assert "Subtypes 1 and 2 pass both comparisons; treat subtype 3 as tentative" in text
    assert (
        "The outcome “died”, which was not used in the fit, differs between the subtypes (log-rank p < 0.001)" in text
    )
    first = result.risks[(result.risks["subtype"] > 0) & (result.risks["time"] == 30)].sort_values("risk")
    for end, line in zip(("from", "to"), (first.iloc[0], first.iloc[-1]), strict=True):
        interval = f"95% interval {percent(line['low'])} to {percent(line['high'])}"
        assert f"{end} {percent(line['risk'])} in subtype {line['subtype']:.0f} ({interval})" in text
    assert "within 30 (days)" in text
    assert [portrait.robust for portrait in summary.portraits] == [True, True, False]
    assert all("against" in portrait.sentence for portrait in summary.portraits)
    assert all(portrait.outcome.startswith("died within 30 (days): ") for portrait in summary.portraits)


def test_a_horizon_that_nobody_was_followed_to(result):
    unknown = result.risks.assign(**dict.fromkeys(("risk", "low", "high"), np.nan), at_risk=0)
    late = replace(result, risks=unknown)
    text = " ".join(summarise(late).sentences)
    assert "differs between the subtypes (log-rank p < 0.001)." in text
    assert {p.outcome for p in summarise(late).portraits} == {"died within 30 (days): not followed so long"}
    assert {cell.text for row in risks(late).rows for cell in row[1:]} == {"not followed so long"}


def test_an_outcome_that_could_not_be_tested(result):
    """It is known in one subtype only, or never happened."""
    untested = replace(result, survival_tests=result.survival_tests.assign(statistic=np.nan, p=np.nan))
    text = " ".join(summarise(untested).sentences)
    assert "was not compared between the subtypes (not tested: " in text
    assert "clearly differ" not in text
    assert "Log-rank test over the subtypes: not tested." in render_report(untested)


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
    shown_lines = characteristics(replace(result, characteristics=lines)).rows
    assert {row[-1].text for row in shown_lines} == {said}


def test_a_continuum_in_words(graded):
    summary = summarise(graded)
    assert summary.headline == "120 patients form a continuum, without subtypes; three strata describe it."
    verdict, division, outcome = summary.sentences
    assert verdict.startswith("These patients form a continuum: ")
    assert "no more reproducible than in tables without groups (p = 0.15, from 19 comparison tables" in verdict
    assert division.startswith(
        "To describe the continuum, the map was cut into three strata. Their borders are a conve"
    )
    assert "not used in the fit, differs between the strata (log-rank p < 0.001): within 30 (days) its risk" in outcome
    assert {("0", "subtypes found"), ("3", "strata")} < set(summary.figures)
    assert [portrait.name for portrait in summary.portraits] == ["Stratum 1", "Stratum 2", "Stratum 3"]
    assert {portrait.badge for portrait in summary.portraits} == {"division of a continuum"}
    assert all("against" in portrait.sentence for portrait in summary.portraits)
    assert "does not rule them out" in summary.caveats[0]
    assert "clusters too small to be called strata" in " ".join(summary.caveats)


def test_one_group_in_words(lone):
    summary = summarise(lone)
    assert summary.headline == "120 patients form a continuum, without subtypes."
    assert "no more reproducible" in summary.sentences[0]
    assert "strata" not in " ".join([*summary.sentences, *summary.caveats])
    assert summary.portraits == []


@pytest.mark.parametrize(("choice", "whose"), [("given", "asked for"), ("paper", "of the paper's mixture")])
def test_groups_asked_for_where_there_is_no_structure(graded, choice, whose):
    facts = graded.facts | {"choice": choice, "n_subtypes": 3}
    summary = summarise(replace(graded, facts=facts))
    assert summary.headline == summarise(graded).headline
    assert f"cut into three strata, the number {whose}. " in summary.sentences[1]
    assert len(summary.portraits) == 3
    assert summary.number == f"The number taken is the one {whose} (orange diamond)."


@pytest.mark.parametrize(("level", "needed"), [(0.05, 19), (0.01, 99), (0.4, 2)])
def test_too_few_comparison_tables_say_nothing(result, level, needed):
    facts = result.facts | {"structured": None, "structure_p": 1.0, "n_references": 1, "level": level}
    summary = summarise(replace(result, facts=facts))
    assert summary.sentences[0].endswith(
        f"takes at least {needed} comparison tables without any subtypes, and the study was run with 1. "
        f"Run it with n_references = {needed} or more to test it."
    )


@pytest.mark.parametrize("untested", [{"structured": None, "n_references": 0}, {"n_permutations": 0}])
def test_what_was_not_tested_is_not_called_anything(result, untested):
    """Neither robust nor not robust: in the headline, figures, sentences, portraits and table."""
    bare = replace(result, facts=result.facts | untested | {"n_robust": None})
    bare = replace(bare, subtypes=bare.subtypes.assign(robust=False))
    summary = summarise(bare)
    assert summary.headline == "120 patients fall into three groups; whether they are robust subtypes was not tested."
    assert ("–", "robustness not tested") in summary.figures
    assert {(portrait.robust, portrait.badge) for portrait in summary.portraits} == {(False, "not tested")}
    assert {row[-1].text for row in subtypes(bare).rows} == {"not tested"}
    text = " ".join([summary.headline, *summary.sentences, subtypes(bare).caption])
    setting = "n_permutations = 1000" if "n_permutations" in untested else "n_references = 19 or more"
    assert f"with {setting} to test it" in text
    for verdict in ("none of them robust", "No subtype is robust", "tentative", "how robust"):
        assert verdict not in text


def test_hostile_names_in_the_words_of_a_continuum(hostile_graded):
    text = " ".join(summarise(hostile_graded).sentences)
    assert shown(hostile_graded.facts["event_column"], 60) in text
    assert text.isprintable()


def test_what_does_not_hold_when_tested_is_not_claimed(result):
    table = result.characteristics.copy()
    table.loc[table["rows"] == "split", "q"] = 0.9
    portraits = summarise(replace(result, characteristics=table)).portraits
    assert {portrait.sentence[:7] for portrait in portraits} == {"Nothing"}
    turned = result.characteristics.copy()
    turned.loc[turned["rows"] == "split", "effect"] *= -1
    assert confirmed(turned)["tested_q"].isna().all()


def test_what_patients_have_is_told_before_what_they_lack(result):
    table = result.characteristics.copy()
    one = table[(table["subtype"] == 1) & (table["rows"] == "all")].iloc[:1]
    lines = pd.concat([one] * 2, ignore_index=True).assign(column="cancer", kind="categorical", level=["no", "yes"])
    lines["effect"], lines["q"], lines["inside"], lines["outside"] = [-9.0, 6.0], 1e-9, [0.1, 0.8], [0.9, 0.1]
    both = pd.concat([lines, lines.assign(rows="split"), table], ignore_index=True)
    sentence = summarise(replace(result, characteristics=both)).portraits[0].sentence
    assert "more often cancer: yes" in sentence
    assert "cancer: no" not in sentence
    both.loc[(both["column"] == "cancer") & (both["level"] == "yes"), "effect"] = 1.0
    assert "less often cancer: no" in summarise(replace(result, characteristics=both)).portraits[0].sentence


def test_thin_studies_say_so(result):
    facts = result.facts | {"n_refits": 4, "n_references": 4, "level": 0.2, "stopped": "max_epochs", "notes": ["a\nb"]}
    said = " ".join(summarise(replace(result, facts=facts)).caveats)
    for words in ("smallest p-value possible is 0.2", "Only 4 refits", "level of 20%", "its limit of passes", "a\\nb"):
        assert words in said


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
        (probability(0.0004), "< 0.001"),
        (p_is(0.03), "p = 0.030"),
        (p_is(1e-9, "q"), "q < 0.001"),
        (counted(1, "patient"), "1 patient"),
        (few(3), "three"),
        (few(12), "12"),
        (percent(None), "–"),
        (fixed(0.9), "0.90"),
        (fixed(None), "–"),
        (levels(0.0981, 0.799, "mean difference"), ("0.098", "0.799")),
        (levels(1234.5, -12.3, "mean difference"), ("1,234", "−12")),
        (number(-np.inf), "−∞"),
        (p_is(np.nan), "not tested"),
        (levels(5.0, np.nan, "mean difference"), ("5", "outside the measured range")),
        (levels(0.5, 0.0, "log odds ratio"), ("50%", "0%")),
        (levels(12.0, np.nan, "log hazard ratio"), ("12", "not reached")),
        (direction(True, "log hazard ratio"), "later"),
        (direction(False, "log odds ratio"), "less often"),
        (trait("cost", "any", "zero_lognormal"), "cost: any"),
        (trait("diabetes", "True", "bernoulli"), "diabetes"),
        (trait("sex", "male", "bernoulli"), "sex: male"),
        (trait("stage", "1", "categorical"), "stage: 1"),
        (shown("a\u202eb"), "a\\u202eb"),
        (shown("x" * 300, 5), "xxxx…"),
        (drawn("<b>&$"), "&lt;b&gt;&amp;&#36;"),
    ],
)
def test_numbers_and_names(said, expected):
    assert said == expected
