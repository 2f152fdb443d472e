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


def show(held: dict[str, Any], peers: dict[str, Any]) -> None:
    """Every section that is there, and our tables beside the peers'."""
    both: list[dict[str, Any]] = [*held.get("tables", {}).values(), *held.get("power", {}).values()]
    for name, entries in held.items():
        print(f"\n## {name}\n")
        SECTIONS[name](entries)
    for share in sorted({key.rsplit(" ", 1)[1] for key in held.get("tables", {})}):
        for task in ("given", "found"):
            _beside_peers(held["tables"], peers, share, task)
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


def _beside_peers(entries: dict[str, Any], peers: dict[str, Any], share: str, task: str) -> None:
    """Adjusted Rand index of ours and of each peer (0 where it has no answer), means, and how often each is ahead."""
    names = [n for n in peers if f"{n} {share}" in entries and share in peers[n]]
    if not names:
        return
    columns = ["plurigp", *dict.fromkeys(peer for n in names for peer in peers[n][share])]
    theirs = {n: peers[n][share] for n in names}
    ours = [entries[f"{n} {share}"][task] for n in names]
    found = [[theirs[n].get(peer, {}).get(task, {}).get("rand", 0) for peer in columns[1:]] for n in names]
    scores = np.column_stack([ours, found])
    print(f"\n### K {task}, {100 * float(share):g} % hidden\n\n| table | {' | '.join(columns)} |")
    print(f"|---|{len(columns) * '--:|'}")
    rank = (scores[:, None, :] > scores[:, :, None] + 1e-9).sum(2) + 1  # 1 = the best
    for name, row in [*zip(names, scores, strict=True), ("**mean**", scores.mean(0))]:
        print(f"| {name} | {' | '.join(f'{score:.2f}' for score in row)} |")
    print(f"| mean rank | {' | '.join(f'{r:.1f}' for r in rank.mean(0))} |")
    print(f"| first or second | {' | '.join(f'{n} of {len(names)}' for n in (rank <= 2).sum(0))} |")


def _claims(entries: dict[str, Any]) -> None:
    """By shape or by separation, and rows."""
    together = defaultdict(list)
    for key, entry in entries.items():
        together[" ".join(key.split()[:-1])].append(entry)
    others = [name for name in ("bic", "gap", "hdbscan") if all(name in entry for entry in entries.values())]
    print(f"| tables | groups claimed | a stratum called a group |{''.join(f' {name} |' for name in others)}")
    print(f"|---|---|---|{len(others) * '---|'}")
    for key, own in together.items():
        claimed, robust = (sum(bool(entry[name]) for entry in own) for name in ("structured", "n_robust"))
        beside = "".join(f" {sum(entry[name] > 1 for entry in own)} of {len(own)} |" for name in others)
        print(f"| {key} | {interval(claimed, len(own))} | {interval(robust, len(own))} |{beside}")


def _one(entries: dict[str, Any]) -> None:
    """Reported as one group within a continuum: one stratum called a group, nearly all of its rows the planted ones."""
    together = defaultdict(list)
    for key, entry in entries.items():
        together[" ".join(key.split()[:-1])].append(entry["n_robust"] == 1 and min(entry["members"]) > 0.8)
    for key, right in together.items():
        print(f"{key}: {interval(sum(right), len(right))}")


SECTIONS = {"tables": _tables, "level": _claims, "power": _claims, "one": _one}
