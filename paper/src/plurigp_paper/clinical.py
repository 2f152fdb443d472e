"""Clinical tables: a simulated cohort with the make-up of the paper's private one, and the real SUPPORT patients."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plurigp.data import Column, Schema
from plurigp.datasets import load_support, simulate_cohort
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.study import StudyResult
from plurigp_paper.charts import heat_chart, line_chart, map_chart
from plurigp_paper.families import NoiseModel
from plurigp_paper.maps import Found, clusters_found, flat_view, full_study, numbers
from plurigp_paper.panel import Fit, PanelData, comparisons, panel_tasks
from plurigp_paper.panel_figures import draw_consensus, draw_panel
from plurigp_paper.runs import Figures, Runs

NAME = "clinical"
NOISES = {"shared": NoiseModel(FLOOR, shared=True), "own": NoiseModel(FLOOR)}
TIME, EVENT = "follow_up_days", "died"


@dataclass(frozen=True)
class Sizes:
    """How large the experiment is: refits, permutations and hold-out as in the paper, fewer splits than its 30."""

    n_rows: int = 1400
    grid: tuple[int, ...] = (2, 4, 6, 10)
    n_restarts: int = 2
    n_splits: int = 4
    max_epochs: int = 200
    n_refits: int = 30
    n_references: int = 0
    study_epochs: int = 100
    support_rows: int = 3000


QUICK = Sizes(
    n_rows=400, grid=(2, 4), n_restarts=1, n_splits=4, max_epochs=60, n_refits=4, n_references=0, study_epochs=40,
    support_rows=400,
)  # fmt: skip


def run(out: Path, sizes: Sizes, quiet: bool = False) -> dict[str, Any]:
    """The cohort with its planted subtypes, its benchmark panel, and SUPPORT."""
    runs = Runs(out, NAME, asdict(sizes), quiet)
    cohort = simulate_cohort(sizes.n_rows, random_state=0)
    settings = {
        "n_components": sizes.grid,
        "n_restarts": sizes.n_restarts,
        "n_subtypes": "paper",
        "test_share": 0.1,
        "max_epochs": sizes.study_epochs,
        "n_refits": sizes.n_refits,
        "n_references": sizes.n_references,
    }
    found, result = full_study(runs.folder / "cohort", cohort.table, cohort.schema, **settings)
    planted = runs.one("cohort-clusters", lambda: clusters_found(found, cohort.subtype))
    _draw_study(runs, "cohort", found, result)
    Q = found.x.shape[1]
    fit = Fit(Q, sizes.max_epochs, batch_size=-(-(sizes.n_rows // 2) // 2))
    splits = range(sizes.n_splits)
    panel = runs.all(panel_tasks(PanelData(cohort.table, cohort.schema), fit, splits, NOISES), side_by_side=True)
    results = {
        "sizes": asdict(sizes),
        "cohort": {**planted, **_facts(found, result)},
        "panel": {noise: comparisons(panel, noise, splits) for noise in NOISES},
        "support": _support(runs, sizes, settings),
    }
    runs.keep(results)
    return results


def draw(figure: Figures, results: dict[str, Any]) -> None:
    """The charts that need the results alone; maps and heat maps are drawn by `run`."""
    draw_panel(figure, results["panel"])
    for name in ("cohort", "support"):
        lines = results[name]["selection"]
        series = {"hidden cells": ([line["n_components"] for line in lines], [line["score"] for line in lines])}
        line_chart(figure(f"{name}-q"), "Choice of Q", "Q", "nats per hidden cell", series, False, False)
        draw_consensus(figure(f"{name}-consensus"), results[name]["consensus"])


def _support(runs: Runs, sizes: Sizes, settings: dict[str, Any]) -> dict[str, Any]:
    """The same study of real patients; their deaths only scorer the subtypes."""
    support = load_support()
    table = pd.concat([support.table, support.outcomes[[TIME, EVENT]]], axis=1)
    table = table.sample(min(sizes.support_rows, len(table)), random_state=0, ignore_index=True)
    aside = (Column(TIME, "aside", "an outcome"), Column(EVENT, "aside", "an outcome"))
    schema = Schema((*support.schema, *aside))
    found, result = full_study(
        runs.folder / "support", table, schema, time=TIME, event=EVENT, horizons=(180.0,), **settings
    )
    _draw_study(runs, "support", found, result)
    risks = result.risks[result.risks["subtype"] > 0]
    return {
        **numbers(found),
        **_facts(found, result),
        "log_rank_p": None if result.survival_tests["p"].isna().all() else float(result.survival_tests["p"].min()),
        "risks": risks[["subtype", "risk", "low", "high"]].to_dict("records"),
    }


def _facts(found: Found, result: StudyResult) -> dict[str, Any]:
    """What the page says of a study besides: the choice of Q, and what differs on rows that made no cluster."""
    split = result.characteristics[result.characteristics["rows"] == "split"]
    return {
        "selection": found.selection[["n_components", "score", "gap", "gap_se", "chosen"]].to_dict("records"),
        "n_columns": int(result.facts["n_columns"]),
        "n_tested": len(split),
        "n_found": int((split["q"] < 0.05).sum()),
    }


def _draw_study(runs: Runs, name: str, found: Found, result: StudyResult) -> None:
    """The map by cluster, t statistics and log odds ratios."""
    groups = np.array(["outliers" if k == 0 else f"cluster {k}" for k in found.subtype])
    view = runs.one(f"{name}-view", lambda: {"view": np.round(flat_view(found.x), 2)})["view"]
    map_chart(runs.figure(f"{name}-map"), np.array(view), groups, f"{len(groups):,} patients")
    lines = result.characteristics[result.characteristics["rows"] == "all"]
    odds = lines["measure"].str.contains("odds")
    for part, value, title in (
        (lines[~odds], "statistic", "t statistic, cluster against the rest"),
        (lines[odds], "estimate", "log odds ratio, cluster against the rest"),
    ):
        if len(part):
            named = part.assign(name=part["column"] + part["level"].map(lambda v: f": {v}" if v else ""))
            wide = named.pivot_table(index="name", columns="subtype", values=value, sort=False)
            names = [str(row)[:26] for row in wide.index]
            figure = runs.figure(f"{name}-{'t' if value == 'statistic' else 'odds'}")
            heat_chart(figure, title, names, [f"cluster {k}" for k in wide.columns], wide.to_numpy(float))
