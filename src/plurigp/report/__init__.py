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

What the report says of a column if its gaps are not at random, over a range of deltas, from the table that was studied:

>>> from plurigp.report import subtype_sensitivity
>>> table = plurigp.read_table("patients.csv")
>>> if result.clusters.n_strata > 1:
...     found = subtype_sensitivity(result, table, {"lab_01": [-0.5, 0.0, 0.5]}, n_draws=2)
...     _ = write_report(result, "report.html", sensitivity=found)

Its figures as files:

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
from plurigp.report.sensitivity import subtype_sensitivity

__all__ = [
    "find_browser",
    "print_pdf",
    "render_report",
    "report_figures",
    "subtype_sensitivity",
    "write_pictures",
    "write_report",
]
