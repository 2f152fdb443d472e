"""`plurigp compare-studies`: does the group structure of one study transfer to another's patients?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plurigp.cli.errors import about
from plurigp.cli.options import Decimal, Json, Missing, Sep, TableIn, read_input
from plurigp.cli.text import say, say_json, say_table

if TYPE_CHECKING:
    from plurigp.study.findings.transfer import Transfer

FIGURES = ("group", "rows", "share", "certainty", "nearest", "overlap")


def compare_runs(
    first: Annotated[Path, typer.Argument(metavar="RUN1", help="A folder written by `plurigp study`.")],
    second: Annotated[Path, typer.Argument(metavar="RUN2", help="Another, with the same columns and schema.")],
    table: TableIn,
    first_table: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="The table of RUN1, to look the other way as well.")
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Ask whether one study's groups are found in another cohort.

    Assigns the patients of RUN2, whose TABLE must be given since a study keeps no cells, by the map and groups of
    RUN1, and compares with the groups that RUN2 found itself: adjusted Rand index with its interval, and for every
    group its size, certainty, nearest group and overlap.

    \b
    Example:
      plurigp compare-studies hospital_a hospital_b patients_b.csv
    """
    from plurigp.report.transfer import check_same_schema, compare_studies
    from plurigp.study import load_study

    studies = load_study(first), load_study(second)
    check_same_schema(*studies)
    with about(table):
        frame = read_input(table, sep, decimal, missing)
        other = None if first_table is None else read_input(first_table, sep, decimal, missing)
        found = compare_studies(*studies, frame, other)
    directions = {"second by first": found.forward} | ({"first by second": found.backward} if found.backward else {})
    if json:
        say_json({name: transfer_facts(one) for name, one in directions.items()})
        return
    say(found.in_words())
    for name, one in directions.items():
        say("")
        of, by = name.split(" by ")
        say(f"patients of the {of} study in groups of the {by}; {one.outliers_first} of {one.n_rows} are in none")
        say_table((*FIGURES, "verdict"), transfer_lines(one), right=FIGURES)


def transfer_lines(found: "Transfer") -> list[tuple[str, ...]]:
    """One line per group."""
    return [
        (str(line["group"]), str(line["size"]), f"{line['share']:.1%}", f"{line['certainty']:.2f}",
         str(line["nearest"] or "–"), f"{line['jaccard']:.2f}", line["verdict"])
        for line in found.groups.to_dict("records")
    ]  # fmt: skip


def transfer_facts(found: "Transfer") -> dict[str, Any]:
    """For JSON."""
    facts = {"rows": found.n_rows, "rand": found.rand, "low": found.low, "high": found.high}
    outliers = {"outliers_first": found.outliers_first, "outliers_second": found.outliers_second}
    return {**facts, **outliers, "groups": found.groups.to_dict("records")}
