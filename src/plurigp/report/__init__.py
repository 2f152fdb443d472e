"""The report of a study: one HTML page that a clinician reads without us in the room."""

from plurigp.report.browser import find, print_pdf, search, write_pictures
from plurigp.report.page import render, report_figures, write_report

__all__ = ["find", "print_pdf", "render", "report_figures", "search", "write_pictures", "write_report"]
