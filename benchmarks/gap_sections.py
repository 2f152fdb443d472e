"""The sections of docs/results.md about gaps: imputation, calibration, pooling, encoders, latency."""

import numpy as np

NOMINAL = ("50%", "80%", "90%")


def imputation(result):
    methods = list(result["runs"][0]["methods"])
    lines = [
        "Error on hidden cells, mean over columns and draws (the script says how); one setting for all tables.\n",
        f"| table | hidden | {' | '.join(methods)} | nats | marginal |",
        f"|---|--:|{'--:|' * (len(methods) + 2)}",
    ]
    for table, rate in dict.fromkeys((r["table"], r["rate"]) for r in result["runs"]):
        runs = [r["methods"] for r in result["runs"] if (r["table"], r["rate"]) == (table, rate)]
        errors = " | ".join(f"{np.mean([run[m]['error'] for run in runs]):.4f}" for m in methods)
        nats = " | ".join(f"{np.mean([run['plurigp'][n] for run in runs]):.3f}" for n in ("nats", "marginal_nats"))
        lines.append(f"| {table} | {rate} % | {errors} | {nats} |")
    cells = ((r["table"], r["rate"], r["methods"]["plurigp"]["coverage"]) for r in result["runs"])
    return [*lines, "", *_coverage(cells)]


def calibration(result):
    tables = [name for name in result if name != "versions"]
    cells = ((table, rate, found["pooled"]) for table in tables for rate, found in result[table].items())
    return _coverage(cells)


def _coverage(cells):
    lines = [
        "What nominal intervals cover, and the calibration error of level probabilities.\n",
        "| table | hidden | kind | cells | 50 % | 80 % | 90 % | calibration error |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for table, rate, kinds in cells:
        for kind, c in kinds.items():
            cover = " | ".join(f"{c[p]:.1%}" if p in c else "" for p in NOMINAL)
            error = f"{c['calibration_error']:.3f}" if "calibration_error" in c else ""
            lines.append(f"| {table} | {rate} % | {kind} | {c['cells']} | {cover} | {error} |")
    return lines


def pooling(result):
    targets, n = result["targets"], len(result["runs"])
    lines = [
        (
            f"How often 95 % intervals cover the truth over {n} tables of {result['rows']} rows, a quarter of cells "
            f"hidden, {result['imputations']} imputations pooled by Rubin's rules; binomial standard error "
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
        "Nats per hidden cell, mean over seeds, and in brackets how far from the first, seed by seed.\n",
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


def latency(result):
    lines = [
        f"| | one row | {result['rows']:,} rows × {result['columns']} columns |",
        "|---|--:|--:|",
    ]
    names = [name for name in result if name not in ("versions", "rows", "columns")]
    return [*lines, *(f"| {n} | {result[n]['one_row_ms']:.1f} ms | {result[n]['all_rows_s']:.1f} s |" for n in names)]
