"""Colours, symbols and the frame of a figure; a figure is plain data for plotly.js."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d1f", "#7a5195")  # colour-blind safe
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
GREY = "#8a8f98"
SEQUENTIAL = [[0, "#f7fbff"], [0.25, "#c6dbef"], [0.5, "#6baed6"], [0.75, "#2171b5"], [1, "#08306b"]]
VIRIDIS = [[0, "#fde725"], [0.25, "#5ec962"], [0.5, "#21918c"], [0.75, "#3b528b"], [1, "#440154"]]
BELOW = {"orientation": "h", "thickness": 12, "len": 0.6, "x": 0.5, "xanchor": "center", "y": -0.04, "yanchor": "top"}
DIVERGING = [[0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#fdb863"], [1, "#b35806"]]


@dataclass(frozen=True)
class Figure:
    """What plotly.js draws, how high, and the same in words for those who do not see it."""

    name: str
    alt: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 360
    extra: dict[str, Any] = field(default_factory=dict)  # for the page's own script

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        frame = {"margin": {"l": 60, "r": 16, "t": 36, "b": 52}, "hovermode": "closest",
                 "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}}  # fmt: skip
        return {"data": self.data, "layout": frame | self.layout, "height": self.height, **self.extra}


def colour(subtype: int) -> str:
    """Of a subtype; outliers and everybody are grey."""
    return COLOURS[(subtype - 1) % len(COLOURS)] if subtype else GREY


def symbol(subtype: int) -> str:
    """Of a subtype, so that colour is never alone."""
    place = subtype - 1  # the second round of colours goes with other symbols
    return SYMBOLS[(place + place // len(COLOURS)) % len(SYMBOLS)] if subtype else "x"


def dash(subtype: int) -> str:
    """Of a subtype's line."""
    return DASHES[(subtype - 1) % len(DASHES)] if subtype else "dot"


def rounded(values: Any, digits: int = 4) -> list[Any]:
    """Numbers to so many significant digits, NaN as null: half the bytes and no more than an eye sees."""
    return [None if not np.isfinite(v) else float(f"{v:.{digits}g}") for v in np.asarray(values, float).ravel()]


def axis(title: str, **more: Any) -> dict[str, Any]:
    """A quiet axis with a title."""
    return {"title": {"text": title}, "zeroline": False, "automargin": True, **more}


def named_axis(names: Sequence[str], **more: Any) -> dict[str, Any]:
    """One place per name, from the top down; the page's script shortens the names on a narrow screen."""
    places = list(range(len(names)))
    span = [len(names) - 0.5, -0.5]
    return {"tickvals": places, "ticktext": list(names), "range": span, "automargin": True, "zeroline": False,
            "showgrid": False, "fixedrange": True, **more}  # fmt: skip
