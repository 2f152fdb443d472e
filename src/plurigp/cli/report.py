"""`plurigp report`: the page of a finished study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plurigp.cli.errors import CommandError, about
from plurigp.cli.explore import EXPLORER
from plurigp.cli.files import check_file
from plurigp.cli.options import Decimal, Force, Missing, Sep, delta_ranges, read_input
from plurigp.cli.text import say

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.estimator.sensitivity import Sensitivity
    from plurigp.study import StudyResult

REPORT, FIGURES = "report.html", "figures"


def report(  # long: its options
    folder: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="A folder written by `plurigp study`.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the page.", show_default="RUN_FOLDER/report.html"),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also print to PDF; needs Chromium, Chrome or Edge.")] = False,
    include_rows: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="The studied table: show row numbers and its columns on the map."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="The studied table, for --delta; none of its cells is shown."),
    ] = None,
    delta: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN[:LEVEL]=AMOUNT",
            help="With --table: also say what follows if hidden values differ by this; repeatable, 0 is added.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Write the report of a finished study again.

    One HTML file that works offline: the findings in plain words, the map, what distinguishes the subtypes, whether
    they are groups, and the methods. It holds no row numbers and no cells unless --include-rows names the table. With
    --delta it shows the range of conclusions about a column's subtype differences if its gaps are not at random.

    \b
    Example:
      plurigp report run --title "Heart failure, 2015 to 2020" --pdf
      plurigp report run --table patients.csv --delta albumin=-0.5 --delta albumin=0.5
    """
    from plurigp.report import find_browser, print_pdf
    from plurigp.study import load_study

    browser = find_browser() if pdf else None
    if pdf and browser is None:
        raise CommandError(
            "--pdf needs Chromium, Chrome or Edge, and none was found; install one, set PLURIGP_BROWSER to its path, "
            "or open report.html in any browser and print it to PDF."
        )
    result = load_study(folder)
    path = folder / REPORT if out is None else out
    check_file(path, force or out is None)
    found = _ranges(result, table, delta, (sep, decimal, missing))
    with about(path if include_rows is None else include_rows):
        rows = None if include_rows is None else read_input(include_rows, sep, decimal, missing)
        written = write_page(result, path, folder, title, rows, found)
    if browser is not None:
        written.append(f"wrote {print_pdf(browser, path, path.with_suffix('.pdf'))}")
    for line in written:
        say(line)


def _ranges(
    result: "StudyResult", table: Path | None, delta: list[str] | None, reading: tuple[Any, Any, Any]
) -> "Sensitivity | None":
    """The subtypes' differences over every combination of the deltas, no delta among them."""
    from plurigp.report import subtype_sensitivity

    if (table is None) != (not delta):
        raise CommandError("--delta and --table go together: name the studied table and amounts to move its gaps by.")
    if table is None:
        return None
    deltas = delta_ranges(delta, result.model.schema_.names)
    with about(table):
        return subtype_sensitivity(result, read_input(table, *reading), deltas)


def write_page(
    result: "StudyResult",
    path: Path,
    folder: Path,
    title: str | None = None,
    table: "pd.DataFrame | None" = None,
    sensitivity: "Sensitivity | None" = None,
) -> list[str]:
    """Write the page, the explorer beside it, and every figure as SVG and PNG where a browser is installed; lines that
    say what was written."""
    from plurigp.core.types import DataError
    from plurigp.report import find_browser, report_figures, write_pictures, write_report

    explorer, said = write_beside(result, path)
    write_report(result, path, title, table, explorer, sensitivity)
    lines, browser = [f"wrote {path}", said], find_browser()
    if browser is None:
        return lines
    try:
        pictures = write_pictures(browser, report_figures(result), folder / FIGURES)
    except DataError as error:
        return [*lines, f"the figures were not written as files: {error}"]
    return [*lines, f"wrote {len(pictures) // 2} figures as SVG and PNG to {folder / FIGURES}"]


def write_beside(result: "StudyResult", path: Path) -> tuple[str | None, str]:
    """The explorer beside the report: its name, for the link, and a line that says whether it was written."""
    from plurigp.core.types import DataError
    from plurigp.explore import write_explorer

    target = path.with_name(EXPLORER)
    try:
        return EXPLORER, f"wrote {write_explorer(result, target)}: place a patient, decode a point, compare"
    except DataError as error:
        return None, f"no explorer was written: {error}"
