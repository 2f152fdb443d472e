"""The findings in plain words, numbers first: what a clinician reads before any figure."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.report.words import SHARES, counted, few, levels, listed, number, p_is, percent, shown, trait
from plurigp.study import StudyResult

TRAITS = 4
LEAST_EFFECT = 0.2  # a standardised difference that is usually called small
USUAL_LEVEL = 0.05
FEW_REFITS, FEW_REFERENCES, FEW_ROWS, MANY_GAPS = 10, 19, 30, 0.3


@dataclass(frozen=True)
class Portrait:
    """One subtype: who, how many, how firm, what sets it apart, what became of them."""

    subtype: int
    size: str
    robust: bool
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


def summarise(result: StudyResult) -> Summary:
    """All of it; the portraits are empty where the table has no structure."""
    return Summary(
        headline(result.facts),
        key_figures(result),
        [sentence for sentence in (structure(result.facts), robustness(result), outcome(result)) if sentence],
        portraits(result) if result.clusters.n_subtypes > 1 else [],
        caveats(result),
    )


def headline(facts: dict[str, Any]) -> str:
    """The answer in one sentence."""
    n, K = f"{facts['n_rows']:,} patients", facts["n_subtypes"]
    if facts["structured"] is False and K < 2:
        return f"{n}, no subtypes: these data look like one continuous group."
    if K < 2:
        return f"{n}, treated as one group."
    if facts["structured"] is False:
        return f"{n}, cut into {few(K)} groups as asked: these data look like one continuous group."
    robust = facts["n_robust"]
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
    facts = result.facts
    tiles = [
        (f"{facts['n_rows']:,}", "patients"),
        (f"{facts['n_columns']:,}", "columns used"),
        (percent(facts["gap_share"]), "of cells are gaps"),
        (f"{facts['n_subtypes']}", "subtypes" if facts["n_subtypes"] != 1 else "group"),
        (f"{facts['n_robust']}", "of them robust"),
    ]
    tiles = tiles if facts["n_subtypes"] > 1 else tiles[:-1]
    return [*tiles, (f"{facts['n_outliers']:,}", "outliers")] if facts["n_outliers"] else tiles


def structure(facts: dict[str, Any]) -> str:
    """Whether the subtypes are more stable than those of tables without any."""
    R = facts["n_references"]
    if facts["structured"] is None:
        return (
            "Nothing can be said about whether the subtypes are real: the study was run without the comparison tables "
            "that have no subtypes. Run it again with at least 19 of them."
        )
    test = f"{p_is(facts['structure_p'])}, from {counted(R, 'comparison table')} drawn without any subtypes"
    if facts["structured"]:
        return (
            "The grouping is more reproducible than what structureless data give: when the analysis is repeated on "
            f"separate halves of the patients, the halves agree better than they would by chance ({test})."
        )
    return (
        "The grouping is not more reproducible than what structureless data give: "
        f"tables without any subtypes split into groups about as well as this one ({test})."
    )


def robustness(result: StudyResult) -> str:
    """Which subtypes are robust."""
    table = result.subtypes
    if len(table) < 2:
        return ""
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
    return f"{_subtypes(robust)} {verb} both comparisons; treat {_subtypes(tentative).lower()} as tentative."


def _subtypes(names: list[str]) -> str:
    return f"Subtype{'' if len(names) == 1 else 's'} {listed(names)}"


def outcome(result: StudyResult) -> str:
    """Whether the outcome differs by subtype, with the extremes at the latest horizon."""
    tests = result.survival_tests
    if result.survival.empty or tests.empty:
        return ""
    p, event = float(tests["p"].iloc[0]), shown(result.facts["event_column"], 60)
    differs = "differs between" if p < USUAL_LEVEL else "does not clearly differ between"
    start = f"The outcome “{event}”, which was kept out of the grouping, {differs} the subtypes (log-rank {p_is(p)})"
    risks = sorted(_last_risks(result).to_dict("records"), key=lambda line: line["risk"])
    if len(risks) < 2:
        return f"{start}."
    when = horizon(result.facts, risks[0]["time"])
    low, high = (f"{percent(line['risk'])} in subtype {line['subtype']}" for line in (risks[0], risks[-1]))
    return f"{start}: within {when} it ranges from {low} to {high}."


def horizon(facts: dict[str, Any], time: float) -> str:
    """A time with the name of the column it is counted in."""
    return f"{number(time, 6)} ({shown(facts['time_column'], 60)})"


def _last_risks(result: StudyResult) -> pd.DataFrame:
    """Risks of the subtypes at the latest horizon."""
    risks = result.risks
    if risks.empty:
        return risks
    return risks[(risks["subtype"] > 0) & (risks["time"] == risks["time"].max())]


# --- portraits ---


def portraits(result: StudyResult) -> list[Portrait]:
    """One per subtype, largest first."""
    risks = _last_risks(result)
    found = []
    for line in result.subtypes.to_dict("records"):
        own = risks[risks["subtype"] == line["subtype"]].to_dict("records") if len(risks) else []
        found.append(
            Portrait(
                int(line["subtype"]),
                f"{counted(int(line['size']), 'patient')} ({percent(line['share'])})",
                bool(line["robust"]),
                f"mean certainty of assignment {percent(line['certainty'])}",
                distinction(result, int(line["subtype"])),
                _risk(result, own[0]) if own else "",
            )
        )
    return found


def distinction(result: StudyResult, subtype: int) -> str:
    """What sets a subtype apart, in one sentence: the largest differences that hold on patients held back."""
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
    more, name, kind = line["effect"] > 0, trait(line["column"], line["level"], line["kind"]), line["kind"]
    word = ("more often" if more else "less often") if kind in SHARES else "higher" if more else "lower"
    inside, outside = levels(line["inside"], line["outside"], kind)
    return f"{word} {name} ({inside} against {outside})"


def _risk(result: StudyResult, line: dict[str, Any]) -> str:
    event, when = shown(result.facts["event_column"], 60), horizon(result.facts, line["time"])
    interval = f"95% interval {percent(line['low'])} to {percent(line['high'])}"
    return f"{event} within {when}: {percent(line['risk'])} ({interval})"


# --- caveats ---


def caveats(result: StudyResult) -> list[str]:
    """What to keep in mind, the general first."""
    facts, K = result.facts, result.clusters.n_subtypes
    said = ["These are groups found in this table. Whether they hold elsewhere needs other patients."]
    if K > 1:
        said.append(
            "Differences are described on all patients, but called tested only where they hold among patients held "
            "back, each placed without the column in question."
        )
    if not result.survival.empty:
        said.append("Outcomes are not adjusted for treatment, age or anything else, and do not show a cause.")
    if facts["n_outliers"]:
        said.append(f"{counted(facts['n_outliers'], 'patient')} belong to clusters too small to be called subtypes.")
    if 0 < facts["n_references"] < FEW_REFERENCES:
        least = number(1 / (facts["n_references"] + 1), 2)
        said.append(f"With {facts['n_references']} comparison tables the smallest p-value possible is {least}.")
    if facts["level"] > USUAL_LEVEL:
        said.append(f"The tests were run at a level of {percent(facts['level'])}, more lenient than the usual 5%.")
    if facts["n_refits"] < FEW_REFITS:
        said.append(f"Only {facts['n_refits']} refits stand behind the consensus; 30 are usual.")
    if K > 1 and result.subtypes["size"].min() < FEW_ROWS:
        said.append(f"The smallest subtype has {result.subtypes['size'].min()} patients: its figures are rough.")
    said += _about_gaps(result)
    if result.facts["stopped"] == "max_epochs":
        said.append("Training ended at its limit of passes before it settled; a longer run may shift the map a little.")
    return said + [shown(note, 300) for note in facts["notes"]]


def _about_gaps(result: StudyResult) -> list[str]:
    said, missing = [], result.missingness
    uneven = missing.loc[missing["q"] <= 0.05, "column"].nunique() if len(missing) else 0
    if uneven:
        verb = "is" if uneven == 1 else "are"
        said.append(
            f"{counted(uneven, 'column')} {verb} missing more often in some subtypes than in others: who was measured "
            "may be part of what separates them."
        )
    used = result.columns[result.columns["used"].astype(bool)]
    sparse = int((used["gap_share"] > MANY_GAPS).sum())
    if sparse:
        verb = "is" if sparse == 1 else "are"
        said.append(f"{counted(sparse, 'column')} {verb} missing in more than {percent(MANY_GAPS)} of patients.")
    return said
