"""The figures about subtypes or strata: sizes, number, consensus, both nulls, what distinguishes them, survival."""

from typing import Any

import numpy as np
import pandas as pd

from plurigp.report.summary import confirmed
from plurigp.report.theme import (
    BELOW,
    COLOURS,
    DIVERGING,
    GREY,
    SEQUENTIAL,
    Figure,
    axis,
    colour,
    dash,
    named_axis,
    rounded,
    symbol,
)
from plurigp.report.words import Parts, drawn, levels, p_is, parts_of, percent, signed, trait
from plurigp.study import StudyResult

BLOCKS = 200  # a larger consensus matrix is shown as means of blocks
MOST_TRAITS = 40
LINE_HEIGHT = 21
UNKNOWN = "#b9bec6"  # beneath a cell without a value


def sizes_figure(result: StudyResult) -> Figure:
    """Patients per subtype."""
    table = result.subtypes
    parts = parts_of(result.facts)
    names = [parts.number(k) for k in table["subtype"]]
    counts, colours = table["size"].to_list(), [colour(int(k)) for k in table["subtype"]]
    if result.facts["n_outliers"]:
        names, counts, colours = [*names, "Outliers"], [*counts, result.facts["n_outliers"]], [*colours, GREY]
    total = result.facts["n_rows"]
    bar = {
        "type": "bar",
        "orientation": "h",
        "x": [int(n) for n in counts],
        "y": list(range(len(names))),
        "marker": {"color": colours},
        "text": [f"{n:,} ({percent(n / total)})" for n in counts],
        "textposition": "auto",
        "hoverinfo": "text",
    }
    layout = {
        "xaxis": axis("patients", rangemode="tozero", fixedrange=True),
        "yaxis": named_axis(names),
        "margin": {"l": 60, "r": 24, "t": 8, "b": 48},
    }
    return Figure("sizes", f"Number of patients in each {parts.one}.", [bar], layout, 100 + 44 * len(names))


