"""The figures about subtypes or strata: sizes, number, valleys, consensus, characteristics, survival."""

from typing import Any

import numpy as np

from plurigp.report import theme
from plurigp.report.summary import confirmed
from plurigp.report.theme import Figure, axis, colour, colour_bar, named_axis, rounded, scatter, symbol
from plurigp.report.valley import valley_figure
from plurigp.report.words import Parts, compared_values, p_is, parts_of, percent, plot_text, signed, trait
from plurigp.study import StudyResult

BLOCKS = 200  # a larger consensus matrix is shown as means of blocks
MOST_TRAITS = 40
LINE_HEIGHT = 21
UNKNOWN_COLOUR = "#b9bec6"  # beneath a cell without a value


def subtype_figures(result: StudyResult) -> list[Figure | None]:
    """The figures of this module; None where the result has nothing to show."""
    made = [number_figure(result), survival_figure(result)]
    if result.clusters.n_strata > 1:
        made += [sizes_figure(result), valley_figure(result), consensus_figure(result), cdf_figure(result),
                 permuted_figure(result), characteristics_figure(result)]  # fmt: skip
    return made


def sizes_figure(result: StudyResult) -> Figure:
    """Patients per subtype."""
    facts, parts = result.facts, parts_of(result.facts)
    sizes = {int(k): int(n) for k, n in zip(result.subtypes["subtype"], result.subtypes["size"], strict=True)}
    if facts["n_outliers"]:
        sizes[0] = facts["n_outliers"]
    lines = [f"{n:,} ({percent(n / facts['n_rows'])})" for n in sizes.values()]
    bar = theme.bars(list(sizes.values()), lines, marker={"color": [colour(k) for k in sizes]}, textposition="auto")
    names = [parts.number(k) if k else "Outliers" for k in sizes]
    layout = theme.named_rows(names, axis("patients", rangemode="tozero"))
    return Figure("sizes", f"Number of patients in each {parts.one}.", [bar], layout, 100 + 44 * len(names))


def number_figure(result: StudyResult) -> Figure | None:
    """Evidence by number of clusters, over that of one."""
    table = result.clusterings
    if table.empty:
        return None
    chosen = table["chosen"].astype(bool)
    marker = {"size": np.where(chosen, 15, 8).tolist(), "opacity": 1,
              "color": np.where(chosen, theme.COLOURS[4], theme.COLOURS[0]).tolist(),
              "symbol": np.where(chosen, "diamond", "circle").tolist()}  # fmt: skip
    line = scatter(table["n_clusters"], table["gain"], "%{x} clusters: %{y:.3f}", "lines+markers", showlegend=False,
                   line={"color": theme.COLOURS[0]}, marker=marker)  # fmt: skip
    x, y = axis("number of clusters", dtick=1), axis("evidence over one cluster<br>(nats per patient)")
    return Figure("number", "Evidence for the clusters by their number.", [line], {"xaxis": x, "yaxis": y}, 320)


