"""The map: one point per patient, not in the order of the table, and what the points may be coloured by."""

from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.types import DataError
from plurigp.data import to_frame
from plurigp.report.theme import COLOURS, GREY, VIRIDIS, Figure, colour, colour_bar, rounded, scatter, symbol
from plurigp.report.words import parts_of, percent, plot_text
from plurigp.study import StudyResult
from plurigp.study.run import read_started, table_hash

MOST_POINTS = 4000  # more slow a browser down and cover each other
MOST_LEVELS = 8  # of a category with a colour of its own


def map_figure(result: StudyResult, cells: pd.DataFrame | None) -> Figure:
    """A trace per subtype; the menu's choices beside it, in the same order of points."""
    groups = _groups(result)
    order = [rows for _, rows in groups]
    choices = [
        {"label": parts_of(result.facts).one.capitalize(), "values": None},
        _scale("Certainty of assignment", certainty(result), ".0%", order),
        _scale("Share of missing values", result.latent.gaps, ".0%", order),
    ]
    if cells is not None:
        choices += [_column(str(name), cells.iloc[:, place], order) for place, name in enumerate(cells.columns)]
    layout = {
        "xaxis": {"visible": False, "automargin": False},
        "yaxis": {"visible": False, "scaleanchor": "x" if result.facts["view_method"] == "pca" else None},
        "margin": {"l": 8, "r": 8, "t": 44, "b": 8},
        "coloraxis": {"colorscale": VIRIDIS, "showscale": False},
    }
    alt = f"A map of {result.facts['n_rows']:,} patients; neighbours are similar."
    traces = [_trace(result, k, rows, cells is not None) for k, rows in groups]
    return Figure("map", alt, traces, layout, 560, {"choices": choices})


def _groups(result: StudyResult) -> list[tuple[int, np.ndarray]]:
    """The rows of each subtype, outliers first so that they lie beneath; sorted by position, to hide their order."""
    n = len(result.latent.view)
    kept = np.sort(np.random.default_rng(0).choice(n, min(n, MOST_POINTS), replace=False))
    kept = kept[np.lexsort(result.latent.view[kept].T[::-1])]
    subtype = result.clusters.subtype[kept]
    return [(int(k), kept[subtype == k]) for k in np.unique(subtype)]


def _trace(result: StudyResult, subtype: int, rows: np.ndarray, with_rows: bool) -> dict[str, Any]:
    name = parts_of(result.facts).number(subtype) if subtype else "Outliers"
    lines = [
        f"<b>{name}</b><br>certainty {percent(c)}<br>{percent(g)} of values missing"
        + (f"<br>row {row + 1:,}" if with_rows else "")
        for c, g, row in zip(certainty(result)[rows], result.latent.gaps[rows], rows, strict=True)
    ]
    marker = {"color": colour(subtype), "symbol": symbol(subtype), "size": 7, "opacity": 0.75,
              "line": {"width": 0.4, "color": "#ffffff"}}  # fmt: skip
    x, y = result.latent.view[rows].T
    return scatter(x, y, lines, name=name, legendrank=1000 + (subtype or 999), marker=marker)


def certainty(result: StudyResult) -> np.ndarray:
    """The probability of a row's own subtype [N]; for an outlier, that of the most probable one."""
    probability, subtype = result.clusters.probability, result.clusters.subtype
    if not probability.shape[1]:
        return np.ones(len(subtype))
    own = probability[np.arange(len(subtype)), np.maximum(subtype, 1) - 1]
    return np.where(subtype > 0, own, probability.max(1))


def _scale(label: str, values: np.ndarray, form: str, order: list[np.ndarray]) -> dict[str, Any]:
    """A menu entry with a continuous scale; the extreme hundredths share the end colours."""
    known = values[np.isfinite(values)]
    low, high = (float(v) for v in np.quantile(known, [0.01, 0.99])) if len(known) else (0.0, 1.0)
    return _choice(label, values, order, VIRIDIS, (low, high if high > low else low + 1), tickformat=form)


def _column(name: str, column: pd.Series, order: list[np.ndarray]) -> dict[str, Any]:
    """A menu entry for a column of the table: a scale for numbers, a colour per level otherwise."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
        values = column.astype("Float64").to_numpy(float, na_value=np.nan)
        if len(np.unique(values[np.isfinite(values)])) > 2:
            return _scale(name, values, "", order)
    text = column.astype("string")
    frequent = list(text.value_counts().index[:MOST_LEVELS])
    places = {level: float(place) for place, level in enumerate(frequent)}
    values = np.array([np.nan if pd.isna(t) else places.get(t, len(frequent)) for t in text], float)
    names = [plot_text(level, 24) for level in frequent] + (["other"] if len(places) < text.nunique() else [])
    K = max(len(names), 1)
    steps = [[(k + side) / K, (*COLOURS, GREY)[k]] for k in range(K) for side in (0, 1)]
    return _choice(name, values, order, steps, (-0.5, K - 0.5), tickvals=list(range(K)), ticktext=names)


def _choice(
    label: str, values: np.ndarray, order: list[np.ndarray], colours: list, ends: tuple[float, float], **bar: Any
) -> dict[str, Any]:
    axis = {"colorscale": colours, "cmin": ends[0], "cmax": ends[1], "showscale": True,
            "colorbar": colour_bar(plot_text(label, 40), **bar)}  # fmt: skip
    return {"label": label, "values": [rounded(values[rows]) for rows in order], "coloraxis": axis}


def studied_cells(result: StudyResult, table: Any) -> pd.DataFrame:
    """The used columns of the study's table; another table is refused."""
    frame = to_frame(table).reset_index(drop=True)
    names = [str(name) for name in result.columns["column"]]
    same = len(frame) == result.facts["n_rows"] and set(names) <= set(map(str, frame.columns))
    if same and result.folder is not None:
        same = table_hash(frame[names]) == read_started(result.folder)["table"]
    if not same:
        raise DataError("this is not the table that was studied; pass the same table with every cell unchanged.")
    return frame[[str(name) for name in result.columns.loc[result.columns["used"].astype(bool), "column"]]]
