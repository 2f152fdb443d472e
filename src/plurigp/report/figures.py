"""The figures about the table and the model: gaps, choice of dimensions, predictions, calibration, training."""

import numpy as np
import pandas as pd

from plurigp.report.theme import COLOURS, GREY, SYMBOLS, Figure, axis, bars, named_rows, rounded, scatter
from plurigp.report.words import kind_label, percent, plot_text, signed
from plurigp.study import StudyResult

MOST_COLUMNS = 60
MOST_POINTS = 80  # of one training trace
MIN_CELLS = 5  # of a calibration point
LINE_HEIGHT = 19
WARMUP = 4  # epochs that do not set the range of the axis
FITS = {  # by the start of a fit's name: in the legend, colour
    "select": ("choice of dimensions", "#b9a06a"),
    "refit": ("refits on halves", GREY),
    "map": ("final model", COLOURS[0]),
}


def model_figures(result: StudyResult) -> list[Figure | None]:
    """The figures of this module; None where the result has nothing to show."""
    make = (gaps_figure, selection_figure, predictions_figure, calibration_figure, training_figure)
    return [figure(result) for figure in make]


def gaps_figure(result: StudyResult) -> Figure | None:
    """Share of missing values by column, largest first."""
    used = result.columns[result.columns["used"].astype(bool)]
    used = used[used["gap_share"] > 0].sort_values("gap_share", ascending=False, kind="stable").head(MOST_COLUMNS)
    if used.empty:
        return None
    lines = [f"<b>{plot_text(r['column'])}</b><br>{percent(r['gap_share'])} missing" for r in used.to_dict("records")]
    bar = bars(used["gap_share"], lines, marker={"color": COLOURS[0]}, textposition="none")
    share = axis("share of patients without a value", tickformat=".0%", rangemode="tozero")
    layout = named_rows([plot_text(name, 34) for name in used["column"]], share, bargap=0.35)
    return Figure("gaps", "Share of missing values in each column.", [bar], layout, 90 + LINE_HEIGHT * len(used))


def selection_figure(result: StudyResult) -> Figure | None:
    """Held-out score by number of dimensions, as a difference from the best."""
    table = result.selection
    if len(table) < 2:
        return None
    chosen = table["chosen"].astype(bool).to_numpy()
    traces = [
        scatter(own["n_components"], -own["gap"], "%{x} dimensions: %{y:.3f}", name=name,
                error_y={"type": "data", "array": rounded(own["gap_se"]), "color": GREY},
                marker={"size": 13, "symbol": symbol, "color": colour})
        for name, own, symbol, colour in (("chosen", table[chosen], "diamond", COLOURS[4]),
                                          ("candidate", table[~chosen], "circle", COLOURS[0]))
    ]  # fmt: skip
    x = axis("number of latent dimensions", tickvals=sorted(int(q) for q in table["n_components"]))
    y = axis("score against the best<br>(nats per held-out cell)")
    alt = "Held-out predictive score by number of latent dimensions."
    return Figure("selection", alt, traces, {"xaxis": x, "yaxis": y})


