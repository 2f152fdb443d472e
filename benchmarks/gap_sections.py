"""The sections of docs/results.md about gaps: imputation, calibration, pooling, encoders, hidden cells, latency."""

from pathlib import Path

import numpy as np
from scipy.stats import studentized_range

from plurigp_paper.charts import line_chart

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
NOMINAL = ("50%", "80%", "90%")


def imputation(result):
    cases = {
        (table, rate): list(draws.values())
        for table, rates in result["tables"].items()
        for rate, draws in rates.items()
    }
    methods = list(dict.fromkeys(name for draws in cases.values() for draw in draws for name in draw))
    dense = [m for m in methods if any("nats" in draw.get(m, {}) for draws in cases.values() for draw in draws)]
    lines = [
        (
            "Error on hidden cells, mean over columns and over draws of the hidden cells. plurigp was run on all "
            "draws that are counted, the others at least on the first. Settings are the same for all tables; "
            "`imputation.py --help` defines the error.\n"
        ),
        *_means(cases, methods, "error", 4),
        "\nNats per hidden cell, of the methods that give a density and of the columns' marginals.\n",
        *_means(cases, dense, "nats", 3, "marginal_nats"),
    ]
    cells = ((*case, _pooled([draw["plurigp"]["coverage"] for draw in draws])) for case, draws in cases.items())
    return [*lines, "", *_pictures(result["tables"], methods), "", *_coverage(cells)]


def imputers(result):
    cases = result["cases"]
    methods = list(dict.fromkeys(method for case in cases.values() for method in case))
    lines = [
        (
            "Root mean square error over hidden cells of columns scaled to [0, 1], defaults for all tables; in "
            "brackets seconds, compilation included. The mechanism is `plurigp.datasets.gaps`'.\n"
        ),
        f"| table, mechanism, hidden, draw | {' | '.join(methods)} |",
        f"|---|{'--:|' * len(methods)}",
    ]
    for name, case in cases.items():
        cells = (f"{case[m]['error']:.4f} ({case[m]['seconds']:.0f} s)" if m in case else "" for m in methods)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(f"\nMean ranks of the error over {len(cases)} cases: {_ranked(result['ranks'], len(cases))}")
    if len(result.get("crps_ranks", {})) > 1:
        lines.append(f"\nMean ranks of the CRPS: {_ranked(result['crps_ranks'], len(cases))}")
    lines.append("")
    with_crps = [m for m in methods if any("crps" in case.get(m, {}) for case in cases.values())]
    heads = ["nats per cell", "nats of the map alone", *(f"CRPS, {m}" for m in with_crps)]
    lines += [f"| table, mechanism, hidden, draw | {' | '.join(heads)} |", f"|---|{'--:|' * len(heads)}"]
    for name, case in cases.items():
        own = [f"{case[m]['nats']:.3f}" if m in case else "" for m in ("plurigp", "plurigp, map alone")]
        own += [f"{case[m]['crps']:.4f}" if "crps" in case.get(m, {}) else "" for m in with_crps]
        lines.append(f"| {name} | {' | '.join(own)} |")
    with_intervals = ((*name.rsplit(" ", 2)[:2], case["plurigp"]["coverage"]) for name, case in cases.items())
    return [*lines, "", *_coverage(with_intervals)]


def ablation(result):
    cases = result["cases"]
    variants = list(next(iter(cases.values())))
    lines = [
        (
            "Error of the default imputer, as in the section before, with parts left out; in brackets nats per hidden "
            "cell. The map is the same in all columns but the first.\n"
        ),
        f"| | {' | '.join(cases)} | error over that of all, geometric mean |",
        f"|---|{'--:|' * (len(cases) + 1)}",
    ]
    for variant in variants:
        cells = [f"{case[variant]['error']:.4f} ({case[variant]['nats']:.2f})" for case in cases.values()]
        over = np.exp(np.mean([np.log(case[variant]["error"] / case["all"]["error"]) for case in cases.values()]))
        lines.append(f"| {variant} | {' | '.join(cells)} | {over:.3f} |")
    return lines


def _ranked(ranks, n_cases):
    """Methods and their mean ranks, the best first, with Nemenyi's critical difference."""
    n = len(ranks)
    reach = studentized_range.ppf(0.95, n, np.inf) / np.sqrt(2) * np.sqrt(n * (n + 1) / (6 * n_cases))
    named = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks.items())
    return f"{named}. Critical difference at 5 % (Nemenyi): {reach:.2f}."


def _pictures(tables, methods):
    """Error by rate, a line per method, for every table that was run at several rates."""
    pictures = []
    for table, rates in tables.items():
        series = {}
        for method in methods:
            found = {int(r): [d[method]["error"] for d in draws.values() if method in d] for r, draws in rates.items()}
            known = sorted(rate for rate, errors in found.items() if errors)
            if len(known) > 1:
                series[method] = (known, [float(np.mean(found[rate])) for rate in known])
        if series:
            path = FIGURES / f"imputation_{table}.svg"
            line_chart(path, f"Imputation: {table}", "% hidden", "error", series, False, False)
            pictures.append(f"![error on hidden cells of {table}](figures/{path.name})")
    return pictures


