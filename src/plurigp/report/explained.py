"""The latent dimensions explained: figures, a page without scripts, and the tables as files."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.files import whole_file, without_formulas
from plurigp.estimator.explaining import Explanation
from plurigp.report import theme, words
from plurigp.report.browser import find_browser, write_pictures
from plurigp.report.printed import STYLE
from plurigp.report.theme import Figure, axis, named_axis, rounded, scatter

MOST_COLUMNS = 40  # of the heat map
N_CURVES, CURVES_PER_LINE = 6, 3  # of one dimension's figure
MOST_LEVELS = 5  # curves of one column
LEAST_R2 = 0.02  # of a column that is named in a sentence
PAGE = "explanation.html"


def explanation_figures(explanation: Explanation) -> list[Figure]:
    """What the dimensions explain of the columns, and the curves of each dimension's first columns."""
    dimensions = explanation.dimensions["dimension"].tolist()
    return [deviance_figure(explanation), *(curves_figure(explanation, q) for q in dimensions)]


def deviance_figure(explanation: Explanation) -> Figure:
    """R² by column and dimension, the columns that are explained best first."""
    names = explanation.totals["column"].head(MOST_COLUMNS).tolist()
    dimensions = explanation.dimensions["dimension"].tolist()
    r2 = (
        explanation.parts.pivot(index="column", columns="dimension", values="r2").loc[names, dimensions].clip(lower=0.0)
    )
    heat = {
        "type": "heatmap", "x": list(range(len(dimensions))), "y": list(range(len(names))), "xgap": 2, "ygap": 2,
        "z": [rounded(line, 3) for line in r2.to_numpy()], "zmin": 0, "zmax": 1, "colorscale": theme.SEQUENTIAL,
        "text": [[f"{value:.2f}" if value >= 0.005 else "" for value in line] for line in r2.to_numpy()],
        "texttemplate": "%{text}", "hoverinfo": "skip",
        "colorbar": theme.colour_bar("explained share (R²)", tickformat=".0%"),
    }  # fmt: skip
    heads = [f"Dimension {q}" for q in dimensions]
    layout = {
        "xaxis": named_axis(heads, side="top", range=[-0.5, len(dimensions) - 0.5]),
        "yaxis": named_axis([words.plot_text(name, 38) for name in names]),
        "margin": {"l": 60, "r": 8, "t": 40, "b": 70},
    }
    alt = "Share of each column that each latent dimension explains."
    return Figure("deviance", alt, [heat], layout, 130 + 21 * len(names))


