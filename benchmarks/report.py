"""Turn benchmarks/results/*.json into docs/results.md, so that no figure there is typed by hand.

python benchmarks/report.py            # write the page
python benchmarks/report.py --stale    # the commands whose figures are older than the code they measure
"""

import argparse
import json
from pathlib import Path

import numpy as np
from asked_sections import adjusted, repeated
from gap_sections import ablation, calibration, encoders, hiding, imputation, imputers, latency, pooling
from provenance import changed_modules, measured_at, provenance
from scale_sections import dask_study, growth_columns, killed_groups, registry, scaling
from study_sections import killed, planted, size, split, support
from subtypes_tables import sections
from trust_sections import calibration_cost, covariance_weight, interrupts, membership, sbc, steady

from plurigp_paper.charts import line_chart

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results.md"
FIGURES = PAGE.parent / "figures"


RECOVERY = (
    "Tables drawn from the model ({rows} rows, Q=2, all families, 20 % gaps). Log score of hidden cells in nats. "
    "*Closed* is the proportion of the difference between the marginals and an oracle, which knows the true functions, "
    "that the model attains. R² is from a linear regression of the true positions on the inferred ones.\n"
)
LIKELIHOODS = (
    "Composite likelihoods minus a Gaussian for every column, nats per hidden cell. The Gaussian's score of a discrete "
    "value is the probability of its interval. Where its noise has shrunk to the floor that probability can be zero in "
    "float64; such a cell counts as −690 nats. A few of them dominate the largest mean differences, so the median and "
    "their proportion are given too.\n"
)
FOOT = (
    "Written by `benchmarks/report.py` from `benchmarks/results/`. Every section names the script that measures it and "
    "the version that it was measured with; a section whose code has changed since is marked."
)


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
        LIKELIHOODS,
        "| table | family | mean difference | every split | median of all cells | Gaussian probability zero |",
        "|---|---|---|---|---|---|",
    ]
    for table in (k for k in result if k != "versions"):
        for kind in result[table][0]:
            d = [split[kind]["difference"] for split in result[table]]
            middle, lost = (np.mean([split[kind][what] for split in result[table]]) for what in ("median", "no_mass"))
            each = ", ".join(f"{x:+.3f}" for x in d)
            lines.append(f"| {table} | {kind} | {np.mean(d):+.3f} | {each} | {middle:+.3f} | {lost:.1%} |")
    return lines


FAMILIES = (
    "Thirty columns of one family drawn from the model (Q=2, 20 % of the cells hidden), {seeds} seeds. *Closed* as "
    "above, mean and worst seed. Theta: learned minus true on the unconstrained scale (logarithms, logits, cut "
    "points), mean and central 90 % range over the columns of all seeds.\n"
)


def families(result):
    return [part for name, section in FAMILY_PARTS.items() if name in result for part in section(result[name])]


def _family_recovery(runs_of):
    seeds = max(len(r["runs"]) for r in runs_of.values())
    lines = [FAMILIES.format(seeds=seeds), "| family | rows | closed | worst | theta |", "|---|--:|--:|--:|---|"]
    for kind, r in runs_of.items():
        closed = [run["closed"] for run in r["runs"]]
        names = r["runs"][0]["theta"]
        pooled = {n: np.concatenate([run["theta"][n] for run in r["runs"]]) for n in names}
        spans = (
            f"{n} {d.mean():+.2f} [{np.quantile(d, 0.05):+.2f}, {np.quantile(d, 0.95):+.2f}]" for n, d in pooled.items()
        )
        lines.append(f"| {kind} | {r['rows']} | {np.mean(closed):.1%} | {min(closed):.1%} | {', '.join(spans)} |")
    return lines


CENSORING = (
    "\nFour of twelve lab values with 30 % of the cells below a limit: error of the censored cells and of the column "
    "mean, in sd of the column. *Limit* and *half* replace such cells by the limit or half of it.\n"
)