def _means(cases, methods, what, digits, marginal=None):
    """A line per table and rate, a column per method; the mean over the draws that the method was run on."""
    names = [*methods, *(["marginal"] if marginal else [])]
    lines = [f"| table | hidden | draws | {' | '.join(names)} |", f"|---|--:|--:|{'--:|' * len(names)}"]
    for (table, rate), draws in cases.items():
        found = [[draw[m][what] for draw in draws if what in draw.get(m, {})] for m in methods]
        if marginal:
            found.append([draw["plurigp"][marginal] for draw in draws])
        cells = " | ".join(f"{np.mean(of):.{digits}f}" if of else "" for of in found)
        lines.append(f"| {table} | {rate} % | {len(draws)} | {cells} |")
    return lines


def _pooled(runs):
    """Coverage by kind over several draws, weighted by cells: of those from before calibration only if there are no
    others."""
    out = {}
    for kind in dict.fromkeys(kind for run in runs for kind in run):
        parts = [run[kind] for run in runs if kind in run]
        parts = [part for part in parts if len(part) == max(map(len, parts))]
        cells = [part["cells"] for part in parts]
        means = {n: np.average([part[n] for part in parts], weights=cells) for n in parts[0] if n != "cells"}
        out[kind] = {"cells": sum(cells), **means}
    return out


def calibration(result):
    tables = [name for name in result if name != "versions"]
    cells = (
        (table, rate, _pooled([run["coverage"] for run in runs]))
        for table in tables
        for rate, runs in result[table].items()
    )
    return _coverage(cells)


def _coverage(cells):
    lines = [
        (
            "Coverage of nominal intervals (before PIT calibration in brackets), and the calibration error of level "
            "probabilities.\n"
        ),
        "| table | hidden | kind | cells | 50 % | 80 % | 90 % | calibration error |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for table, rate, kinds in cells:
        for kind, c in kinds.items():
            cover = " | ".join(_covered(c, p) for p in NOMINAL)
            error = f"{c['calibration_error']:.3f}" if "calibration_error" in c else ""
            lines.append(f"| {table} | {rate} % | {kind} | {c['cells']} | {cover} | {error} |")
    return lines


def _covered(figures, level):
    """Calibrated, and before calibration where both were measured."""
    if level not in figures:
        return ""
    raw = figures.get(f"raw {level}")
    return f"{figures[level]:.1%}" + (f" ({raw:.1%})" if raw is not None else "")


def pooling(result):
    targets, n = result["targets"], len(result["runs"])
    lines = [
        (
            f"Coverage of 95 % intervals over {n} tables of {result['rows']} rows with a quarter of the cells hidden, "
            f"{result['imputations']} imputations pooled by Rubin's rules; binomial standard error "
            f"{np.sqrt(0.95 * 0.05 / n):.1%}.\n"
        ),
        f"| | {' | '.join(targets)} |",
        f"|---|{'--:|' * len(targets)}",
    ]
    return [*lines, *(f"| {way} | {' | '.join(f'{c:.1%}' for c in of)} |" for way, of in result["covers"].items())]


def encoders(result):
    tables = [name for name in result if name != "versions"]
    ways = list(result[tables[0]]["nats"])
    lines = [
        "Nats per hidden cell, mean over seeds; in brackets the difference from the first column, seed by seed.\n",
        f"| table | rows × columns | {' | '.join(ways)} |",
        f"|---|--:|{'---|' * len(ways)}",
    ]
    for name in tables:
        nats = {way: np.array(of) for way, of in result[name]["nats"].items()}
        cells = [f"{nats[ways[0]].mean():.3f}"]
        for way in ways[1:]:
            away = ", ".join(f"{d:+.3f}" for d in nats[way] - nats[ways[0]])
            cells.append(f"{nats[way].mean():.3f} ({away})")
        lines.append(f"| {name} | {result[name]['rows']:,} × {result[name]['columns']} | {' | '.join(cells)} |")
    return lines


def hiding(result):
    tables = result["tables"]
    shares = list(next(iter(tables.values()))["nats"])
    lines = [
        (
            f"Nats per cell hidden in new rows, {result['rate']:.0f} % of them, by the largest share of a row's cells "
            "that training hides from the encoder; in brackets nats per new row without a gap. Training rows have no "
            "gap. Mean over seeds.\n"
        ),
        f"| table | rows × columns | {' | '.join(f'hiding {share}' for share in shares)} |",
        f"|---|--:|{'---|' * len(shares)}",
    ]
    for name, own in tables.items():
        means = [np.mean(own["nats"][share], axis=0) for share in shares]
        cells = [f"{cell:.3f} ({row:.2f})" for cell, row in means]
        lines.append(f"| {name} | {own['rows']:,} × {own['columns']} | {' | '.join(cells)} |")
    return lines


def latency(result):
    lines = [
        f"A model of {result['columns']} columns, after warm-up.\n",
        f"| | one row | {result['rows']:,} rows |",
        "|---|--:|--:|",
    ]
    for name, own in result.items():
        if isinstance(own, dict) and "one_row_ms" in own:
            lines.append(f"| {name} | {own['one_row_ms']:.1f} ms | {own['rows_s']:.1f} s |")
    return lines
