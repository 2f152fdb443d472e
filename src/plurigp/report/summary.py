"""The findings in plain words, numbers first: what a clinician reads before any figure."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.report.caveats import USUAL_LEVEL, caveats
from plurigp.report.words import (
    counted,
    direction,
    few,
    is_continuum,
    levels,
    listed,
    number,
    p_is,
    parts_of,
    percent,
    shown,
    trait,
)
from plurigp.study import StudyResult
from plurigp.study.findings.robustness import fewest_references, untested

TRAITS = 4
WHOSE = {"given": "asked for", "paper": "of the paper's mixture"}  # number, where it is not chosen by stability
ROBUST = "✓ robust"
NOT_FOLLOWED = "not followed so long"
LEAST_EFFECT = 0.2  # a standardised difference that is usually called small


@dataclass(frozen=True)
class Portrait:
    """One subtype or stratum: who, how many, how firm, what sets it apart, what became of them."""

    subtype: int
    name: str
    size: str
    robust: bool
    badge: str
    verdict: str
    sentence: str
    outcome: str


@dataclass(frozen=True)
class Summary:
    """The first screen of the report."""

    headline: str
    figures: list[tuple[str, str]]
    sentences: list[str]
    portraits: list[Portrait]
    caveats: list[str]
    number: str


def summarise(result: StudyResult) -> Summary:
    """All of it; no portraits of a single group."""
    sentences = (structure(result.facts), division(result), robustness(result), outcome(result))
    return Summary(
        headline(result),
        key_figures(result),
        [sentence for sentence in sentences if sentence],
        portraits(result) if result.clusters.n_strata > 1 else [],
        caveats(result),
        number_taken(result),
    )


def headline(result: StudyResult) -> str:
    """The answer in one sentence."""
    n, K = f"{result.facts['n_rows']:,} patients", result.clusters.n_strata
    if is_continuum(result.facts):
        return f"{n} form a continuum, without subtypes{f'; {few(K)} strata describe it' if K > 1 else ''}."
    if K < 2:
        return f"{n}, treated as one group."
    if untested(result.facts):
        return f"{n} fall into {few(K)} groups; whether they are robust subtypes was not tested."
    robust = result.facts["n_robust"]
    firm = (
        "all of them robust"
        if robust == K
        else "none of them robust"
        if not robust
        else f"{few(robust)} of them robust"
    )
    return f"{n} fall into {few(K)} subtypes, {firm}."


def key_figures(result: StudyResult) -> list[tuple[str, str]]:
    """Numbers to stand large at the top, with what they count."""
    facts, K = result.facts, result.clusters.n_strata
    tiles = [
        (f"{facts['n_rows']:,}", "patients"),
        (f"{facts['n_columns']:,}", "columns used"),
        (percent(facts["gap_share"]), "of cells are gaps"),
    ]
    if is_continuum(facts):
        tiles += [("0", "subtypes found"), (f"{K}", "strata")][: 2 if K > 1 else 1]
    elif K > 1:
        robust = ("–", "robustness not tested") if untested(facts) else (f"{facts['n_robust']}", "of them robust")
        tiles += [(f"{K}", "subtypes"), robust]
    else:
        tiles.append((f"{K}", "group"))
    return [*tiles, (f"{facts['n_outliers']:,}", "outliers")] if facts["n_outliers"] else tiles


def structure(facts: dict[str, Any]) -> str:
    """Whether the subtypes are more stable than those of tables without any."""
    R = facts["n_references"]
    if facts["structured"] is None:
        return (
            "Whether the subtypes are real was not tested: that takes at least "
            f"{fewest_references(facts['level'])} comparison tables without any subtypes, and the study was run with "
            f"{R or 'none'}. Run it with {untested(facts)} or more to test it."
        )
    test = f"{p_is(facts['structure_p'])}, from {counted(R, 'comparison table')} drawn without any subtypes"
    if facts["structured"]:
        return (
            "The grouping is more reproducible than what structureless data give: when the analysis is repeated on "
            f"separate halves of the patients, the halves agree better than they would by chance ({test})."
        )
    return (
        "These patients form a continuum: when the analysis is repeated on separate halves of them, the groups found "
        f"are no more reproducible than in tables without groups ({test}). There are no subtypes to defend."
    )


def division(result: StudyResult) -> str:
    """That strata are a way to describe a continuum."""
    K, whose = result.clusters.n_strata, WHOSE.get(result.facts["choice"])
    if not is_continuum(result.facts) or K < 2:
        return ""
    return (
        f"To describe the continuum, the map was cut into {few(K)} strata{f', the number {whose}' if whose else ''}. "
        "Their borders are a convenience: patients near a border may go either way, and another number of strata could "
        "have been taken."
    )


def number_taken(result: StudyResult) -> str:
    """How the number of subtypes or strata came about, beside the figure that marks it."""
    facts = result.facts
    if facts["choice"] in WHOSE:
        marked = " (orange diamond)" if result.clusterings["chosen"].any() else ""
        return f"The number taken is the one {WHOSE[facts['choice']]}{marked}."
    if is_continuum(facts):
        return (
            "No number agrees clearly better than structureless tables do. The map is described by the one that is "
            "furthest above them, measured by how much they differ among themselves (orange diamond)."
        )
    if facts["structured"] is None:
        return "The one furthest above what is expected without structure is taken (orange diamond)."
    return (
        "Of the numbers that agree clearly better than structureless tables do, the one furthest above them is taken "
        "(orange diamond)."
    )


def robustness(result: StudyResult) -> str:
    """Which subtypes are robust."""
    table = result.subtypes
    if len(table) < 2 or is_continuum(result.facts):
        return ""
    if remedy := untested(result.facts):
        told = result.facts["structured"] is None  # by `structure`
        return "" if told else f"Whether each subtype is robust was not tested: run the study with {remedy} to test it."
    robust = [str(k) for k in table.loc[table["robust"].astype(bool), "subtype"]]
    if not robust:
        return (
            "No subtype is robust: none of them passes both comparisons, with shuffled labels and structureless data."
        )
    if len(robust) == len(table):
        return (
            f"All {few(len(table))} subtypes pass both comparisons, with shuffled labels and with structureless data."
        )
    tentative = [str(k) for k in table["subtype"] if str(k) not in robust]
    verb = "passes" if len(robust) == 1 else "pass"
    name = parts_of(result.facts).numbers
    return f"{name(robust)} {verb} both comparisons; treat {name(tentative).lower()} as tentative."


def outcome(result: StudyResult) -> str:
    """Whether the outcome differs by subtype, with the extremes at the first horizon."""
    tests = result.survival_tests
    if result.survival.empty or tests.empty:
        return ""
    p, event, word = float(tests["p"].iloc[0]), shown(result.facts["event_column"], 60), parts_of(result.facts)
    differs = "differs" if p < USUAL_LEVEL else "does not clearly differ"
    found = "was not compared" if math.isnan(p) else differs
    why = "not tested: it is known in one of them only, or never happened" if math.isnan(p) else f"log-rank {p_is(p)}"
    start = f"The outcome “{event}”, which was not used in the fit, {found} between the {word.many} ({why})"
    risks = sorted(_first_risks(result).dropna(subset="risk").to_dict("records"), key=lambda line: line["risk"])
    if len(risks) < 2:
        return f"{start}."
    when = horizon(result.facts, risks[0]["time"])
    low, high = (
        f"{percent(line['risk'])} in {word.one} {line['subtype']} ({_interval(line['low'], line['high'])})"
        for line in (risks[0], risks[-1])
    )
    return f"{start}: within {when} its risk ranges from {low} to {high}."


def horizon(facts: dict[str, Any], time: float) -> str:
    """A time with the name of the column it is counted in."""
    return f"{number(time, 6)} ({shown(facts['time_column'], 60)})"


def _first_risks(result: StudyResult) -> pd.DataFrame:
    """Risks of the subtypes or strata at the horizon that was named first."""
    risks = result.risks
    if risks.empty:
        return risks
    return risks[(risks["subtype"] > 0) & (risks["time"] == risks["time"].iloc[0])]


def _interval(low: float, high: float) -> str:
    return f"95% interval {percent(low)} to {percent(high)}"


# --- portraits ---


def portraits(result: StudyResult) -> list[Portrait]:
    """One per subtype or stratum, largest first."""
    risks, word = _first_risks(result), parts_of(result.facts)
    found = []
    for line in result.subtypes.to_dict("records"):
        own = risks[risks["subtype"] == line["subtype"]].to_dict("records") if len(risks) else []
        found.append(
            Portrait(
                int(line["subtype"]),
                word.number(line["subtype"]),
                f"{counted(int(line['size']), 'patient')} ({percent(line['share'])})",
                badge(result.facts, line["robust"]) == ROBUST,
                badge(result.facts, line["robust"]),
                f"mean certainty of assignment {percent(line['certainty'])}",
                distinction(result, int(line["subtype"])),
                _risk(result, own[0]) if own else "",
            )
        )
    return found


def badge(facts: dict[str, Any], robust: bool) -> str:
    """What was found about one subtype or stratum, in a word or two."""
    if untested(facts):
        return "not tested"
    if is_continuum(facts):
        return "division of a continuum"
    return ROBUST if robust else "? tentative"


def distinction(result: StudyResult, subtype: int) -> str:
    """What sets one apart, in one sentence: the largest differences that hold on patients held back."""
    lines = confirmed(result.characteristics)
    lines = lines[(lines["subtype"] == subtype) & (lines["effect"].abs() >= LEAST_EFFECT)]
    firm = lines[lines["tested_q"] <= result.facts["level"]]
    if firm.empty:
        return "Nothing sets it apart that also holds among the patients held back for testing."
    told = firm.groupby("column", sort=False, group_keys=False)[list(firm.columns)].apply(_telling)
    best = told.reindex(told["effect"].abs().sort_values(ascending=False, kind="stable").index).head(TRAITS)
    return f"Compared with the others: {listed([_trait(line) for line in best.to_dict('records')])}."


def _telling(lines: pd.DataFrame) -> pd.DataFrame:
    """One line of a column: what its patients have says more than what they lack, if it is half as large."""
    more, less = lines["effect"].max(), -lines["effect"].min()
    return lines[lines["effect"] == (more if more >= less / 2 else -less)].head(1)


def confirmed(characteristics: pd.DataFrame) -> pd.DataFrame:
    """Description on all patients, with the q-value from the held-back ones beside it."""
    keys = ["subtype", "column", "level"]
    split = characteristics.loc[characteristics["rows"] == "split", [*keys, "q", "effect"]]
    described = characteristics[characteristics["rows"] == "all"]
    renamed = split.rename(columns={"q": "tested_q", "effect": "tested_effect"})
    both = described.merge(renamed, on=keys, how="left", sort=False)
    turned = np.sign(both["effect"]) != np.sign(both["tested_effect"])
    both.loc[turned, "tested_q"] = np.nan  # an effect that turns round is no confirmation
    return both


def _trait(line: dict[str, Any]) -> str:
    word = direction(line["effect"] > 0, line["measure"])
    inside, outside = levels(line["inside"], line["outside"], line["measure"])
    return f"{word} {trait(line['column'], line['level'], line['kind'])} ({inside} against {outside})"


def _risk(result: StudyResult, line: dict[str, Any]) -> str:
    event, when = shown(result.facts["event_column"], 60), horizon(result.facts, line["time"])
    if not math.isfinite(line["risk"]):
        return f"{event} within {when}: {NOT_FOLLOWED}"
    return f"{event} within {when}: {percent(line['risk'])} ({_interval(line['low'], line['high'])})"