def number_figure(result: StudyResult) -> Figure | None:
    """Stability by number of subtypes, beside structureless tables."""
    table = result.clusterings
    if table.empty:
        return None
    K = table["n_clusters"].to_list()
    traces: list[dict[str, Any]] = []
    if table["reference_mean"].notna().any():
        mean, sd = table["reference_mean"], table["reference_sd"].fillna(0)
        band = rounded(pd.concat([mean + sd, (mean - sd)[::-1]]))
        traces = [
            {"type": "scatter", "x": K + K[::-1], "y": band, "fill": "toself", "fillcolor": "rgba(138,143,152,0.25)",
             "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, "mode": "lines"},
            {"type": "scatter", "mode": "lines+markers", "x": K, "y": rounded(mean), "name": "structureless tables",
             "line": {"color": GREY, "dash": "dash"}, "marker": {"symbol": "square", "color": GREY},
             "hovertemplate": "%{x} groups, structureless: %{y:.2f}<extra></extra>"},
        ]  # fmt: skip
    chosen = table["chosen"].astype(bool).to_list()
    traces.append(
        {"type": "scatter", "mode": "lines+markers", "x": K, "y": rounded(table["stability"]), "name": "this table",
         "line": {"color": COLOURS[0]}, "hovertemplate": "%{x} groups, this table: %{y:.2f}<extra></extra>",
         "marker": {"size": [15 if c else 8 for c in chosen], "opacity": 1,
                    "color": [COLOURS[4] if c else COLOURS[0] for c in chosen],
                    "symbol": ["diamond" if c else "circle" for c in chosen]}}
    )  # fmt: skip
    layout = {
        "xaxis": axis("number of groups", dtick=1),
        "yaxis": axis("agreement between halves", range=[0, 1.05], tickformat=".0%"),
    }
    return Figure("number", "Stability of the grouping for each number of groups.", traces, layout)


def consensus_figure(result: StudyResult) -> Figure:
    """How often two patients are grouped together, ordered by subtype; large tables as means of blocks."""
    matrix, edges = block_means(result.consensus.matrix, BLOCKS)
    subtype = result.clusters.subtype[result.consensus.rows]
    n = len(subtype)
    middle = (edges[:-1] + edges[1:]) / 2 / n
    cells = [[None if not np.isfinite(v) else round(float(v), 2) for v in line] for line in matrix]
    heat = {
        "type": "heatmap", "z": cells, "x": rounded(middle), "y": rounded(middle), "zmin": 0, "zmax": 1,
        "colorscale": SEQUENTIAL, "hovertemplate": "together in %{z:.0%} of refits<extra></extra>",
        "colorbar": BELOW | {"tickformat": ".0%", "title": {"text": "grouped together", "side": "top"}},
    }  # fmt: skip
    groups = list(dict.fromkeys(subtype.tolist()))
    starts = np.array([int(np.argmax(subtype == k)) for k in groups] + [n]) / n
    ticks = {"tickvals": rounded((starts[:-1] + starts[1:]) / 2), "showgrid": False, "zeroline": False,
             "automargin": True, "ticks": ""}  # fmt: skip
    shapes = [
        {"type": "line", "line": {"color": COLOURS[4], "width": 1.5}, **ends}
        for at in starts[1:-1].tolist()
        for ends in ({"x0": at, "x1": at, "y0": 0, "y1": 1}, {"x0": 0, "x1": 1, "y0": at, "y1": at})
    ]
    names = [parts_of(result.facts).number(k).lower() if k else "outliers" for k in groups]
    layout = {
        "xaxis": ticks | {"range": [0, 1], "ticktext": [str(k) if k else "–" for k in groups], "constrain": "domain"},
        "yaxis": ticks | {"range": [1, 0], "ticktext": names, "scaleanchor": "x", "constrain": "domain"},
        "shapes": shapes,
        "margin": {"l": 60, "r": 8, "t": 8, "b": 90},
        "plot_bgcolor": UNKNOWN,
    }
    return Figure("consensus", "How often pairs of patients are grouped together in refits.", [heat], layout, 600)


def block_means(matrix: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` blocks a side and their edges [blocks + 1]; a block without a known pair stays NaN."""
    n = len(matrix)
    edges = np.linspace(0, n, min(n, most) + 1).astype(int)
    known = np.isfinite(matrix)
    sums = _by_block(np.where(known, matrix, 0.0), edges)
    counts = _by_block(known.astype(float), edges)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0), edges


def _by_block(matrix: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.add.reduceat(np.add.reduceat(matrix, edges[:-1], axis=0), edges[:-1], axis=1)


def cdf_figure(result: StudyResult) -> Figure:
    """The share of pairs of patients by how often they were put together; flat between the ends is clear-cut."""
    grid, share = result.consensus.cdf_at, result.consensus.cdf
    line = {
        "type": "scatter", "mode": "lines", "x": rounded(grid), "y": rounded(share), "showlegend": False,
        "line": {"color": COLOURS[0], "width": 2.5, "shape": "hv"},
        "hovertemplate": "%{y:.0%} of pairs: together in at most %{x:.0%} of refits<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": axis("grouped together in at most this share of refits", range=[0, 1], tickformat=".0%"),
        "yaxis": axis("share of pairs of patients", range=[0, 1.02], tickformat=".0%"),
    }
    return Figure("cdf", "How many pairs of patients are grouped together how often.", [line], layout, 300)


def null_figures(result: StudyResult) -> list[Figure]:
    """Each subtype's index against shuffled labels, and its agreement against structureless tables."""
    table, nulls, word = result.subtypes, result.nulls, parts_of(result.facts)
    reference = np.repeat(nulls.reference_mean[:, None], len(table), axis=1)
    parts = (
        ("shuffled", "consensus index", nulls.permutation, "index", "permutation", "shuffled labels"),
        ("structureless", "agreement of halves", reference, "agreement", "reference", "structureless tables"),
    )
    return [
        _against(table, word, name, title, draws, value, null, what)
        for name, title, draws, value, null, what in parts
        if len(draws) and len(table) > 1
    ]


def _against(
    table: pd.DataFrame, word: Parts, name: str, title: str, draws: np.ndarray, value: str, null: str, what: str
) -> Figure:
    names = [word.number(k) for k in table["subtype"]]
    places = list(range(len(table)))
    limit = table[f"{null}_threshold"]
    spans = [(float(draws[:, k].min()), float(draws[:, k].max()), k) for k in places]
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "name": what, "hoverinfo": "skip",
         "x": [v for low, high, _ in spans for v in (*rounded([low, high]), None)],
         "y": [v for _, _, k in spans for v in (k, k, None)], "line": {"color": GREY, "width": 10}, "opacity": 0.6},
        {"type": "scatter", "mode": "markers", "name": "threshold", "x": rounded(limit), "y": places,
         "marker": {"symbol": "line-ns-open", "size": 22, "color": COLOURS[4], "line": {"width": 3}},
         "hovertemplate": "threshold %{x:.2f}<extra></extra>"},
        {"type": "scatter", "mode": "markers", "name": "this table", "x": rounded(table[value]), "y": places,
         "marker": {"size": 14, "color": [colour(int(k)) for k in table["subtype"]],
                    "symbol": [symbol(int(k)) for k in table["subtype"]]},
         "text": [f"<b>{word.number(k)}</b><br>{title} {v:.2f}<br>{p_is(p)}" for k, v, p in
                  zip(table["subtype"], table[value], table[f"{null}_p"], strict=True)], "hoverinfo": "text"},
    ]  # fmt: skip
    layout = {
        "xaxis": axis(title, range=[0, 1.04], fixedrange=True),
        "yaxis": named_axis(names),
    }
    alt = f"The {title} of each {word.one} against the range of {what}."
    return Figure(name, alt, traces, layout, 150 + 46 * len(table))


def characteristics_figure(result: StudyResult) -> Figure | None:
    """Standardised differences of the strongest columns by subtype; a dot marks those that hold when tested."""
    table = confirmed(result.characteristics)
    table = table[np.isfinite(table["effect"])]
    if table.empty:
        return None
    table = table.assign(trait=[trait(r["column"], r["level"], r["kind"]) for r in table.to_dict("records")])
    strength = table.groupby(["column", "level", "kind"], sort=False)["effect"].agg(lambda e: e.abs().max())
    keys = strength.sort_values(ascending=False, kind="stable").index[:MOST_TRAITS].to_list()
    subtypes = result.subtypes["subtype"].to_list()
    cells = {(r["column"], r["level"], r["subtype"]): r for r in table.to_dict("records")}
    lines = [[cells.get((*key[:2], k)) for k in subtypes] for key in keys]
    firm, word = result.facts["level"], parts_of(result.facts)
    heat = {
        "type": "heatmap",
        "z": [rounded([np.nan if c is None else c["effect"] for c in line], 3) for line in lines],
        "x": list(range(len(subtypes))),
        "y": list(range(len(keys))),
        "zmin": -1.5,
        "zmax": 1.5,
        "xgap": 2,
        "ygap": 2,
        "colorscale": DIVERGING,
        "text": [["" if c is None else _mark(c, firm) for c in line] for line in lines],
        "texttemplate": "%{text}",
        "customdata": [["" if c is None else _hover(c, word) for c in line] for line in lines],
        "hovertemplate": "%{customdata}<extra></extra>",
        "colorbar": BELOW
        | {"title": {"text": "← lower, higher →", "side": "top"}, "tickvals": [-1.5, -0.8, 0, 0.8, 1.5]},
    }
    layout = {
        "xaxis": named_axis([word.number(k) for k in subtypes], side="top", range=[-0.5, len(subtypes) - 0.5]),
        "yaxis": named_axis([drawn(trait(*key), 38) for key in keys]),
        "margin": {"l": 60, "r": 8, "t": 40, "b": 70},
    }
    alt = f"How each {word.one} differs from the other patients, column by column."
    return Figure("characteristics", alt, [heat], layout, 130 + LINE_HEIGHT * len(keys))


def _mark(cell: dict[str, Any], firm: float) -> str:
    return signed(cell["effect"], 1) + ("•" if cell["tested_q"] <= firm else "")


def _hover(cell: dict[str, Any], word: Parts) -> str:
    inside, outside = levels(cell["inside"], cell["outside"], cell["measure"])
    held = f"held-back patients: {p_is(cell['tested_q'], 'q')}" if np.isfinite(cell["tested_q"]) else "not confirmed"
    return (
        f"<b>{drawn(cell['trait'], 100)}</b><br>{word.number(cell['subtype'])}: {inside}, others: {outside}<br>{held}"
    )


def survival_figure(result: StudyResult) -> Figure | None:
    """Kaplan–Meier curves with their intervals; everybody as a thin grey line."""
    if result.survival.empty:
        return None
    traces: list[dict[str, Any]] = []
    for subtype in sorted(set(result.survival["subtype"].astype(int))):
        name = parts_of(result.facts).number(subtype) if subtype else "everybody"
        traces += _curve(name, subtype, result.survival[result.survival["subtype"] == subtype])
    layout = {
        "xaxis": axis(drawn(result.facts["time_column"]), rangemode="tozero"),
        "yaxis": axis(f"without “{drawn(result.facts['event_column'], 40)}”", tickformat=".0%", range=[0, 1.02]),
    }
    return Figure("survival", "Share of patients without the outcome over time.", traces, layout, 440)


def _curve(name: str, subtype: int, own: pd.DataFrame) -> list[dict[str, Any]]:
    """A subtype's curve over its interval; everybody (0) without one."""
    time = rounded(own["time"])
    style = {"color": colour(subtype), "dash": dash(subtype), "width": 2.4 if subtype else 1.2}
    hover = f"{name}: %{{y:.0%}} at %{{x}}<extra></extra>"
    line = {"type": "scatter", "mode": "lines", "x": time, "y": rounded(own["survival"]), "name": name,
            "legendgroup": name, "line": style, "hovertemplate": hover}  # fmt: skip
    if not subtype:
        return [line]
    band = {"type": "scatter", "mode": "lines", "x": time + time[::-1], "fill": "toself", "line": {"width": 0},
            "y": rounded(pd.concat([own["high"], own["low"][::-1]])), "fillcolor": _faint(colour(subtype)),
            "hoverinfo": "skip", "showlegend": False, "legendgroup": name}  # fmt: skip
    return [band, line]


def _faint(hex_colour: str) -> str:
    red, green, blue = (int(hex_colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.13)"
