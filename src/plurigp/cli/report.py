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
    """The page, and where a browser is there to draw them every figure as SVG in the run folder; what was written."""
    from plurigp.report import report_figures, search, write_report, write_svgs
    from plurigp.types import DataError

    write_report(result, path, title, table)
    browser = search()
    if browser is None:
        return [f"wrote {path}"]
    try:
        pictures = write_svgs(browser, report_figures(result), folder / FIGURES)
    except DataError as error:
        return [f"wrote {path}", f"no figures were written as SVG: {error}"]
    return [f"wrote {path}", f"wrote {len(pictures)} figures as SVG to {folder / FIGURES}"]
