"""Colours, symbols, axes and traces of the figures; a figure is plain data for plotly.js."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d1f", "#7a5195")  # colour-blind safe
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
GREY = "#8a8f98"
SEQUENTIAL = [[0, "#f7fbff"], [0.25, "#c6dbef"], [0.5, "#6baed6"], [0.75, "#2171b5"], [1, "#08306b"]]
VIRIDIS = [[0, "#fde725"], [0.25, "#5ec962"], [0.5, "#21918c"], [0.75, "#3b528b"], [1, "#440154"]]
DIVERGING = [[0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#fdb863"], [1, "#b35806"]]


@dataclass(frozen=True)
class Figure:
    """What plotly.js draws, its height in pixels, and its alternative text."""

    name: str
    alt: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 360
    extra: dict[str, Any] = field(default_factory=dict)  # for the page's own script

    def plain(self) -> dict[str, Any]:
        """The figure for JSON, with the layout that all figures share."""
        shared = {"margin": {"l": 60, "r": 16, "t": 36, "b": 52}, "hovermode": "closest",
                  "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}}  # fmt: skip
        return {"data": self.data, "layout": shared | self.layout, "height": self.height, **self.extra}


def colour(subtype: int) -> str:
    """The colour of a subtype; outliers and all patients (0) are grey."""
    return COLOURS[(subtype - 1) % len(COLOURS)] if subtype else GREY


def symbol(subtype: int) -> str:
    """The symbol of a subtype, so that colour is never the only mark."""
    place = subtype - 1  # the second round of colours goes with other symbols
    return SYMBOLS[(place + place // len(COLOURS)) % len(SYMBOLS)] if subtype else "x"


def dash(subtype: int) -> str:
    """The line style of a subtype."""
    return DASHES[(subtype - 1) % len(DASHES)] if subtype else "dot"


def rounded(values: Any, digits: int = 4) -> list[Any]:
    """Numbers to a few significant digits, NaN as null: half the bytes, and nothing that an eye could see is lost."""
    return [None if not np.isfinite(v) else float(f"{v:.{digits}g}") for v in np.asarray(values, float).ravel()]


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a title and no zero line."""
    return {"title": {"text": title}, "zeroline": False, "automargin": True, **more}


def named_axis(names: Sequence[str], **more: Any) -> dict[str, Any]:
    """One place per name, from the top down; the page's script shortens the names on a narrow screen."""
    places = list(range(len(names)))
    span = [len(names) - 0.5, -0.5]
    return {"tickvals": places, "ticktext": list(names), "range": span, "automargin": True, "zeroline": False,
            "showgrid": False, "fixedrange": True, **more}  # fmt: skip


def named_rows(names: Sequence[str], xaxis: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The layout of a figure with one named row per column or subtype and no legend."""
    margin = {"l": 60, "r": 16, "t": 8, "b": 48}
    return {"xaxis": xaxis | {"fixedrange": True}, "yaxis": named_axis(names), "margin": margin, **more}


def scatter(
    x: Any, y: Any, hover: str | Sequence[str] | None = None, mode: str = "markers", **more: Any
) -> dict[str, Any]:
    """A trace of points or lines; `hover` is a template, or one text per point."""
    return {"type": "scatter", "mode": mode, "x": rounded(x), "y": rounded(y), **_hover(hover), **more}


def bars(lengths: Any, hover: Sequence[str], **more: Any) -> dict[str, Any]:
    """Horizontal bars, one per named row."""
    places = list(range(len(lengths)))
    return {"type": "bar", "orientation": "h", "x": rounded(lengths), "y": places, **_hover(hover), **more}


def band(x: Any, low: Any, high: Any, fill: str, **more: Any) -> dict[str, Any]:
    """The area between two lines."""
    x, low, high = (np.asarray(values, float) for values in (x, low, high))
    return scatter(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]]), mode="lines", fill="toself",
                   fillcolor=fill, line={"width": 0}, showlegend=False, **more)  # fmt: skip


def _hover(hover: str | Sequence[str] | None) -> dict[str, Any]:
    if hover is None:
        return {"hoverinfo": "skip"}
    if isinstance(hover, str):
        return {"hovertemplate": f"{hover}<extra></extra>"}
    return {"text": list(hover), "hoverinfo": "text"}


def colour_bar(title: str, **more: Any) -> dict[str, Any]:
    """A horizontal colour scale below the figure."""
    return {"orientation": "h", "thickness": 12, "len": 0.6, "x": 0.5, "xanchor": "center", "y": -0.04,
            "yanchor": "top", "title": {"text": title, "side": "top"}, **more}  # fmt: skip
