import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from plurigp.report.page import render_report
from plurigp.report.summary import confirmed, portraits
from plurigp.report.tables import (
    characteristics_table,
    consensus_table,
    risks_table,
    separations_table,
    subtypes_table,
)
from plurigp.report.verdict import bridges, fullness, headline
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

NO_VALLEY, IN_THREE = "have no clear valley between them", "subtypes in three groups"


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
    assert text.startswith("Summary 120 patients: three subtypes, each standing apart from the others.")
    assert "patients 120 columns used 11 missing values 11% subtypes 3 stand apart 3 outliers 2" in text
    assert "A valley is a stretch between two groups in which fewer patients lie than in either of them" in text
    assert "Valleys divide the groups from each other (p < 0.001)." in text
    assert (
        "Treat subtype 3 as tentative: it stands apart, but in refits its patients are no more often together" in text
    )
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
    badges = [("✓ stands apart", "yes"), ("✓ stands apart", "yes"), ("? tentative", "no")]
    assert [(portrait.badge, portrait.mark) for portrait in made] == badges
    assert made[1].evidence == (
        "A valley divides it from subtype 1, the nearest: between them patients are 9% as dense as at the thinner of "
        "the two (p < 0.001); the centres are 4.2 standard deviations apart. Maps of separate halves keep 88% of its "
        "pairs together. Its unseen patients are typically 2 times as probable with the subtypes as in a single cloud "
        "(+0.69 nats each)."
    )
    assert all(portrait.evidence in text for portrait in made)
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
        "Summary 120 patients: no subtypes were detected; treated as a continuum, described by three strata."
    )
    assert "without one, patients go over from the one to the other by degrees" in text
    assert "No valley divides these patients (p = 0.40). Groups with clearly fewer patients between them" in text
    assert "To describe the continuum, it was divided into three strata. Their borders are arbitrary" in text
    assert "differs between the strata (log-rank p < 0.001): its risk within 30 (days)" in text
    assert "subtypes found 0 strata 3" in text
    made = portraits(graded)
    assert [portrait.name for portrait in made] == ["Stratum 1", "Stratum 2", "Stratum 3"]
    assert {(portrait.badge, portrait.mark) for portrait in made} == {("part of a continuum", "no")}
    assert made[0].evidence.startswith(
        "No clear valley divides it from stratum 2, the nearest: between them patients are 85% as dense as at the "
        "thinner of the two (p = 0.40); the centres are 2.1 standard deviations apart."
    )
    assert made[0].evidence.endswith(
        "The strata describe its unseen patients no better than a single cloud does (−0.04 nats each)."
    )
    assert all("against" in portrait.sentence for portrait in made)
    unknown = graded.subtypes.assign(separation=np.nan, depth=np.nan)
    assert portraits(replace(graded, subtypes=unknown))[0].evidence.startswith(
        "No clear valley divides it from stratum 2, the nearest: between them nobody was counted, because maps of "
        "halves overlap there or have no such cluster (p = 0.40). Maps of separate halves"
    )
    assert "Limitations That no subtypes were found does not rule them out. Groups whose centres are less than" in text
    assert "groups of less than 5% of the patients count as outliers" in text
    page = text_of(render_report(graded))
    assert "What comes closest to a valley is between strata 1 and 2: there patients are 85% as dense" in page
    assert "clusters too small to be called strata" in text


def test_one_group_in_words(lone):
    text = summary(lone)
    assert text.startswith("Summary 120 patients: treated as one group.")
    assert "One group was requested, so no valley between groups was looked for." in text
    assert "strata" not in text
    assert "Stratum" not in text


@pytest.mark.parametrize(
    ("asked", "lead"),
    [("evidence", "no subtypes were detected; treated as one group."), (2, "treated as one group.")],
)
def test_one_group_that_was_not_asked_for(lone, asked, lead):
    """All other clusters are so small that they are outliers."""
    facts = lone.facts | {"choice": "evidence" if asked == "evidence" else "given"}
    text = summary(replace(lone, facts=facts, config=lone.config | {"n_subtypes": asked}))
    assert text.startswith(f"Summary 120 patients: {lead}")
    assert "only one has 5% of the patients or more, so there is no other group" in text
    assert "valley" not in text
    assert "requested" not in text


@pytest.mark.parametrize(("choice", "whose"), [("given", "requested"), ("paper", "of the paper’s mixture")])
def test_groups_asked_for_where_there_is_no_structure(graded, choice, whose):
    page = render_report(replace(graded, facts=graded.facts | {"choice": choice, "n_subtypes": 3}))
    text = part_of(page, 'section id="summary"')
    asked = "requested " if choice == "given" else ""
    assert text.startswith(
        f"Summary 120 patients: no subtypes were detected; treated as a continuum, described by three {asked}strata."
    )
    assert f"divided into three strata, the number {whose}. " in text
    assert "Stratum 3" in text
    assert f"The number is the one {whose} (orange diamond)." in text_of(page)