def _censoring(runs):
    lines = [
        CENSORING,
        "| seed | rmse: censored | limit | half | mean: censored | limit | half |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for seed, r in enumerate(runs):
        cells = [f"{r[way][what]:.3f}" for what in ("rmse", "mean") for way in ("censored", "limit", "half")]
        lines.append(f"| {seed} | {' | '.join(cells)} |")
    return [*lines, f"\nEvery imputed value lies below the limit: {'yes' if all(r['inside'] for r in runs) else 'no'}."]


def _steady(runs):
    finite, smallest = sum(r["finite"] for r in runs), min(r["smallest"] for r in runs)
    found = f"the bound is finite on {finite} of {len(runs)} tables, smallest eigenvalue of S {smallest:.1e}"
    return [f"\nLikelihoods that are not log-concave: {found}."]


def _compiling(r):
    return [f"\nTwelve categorical columns of 2 to 40 levels: {r['first']:.1f} s to the end of the first epoch."]


def _compared(picks):
    right = sum(p["true"] == p["picked"] for p in picks)
    wrong = ", ".join(f"{p['true']} taken for {p['picked']}" for p in picks if p["true"] != p["picked"])
    return [
        f"\n`plurigp check --compare` on 500 rows: {right} of {len(picks)} columns right"
        + (f" ({wrong})." if wrong else ".")
    ]


FAMILY_PARTS = {
    "recovery": _family_recovery,
    "censoring": _censoring,
    "steady": _steady,
    "compile": _compiling,
    "compare": _compared,
}


def start(result):
    lines = [
        "The informed start against the paper's random initialisation: nats per hidden cell, every seed.\n",
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


def speed(result):
    lines = [
        "Milliseconds per training epoch, interleaved in one run. *Useful* counts three large matrix products only.\n",
        "| shape | | ms per epoch | × plurigp | useful GFLOP/s | share of peak |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for shape, r in result["shapes"].items():
        for name, c in r["contestants"].items():
            cells = f"{1e3 * c['seconds']['median']:.1f} | {c['ratio']['median']:.1f} | {c['useful_gflops']:.1f}"
            lines.append(f"| {shape} | {name} | {cells} | {c['share_of_peak']:.0%} |")
        lines.append(f"| {shape} | matrix product | | | {r['peak_gflops']['median']:.1f} | 100% |")
    return lines


TIME_TO_QUALITY = (
    "Seconds of training until hidden cells are predicted as well as by Adam on everything after all its epochs. All "
    "three methods have the same objective, with `kl_covariance_weight` at its default.\n"
)


def time_to_quality(result):
    lines = [
        TIME_TO_QUALITY,
        "| table | seed | method | reached after | final score | seconds in all |",
        "|---|---|---|--:|--:|--:|",
    ]
    pictures = []
    for table in (k for k in result if k != "versions"):
        for run in result[table]:
            seed = run["seed"]
            for way, final in run["final"].items():
                when = "never" if run["reached"][way] is None else f"{run['reached'][way]:.1f} s"
                lines.append(f"| {table} | {seed} | {way} | {when} | {final:.4f} | {run['seconds'][way]:.1f} |")
        paths = result[table][0]["paths"]
        series = {way: ([p["seconds"] for p in path], [p["cells"] for p in path]) for way, path in paths.items()}
        title, drawn = f"Time to quality: {table}, seed 0", FIGURES / f"quality_{table}.svg"
        line_chart(drawn, title, "seconds of training", "nats per hidden cell", series, log_y=False)
        pictures.append(f"![{title}](figures/{drawn.name})")
    return [*lines, "", *pictures]


def growth(result):
    lines = [
        "Rows: 40 mixed columns, 10 % gaps, from Parquet. Columns: half gaussian, half bernoulli.\n",
        "| | seconds per epoch | per row or column | peak memory | 9 epochs, uncalibrated |",
        "|---|--:|--:|--:|--:|",
    ]
    for r in result["rows"]:
        cost = f"{r['epoch']:.3f} | {r['microseconds_per_row']:.1f} µs | {r['peak_gb']:.2f} GB | {r['fit']:.1f} s"
        lines.append(f"| {r['rows']:,} rows | {cost} |")
    lines += growth_columns(result["columns"])
    c = result["cohort"]
    return [*lines, f"\nThe cohort, {c['rows']:,} × {c['columns']}, {c['epochs']} epochs: {c['fit']:.1f} s in all."]


def sweeps(result):
    lines = [
        "Milliseconds per epoch, one size changed at a time.\n",
        "| | size | plurigp | GPyTorch, Z shared |",
        "|---|--:|--:|--:|",
    ]
    pictures = []
    for name in (k for k in result if k != "versions"):
        for r in result[name]:
            ms = [r["milliseconds"].get(who) for who in ("plurigp", "GPyTorch, Z shared")]
            lines.append(f"| {name} | {r['size']} | {' | '.join('' if m is None else f'{m:.1f}' for m in ms)} |")
        sizes, names = [r["size"] for r in result[name]], result[name][0]["milliseconds"]
        series = {who: (sizes, [r["milliseconds"][who] for r in result[name]]) for who in names}
        line_chart(FIGURES / f"sweep_{name}.svg", f"Time per epoch by {name}", name, "ms per epoch", series)
        pictures.append(f"![time per epoch by {name}](figures/sweep_{name}.svg)")
    return [*lines, "", *pictures]


def waiting(result):
    lines = [
        "The clinical table (1,400 × 46, Q = 10) fitted from CSV on the command line, in a new process.\n",
        "| compiled programs | first line | the whole fit |",
        "|---|--:|--:|",
    ]
    for turn in ("cold", "cold again", "warm", "warm again"):
        lines.append(f"| {turn} | {result[turn]['first_line']:.1f} s | {result[turn]['whole']:.1f} s |")
    return [*lines, f"\n`plurigp --help`: {result['help']:.2f} s."]


def subtypes(result):
    peers = HERE / "results" / "subtypes_peers.json"
    return sections(result, json.loads(peers.read_text()) if peers.exists() else {})


SECTIONS = {
    "recovery": ("Recovery", recovery),
    "likelihoods": ("Composite or Gaussian likelihoods", likelihoods),
    "families": ("Families", families),
    "start": ("Initialisation", start),
    "speed": ("Speed", speed),
    "sweeps": ("Sweeps", sweeps),
    "time_to_quality": ("Time to quality", time_to_quality),
    "growth": ("Scaling", growth),
    "registry": ("A registry", registry),
    "scaling": ("Several processes", scaling),
    "killed_groups": ("Killed groups of processes", killed_groups),
    "dask_study": ("A study on Dask", dask_study),
    "waiting": ("Start-up time", waiting),
    "imputation": ("Imputation", imputation),
    "imputers": ("Imputers, on numeric tables", imputers),
    "ablation": ("What the parts of the imputer are worth", ablation),
    "calibration": ("Calibration", calibration),
    "pooling": ("Multiple imputation", pooling),
    "pooling_trees": ("Multiple imputation with the second stage", pooling),
    "encoders": ("Encoders", encoders),
    "hiding": ("Encoders of complete tables", hiding),
    "latency": ("Latency of new rows", latency),
    "calibration_cost": ("Cost of calibration", calibration_cost),
    "steady": ("Termination of fits", steady),
    "interrupts": ("Interrupts", interrupts),
    "membership": ("Membership inference", membership),
    "sbc": ("Simulation-based calibration", sbc),
    "adjusted": ("Covariates, weights, views", adjusted),
    "repeated": ("Several rows per patient", repeated),
    "covariance_weight": ("KL covariance weight", covariance_weight),
    "subtypes": ("Subtypes", subtypes),
    "study_planted": ("Planted subtypes", planted),
    "study_size": ("False positive rate of robust subtypes", size),
    "study_split": ("False positive rate of characteristics", split),
    "study_killed": ("Interrupted studies", killed),
    "study_support": ("SUPPORT", support),
}


def command(name):
    """What measures a result."""
    if name == "pooling_trees":
        return "python benchmarks/pooling.py --trees"
    script = name.replace("_", ".py ") if name.startswith("study_") else f"{name}.py"
    return f"python benchmarks/{script}"


def results():
    """Path and content of every result that is there, by name, in the order of the page."""
    paths = {name: HERE / "results" / f"{name}.json" for name in SECTIONS}
    return {name: (path, json.loads(path.read_text())) for name, path in paths.items() if path.exists()}


def stale():
    """Commands whose figures are older than the code they measure."""
    older = (name for name, found in results().items() if changed_modules(name, measured_at(*found)))
    return [command(name) for name in older]


def page():
    """The whole page: every section with its command, its versions and its figures."""
    lines = ["# Results", "", FOOT]
    for name, (path, result) in results().items():
        title, section = SECTIONS[name]
        head = [f"## {title}", "", f"`{command(name)}`", "", provenance(name, path, result)]
        lines += ["", *head, "", *section(result)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stale", action="store_true", help="print the commands to run again and write nothing")
    if parser.parse_args().stale:
        print(*stale(), sep="\n")
    else:
        PAGE.write_text(page(), encoding="utf-8")
        print("wrote docs/results.md")
