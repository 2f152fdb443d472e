"""Portraits of the subtypes, the outcome and the counts that the prose of summary.html.j2 needs."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.report import verdict, words
from plurigp.study import StudyResult
from plurigp.study.subtypes import GROUP

MOST_TRAITS = 4
CHOICES = {"given": "requested", "paper": "of the paper’s mixture"}  # a number that was not chosen by evidence
SMALL_EFFECT = 0.2  # a standardised difference that is usually called small
SIGNIFICANT = 0.05
SPARSE = 0.3  # share of missing values that is worth a warning


@dataclass(frozen=True)
class Portrait:
    """One subtype or stratum: its size, the verdict on it, distinguishing traits, outcome and evidence."""

    subtype: int
    name: str
    size: str
    badge: str
    mark: str  # style of the badge
    certainty: str
    sentence: str
    outcome: str
    evidence: str


def summary_facts(result: StudyResult) -> dict[str, Any]:
    """What summary.html.j2 asks for beyond the facts of the study."""
    table, missing, columns = result.subtypes, result.missingness, result.columns
    tentative = table.loc[(table["kind"] == GROUP) & ~table["robust"].astype(bool), "subtype"]
    used = columns[columns["used"].astype(bool)]
    return {
        "choices": CHOICES,
        "portraits": portraits(result) if result.clusters.n_strata > 1 else [],
        "outcome": outcome_sentence(result),
        "headline": verdict.headline(result.facts, table),
        "grouped": verdict.grouped(result.facts, table),
        "tentative": [str(k) for k in tentative],
        "bridges": verdict.bridges(result.facts, result.separations),
        "references": verdict.references(result.facts, result.nulls.reference),
        "gain_chosen": result.clusterings.loc[result.clusterings["chosen"].astype(bool), "gain"].sum(),
        "closest": verdict.closest(result.facts, table),
        "smallest": int(table["size"].min()) if len(table) else 0,
        "n_uneven": missing.loc[missing["q"] <= SIGNIFICANT, "column"].nunique() if len(missing) else 0,
        "n_sparse": int((used["gap_share"] > SPARSE).sum()),
        "sparse_share": SPARSE,
    }


def outcome_sentence(result: StudyResult) -> str:
    """Whether the outcome differs by subtype, with the extremes at the first horizon."""
    tests = result.survival_tests
    if result.survival.empty or tests.empty:
        return ""
    p, word = float(tests["p"].iloc[0]), words.parts_of(result.facts)
    event = words.shown(result.facts["event_column"], 60)
    found, test = (
        ("differs" if p < SIGNIFICANT else "does not clearly differ"),
        f"{tests['test'].iloc[0]} {words.p_is(p)}",
    )
    if math.isnan(p):
        found, test = "was not compared", "not tested: it is known in one of them only, or never happened"
    start = f"The outcome “{event}”, which was not used in the fit, {found} between the {word.many} ({test})"
    risks = sorted(_first_risks(result).dropna(subset="risk").to_dict("records"), key=lambda line: line["risk"])
    if len(risks) < 2:
        return f"{start}."
    low, high = (f"{_risk(line)} in {word.one} {line['subtype']}" for line in (risks[0], risks[-1]))
    return f"{start}: its risk within {horizon(result.facts, risks[0]['time'])} ranges from {low} to {high}."


def horizon(facts: dict[str, Any], time: float) -> str:
    """A time with the name of the column it is counted in."""
    return f"{words.number(time, 6)} ({words.shown(facts['time_column'], 60)})"


def _first_risks(result: StudyResult) -> pd.DataFrame:
    """Risks of the subtypes or strata at the horizon that was named first."""
    risks = result.risks
    return risks if risks.empty else risks[(risks["subtype"] > 0) & (risks["time"] == risks["time"].iloc[0])]


def _risk(line: dict[Any, Any]) -> str:
    return words.risk_text(line, None, "95% interval ")


def portraits(result: StudyResult) -> list[Portrait]:
    """One per subtype or stratum, largest first."""
    facts, word = result.facts, words.parts_of(result.facts)
    event = words.shown(facts["event_column"], 60)
    outcomes = {
        line["subtype"]: f"{event} within {horizon(facts, line['time'])}: {_risk(line)}"
        for line in _first_risks(result).to_dict("records")
    }
    return [
        Portrait(
            subtype=int(line["subtype"]),
            name=word.number(line["subtype"]),
            size=f"{words.counted(int(line['size']), 'patient')} ({words.percent(line['share'])})",
            **dict(zip(("badge", "mark"), verdict.badge(line), strict=True)),
            certainty=f"mean certainty of assignment {words.percent(line['certainty'])}",
            sentence=distinction(result, int(line["subtype"])),
            outcome=outcomes.get(line["subtype"], ""),
            evidence=verdict.evidence(line, facts),
        )
        for line in result.subtypes.to_dict("records")
    ]


def distinction(result: StudyResult, subtype: int) -> str:
    """The largest differences of one subtype that are confirmed on held-back patients, in one sentence."""
    lines = confirmed(result.characteristics)
    lines = lines[(lines["subtype"] == subtype) & (lines["effect"].abs() >= SMALL_EFFECT)]
    held = lines[lines["tested_q"] <= result.facts["level"]]
    if held.empty:
        return "No difference from the other patients is confirmed among the held-back patients."
    one_each = held.groupby("column", sort=False, group_keys=False)[list(held.columns)].apply(_clearest)
    best = one_each.sort_values("effect", key=abs, ascending=False, kind="stable")
    traits = [_trait(line) for line in best.head(MOST_TRAITS).to_dict("records")]
    return f"Compared with the others: {words.listed(traits)}."


def _clearest(lines: pd.DataFrame) -> pd.DataFrame:
    """One line of a column: a positive effect is easier to read than a negative one, if it is half as large."""
    more, less = lines["effect"].max(), -lines["effect"].min()
    return lines[lines["effect"] == (more if more >= less / 2 else -less)].head(1)


def confirmed(characteristics: pd.DataFrame) -> pd.DataFrame:
    """Description on all patients, with the q-value from the held-back ones beside it."""
    keys = ["subtype", "column", "level"]
    described, split = (characteristics[characteristics["rows"] == rows] for rows in ("all", "split"))
    tested = split[[*keys, "q", "effect"]].rename(columns={"q": "tested_q", "effect": "tested_effect"})
    both = described.merge(tested, on=keys, how="left", sort=False)
    turned = np.sign(both["effect"]) != np.sign(both["tested_effect"])
    both.loc[turned, "tested_q"] = np.nan  # an effect of the other sign confirms nothing
    return both


def _trait(line: dict[Any, Any]) -> str:
    word = words.direction(line["effect"] > 0, line["measure"])
    inside, outside = words.compared_values(line)
    return f"{word} {words.trait(line['column'], line['level'], line['kind'])} ({inside} against {outside})"
