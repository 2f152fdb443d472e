"""The figure of the valleys: unseen patients along the way from each stratum to the one it is least apart from."""

from typing import Any

import numpy as np

from plurigp.report.theme import GREY, Figure, axis, colour, rounded
from plurigp.report.words import Parts, number, p_is, parts_of, percent
from plurigp.study import StudyResult
from plurigp.study.findings.valley import HISTOGRAM

PANEL, ABOVE, EDGE = 130, 62, 24  # pixels: a panel, the space for its names and the next title, top and bottom
MIDDLES = (HISTOGRAM[:-1] + HISTOGRAM[1:]) / 2


def valley_figure(result: StudyResult) -> Figure | None:
    """One panel for every two strata of which one is the nearest of the other."""
    pairs, word = nearest_pairs(result), parts_of(result.facts)
    if not pairs:
        return None
    n, height = len(pairs), EDGE + len(pairs) * (PANEL + ABOVE)
    inside = height - EDGE
    traces, layout = [], {"margin": {"l": 60, "r": 16, "t": 0, "b": EDGE}, "bargap": 0.06, "showlegend": False}
    shapes, titles = [], []
    for place, (first, second) in enumerate(pairs):
        tag = "" if place == 0 else str(place + 1)
        bottom = 1 - ((place + 1) * (PANEL + ABOVE) - ABOVE / 3) / inside
        top = bottom + PANEL / inside
        traces.append(_bars(result, first, second, word) | {"xaxis": f"x{tag}", "yaxis": f"y{tag}"})
        layout[f"xaxis{tag}"] = {
            "anchor": f"y{tag}", "range": [-1, 2], "tickvals": [0, 1], "zeroline": False, "fixedrange": True,
            "ticktext": [word.number(first), word.number(second)], "showgrid": False,
        }  # fmt: skip
        layout[f"yaxis{tag}"] = axis("patients", domain=[bottom, top], nticks=4, rangemode="tozero", fixedrange=True)
        shapes += [
            {"type": "line", "xref": f"x{tag}", "yref": f"y{tag} domain", "x0": at, "x1": at, "y0": 0, "y1": 1,
             "line": {"color": GREY, "width": 1.5, "dash": "dash"}}
            for at in (0, 1)
        ]  # fmt: skip
        titles.append({"text": _title(result, first, second, word), "xref": "paper", "x": 0, "xanchor": "left",
                       "yref": "paper", "y": top, "yanchor": "bottom", "align": "left",
                       "showarrow": False})  # fmt: skip
    alt = f"Patients by their place between each {word.one} and its nearest, of {n} {'pair' if n == 1 else 'pairs'}."
    return Figure("valley", alt, traces, layout | {"shapes": shapes, "annotations": titles}, height)


def nearest_pairs(result: StudyResult) -> list[tuple[int, int]]:
    """Every stratum with its nearest one, the smaller number first, each pair once."""
    if result.clusters.n_strata < 2:
        return []
    lines = zip(result.subtypes["subtype"].astype(int), result.subtypes["nearest"].astype(int), strict=True)
    return sorted({(min(pair), max(pair)) for pair in lines})


def unseen_between(result: StudyResult, first: int, second: int) -> np.ndarray:
    """Patients by place [H], 0 at the first stratum and 1 at the second: each is unseen by half of the half maps."""
    return result.valleys.histogram[first - 1, second - 1] / (result.facts["n_refits"] / 2)


def _bars(result: StudyResult, first: int, second: int, word: Parts) -> dict[str, Any]:
    counts = unseen_between(result, first, second)
    nearer = [first if at < 0.5 else second for at in MIDDLES]
    many = ["patient" if n == 1 else "patients" for n in counts]
    texts = [
        f"{number(n, 2)} {patients}, nearer to {word.number(own).lower()}"
        for n, patients, own in zip(counts, many, nearer, strict=True)
    ]
    return {"type": "bar", "x": rounded(MIDDLES), "y": rounded(counts), "text": texts, "hoverinfo": "text",
            "textposition": "none", "marker": {"color": [colour(own) for own in nearer]}}  # fmt: skip


def _title(result: StudyResult, first: int, second: int, word: Parts) -> str:
    table = result.separations
    line = table[(table["subtype"] == first) & (table["other"] == second)].iloc[0]
    found = "a valley" if line["apart"] else "no clear valley"
    pair = f"<b>{word.numbers([str(first), str(second)])}: {found}</b>"
    return f"{pair}<br>{percent(line['depth'])} as dense between, {p_is(line['p'])}"
