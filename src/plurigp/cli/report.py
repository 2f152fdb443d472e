"""`plurigp report`: the page of a finished study, for people."""

from pathlib import Path
from typing import TYPE_CHECKING

from plurigp.cli.errors import about
from plurigp.cli.files import check_file
from plurigp.cli.text import say

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.study import StudyResult

REPORT, FIGURES = "report.html", "figures"


def run_report(folder: Path, out: Path | None, pdf: bool, rows: Path | None, title: str | None, force: bool) -> None:
    """Open the study, write the page with the table's rows where asked, and the same on paper."""
    from plurigp.data import read_table
    from plurigp.report import find, print_pdf
    from plurigp.study import load_study

    browser = find() if pdf else None
    result = load_study(folder)
    path = folder / REPORT if out is None else out
    check_file(path, force or out is None)
    with about(path if rows is None else rows):
        table = None if rows is None else read_table(rows)
        written = write_page(result, path, folder, title, table)
    if browser is not None:
        written.append(f"wrote {print_pdf(browser, path, path.with_suffix('.pdf'))}")
    for line in written:
        say(line)


def write_page(
    result: "StudyResult", path: Path, folder: Path, title: str | None = None, table: "pd.DataFrame | None" = None
) -> list[str]:
    """The page, and every figure as SVG and PNG where a browser is there to draw them; what was written."""
    from plurigp.core.types import DataError
    from plurigp.report import report_figures, search, write_pictures, write_report

    write_report(result, path, title, table)
    browser = search()
    if browser is None:
        return [f"wrote {path}"]
    try:
        pictures = write_pictures(browser, report_figures(result), folder / FIGURES)
    except DataError as error:
        return [f"wrote {path}", f"no pictures of the figures were written: {error}"]
    return [f"wrote {path}", f"wrote {len(pictures) // 2} figures as SVG and PNG to {folder / FIGURES}"]
