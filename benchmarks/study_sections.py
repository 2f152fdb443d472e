"""The sections of docs/results.md about studies: planted subtypes, the size of the tests, split tests, kills."""

import numpy as np
import pandas as pd
from scipy.stats import binomtest

PLANTED = (
    "Simulated cohorts with planted subtypes ({rows} patients × 46 columns, separation {separation:g}), a study "
    "of each: {refits} half maps, {references} structureless tables, {epochs} epochs, Q = {components}. *Right* is the "
    "right number of subtypes in a table found to be structured; with one planted, that no structure is found. The "
    "adjusted Rand index is that of the strata, which every table has.\n"
)
SIZE = (
    "Structureless tables ({rows} patients × 12 columns with gaps), clustered by the paper's mixture: the proportion "
    "in which robust subtypes are found, by either null. The first should be 5 %; in brackets 95 % intervals.\n"
)
SPLIT = (
    "Columns of pure noise in structureless tables ({rows} rows, three clusters): the proportion of them with "
    "p < 0.05, which should be 5 %; in brackets 95 % intervals, as if a table's six noise columns were independent.\n"
)
NULLS = {"by_reference": "the structureless reference", "by_permutation": "the paper's permutations"}


def _rates(result, named, tests):
    """Shares with their exact 95 % intervals, from so many tests of every table."""
    n = len(result["runs"])
    for name, words in named.items():
        rate = result["summary"][name]["rate"]
        low, high = binomtest(round(rate * n * tests), n * tests).proportion_ci()
        yield f"| {words} | {n} | {rate:.1%} ({low:.1%} to {high:.1%}) |"


def right(runs):
    """One planted: the table is called structureless. More: it is not, and their number is found."""
    structured = runs["structured"].eq(True)
    return np.where(runs["planted"] == 1, ~structured, structured & (runs["found"] == runs["planted"]))


def planted(result):
    runs = pd.DataFrame(result["runs"])
    runs["right"] = right(runs)
    given = result["arguments"] | {"components": result["arguments"]["components"][0]}
    lines = [
        PLANTED.format(**given),
        "| planted | studies | right | found structured | adjusted Rand | smallest | the paper's rule finds |",
        "|--:|--:|--:|--:|--:|--:|---|",
    ]
    for K, own in runs.groupby("planted"):
        paper = ", ".join(str(n) for n in own["paper"])
        rand = f"{own['ari'].mean():.3f} | {own['ari'].min():.3f}" if K > 1 else "|"
        counts = f"{own['right'].sum()} of {len(own)} | {own['structured'].sum()} of {len(own)}"
        lines.append(f"| {K} | {len(own)} | {counts} | {rand} | {paper} |")
    several = runs[runs["planted"] > 1]
    total = f"\nTwo or more planted: the right number in {several['right'].sum()} of {len(several)}."
    return [*lines, total]


def size(result):
    lines = [SIZE.format(**result["arguments"]), "| null | tables | robust subtypes found |", "|---|--:|--:|"]
    return [*lines, *_rates(result, NULLS, 1)]


def split(result):
    ways = {
        "all": "the rows that define the clusters",
        "split, own cell shown": "the other half, assigned by all its cells",
        "split": 'the other half, assigned without the tested column (a study\'s "split")',
    }
    lines = [SPLIT.format(**result["arguments"]), "| tested on | tables | p < 0.05 |", "|---|--:|--:|"]
    return [*lines, *_rates(result, ways, 6)]


def killed(result):
    runs = pd.DataFrame(result["runs"])
    same = f"{runs['same'].sum()} of {len(runs)} ended with the same bytes as an uninterrupted study"
    when = f"{runs['after'].min():.0f} to {runs['after'].max():.0f} s after their start"
    fits = f"{runs['fits'].min()} to {runs['fits'].max()} fits"
    return [f"Studies killed once, {when}, with {fits} done, then resumed: {same}."]


def support(result):
    one = result["runs"][-1]
    firm = one["structured"] is True
    n = one.get("n_strata", one["n_subtypes"])
    verdict = (
        f"{n} subtypes, {sum(one['robust'])} of them robust"
        if firm
        else f"a continuum without subtypes, described in {n} strata"
        if n > 1
        else "a continuum without subtypes"
    )
    minutes = one["minutes"]
    time = ""
    if minutes:
        rest, references = minutes["all else"], minutes["references"]
        time = f" Minutes on two cores: {rest:.1f} with the report, and {references:.1f} for the structureless tables."
    log_rank = "" if one["log_rank_p"] is None else f" Log-rank test between the groups: p {_p(one['log_rank_p'])}."
    found = (
        f"All {one['n_rows']:,} patients, 30 refits, 1,000 permutations: Q = {one['n_components']}, {verdict} "
        f"(p = {one['structure_p']:.2f} from 19 structureless tables; the paper's rule: {one['n_paper_clusters']}). "
        f"Deaths were not used in the fit.{log_rank}{time}\n"
    )
    head = "| subtype | patients | robust |" if firm else "| stratum | patients | robust subtype |"
    lines = [found, f"{head} dead within 180 days | 95 % interval |", "|--:|--:|---|--:|---|"]
    for risk, size, robust in zip(one["risks"], one["sizes"], one["robust"], strict=True):
        interval = f"{risk['low']:.1%} to {risk['high']:.1%}"
        own = f"{risk['subtype']} | {size:,} | {'yes' if robust else 'no'}"
        lines.append(f"| {own} | {risk['risk']:.1%} | {interval} |")
    return lines


def _p(value):
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
