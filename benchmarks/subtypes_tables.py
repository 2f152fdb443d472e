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


def sections(held: dict[str, Any], peers: dict[str, Any]) -> list[str]:
    """Lines of every section that is there, and our tables beside the peers'."""
    lines = []
    for name, (title, told) in SECTIONS.items():
        if name in held:
            lines += [f"**{title}**", "", *told(held[name]), ""]
    for share in sorted({key.rsplit(" ", 1)[1] for key in held.get("tables", {})}):
        for task in ("given", "found"):
            lines += _beside_peers(held["tables"], peers, share, task)
    both: list[dict[str, Any]] = [*held.get("tables", {}).values(), *held.get("power", {}).values()]
    if both:
        lines.append(f"Calibration error of memberships, K given: {calibration_error(both):.3f} ({len(both)} tables).")
    return lines


def _tables(entries: dict[str, Any]) -> list[str]:
    lines = ["| table, hidden | rows | K | K given | K found | strata | groups | p | Q | settings |"]
    lines.append(f"|---|{8 * '--:|'}---|")
    for key, e in entries.items():
        cells = (key, e["rows"], e["K"], f"{e['given']:.2f}", f"{e['found']:.2f}", e["n_strata"], e["n_groups"])
        told = f"{e['structure_p']:.2g} | {e['n_components']} | {settings_of(e)} |"
        lines.append(f"| {' | '.join(map(str, cells))} | {told}")
    shares = sorted({key.rsplit(" ", 1)[1] for key in entries})
    for share in shares:
        own = [e for key, e in entries.items() if key.endswith(f" {share}")]
        given, found = (np.mean([e[name] for e in own]) for name in ("given", "found"))
        told = f"Mean of {len(own)} tables, {100 * float(share):g} % hidden"
        lines += ["", f"{told}: {given:.3f} given, {found:.3f} found."]
    return lines


def settings_of(entry: dict[str, Any]) -> str:
    """What was set cheaper than the defaults."""
    told = (f"{name} {value}" for name, value in entry["settings"].items() if value is not None)
    return ", ".join(told) or "defaults"


def _beside_peers(entries: dict[str, Any], peers: dict[str, Any], share: str, task: str) -> list[str]:
    """Adjusted Rand index of ours and of each peer (0 where it has no answer), means, and how often each is ahead."""
    names = [n for n in peers if f"{n} {share}" in entries and share in peers[n]]
    if not names:
        return []
    columns = ["plurigp", *dict.fromkeys(peer for n in names for peer in peers[n][share])]
    theirs = {n: peers[n][share] for n in names}
    ours = [entries[f"{n} {share}"][task] for n in names]
    found = [[theirs[n].get(peer, {}).get(task, {}).get("rand", 0) for peer in columns[1:]] for n in names]
    scores = np.column_stack([ours, found])
    lines = [f"**K {task}, {100 * float(share):g} % hidden, beside what people use instead**", ""]
    lines += [f"| table | {' | '.join(columns)} |", f"|---|{len(columns) * '--:|'}"]
    rank = (scores[:, None, :] > scores[:, :, None] + 1e-9).sum(2) + 1  # 1 = the best
    for name, row in [*zip(names, scores, strict=True), ("**mean**", scores.mean(0))]:
        lines.append(f"| {name} | {' | '.join(f'{score:.2f}' for score in row)} |")
    lines.append(f"| mean rank | {' | '.join(f'{r:.1f}' for r in rank.mean(0))} |")
    lines.append(f"| first or second | {' | '.join(f'{n} of {len(names)}' for n in (rank <= 2).sum(0))} |")
    return [*lines, ""]


def _together(entries: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By shape or by separation, and rows: the seeds of one kind of table."""
    together = defaultdict(list)
    for key, entry in sorted(entries.items()):
        together[" ".join(key.split()[:-1])].append(entry)
    return together


def _claims(entries: dict[str, Any]) -> list[str]:
    others = [name for name in ("bic", "gap", "hdbscan") if all(name in entry for entry in entries.values())]
    lines = [f"| tables | groups claimed | a stratum called a group |{''.join(f' {name} |' for name in others)}"]
    lines.append(f"|---|---|---|{len(others) * '---|'}")
    for key, own in _together(entries).items():
        claimed, robust = (sum(bool(entry[name]) for entry in own) for name in ("structured", "n_robust"))
        beside = "".join(f" {sum(entry[name] > 1 for entry in own)} of {len(own)} |" for name in others)
        lines.append(f"| {key} | {interval(claimed, len(own))} | {interval(robust, len(own))} |{beside}")
    return lines


def _one(entries: dict[str, Any]) -> list[str]:
    """Reported as one group within a continuum: one stratum called a group, nearly all of its rows the planted ones."""
    lines = ["| continuum, distance, rows | reported as one group within it |", "|---|---|"]
    for key, own in _together(entries).items():
        right = [entry["n_robust"] == 1 and min(entry["members"]) > 0.8 for entry in own]
        lines.append(f"| {key} | {interval(sum(right), len(right))} |")
    return lines


SECTIONS = {
    "tables": ("Tables whose groups are known: adjusted Rand index of the strata", _tables),
    "level": ("Continua without groups", _claims),
    "power": ("Three planted groups, by their distance in sds and the rows", _claims),
    "one": ("One group of 15 % within a continuum", _one),
}
