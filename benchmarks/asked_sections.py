"""The sections of docs/results.md about covariates, weights, views, and several rows per patient."""

import numpy as np

PARTS = {
    "batch": "Two sites with shifted labs and planted groups. Adjusted Rand indices of the site with what a row's "
    "neighbours on the map say of it and with two clusters of the map, which in some tables follow a group instead; of "
    "the planted groups with those found; coverage of 95 % intervals of the same row at the other site.",
    "survey": "A survey with unequal sampling: shares of groups in the population within their intervals. "
    "Log density of the repeated rows, nats per cell: a fit with whole weights less one with the rows repeated, full "
    "batches, and beside it what another seed changes. Copies of a row have draws of their own; with the same draws "
    "both fits are one run (tests/estimator/test_weights.py).",
    "views": "Ten informative columns among 500 of noise: adjusted Rand index with the planted groups.",
}


def adjusted(result):
    lines = []
    for part, about in PARTS.items():
        if part in result:
            lines += [f"**{part.capitalize()}.** {about}\n", *_by_figure(result[part]["runs"]), ""]
    return lines


def repeated(result):
    about = (
        f"{result['patients']} patients of several visits each, simulated; coverage of 95 % intervals of a patient's "
        "expected values, and their error beside that of the patient's own means.\n"
    )
    return [about, *_by_figure(result["runs"])]


def _by_figure(runs):
    """A line per figure: mean, lowest and highest over the tables."""
    lines = ["| | tables | mean | lowest | highest |", "|---|--:|--:|--:|--:|"]
    for name in (name for name, value in runs[0].items() if isinstance(value, int | float)):
        values = [run[name] for run in runs]
        lines.append(f"| {name} | {len(values)} | {np.mean(values):.3f} | {min(values):.3f} | {max(values):.3f} |")
    return lines
