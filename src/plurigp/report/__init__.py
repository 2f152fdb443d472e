"""The report of a study: one HTML page for clinicians, its figures as files, and the same as PDF.

Examples
--------
With the folder of a study, here the one of the first page of the reference:

>>> from pathlib import Path
>>> import plurigp
>>> from plurigp.report import find_browser, print_pdf, render_report, report_figures, write_pictures, write_report
>>> result = plurigp.load_study("run")
>>> page = write_report(result, "report.html", title="Eighty simulated patients")
>>> page.read_text(encoding="utf-8") == render_report(result, title="Eighty simulated patients")
True
>>> figures = report_figures(result)
>>> "map" in [figure.name for figure in figures]
True
>>> browser = find_browser()  # None where there is no Chromium, Chrome or Edge
>>> if browser:
...     _ = print_pdf(browser, page, Path("report.pdf"))
...     _ = write_pictures(browser, figures[:1], Path("figures"))
"""

from plurigp.report.browser import find_browser, print_pdf, write_pictures
from plurigp.report.page import render_report, report_figures, write_report

__all__ = ["find_browser", "print_pdf", "render_report", "report_figures", "write_pictures", "write_report"]
