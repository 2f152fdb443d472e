"""Two studies of tables with one schema: does the group structure of one transfer to the other's patients?"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from plurigp.core.text import at, listing, show
from plurigp.core.types import DataError
from plurigp.data import to_frame
from plurigp.report import words
from plurigp.report.map import studied_cells
from plurigp.study import StudyResult
from plurigp.study.findings.transfer import Transfer, measure_transfer

CONTINUUM = (
    "The {} study found a continuum: its groups are strata that divide it for description, and another cohort's need "
    "not lie at the same places."
)


@dataclass(frozen=True, eq=False, repr=False)
class StudyComparison:
    """The second study's patients placed by the first study, and the other way round where its table was given."""

    forward: Transfer
    backward: Transfer | None
    shares: pd.DataFrame  # group, share in the first study, share of the second study's patients
    notes: tuple[str, ...] = ()  # what qualifies the finding

    def __repr__(self) -> str:
        return self.in_words()

    def in_words(self) -> str:
        """The finding as a few sentences."""
        said = [_said("second", "first", self.forward)]
        if self.backward is not None:
            said.append(_said("first", "second", self.backward))
        return " ".join([*said, *self.notes])


def compare_studies(
    first: StudyResult, second: StudyResult, table: Any, first_table: Any = None, random_state: int = 0
) -> StudyComparison:
    """Assign the second study's rows by the first study and compare with the second's own groups.

    table: the table that the second study studied; a study keeps no cells. first_table: that of the first, to look the
    other way too. Both studies must use the same columns as the same kinds.
    """
    check_same_schema(first, second)
    forward = _transfer(first, second, table, random_state)
    backward = None if first_table is None else _transfer(second, first, first_table, random_state)
    here = first.subtypes.set_index("subtype")["share"]
    shares = pd.DataFrame({"group": here.index, "share_first": here.to_numpy()})
    shares["share_second"] = shares["group"].map(forward.groups.set_index("group")["share"])
    continua = [name for name, study in {"first": first, "second": second}.items() if words.is_continuum(study.facts)]
    return StudyComparison(forward, backward, shares, tuple(CONTINUUM.format(name) for name in continua))


def check_same_schema(first: StudyResult, second: StudyResult) -> None:
    """Refuse studies whose used columns differ, in name or kind."""
    kinds = [{c.name: c.kind for c in study.model.schema_.used} for study in (first, second)]
    missing = sorted(set(kinds[0]) ^ set(kinds[1]))
    if missing:
        named = listing(show(name, 80) for name in missing)
        raise DataError(f"only one of the studies uses {named}; run both with the same columns and schema.")
    for name, kind in kinds[0].items():
        if kinds[1][name] != kind:
            raise DataError(
                f"{at(name)}: is {kind} in one study and {kinds[1][name]} in the other; give both one schema."
            )


def _transfer(by: StudyResult, of: StudyResult, table: Any, seed: int) -> Transfer:
    frame = to_frame(table)
    studied_cells(of, frame)
    placed = by.assign(by.model.schema_.matching(frame))
    return measure_transfer(
        placed["subtype"].to_numpy(int), placed.filter(regex=r"^p_\d+$").to_numpy(float), of.clusters.subtype, seed
    )


def _said(rows: str, by: str, found: Transfer) -> str:
    groups = found.groups["verdict"].value_counts()
    kept, in_part, n = int(groups.get("transfers", 0)), int(groups.get("transfers in part", 0)), len(found.groups)
    further = f", {in_part} in part," if in_part else ""
    return (
        f"Of the {by} study's {words.counted(n, 'group')}, {kept} transfer{'s' if kept == 1 else ''}{further} to the "
        f"{rows} study's {found.n_rows:,} patients: adjusted Rand index {found.rand:.2f} "
        f"({found.low:.2f} to {found.high:.2f}) with that study's own groups."
    )
