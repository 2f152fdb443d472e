"""The sections of docs/results.md on fits that end, interrupts, membership inference, calibration by
simulation, and the weight of kl_u's covariance part."""

import numpy as np
from intervals import NOMINAL


def steady(result):
    lines = [
        "Default fits of 10 epochs, one after another in one process; a fit of more than 120 s counts as hung.\n",
        "| table | cores | fits | ended | first | median | longest |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for shape in (name for name in result if name not in ("versions", "threads")):
        for cores, r in result[shape].items():
            seconds = " | ".join("" if r[k] is None else f"{r[k]:.1f} s" for k in ("first", "median", "longest"))
            lines.append(f"| {shape} | {cores} | {r['fits']} | {r['done']} | {seconds} |")
    if "threads" in result:
        r = result["threads"]
        lines.append(
            f"\nFour threads with ten fits each: {r['fits_same_bytes']} of {r['fits']} gave the same bytes as the fits "
            f"run alone. Eight threads that call transform, impute, describe_gaps and score of one model: "
            f"{r['answers_same_bytes']} of {r['answers']} results with the same bytes as the calls alone."
        )
    return lines


def interrupts(result):
    lines = [
        "SIGINT at random moments: seconds until the process had ended, and processes left running.\n",
        "| what | compiled programs cached | interrupted | exit code 130 | longest | left running |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for what in ("fit", "study", "script"):
        for cached in (False, True):
            runs = [r for r in result["runs"] if (r["what"], r["cached"]) == (what, cached) and r["code"] != 0]
            if runs:
                right, longest = sum(r["code"] == 130 for r in runs), max(r["seconds"] for r in runs)
                left = sum(r["left"] for r in runs)
                lines.append(
                    f"| {what} | {'yes' if cached else 'no'} | {len(runs)} | {right} | {longest:.2f} s | {left} |"
                )
    return lines


COVARIANCE_WEIGHT = (
    "Nats per hidden cell (20 % hidden at random, mean over seeds) by `kl_covariance_weight`, and *off*: the largest "
    "deviation of the coverage from 50, 80 and 90 %, in percentage points, over kinds with at least 500 hidden cells.\n"
)


def covariance_weight(result):
    weights = list(next(r for name, r in result.items() if name != "versions"))
    names = [f"{what} at {w}" for what in ("nats", "off") for w in weights]
    lines = [COVARIANCE_WEIGHT, f"| table | {' | '.join(names)} |", "|---|" + "--:|" * len(names)]
    for name in (name for name in result if name != "versions"):
        nats = [f"{np.mean([run['nats'] for run in result[name][w].values()]):.4f}" for w in weights]
        off = [_worst([run["coverage"] for run in result[name][w].values()]) for w in weights]
        lines.append(f"| {name} | {' | '.join(nats)} | {' | '.join(off)} |")
    return lines


def _worst(seeds, fewest=500):
    """Cells of all seeds together."""
    found = []
    for kind in seeds[0]:
        n = np.array([seed[kind]["cells"] for seed in seeds if kind in seed])
        for level in NOMINAL:
            share = [seed[kind].get(f"{level:.0%}") for seed in seeds if kind in seed]
            if n.sum() >= fewest and None not in share:
                found.append(float(np.average(share, weights=n)) - level)
    return f"{100 * max(found, key=abs):+.1f}" if found else ""


def calibration_cost(result):
    lines = [
        "Seconds of a default fit to its plateau, and of the PIT calibration within it, without compilation.\n",
        "| table | seed | epochs | fit | calibration | share |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name in (name for name in result if name != "versions"):
        for seed, r in enumerate(result[name]):
            times = f"{r['fit']:.1f} s | {r['calibration']:.2f} s | {r['share']:.1%}"
            lines.append(f"| {name} | {seed} | {r['epochs']} | {times} |")
    return lines


MEMBERSHIP = (
    "An attacker who holds whole rows and the model ranks them by what it says of them; half of the rows were trained "
    "on. *Rows*: the density of the whole row. *Cells*: the mean density of its cells, each hidden once. The advantage "
    "is the rate of true alarms minus that of false ones, at the best threshold of one half of the rows, measured on "
    "the other; 0 is guessing. In brackets, 95 % of the bootstrap over rows.\n"
)
ATTACKS = ("rows", "cells")
SECOND_STAGES = {"none": "the map alone", "trees": "with the second stage"}


def membership(result):
    lines = [MEMBERSHIP, "| table | model | attack | fits | AUC | advantage |", "|---|---|---|--:|---|---|"]
    for name in (name for name in result if name != "versions"):
        for stage, found in result[name].items():
            for attack in ATTACKS:
                parts = [_with_range(found[attack][what]) for what in ("auc", "advantage")]
                lines.append(f"| {name} | {SECOND_STAGES[stage]} | {attack} | {found['seeds']} | {' | '.join(parts)} |")
    return lines


def _with_range(three):
    middle, low, high = three
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


SBC = (
    "Small models of one family each; {rows} new rows drawn from each, a third of their cells hidden. *Distance*: "
    "Kolmogorov's, of the shares of draws of x below the true one from uniform ones (p without correction; a row's two "
    "dimensions count as independent). Coverage of central intervals of 50 and 90 %. *Off*: root mean square of the "
    "weighted draws' mean minus the sampler's, in the sampler's sd. R̂: its 99th percentile over rows; where it is well "
    "above 1, the sampler's chains had not met in some rows (several modes), and it is no reference for these.\n"
)


def sbc(result):
    runs = {kind: run for kind, run in result.items() if kind != "versions"}
    lines = [
        SBC.format(rows=next(iter(runs.values()))["rows"]),
        "| family | inference | distance | p | covered by 50 % | by 90 % | off | R̂ |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for kind, run in runs.items():
        for name in ("encoder", "weighted", "reference"):
            r = run[name]
            covered = " | ".join(f"{share:.0%}" for share in r["coverage"].values())
            off = f"{run['mean_off_in_sd']:.2f}" if name == "weighted" else ""
            r_hat = f"{run['r_hat']:.2f}" if name == "reference" else ""
            lines.append(f"| {kind} | {name} | {r['distance']:.3f} | {r['p']:.2f} | {covered} | {off} | {r_hat} |")
    return lines
