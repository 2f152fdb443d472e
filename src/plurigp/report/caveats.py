"""What to keep in mind when reading a result, in plain words."""

from plurigp.report.words import counted, is_continuum, number, parts_of, percent, shown
from plurigp.study import StudyResult

USUAL_LEVEL = 0.05
FEW_REFITS, FEW_REFERENCES, FEW_ROWS, MANY_GAPS = 10, 19, 30, 0.3
FOUND_HERE = "These are groups found in this table. Whether they hold elsewhere needs other patients."


def caveats(result: StudyResult) -> list[str]:
    """What to keep in mind, the general first."""
    facts, K, word = result.facts, result.clusters.n_strata, parts_of(result.facts)
    said = _about_continuum(K) if is_continuum(facts) else [FOUND_HERE]
    if K > 1:
        said.append(
            "Differences are described on all patients, but called tested only where they hold among patients held "
            "back, each placed without the column in question."
        )
    if not result.survival.empty:
        said.append("Outcomes are not adjusted for treatment, age or anything else, and do not show a cause.")
    if facts["n_outliers"]:
        said.append(f"{counted(facts['n_outliers'], 'patient')} belong to clusters too small to be called {word.many}.")
    if 0 < facts["n_references"] < FEW_REFERENCES:
        least = number(1 / (facts["n_references"] + 1), 2)
        said.append(f"With {facts['n_references']} comparison tables the smallest p-value possible is {least}.")
    if facts["level"] > USUAL_LEVEL:
        said.append(f"The tests were run at a level of {percent(facts['level'])}, more lenient than the usual 5%.")
    if facts["n_refits"] < FEW_REFITS:
        said.append(f"Only {facts['n_refits']} refits stand behind the consensus; 30 are usual.")
    if K > 1 and result.subtypes["size"].min() < FEW_ROWS:
        said.append(f"The smallest {word.one} has {result.subtypes['size'].min()} patients: its figures are rough.")
    said += _about_gaps(result)
    if result.facts["stopped"] == "max_epochs":
        said.append("Training ended at its limit of passes before it settled; a longer run may shift the map a little.")
    return said + [shown(note, 300) for note in facts["notes"]]


def _about_continuum(n_strata: int) -> list[str]:
    unseen = (
        "That no subtypes were found does not rule them out: small groups, or groups that differ in what was not "
        "measured, may escape the test."
    )
    differ = (
        "The strata differ because the map was cut into them. Their differences describe who lies where on the "
        "continuum and are no evidence of separate groups."
    )
    return [unseen, differ] if n_strata > 1 else [unseen]


def _about_gaps(result: StudyResult) -> list[str]:
    said, missing, word = [], result.missingness, parts_of(result.facts)
    uneven = missing.loc[missing["q"] <= 0.05, "column"].nunique() if len(missing) else 0
    if uneven:
        verb = "is" if uneven == 1 else "are"
        said.append(
            f"{counted(uneven, 'column')} {verb} missing more often in some {word.many} than in others: who was "
            "measured may be part of what separates them."
        )
    used = result.columns[result.columns["used"].astype(bool)]
    sparse = int((used["gap_share"] > MANY_GAPS).sum())
    if sparse:
        verb = "is" if sparse == 1 else "are"
        said.append(f"{counted(sparse, 'column')} {verb} missing in more than {percent(MANY_GAPS)} of patients.")
    return said
