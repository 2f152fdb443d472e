"""Turn benchmarks/results/*.json into docs/results.md, so that no figure there is typed by hand.

python benchmarks/report.py
"""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"


RECOVERY = (
    "Tables drawn from the model ({rows} rows, Q=2, all families, 20 % gaps). Log score of hidden cells in nats; "
    "*closed* is the share of the distance from the marginals to the oracle that knows the true functions; R² is that "
    "of the true positions on a linear map of the encoded ones.\n"
)
FOOT = "Made by `benchmarks/report.py` from `benchmarks/results/`; rerun the scripts to remake it."


def recovery(result):
    lines = [
        RECOVERY.format(rows=result["rows"]),
        "| seed | marginal | plurigp | oracle | closed | R² |",
        "|---|---|---|---|---|---|",
    ]
    for r in result["runs"]:
        scores = " | ".join(f"{r[k]:.3f}" for k in ("marginal", "model", "oracle"))
        lines.append(f"| {r['seed']} | {scores} | {r['closed']:.1%} | {r['r2']:.3f} |")
    closed, r2 = (np.mean([r[k] for r in result["runs"]]) for k in ("closed", "r2"))
    return [*lines, f"\nMean: {closed:.1%} closed, R² {r2:.3f}."]


def likelihoods(result):
    lines = [
        "Composite likelihoods against Gaussian-for-everything, nats per hidden cell, like with like.\n",
        "| table | family | mean difference | every split |",
        "|---|---|---|---|",
    ]
    for table in (k for k in result if k != "versions"):
        for kind in result[table][0]:
            d = [split[kind]["difference"] for split in result[table]]
            lines.append(f"| {table} | {kind} | {np.mean(d):+.3f} | {', '.join(f'{x:+.3f}' for x in d)} |")
    return lines


def start(result):
    lines = [
        "The informed start against the paper's random one: nats per hidden cell, every seed.\n",
        "| table | start | every seed | sd over seeds | smallest spread of a dimension in use |",
        "|---|---|---|---|---|",
    ]
    for table in (k for k in result if k != "versions"):
        for name, runs in result[table].items():
            cells = [r["cells"] for r in runs]
            smallest = min(r["smallest_spread"] for r in runs)
            each = ", ".join(f"{c:.3f}" for c in cells)
            lines.append(f"| {table} | {name} | {each} | {np.std(cells):.4f} | {smallest:.2f} |")
    return lines


SECTIONS = {"recovery": ("Recovery", recovery), "likelihoods": ("Right likelihoods", likelihoods),
            "start": ("The start", start)}  # fmt: skip

if __name__ == "__main__":
    page = [
        "# Results",
        "",
        "Made by `benchmarks/report.py` from `benchmarks/results/`; rerun the scripts to remake it.",
    ]
    for name, (title, section) in SECTIONS.items():
        path = HERE / "results" / f"{name}.json"
        if path.exists():
            page += [
                "",
                f"## {title}",
                "",
                f"`python benchmarks/{name}.py`",
                "",
                *section(json.loads(path.read_text())),
            ]
    PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("wrote docs/results.md")
