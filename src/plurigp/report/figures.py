"""The figures about the table and the map itself: gaps, choice of Q, predictions, calibration, training."""

from typing import Any

import numpy as np
import pandas as pd

from plurigp.report.theme import COLOURS, GREY, SYMBOLS, Figure, axis, named_axis, rounded
from plurigp.report.words import drawn, kind, percent, signed
from plurigp.study import StudyResult

MOST_COLUMNS = 60
MOST_POINTS = 80  # of one training trace
FEWEST_CELLS = 5  # of a calibration point
LINE_HEIGHT = 19
WARM = 4  # passes after which the axis begins
FITS = {
    "select": ("choice of dimensions", "#b9a06a"),
    "refit": ("refits on halves", GREY),
    "map": ("the map", COLOURS[0]),
}


def gaps_figure(result: StudyResult) -> Figure | None:
    """Share of gaps by column, the columns with most first."""
    used = result.columns[result.columns["used"].astype(bool)]
    used = used[used["gap_share"] > 0].sort_values("gap_share", ascending=False, kind="stable").head(MOST_COLUMNS)
    if used.empty:
        return None
    bar = {
        "type": "bar",
        "orientation": "h",
        "x": rounded(used["gap_share"]),
        "y": list(range(len(used))),
        "marker": {"color": COLOURS[0]},
        "text": [
            f"<b>{drawn(c)}</b><br>{percent(g)} gaps" for c, g in zip(used["column"], used["gap_share"], strict=True)
        ],
        "hoverinfo": "text",
        "textposition": "none",
    }
    layout = {
        "xaxis": axis("share of patients without a value", tickformat=".0%", rangemode="tozero", fixedrange=True),
        "yaxis": named_axis([drawn(name, 34) for name in used["column"]]),
        "margin": {"l": 60, "r": 16, "t": 8, "b": 48},
        "bargap": 0.35,
    }
    return Figure("gaps", "Share of gaps in each column.", [bar], layout, 90 + LINE_HEIGHT * len(used))


def selection_figure(result: StudyResult) -> Figure | None:
    """Loss of predictive score against the best number of dimensions."""
    table = result.selection
    if len(table) < 2:
        return None
    chosen = table["chosen"].astype(bool).to_numpy()
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [str(q) for q in table["n_components"][own]],
            "y": rounded(-table["gap"][own]),
            "error_y": {"type": "data", "array": rounded(table["gap_se"][own]), "color": GREY},
            "marker": {"size": 13, "symbol": symbol, "color": colour},
            "hovertemplate": "%{x} dimensions: %{y:.3f}<extra></extra>",
        }
        for name, own, symbol, colour in (
            ("chosen", chosen, "diamond", COLOURS[4]),
            ("tried", ~chosen, "circle", COLOURS[0]),
        )
    ]
    order = [str(q) for q in sorted(table["n_components"])]
    layout = {
        "xaxis": axis("number of dimensions of the map", type="category", categoryorder="array", categoryarray=order),
        "yaxis": axis("prediction of hidden cells,<br>against the best (0)"),
    }
    return Figure("selection", "How well maps of each number of dimensions predict hidden cells.", traces, layout)


def predictions_figure(result: StudyResult) -> Figure | None:
    """Gain over the column by itself, best first."""
    table = result.predictions.dropna(subset=["gain"])
    table = table.sort_values("gain", ascending=False, kind="stable")
    if len(table) > MOST_COLUMNS:
        half = MOST_COLUMNS // 2
        table = pd.concat([table.head(half), table.tail(half)])
    if table.empty:
        return None
    lines = [
        f"<b>{drawn(r['column'])}</b><br>gain {signed(r['gain'])} ± {r['se']:.2f}<br>{r['cells']:.0f} hidden cells"
        for r in table.to_dict("records")
    ]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": rounded(table["gain"]),
        "y": list(range(len(table))),
        "error_x": {"type": "data", "array": rounded(1.96 * table["se"]), "color": GREY, "thickness": 1.2, "width": 2},
        "marker": {"size": 8, "color": [COLOURS[0] if g > 0 else COLOURS[4] for g in table["gain"]],
                   "symbol": ["circle" if g > 0 else "circle-open" for g in table["gain"]]},
        "text": lines,
        "hoverinfo": "text",
        "showlegend": False,
    }  # fmt: skip
    low, high = _reach(table)
    layout = {
        "xaxis": axis("← worse than, better than → its average", range=[low, high], fixedrange=True),
        "yaxis": named_axis([drawn(name, 34) for name in table["column"]]),
        "shapes": [_upright(0.0)],
        "margin": {"l": 60, "r": 16, "t": 8, "b": 48},
    }
    alt = "How much better the map predicts hidden cells of each column than the column's average does."
    return Figure("predictions", alt, [dots], layout, 90 + LINE_HEIGHT * len(table))


