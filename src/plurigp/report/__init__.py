"""The report of a study: one HTML page that a clinician reads without us in the room."""

from plurigp.report.browser import find_browser, print_pdf, require_browser, write_pictures
from plurigp.report.page import render_report, report_figures, write_report
from plurigp.report.tables import page_tables

__all__ = [
    "find_browser",
    "page_tables",
    "print_pdf",
    "render_report",
    "report_figures",
    "require_browser",
    "write_pictures",
    "write_report",
]
