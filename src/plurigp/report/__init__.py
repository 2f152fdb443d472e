"""The report of a study: one HTML page for clinicians, its figures as files, and the same as PDF."""

from plurigp.report.browser import find_browser, print_pdf, write_pictures
from plurigp.report.page import render_report, report_figures, write_report

__all__ = ["find_browser", "print_pdf", "render_report", "report_figures", "write_pictures", "write_report"]