def _reach(table: pd.DataFrame) -> tuple[float, float]:
    """An axis that one wild interval does not stretch."""
    gain, se = table["gain"].to_numpy(float), np.nan_to_num(table["se"].to_numpy(float))
    reach = 1.96 * np.minimum(se, np.quantile(se, 0.9))
    low, high = min(0.0, float((gain - reach).min())), max(0.0, float((gain + reach).max()))
    return low - 0.05 * (high - low + 1e-9), high + 0.05 * (high - low + 1e-9)


def _upright(x: float) -> dict[str, Any]:
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
            "line": {"color": GREY, "width": 1.5, "dash": "dash"}}  # fmt: skip


def calibration_figure(result: StudyResult) -> Figure | None:
    """Predicted against observed frequency, the columns of a kind together."""
    table = pooled_calibration(result.calibration)
    if table.empty:
        return None
    diagonal = {"type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "name": "perfect", "hoverinfo": "skip",
                "line": {"color": GREY, "dash": "dash", "width": 1.5}}  # fmt: skip
    traces = [diagonal]
    for place, (name, own) in enumerate(table.groupby("kind", sort=True)):
        lines = [
            f"<b>{drawn(kind(str(name)))}</b><br>predicted {percent(r['predicted'])}, seen {percent(r['observed'])}"
            f"<br>{r['cells']:,.0f} cells"
            for r in own.to_dict("records")
        ]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": drawn(kind(str(name))),
                "x": rounded(own["predicted"]),
                "y": rounded(own["observed"]),
                "text": lines,
                "hoverinfo": "text",
                "line": {"width": 1, "color": COLOURS[place % len(COLOURS)]},
                "marker": {"symbol": SYMBOLS[place % len(SYMBOLS)], "color": COLOURS[place % len(COLOURS)],
                           "size": rounded(6 + 3 * np.log10(own["cells"].to_numpy(float)), 2)},
            }
        )  # fmt: skip
    layout = {
        "xaxis": axis("how likely the map called it", tickformat=".0%", range=[-0.03, 1.03], fixedrange=True),
        "yaxis": axis("how often it was so", tickformat=".0%", range=[-0.03, 1.03], fixedrange=True),
    }
    return Figure("calibration", "Predicted probabilities against observed frequencies.", traces, layout, 420)


def pooled_calibration(table: pd.DataFrame) -> pd.DataFrame:
    """Tenths of the predicted probability over all columns of a kind, those with too few cells left out."""
    if table.empty:
        return table
    tenth = np.minimum((table["predicted"].to_numpy(float) * 10).astype(int), 9)
    sums = table.assign(
        tenth=tenth, predicted=table["predicted"] * table["cells"], observed=table["observed"] * table["cells"]
    )
    pooled = sums.groupby(["kind", "tenth"], sort=True, as_index=False)[["predicted", "observed", "cells"]].sum()
    pooled = pooled[pooled["cells"] >= FEWEST_CELLS]
    return pooled.assign(predicted=pooled["predicted"] / pooled["cells"], observed=pooled["observed"] / pooled["cells"])


def training_figure(result: StudyResult) -> Figure | None:
    """The bound by pass: the maps in colour, other fits faint."""
    if result.traces.empty:
        return None
    fits = [(_group(str(fit)), str(fit), own) for fit, own in result.traces.groupby("fit", sort=True)]
    fits.sort(key=lambda item: list(FITS).index(item[0]))
    first = {group: fit for group, fit, _ in reversed(fits)}
    traces = [_training_trace(group, fit, own, first[group] == fit) for group, fit, own in fits]
    settled = result.traces.loc[result.traces["epoch"] >= WARM, "bound"]
    low, high = (float(settled.min()), float(settled.max())) if len(settled) else (-1.0, 1.0)
    layout = {
        "xaxis": axis("pass over the patients"),
        "yaxis": axis("bound per patient (nats)", range=[low - 0.05 * (high - low), high + 0.08 * (high - low)]),
    }
    return Figure("training", "The training objective by pass over the data; it should level off.", traces, layout)


def _group(fit: str) -> str:
    return next((name for name in FITS if fit.startswith(name)), "refit")


def _training_trace(group: str, fit: str, own: pd.DataFrame, in_legend: bool) -> dict[str, Any]:
    name, colour = FITS[group]
    step = max(1, len(own) // MOST_POINTS)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": group,
        "showlegend": in_legend,
        "x": own["epoch"].to_list()[::step],
        "y": rounded(own["bound"][::step]),
        "line": {"width": 2.5 if group == "map" else 1, "color": colour},
        "opacity": 1 if group == "map" else 0.5,
        "hovertemplate": f"{drawn(fit)}, pass %{{x}}: %{{y:.2f}}<extra></extra>",
    }
