"""The charts of the pages, drawn by matplotlib as SVG: lines, violins, bars, heat maps, images and maps of rows.

The same data give the same bytes. Names may come from tables: they are written as they are, never read as formulas.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from plurigp.study.findings.view import two_dimensions

Numbers = Sequence[int] | Sequence[float]
Series = Mapping[str, tuple[Numbers, Numbers]]  # name -> x, y
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a500")  # colour-blind safe
STYLE: Any = {
    "svg.hashsalt": "plurigp",  # element ids, otherwise random
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
}
MAX_MARKED = 60  # points of a line that are marked
MAX_VECTOR_DOTS = 2000  # rows of a map; more are drawn as one image


@contextmanager
def _chart(path: Path, title: str, width: float, height: float) -> Iterator[Axes]:
    """Axes to draw on, in inches, written to `path` at the end."""
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", dpi=110, metadata={"Date": None, "Creator": None})


def _colours(n: int) -> list[str]:
    return [PALETTE[i % len(PALETTE)] for i in range(n)]


def line_chart(
    path: Path, title: str, x_label: str, y_label: str, series: Series, log_y: bool = True, log_x: bool = True
) -> None:
    """One line per series, measured points marked; both axes logarithmic unless told otherwise."""
    with _chart(path, title, 7.2, 3.4) as axes:
        lines: list[Line2D] = []
        for (x, y), colour in zip(series.values(), _colours(len(series)), strict=True):
            lines += axes.plot(x, y, color=colour, marker="o" if len(x) <= MAX_MARKED else "", markersize=4)
        for axis, log, scale in ((axes.xaxis, log_x, axes.set_xscale), (axes.yaxis, log_y, axes.set_yscale)):
            if log:
                scale("log")
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(NullFormatter())
        if not log_x and all(float(value).is_integer() for x, _ in series.values() for value in x):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel=x_label, ylabel=y_label)
        if len(series) > 1:
            axes.legend(lines, list(series), loc="center left", bbox_to_anchor=(1.01, 0.5))


def bound_chart(path: Path, traces: Series) -> None:
    """The bound by epoch, from the third on: the first two depend on the start alone."""
    late = {name: (x[2:], y[2:]) for name, (x, y) in traces.items() if len(x) > 2}
    if late:
        line_chart(path, "Bound by epoch", "epoch", "nats per row", late, log_y=False)


def violin_chart(
    path: Path, title: str, y_label: str, groups: Mapping[str, Sequence[float]], with_zero: bool = False
) -> None:
    """Per group a violin, a box from quartile to quartile with the median, and every value; a line at zero if asked."""
    values = [np.asarray(own, float) for own in groups.values()]
    places, colours = range(1, len(values) + 1), _colours(len(values))
    with _chart(path, title, 1.2 + 1.4 * len(values), 3.4) as axes:
        if with_zero:
            axes.axhline(0, color="#777777", linestyle="--", linewidth=1)
        bodies: Any = axes.violinplot(values, places, widths=0.8, showextrema=False)["bodies"]
        for body, colour in zip(bodies, colours, strict=True):
            body.set(facecolor=colour, edgecolor=colour, alpha=0.2)
        line = {"color": "#333333"}
        axes.boxplot(
            values, positions=places, widths=0.22, showfliers=False, showcaps=False, boxprops=line, whiskerprops=line,
            medianprops=line | {"linewidth": 2}, manage_ticks=False,
        )  # fmt: skip
        jitter = np.random.default_rng(0)
        for place, own, colour in zip(places, values, colours, strict=True):
            axes.scatter(place + jitter.uniform(-0.07, 0.07, len(own)), own, s=7, color=colour, alpha=0.7, zorder=3)
        _name_places(axes, list(groups))
        axes.set_ylabel(y_label)


def _name_places(axes: Axes, names: Sequence[str]) -> None:
    """Names under places 1, 2, …, broken into short lines."""
    axes.set_xticks(range(1, len(names) + 1), [fill(name, 15) for name in names])
    axes.grid(visible=False, axis="x")
    axes.set_xlim(0.4, len(names) + 0.6)


def bar_chart(path: Path, title: str, y_label: str, bars: Mapping[str, tuple[float, float]]) -> None:
    """Per name a bar and, as a dashed line across it, the threshold it must exceed; NaN is no threshold."""
    places = np.arange(1, len(bars) + 1)
    heights, thresholds = np.array(list(bars.values()), float).T
    with _chart(path, title, 2.6 + 0.9 * len(bars), 3.4) as axes:
        axes.bar(places, heights, width=0.6, color=PALETTE[4])
        axes.hlines(thresholds, places - 0.4, places + 0.4, color="#111111", linestyle="--", label="threshold")
        _name_places(axes, list(bars))
        axes.set_ylabel(y_label)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def heat_chart(path: Path, title: str, rows: Sequence[str], columns: Sequence[str], values: np.ndarray) -> None:
    """A coloured cell with its number for every row and column; blue below zero, red above, NaN left white."""
    reach = max(float(np.nanmax(np.abs(values))), 1e-9)
    with _chart(path, title, 2.4 + 0.8 * len(columns), 0.8 + 0.21 * len(rows)) as axes:
        axes.imshow(values, cmap="RdBu_r", vmin=-reach, vmax=reach, aspect="auto", interpolation="none")
        for r, c in np.argwhere(np.isfinite(values)):
            colour = "white" if abs(values[r, c]) > 0.65 * reach else "#111111"
            axes.text(
                c, r, f"{round(values[r, c], 1) + 0.0:.1f}", ha="center", va="center_baseline", fontsize=8, color=colour
            )
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows, fontsize=9)
        axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)


def image_chart(path: Path, title: str, rows: Mapping[str, np.ndarray], side: int = 28) -> None:
    """Per name a row of square grey images [n side²], 1 is black."""
    n = max(len(images) for images in rows.values())
    tile = side + 3
    sheet = np.zeros((tile * len(rows), tile * n))
    for r, images in enumerate(rows.values()):
        for c, image in enumerate(images):
            sheet[tile * r : tile * r + side, tile * c : tile * c + side] = np.reshape(image, (side, side))
    with _chart(path, title, 1.2 + 0.7 * n, 0.6 + 0.7 * len(rows)) as axes:
        axes.imshow(sheet, cmap="Greys", vmin=0, vmax=1, interpolation="none")
        axes.set_yticks(tile * np.arange(len(rows)) + side / 2, list(rows))
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)


def map_chart(path: Path, x: np.ndarray, group: np.ndarray, title: str) -> None:
    """Rows at latent positions x [N Q] in two dimensions, coloured by group, the largest first; axes have no units."""
    flat = two_dimensions(np.asarray(x, float))
    names, place, counts = np.unique(np.asarray(group, dtype=str), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    colour = np.empty(len(names), dtype=object)
    colour[order] = _colours(len(names))
    with _chart(path, title, 7.6, 5.4) as axes:
        axes.scatter(
            flat[:, 0],
            flat[:, 1],
            s=7,
            c=list(colour[place]),
            alpha=0.55,
            linewidths=0,
            rasterized=len(x) > MAX_VECTOR_DOTS,
        )
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        dots = [Line2D([], [], marker="o", linestyle="", color=colour[k]) for k in order]
        labels = [f"{names[k]} ({counts[k]:,})" for k in order]
        axes.legend(dots, labels, loc="center left", bbox_to_anchor=(1.01, 0.5))