@pytest.mark.parametrize(
    ("group", "shares", "lead", "divided", "badges"),
    [
        (
            [1, 2, 1], [0.4, 0.3, 0.3],
            "three subtypes in two groups; subtype 2 stands apart, subtypes 1 and 3 have no clear valley between them.",
            "Valleys divide the groups from each other (p < 0.001).",
            ["part of a continuum", "✓ stands apart", "part of a continuum"],
        ),
        (
            [1, 2, 3], [0.8, 0.1, 0.1],
            "two groups, of 10% and 10%, stand apart from the rest, which form a continuum.",
            "Valleys divide the groups from each other and from the rest (p < 0.001).",
            ["the rest", "✓ stands apart", "? tentative"],
        ),
        (
            [1, 2, 1], [0.55, 0.15, 0.3],
            "one group of 15% stands apart from the rest, which form a continuum.",
            "subtype 2 from the rest (p < 0.001). The rest was divided into two parts to describe it, subtypes 1 and 3",
            ["part of a continuum", "✓ stands apart", "part of a continuum"],
        ),
        (
            [1, 2, 2], [0.8, 0.1, 0.1],
            "one group of 20% stands apart from the rest, which form a continuum.",
            "A valley divides subtypes 2 and 3 from the rest (p < 0.001).",
            ["the rest", "part of a continuum", "part of a continuum"],
        ),
    ],
)  # fmt: skip
def test_groups_are_named_one_by_one(result, regroup, group, shares, lead, divided, badges):
    made = regroup(result, group, shares)
    text = summary(made)
    assert text.startswith(f"Summary 120 patients: {lead}")
    assert divided in text
    assert [portrait.badge for portrait in portraits(made)] == badges
    assert [row[2].text for row in subtypes_table(made).rows] == badges


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ([1, 2], "two subtypes, standing apart from each other"),
        ([1, 2, 1, 2], f"four subtypes in two groups; subtypes 1 and 3 {NO_VALLEY}, subtypes 2 and 4 {NO_VALLEY}"),
        ([1, 1, 1, 2, 3], f"five {IN_THREE}; subtypes 4 and 5 stand apart, subtypes 1, 2 and 3 form a continuum"),
    ],
)
def test_the_headline(group, said):
    K = len(group)
    table = pd.DataFrame({"subtype": np.arange(1, K + 1), "share": 1 / K, "group": group})
    assert headline({"structured": True, "choice": "evidence"}, table) == said


def test_a_valley_that_others_lead_around_is_no_border(graded):
    p = [0.4, 0.5, 1e-6]
    chained = replace(graded, separations=graded.separations.assign(p=p))
    said = "There is a valley between strata 2 and 3, but stratum 1 joins them."
    assert said in summary(chained)
    assert [row[-1].text for row in separations_table(chained).rows] == ["no", "no", "joined by others"]
    assert bridges(graded.facts, graded.separations) == ""
    assert bridges(graded.facts, graded.separations.assign(p=0.03)) == ""  # 0.06 by Bonferroni's correction


def test_a_p_value_that_does_not_survive_correction_says_so(graded):
    table = graded.subtypes.assign(valley_p=0.03)
    for portrait in portraits(replace(graded, subtypes=table)):
        assert "(p = 0.030 before correction for the number of borders)" in portrait.evidence


@pytest.mark.parametrize(
    ("depth", "gain", "said"),
    [
        (0.0, 0.02, "patients are 0% as dense as at the thinner of the two"),
        (2.05, 0.02, "patients are at least as dense as at the thinner of the two"),
        (0.5, 0.02, "describe its unseen patients hardly better than a single cloud does (+0.02 nats each)"),
        (0.5, 3.0, "typically 20 times as probable with the strata as in a single cloud (+3.00 nats each)"),
    ],
)
def test_evidence_at_its_ends(graded, depth, gain, said):
    table = graded.subtypes.assign(depth=depth, unseen_gain=gain)
    assert said in portraits(replace(graded, subtypes=table))[0].evidence


def test_tables_of_the_subtypes(result, graded):
    assert [cell.text for cell in subtypes_table(result).rows[1][3:]] == ["1", "4.2", "9%", "< 0.001", "+0.69", "88%"]
    assert separations_table(result).heads == ["Subtype", "Other", "Separation (sd)", "Density between", "p", "Apart"]
    assert {row[-1].text for row in separations_table(result).rows} == {"yes"}
    assert [row[-1].text for row in consensus_table(result).rows] == ["yes", "yes", "no"]
    assert "Robust" not in consensus_table(graded).heads


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
    facts = result.facts | {"n_refits": 4, "level": 0.2, "stopped": "max_epochs", "notes": ["a\nb"]}
    text = summary(replace(result, facts=facts))
    for words in ("only 4 refits", "level 20%", "number of epochs", "a\\nb"):
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
        (percent(0.99999), "100%"),
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


def test_a_middle_that_was_not_counted_is_not_called_full():
    assert "nobody was counted" in fullness(float("nan"))
    assert "at least as dense" in fullness(1.2)
    assert "40% as dense" in fullness(0.4)