def curves_figure(explanation: Explanation, dimension: int) -> Figure:
    """Expected value, or probability of levels, of this dimension's first columns along it."""
    parts = explanation.parts
    names = parts.loc[(parts["dimension"] == dimension) & (parts["rank"] <= N_CURVES), "column"].tolist()
    curves = explanation.curves[explanation.curves["dimension"] == dimension]
    n_lines = max(1, -(-len(names) // CURVES_PER_LINE))
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"showlegend": False, "annotations": [], "margin": {"l": 60, "r": 16, "t": 44, "b": 52}}
    for place, name in enumerate(names):
        line, across = divmod(place, CURVES_PER_LINE)
        left, top = across / CURVES_PER_LINE, 1 - line / n_lines
        domains = [left, left + 0.27], [top - 0.68 / n_lines, top]
        number = "" if place == 0 else str(place + 1)
        below = "sds along the dimension" if place + CURVES_PER_LINE >= len(names) else ""
        layout[f"xaxis{number}"] = axis(below, domain=domains[0], anchor=f"y{number}")
        layout[f"yaxis{number}"] = axis("", domain=domains[1], anchor=f"x{number}", rangemode="normal")
        title = {"text": words.plot_text(name, 34), "x": left, "y": top, "xref": "paper", "yref": "paper"}
        layout["annotations"].append(title | {"showarrow": False, "yanchor": "bottom", "xanchor": "left"})
        traces += _curve_traces(curves[curves["column"] == name], {"xaxis": f"x{number}", "yaxis": f"y{number}"})
    alt = f"How the columns of dimension {dimension} change along it, with 90 % intervals."
    return Figure(f"dimension-{dimension}", alt, traces, layout, 80 + 240 * n_lines)


def _curve_traces(curves: pd.DataFrame, axes: dict[str, str]) -> list[dict[str, Any]]:
    """A band and a line per level, of many the ones that change most; levels are named where they are likeliest."""
    traces = []
    spans = curves.groupby("level", sort=False)["mean"].agg(lambda mean: mean.max() - mean.min())
    shown = curves[curves["level"].isin(spans.nlargest(MOST_LEVELS).index)]
    for k, (level, own) in enumerate(shown.groupby("level", sort=False), start=1):
        x, colour = own["position"], theme.colour(k)
        traces.append(theme.band(x, own["low"], own["high"], f"{colour}33", **axes))
        label = [words.plot_text(level, 18) if top else "" for top in own["mean"].rank(method="first") == len(own)]
        style = {"color": colour, "width": 2.2, "dash": theme.dash(k)}
        line = scatter(x, own["mean"], None, "lines+text", line=style, cliponaxis=False, **axes)
        side = ["top right" if at < 0 else "top left" for at in x]
        traces.append(line | {"text": label, "textposition": side, "textfont": {"color": colour, "size": 11}})
    return traces


# --- files ---


def write_explanation(explanation: Explanation, folder: Path) -> list[Path]:
    """The tables as CSV, the figures as SVG and PNG where a browser is installed, and a page with all of it."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "parts": explanation.parts,
        "totals": explanation.totals,
        "dimensions": explanation.dimensions.assign(columns=explanation.dimensions["columns"].map(", ".join)),
        "curves": explanation.curves,
    } | ({"views": explanation.views} if len(explanation.views) else {})
    paths = [folder / f"{name}.csv" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        _write(path, without_formulas(table).to_csv(index=False, lineterminator="\n"))
    browser, pictures = find_browser(), []
    if browser is not None:
        pictures = write_pictures(browser, explanation_figures(explanation), folder / "figures")
    _write(folder / PAGE, render_explanation(explanation, [path for path in pictures if path.suffix == ".svg"]))
    return [folder / PAGE, *paths, *pictures]


def render_explanation(explanation: Explanation, pictures: Sequence[Path] = ()) -> str:
    """A page without scripts: what each dimension is about in words, and the figures as pictures inside it."""
    alts = {figure.name: figure.alt for figure in explanation_figures(explanation)}
    shown = "".join(
        f'<figure><img alt="{escape(alts[path.stem])}" src="data:image/svg+xml;base64,'
        f'{b64encode(path.read_bytes()).decode()}"><figcaption>{escape(alts[path.stem])}</figcaption></figure>'
        for path in pictures
    )
    described = "".join(_described(explanation, line) for line in explanation.dimensions.to_dict("records"))
    described += _views_described(explanation)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Latent dimensions explained</title>'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        'img-src data:"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}img{{max-width:100%}}figure{{margin:1.5rem 0}}</style></head>\n"
        f"<body><h1>What the latent dimensions are about</h1>{described}{shown}"
        '<ul class="notes"><li>Deviance explained is divided among dimensions by Shapley values, so the parts of a '
        "column sum to its total; R² = 1 − exp(−deviance per cell), for a Gaussian column its share of variance.</li>"
        "<li>The cells explained here are ones the model has read to place their rows.</li></ul></body></html>\n"
    )


def _described(explanation: Explanation, line: dict[Any, Any]) -> str:
    parts = explanation.parts[explanation.parts["dimension"] == line["dimension"]].head(N_CURVES)
    parts = parts[(parts["deviance"] > 2 * parts["se"]) & (parts["r2"] >= LEAST_R2)]
    said = [f"{words.shown(p['column'], 60)} ({words.shown(p['direction'], 40)}, R² {p['r2']:.2f})"
            for p in parts.to_dict("records")]  # fmt: skip
    about = escape(words.listed(said)) if said else "no column beyond its error"
    share = words.percent(float(np.clip(line["share"], 0, 1)))
    return f"<h2>Dimension {line['dimension']}</h2><p>{share} of what is explained. Upwards along it: {about}.</p>"


def _views_described(explanation: Explanation) -> str:
    """A table of views by dimensions: mean R² of a view's columns."""
    if explanation.views.empty:
        return ""
    r2 = explanation.views.pivot(index="view", columns="dimension", values="r2")
    heads = "".join(f'<th scope="col">Dimension {q}</th>' for q in r2.columns)
    rows = "".join(
        f'<tr><th scope="row">{escape(words.shown(view, 60))}</th>'
        + "".join(f"<td>{value:.2f}</td>" for value in line)
        + f"<td>{line.sum():.2f}</td></tr>"
        for view, line in zip(r2.index, r2.to_numpy(), strict=True)
    )
    caption = "<caption>Mean R² of the columns of a view, by dimension</caption>"
    head = f'<thead><tr><th scope="col">View</th>{heads}<th scope="col">All</th></tr></thead>'
    return f"<table>{caption}{head}<tbody>{rows}</tbody></table>"


def _write(path: Path, text: str) -> None:
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