def predictions_figure(result: StudyResult) -> Figure | None:
    """Gain over the column's marginal, largest first."""
    table = result.predictions.dropna(subset=["gain"]).sort_values("gain", ascending=False, kind="stable")
    if len(table) > MOST_COLUMNS:
        table = pd.concat([table.head(MOST_COLUMNS // 2), table.tail(MOST_COLUMNS // 2)])
    if table.empty:
        return None
    lines = [
        f"<b>{plot_text(r['column'])}</b><br>gain {signed(r['gain'])} ± {r['se']:.2f}<br>{r['cells']:.0f} cells"
        for r in table.to_dict("records")
    ]
    better = table["gain"] > 0
    dots = scatter(
        table["gain"], range(len(table)), lines, showlegend=False,
        error_x={"type": "data", "array": rounded(1.96 * table["se"]), "color": GREY, "thickness": 1.2, "width": 2},
        marker={"size": 8, "color": np.where(better, COLOURS[0], COLOURS[4]).tolist(),
                "symbol": np.where(better, "circle", "circle-open").tolist()},
    )  # fmt: skip
    zero = {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1,
            "line": {"color": GREY, "width": 1.5, "dash": "dash"}}  # fmt: skip
    gain = axis("gain over the column’s marginal (nats per cell)", range=_gain_range(table))
    layout = named_rows([plot_text(name, 34) for name in table["column"]], gain, shapes=[zero])
    alt = "Gain in predicting held-out cells of each column over the column's marginal distribution."
    return Figure("predictions", alt, [dots], layout, 90 + LINE_HEIGHT * len(table))


def _gain_range(table: pd.DataFrame) -> list[float]:
    """An axis that a single wide interval does not stretch."""
    gain, se = table["gain"].to_numpy(float), np.nan_to_num(table["se"].to_numpy(float))
    reach = 1.96 * np.minimum(se, np.quantile(se, 0.9))
    low, high = min(0.0, float((gain - reach).min())), max(0.0, float((gain + reach).max()))
    edge = 0.05 * (high - low + 1e-9)
    return [low - edge, high + edge]


def calibration_figure(result: StudyResult) -> Figure | None:
    """Predicted probability against observed frequency, by kind."""
    table = pooled_calibration(result.calibration)
    if table.empty:
        return None
    traces = [scatter([0, 1], [0, 1], mode="lines", name="perfect", line={"color": GREY, "dash": "dash", "width": 1.5})]
    for place, (kind, own) in enumerate(table.groupby("kind", sort=True)):
        name, colour = plot_text(kind_label(str(kind))), COLOURS[place % len(COLOURS)]
        lines = [
            f"<b>{name}</b><br>predicted {percent(r['predicted'])}, observed {percent(r['observed'])}"
            f"<br>{r['cells']:,.0f} cells"
            for r in own.to_dict("records")
        ]
        size = rounded(6 + 3 * np.log10(own["cells"].to_numpy(float)), 2)
        marker = {"symbol": SYMBOLS[place % len(SYMBOLS)], "color": colour, "size": size}
        traces.append(scatter(own["predicted"], own["observed"], lines, "lines+markers", name=name, marker=marker,
                              line={"width": 1, "color": colour}))  # fmt: skip
    share = {"tickformat": ".0%", "range": [-0.03, 1.03], "fixedrange": True}
    layout = {"xaxis": axis("predicted probability", **share), "yaxis": axis("observed frequency", **share)}
    return Figure("calibration", "Predicted probabilities against observed frequencies.", traces, layout, 420)


def pooled_calibration(table: pd.DataFrame) -> pd.DataFrame:
    """Bins of a tenth of predicted probability over all columns of a kind, without those of too few cells."""
    if table.empty:
        return table
    shares, tenth = ["predicted", "observed"], np.minimum((table["predicted"] * 10).astype(int), 9)
    sums = table[shares].mul(table["cells"], axis=0).assign(kind=table["kind"], cells=table["cells"], tenth=tenth)
    pooled = sums.groupby(["kind", "tenth"], sort=True, as_index=False).sum()
    pooled = pooled[pooled["cells"] >= MIN_CELLS]
    return pooled.assign(**{name: pooled[name] / pooled["cells"] for name in shares})


def training_figure(result: StudyResult) -> Figure | None:
    """The bound by epoch: the final model in colour, other fits faint."""
    table = result.traces
    if table.empty:
        return None
    stage = table["fit"].astype(str).str.extract(f"^({'|'.join(FITS)})", expand=False).fillna("refit")
    traces = []
    for name, (label, colour) in FITS.items():
        final = name == "map"
        for place, (fit, own) in enumerate(table[stage == name].groupby("fit", sort=True)):
            kept = own.iloc[:: max(1, len(own) // MOST_POINTS)]
            hover = f"{plot_text(fit)}, epoch %{{x}}: %{{y:.2f}}"
            line = {"width": 2.5 if final else 1, "color": colour}
            traces.append(scatter(kept["epoch"], kept["bound"], hover, "lines", name=label, legendgroup=name,
                                  showlegend=place == 0, line=line, opacity=1 if final else 0.5))  # fmt: skip
    late = table.loc[table["epoch"] >= WARMUP, "bound"]
    low, high = (float(late.min()), float(late.max())) if len(late) else (-1.0, 1.0)
    x = axis("epoch (pass over the patients)")
    y = axis("bound per patient (nats)", range=[low - 0.05 * (high - low), high + 0.08 * (high - low)])
    return Figure("training", "The training objective by epoch; it should level off.", traces, {"xaxis": x, "yaxis": y})