def consensus_figure(result: StudyResult) -> Figure:
    """How often two patients share a cluster, ordered by subtype; large tables as means of blocks."""
    matrix, edges = block_means(result.consensus.matrix, BLOCKS)
    subtype = result.clusters.subtype[result.consensus.rows]
    n = len(subtype)
    middle = rounded((edges[:-1] + edges[1:]) / 2 / n)
    heat = {
        "type": "heatmap", "z": [rounded(line, 2) for line in matrix], "x": middle, "y": middle, "zmin": 0, "zmax": 1,
        "colorscale": theme.SEQUENTIAL, "hovertemplate": "same cluster in %{z:.0%} of refits<extra></extra>",
        "colorbar": colour_bar("share of refits in the same cluster", tickformat=".0%"),
    }  # fmt: skip
    groups = list(dict.fromkeys(subtype.tolist()))
    starts = np.array([int(np.argmax(subtype == k)) for k in groups] + [n]) / n
    ticks = {"tickvals": rounded((starts[:-1] + starts[1:]) / 2), "showgrid": False, "zeroline": False,
             "automargin": True, "ticks": "", "constrain": "domain"}  # fmt: skip
    shapes = [
        {"type": "line", "line": {"color": theme.COLOURS[4], "width": 1.5}, **ends}
        for at in starts[1:-1].tolist()
        for ends in ({"x0": at, "x1": at, "y0": 0, "y1": 1}, {"x0": 0, "x1": 1, "y0": at, "y1": at})
    ]
    names = [parts_of(result.facts).number(k).lower() if k else "outliers" for k in groups]
    layout = {
        "xaxis": ticks | {"range": [0, 1], "ticktext": [str(k) if k else "–" for k in groups]},
        "yaxis": ticks | {"range": [1, 0], "ticktext": names, "scaleanchor": "x"},
        "shapes": shapes,
        "margin": {"l": 60, "r": 8, "t": 8, "b": 90},
        "plot_bgcolor": UNKNOWN_COLOUR,
    }
    return Figure("consensus", "How often pairs of patients share a cluster in refits.", [heat], layout, 600)


