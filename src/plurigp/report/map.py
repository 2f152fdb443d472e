"""The map: one point per patient in an order that is not the table's, and what it may be coloured by."""

from typing import Any

import numpy as np
import pandas as pd

from plurigp.report.theme import BELOW, COLOURS, GREY, VIRIDIS, Figure, colour, rounded, symbol
from plurigp.report.words import drawn, parts_of, percent
from plurigp.study import StudyResult

MOST = 4000  # points; more slow a browser down and cover each other
LEVELS = 8  # of a category with a colour of its own


def map_figure(result: StudyResult, cells: pd.DataFrame | None) -> Figure:
    """A trace per subtype; the menu's choices beside it, in the same order of points."""
    groups = _groups(result)
    traces = [_trace(result, k, rows, cells is not None) for k, rows in groups]
    order = [rows for _, rows in groups]
    choices = [
        {"label": parts_of(result.facts).one.capitalize(), "values": None},
        *(_scale(*named, order) for named in _own_values(result)),
    ]
    if cells is not None:
        choices += [_column(str(name), cells.iloc[:, place], order) for place, name in enumerate(cells.columns)]
    layout = {
        "xaxis": {"visible": False, "automargin": False},
        "yaxis": {"visible": False, "scaleanchor": "x" if result.facts["view_method"] == "pca" else None},
        "margin": {"l": 8, "r": 8, "t": 44, "b": 8},
        "coloraxis": {"colorscale": VIRIDIS, "showscale": False},
    }
    alt = f"A map of {result.facts['n_rows']:,} patients: those who lie near each other are alike."
    return Figure("map", alt, traces, layout, 560, {"choices": choices})


def _groups(result: StudyResult) -> list[tuple[int, np.ndarray]]:
    """The rows of each subtype, outliers first so that they lie beneath; left to right, so no order gives rows away."""
    n = len(result.latent.view)
    kept = np.sort(np.random.default_rng(0).choice(n, min(n, MOST), replace=False))
    kept = kept[np.lexsort(result.latent.view[kept].T[::-1])]
    subtype = result.clusters.subtype[kept]
    return [(int(k), kept[subtype == k]) for k in np.unique(subtype)]


def _trace(result: StudyResult, subtype: int, rows: np.ndarray, say_row: bool) -> dict[str, Any]:
    sure = certainty(result)[rows]
    name = parts_of(result.facts).number(subtype) if subtype else "Outliers"
    lines = [
        f"<b>{name}</b><br>certainty {percent(c)}<br>{percent(g)} of columns are gaps"
        + (f"<br>row {row + 1:,}" if say_row else "")
        for c, g, row in zip(sure, result.latent.gaps[rows], rows, strict=True)
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "legendrank": 1000 + (subtype or 999),
        "x": rounded(result.latent.view[rows, 0]),
        "y": rounded(result.latent.view[rows, 1]),
        "text": lines,
        "hoverinfo": "text",
        "marker": {"color": colour(subtype), "symbol": symbol(subtype), "size": 7, "opacity": 0.75,
                   "line": {"width": 0.4, "color": "#ffffff"}},
    }  # fmt: skip


def certainty(result: StudyResult) -> np.ndarray:
    """The probability of a row's own subtype [N]; of the likeliest for an outlier."""
    probability, subtype = result.clusters.probability, result.clusters.subtype
    if not probability.shape[1]:
        return np.ones(len(subtype))
    own = probability[np.arange(len(subtype)), np.maximum(subtype, 1) - 1]
    return np.where(subtype > 0, own, probability.max(1))


def _own_values(result: StudyResult) -> list[tuple[str, np.ndarray, str]]:
    return [
        ("Certainty of assignment", certainty(result), ".0%"),
        ("Share of gaps", result.latent.gaps, ".0%"),
    ]


def _scale(label: str, values: np.ndarray, form: str, order: list[np.ndarray]) -> dict[str, Any]:
    """A menu entry with a continuous scale; the extreme hundredths share the end colours."""
    known = values[np.isfinite(values)]
    low, high = (float(v) for v in np.quantile(known, [0.01, 0.99])) if len(known) else (0.0, 1.0)
    axis = {"colorscale": VIRIDIS, "cmin": low, "cmax": high if high > low else low + 1, "showscale": True,
            "colorbar": BELOW | {"tickformat": form, "title": {"text": drawn(label, 40), "side": "top"}}}  # fmt: skip
    return {"label": label, "values": [rounded(values[rows]) for rows in order], "coloraxis": axis}


def _column(name: str, column: pd.Series, order: list[np.ndarray]) -> dict[str, Any]:
    """A menu entry for a column of the table: a scale for numbers, a colour per level otherwise."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        values = column.astype("Float64").to_numpy(float, na_value=np.nan)
        if len(np.unique(values[np.isfinite(values)])) > 2:
            return _scale(name, values, "", order)
    text = column.astype("string")
    frequent = list(text.value_counts().index[:LEVELS])
    places = {level: float(place) for place, level in enumerate(frequent)}
    values = np.array([np.nan if pd.isna(t) else places.get(t, len(frequent)) for t in text], float)
    names = [drawn(level, 24) for level in frequent] + (["other"] if len(places) < text.nunique() else [])
    K = max(len(names), 1)
    steps = [[(k + side) / K, (*COLOURS, GREY)[k]] for k in range(K) for side in (0, 1)]
    bar = BELOW | {"tickvals": list(range(K)), "ticktext": names, "title": {"text": drawn(name, 40), "side": "top"}}
    axis = {"colorscale": steps, "cmin": -0.5, "cmax": K - 0.5, "showscale": True, "colorbar": bar}
    return {"label": name, "values": [rounded(values[rows]) for rows in order], "coloraxis": axis}
