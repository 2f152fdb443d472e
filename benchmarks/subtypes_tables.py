"""What subtypes.py found, as tables in Markdown."""

from collections import defaultdict
from typing import Any

import numpy as np
from scipy.stats import binomtest


def interval(hits: int, n: int) -> str:
    """A share with its exact 95 % interval."""
    low, high = binomtest(hits, n).proportion_ci()
    return f"{hits} of {n} ({100 * low:.0f} to {100 * high:.0f} %)"


def calibration_error(entries: list[dict[str, Any]]) -> float:
    """Mean distance of certainty and accuracy over bins, weighted by rows, of all tables together."""
    rows, certain, right = np.sum([entry["calibration"] for entry in entries], axis=0).T
    kept = rows > 0
    return float(np.abs(certain - right)[kept].sum() / rows.sum())


def show(held: dict[str, Any]) -> None:
    """Every section that is there."""
    both: list[dict[str, Any]] = [*held.get("tables", {}).values(), *held.get("power", {}).values()]
    for name, entries in held.items():
        print(f"\n## {name}\n")
        SECTIONS[name](entries)
    if both:
        print(f"\nCalibration error of memberships: {calibration_error(both):.3f} ({len(both)} tables)")


def _tables(entries: dict[str, Any]) -> None:
    print("| table, hidden | rows | K | K given | K found | strata | groups | p | Q |")
    print(f"|---|{8 * '--:|'}")
    for key, e in entries.items():
        cells = (key, e["rows"], e["K"], f"{e['given']:.2f}", f"{e['found']:.2f}", e["n_strata"], e["n_groups"])
        print("|", " | ".join(map(str, cells)), "|", f"{e['structure_p']:.2g} | {e['n_components']} |")
    means = [np.mean([e[name] for e in entries.values()]) for name in ("given", "found")]
    print(f"\nmean: {means[0]:.3f} given, {means[1]:.3f} found")


def _claims(entries: dict[str, Any]) -> None:
    """By shape or by separation, and rows."""
    together = defaultdict(list)
    for key, entry in entries.items():
        together[" ".join(key.split()[:-1])].append(entry)
    print("| tables | groups claimed | a stratum called a group |\n|---|---|---|")
    for key, own in together.items():
        claimed, robust = (sum(bool(entry[name]) for entry in own) for name in ("structured", "n_robust"))
        print(f"| {key} | {interval(claimed, len(own))} | {interval(robust, len(own))} |")


def _one(entries: dict[str, Any]) -> None:
    """Reported as one group within a continuum: one stratum called a group, nearly all of its rows the planted ones."""
    together = defaultdict(list)
    for key, entry in entries.items():
        together[" ".join(key.split()[:-1])].append(entry["n_robust"] == 1 and min(entry["members"]) > 0.8)
    for key, right in together.items():
        print(f"{key}: {interval(sum(right), len(right))}")


SECTIONS = {"tables": _tables, "level": _claims, "power": _claims, "one": _one}