def block_means(matrix: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` blocks a side and their edges [blocks + 1]; a block without a known pair stays NaN."""
    n = len(matrix)
    edges = np.linspace(0, n, min(n, most) + 1).astype(int)
    known = np.isfinite(matrix)
    sums, counts = (
        np.add.reduceat(np.add.reduceat(values, edges[:-1], axis=0), edges[:-1], axis=1)
        for values in (np.where(known, matrix, 0.0), known.astype(float))
    )
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0), edges


def cdf_figure(result: StudyResult) -> Figure:
    """The cumulative distribution of the consensus over pairs of patients."""
    hover = "%{y:.0%} of pairs share a cluster in at most %{x:.0%} of refits"
    line = scatter(result.consensus.cdf_at, result.consensus.cdf, hover, "lines", showlegend=False,
                   line={"color": theme.COLOURS[0], "width": 2.5, "shape": "hv"})  # fmt: skip
    x = axis("consensus (share of refits in the same cluster)", range=[0, 1], tickformat=".0%")
    y = axis("cumulative share of pairs", range=[0, 1.02], tickformat=".0%")
    alt = "Cumulative distribution of the consensus over pairs of patients."
    return Figure("cdf", alt, [line], {"xaxis": x, "yaxis": y}, 300)


def permuted_figure(result: StudyResult) -> Figure | None:
    """The consensus index and threshold of each subtype over the range with permuted labels."""
    table, draws, word = result.subtypes, result.nulls.permutation, parts_of(result.facts)
    if not len(draws):
        return None
    subtypes, places = table["subtype"].astype(int), np.arange(len(table))
    gap = np.full(len(table), np.nan)
    ends = np.stack([draws.min(0), draws.max(0), gap], 1).ravel()
    texts = [
        f"<b>{word.number(k)}</b><br>consensus index {v:.2f}<br>{p_is(p)}"
        for k, v, p in zip(subtypes, table["index"], table["permutation_p"], strict=True)
    ]
    traces = [
        scatter(ends, np.stack([places, places, gap], 1), mode="lines", name="permuted labels", opacity=0.6,
                line={"color": theme.GREY, "width": 10}),
        scatter(table["permutation_threshold"], places, "threshold %{x:.2f}", name="threshold",
                marker={"symbol": "line-ns-open", "size": 22, "color": theme.COLOURS[4], "line": {"width": 3}}),
        scatter(table["index"], places, texts, name="this table",
                marker={"size": 14, "color": [colour(k) for k in subtypes], "symbol": [symbol(k) for k in subtypes]}),
    ]  # fmt: skip
    x = axis("consensus index", range=[0, 1.04], fixedrange=True)
    layout = {"xaxis": x, "yaxis": named_axis([word.number(k) for k in subtypes])}
    alt = f"The consensus index of each {word.one} against the range of permuted labels."
    return Figure("permuted", alt, traces, layout, 150 + 46 * len(table))


def characteristics_figure(result: StudyResult) -> Figure | None:
    """Standardised differences of the strongest columns by subtype; a dot marks those confirmed on held-back rows."""
    table = confirmed(result.characteristics)
    table = table[np.isfinite(table["effect"])]
    if table.empty:
        return None
    strength = table["effect"].abs().groupby([table[key] for key in ("column", "level", "kind")], sort=False).max()
    keys = strength.sort_values(ascending=False, kind="stable").index[:MOST_TRAITS].to_list()
    subtypes = result.subtypes["subtype"].to_list()
    word, alpha = parts_of(result.facts), result.facts["level"]
    cells = {(r["column"], r["level"], r["subtype"]): r for r in table.to_dict("records")}
    grid = [[cells.get((column, level, k)) for k in subtypes] for column, level, _ in keys]
    heat = {
        "type": "heatmap", "x": list(range(len(subtypes))), "y": list(range(len(keys))), "xgap": 2, "ygap": 2,
        "z": [rounded([cell["effect"] if cell else np.nan for cell in line], 3) for line in grid],
        "zmin": -1.5, "zmax": 1.5, "colorscale": theme.DIVERGING,
        "text": [[signed(r["effect"], 1) + "•" * (r["tested_q"] <= alpha) if r else "" for r in line] for line in grid],
        "texttemplate": "%{text}",
        "customdata": [[_comparison(cell, word) if cell else "" for cell in line] for line in grid],
        "hovertemplate": "%{customdata}<extra></extra>",
        "colorbar": colour_bar("standardised difference from the other patients", tickvals=[-1.5, -0.8, 0, 0.8, 1.5]),
    }  # fmt: skip
    layout = {
        "xaxis": named_axis([word.number(k) for k in subtypes], side="top", range=[-0.5, len(subtypes) - 0.5]),
        "yaxis": named_axis([plot_text(trait(*key), 38) for key in keys]),
        "margin": {"l": 60, "r": 8, "t": 40, "b": 70},
    }
    alt = f"How each {word.one} differs from the other patients, column by column."
    return Figure("characteristics", alt, [heat], layout, 130 + LINE_HEIGHT * len(keys))


def _comparison(cell: dict[str, Any], word: Parts) -> str:
    inside, outside = compared_values(cell)
    tested = f"held-back patients: {p_is(cell['tested_q'], 'q')}" if np.isfinite(cell["tested_q"]) else "not confirmed"
    name = plot_text(trait(cell["column"], cell["level"], cell["kind"]), 100)
    return f"<b>{name}</b><br>{word.number(cell['subtype'])}: {inside}, others: {outside}<br>{tested}"


def survival_figure(result: StudyResult) -> Figure | None:
    """Kaplan–Meier curves with their intervals; all patients as a thin grey line."""
    if result.survival.empty:
        return None
    traces = []
    for subtype, own in result.survival.groupby(result.survival["subtype"].astype(int), sort=True):
        k = int(str(subtype))
        name = parts_of(result.facts).number(k) if k else "all patients"
        if k:
            traces.append(theme.band(own["time"], own["low"], own["high"], f"{colour(k)}21", legendgroup=name))
        style = {"color": colour(k), "dash": theme.dash(k), "width": 2.4 if k else 1.2}
        hover = f"{name}: %{{y:.0%}} at %{{x}}"
        traces.append(scatter(own["time"], own["survival"], hover, "lines", name=name, legendgroup=name, line=style))
    x = axis(plot_text(result.facts["time_column"]), rangemode="tozero")
    y = axis(f"share without “{plot_text(result.facts['event_column'], 40)}”", tickformat=".0%", range=[0, 1.02])
    alt = "Share of patients without the outcome over time."
    return Figure("survival", alt, traces, {"xaxis": x, "yaxis": y}, 440)
