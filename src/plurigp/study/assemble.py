"""From finished fits to a StudyResult: subtypes, their robustness, what distinguishes them, and their outcomes."""

import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import plurigp
from plurigp.data import Schema, to_rows
from plurigp.data.scale import out_of_scale_message, out_of_scale_row
from plurigp.study.findings import characterise
from plurigp.study.findings.assess import predictive_scores
from plurigp.study.findings.characterise import Groups, Values, read_values, split_groups
from plurigp.study.findings.cluster import informative_part, refit_mixture
from plurigp.study.findings.design import Design, make_design
from plurigp.study.findings.disclosure import pooled_bins, public_detail, without_few_cells
from plurigp.study.findings.mixture import memberships, responsibilities
from plurigp.study.findings.robustness import matched
from plurigp.study.findings.shares import population_shares
from plurigp.study.findings.survival import no_outcome, read_outcome, survival_by_subtype
from plurigp.study.findings.view import view_of
from plurigp.study.fits.config import RULES, StudyConfig
from plurigp.study.fits.learn import Maps
from plurigp.study.fits.pool import Pool
from plurigp.study.fits.tasks import FIRST_REFIT, held_out
from plurigp.study.result import Map, StudyResult
from plurigp.study.subtypes import (
    Subtypes,
    clustering_frame,
    components_of,
    find_subtypes,
    valley_frame,
)

PACKAGES = ("jax", "numpy", "pandas", "scikit-learn", "scipy")
SETTINGS_AMONG_FACTS = ("title", "level", "n_permutations", "n_refits", "n_references")


def assemble_result(  # long: one line for each part of a result
    pool: Pool, maps: Maps, frame: pd.DataFrame, schema: Schema, config: StudyConfig, out: Path
) -> StudyResult:
    """All that needs no further fit; the same fits give the same result."""
    found = find_subtypes(maps, config)
    clusters, values = found.clusters, read_values(frame, schema)
    sampled = make_design(to_rows(frame), config.weights, config.groups)
    outcomes = no_outcome()
    if config.time is not None and config.event is not None and config.time not in config.guides:
        observed = read_outcome(frame, config.time, config.event)
        outcomes = survival_by_subtype(*observed, clusters.subtype, clusters.n_strata, config.horizons, sampled)
    scored = pool.model(maps.scored.name)
    shown, complete = held_out(frame, scored.coder_, maps.scored.rows, config)
    training = scored.coder_.table(frame.iloc[maps.scored.rows])
    predictions, calibration = predictive_scores(scored, training, shown, complete)
    least = config.min_count
    view, method = view_of(maps.latent.arrays["mean"], config.seed_of("view"))
    gaps = np.mean([~cells.seen for cells in values.values()], axis=0)
    return StudyResult(
        facts={
            **_facts(frame, schema, maps, found, config),
            "notes": [*_notes(schema, values, maps), *_refusals(config)],
            "view_method": method,
            "test_rows": len(complete.seen),
            "hidden_cells": int(predictions["cells"].sum()),
            "gap_share": float(gaps.mean()),
        },
        config=config.to_dict(),
        seeds={"random_state": config.random_state, maps.best.name: config.seed_of(maps.best.name)},
        versions=_versions(),
        latent=Map(maps.latent.arrays["mean"], maps.latent.arrays["sd"], view, gaps),
        clusters=clusters,
        consensus=found.consensus,
        nulls=found.nulls,
        columns=_column_frame(frame, schema, values, least),
        selection=maps.selection,
        traces=maps.traces,
        valleys=found.valleys,
        clusterings=clustering_frame(maps),
        subtypes=_with_population(found.frame, clusters.subtype, sampled),
        separations=valley_frame(found.valleys, found.group),
        **_described(pool, maps, frame, schema, values, found, config, sampled),
        missingness=characterise.missingness_frame(schema, values, clusters.subtype, clusters.n_strata, least, sampled),
        predictions=without_few_cells(predictions, least),
        calibration=pooled_bins(calibration, least),
        **dict(zip(("survival", "risks", "survival_tests"), outcomes, strict=True)),
        folder=out,
        fitted=pool.model(maps.best.name),
    )


def _versions() -> dict[str, str]:
    own = {"plurigp": plurigp.__version__, "python": sys.version.split()[0]}
    return own | {name: version(name) for name in PACKAGES}


def _with_population(subtypes: pd.DataFrame, subtype: np.ndarray, sampled: Design | None) -> pd.DataFrame:
    """Shares of the population that weighted rows stand for, outliers included in it, with 95 % intervals."""
    if sampled is None:
        return subtypes
    shares = population_shares(subtype, sampled.weights, groups=sampled.clusters).set_index("label")
    own = shares.reindex(subtypes["subtype"])
    ends = {f"population_{name}": own[name].to_numpy(float) for name in ("share", "low", "high")}
    return subtypes.assign(**ends)


def _described(
    pool: Pool,
    maps: Maps,
    frame: pd.DataFrame,
    schema: Schema,
    values: Values,
    found: Subtypes,
    config: StudyConfig,
    sampled: Design | None = None,
) -> dict[str, pd.DataFrame]:
    """Characteristics and associations on all rows, and tested on the half that the first half map never saw."""
    n = found.clusters.n_strata if found.clusters.n_strata > 1 else 0  # one group has nothing to be compared with
    parts: list[tuple[str, Values, Groups, Design | None]] = [
        ("all", values, lambda name: found.clusters.subtype, sampled)
    ]
    if n:
        groups, unseen = _split_test(pool, maps, frame, found, config)
        own = None if sampled is None else sampled[unseen]
        parts.append(("split", {name: cells[unseen] for name, cells in values.items()}, groups, own))
    compared = Schema(tuple(c for c in schema if c.name not in config.guides)) if n else Schema(())
    least = config.min_count
    lines: dict[str, list[pd.DataFrame]] = {"characteristics": [], "associations": []}
    for rows, cells, groups, own in parts:
        found_lines = characterise.characteristic_frame(compared, cells, groups, n, rows, least, own)
        lines["characteristics"].append(found_lines)
        lines["associations"].append(characterise.association_frame(compared, cells, groups, rows, least, own))
    return {name: pd.concat(frames, ignore_index=True) for name, frames in lines.items()}


def _split_test(
    pool: Pool, maps: Maps, frame: pd.DataFrame, found: Subtypes, config: StudyConfig
) -> tuple[Groups, np.ndarray]:
    """Subtypes by the first half map and its own mixture, for the rows it never saw, numbered like the study's."""
    seen = maps.halves.rows[0]
    unseen = np.setdiff1d(np.arange(len(frame)), seen)
    model = pool.model(FIRST_REFIT)
    mean, sd = model.transform(frame.iloc[seen], return_std=True)
    cut, map_mean, map_sd = maps.cut, maps.latent.arrays["mean"][seen], maps.latent.arrays["sd"][seen]
    part = informative_part(mean, sd)
    mixture = refit_mixture(part.x, responsibilities(cut.mixture, map_mean, map_sd), cut.shrinkage, part.rows)
    mixture = part.embed(replace(cut, mixture=mixture)).mixture
    seen_sd = None if config.n_subtypes == "paper" else map_sd
    cluster, strata = components_of(found.clusters, cut.mixture, map_mean, seen_sd)
    number = np.zeros(cut.n_clusters, int)
    number[matched(cluster, memberships(mixture, mean, sd)[0] - 1, cut.n_clusters)[strata]] = np.arange(
        1, len(strata) + 1
    )
    renamed = replace(mixture, subtype=number[mixture.subtype - 1])
    return split_groups(model, frame.iloc[unseen].reset_index(drop=True), renamed), unseen


def _column_frame(frame: pd.DataFrame, schema: Schema, values: Values, least: int) -> pd.DataFrame:
    """The kind of every column, and how much of it is observed: an open end beside a limit is no gap."""
    told = [public_detail(column, values.get(column.name), least) for column in schema]
    seen = {name: cells.seen for name, cells in values.items()}
    observed = [int(np.sum(seen.get(name, frame[name].notna()))) for name in schema.names]
    return pd.DataFrame(
        {
            "column": list(schema.names),
            "kind": [column.kind for column in schema],
            "detail": [shown for shown, _ in told],
            "reason": [reason for _, reason in told],
            "used": [column.used for column in schema],
            "n_observed": observed,
            "gap_share": [1 - n / len(frame) for n in observed],
        }
    )


def _facts(frame: pd.DataFrame, schema: Schema, maps: Maps, found: Subtypes, config: StudyConfig) -> dict[str, Any]:
    """The numbers that a summary in words is made of."""
    clusters = found.clusters
    asked = config.n_subtypes if config.n_subtypes in RULES else "given"
    settings = {name: getattr(config, name) for name in SETTINGS_AMONG_FACTS}
    return {
        **settings,
        "n_rows": len(frame),
        "n_columns": len(schema.used),
        "n_components": int(maps.best.n_components),
        "n_subtypes": 1 if asked == "evidence" and not found.structured else clusters.n_strata,
        "n_strata": clusters.n_strata,
        "n_groups": int(found.group.max()),
        "n_robust": int(found.frame["robust"].sum()),
        "choice": asked,
        "structured": found.structured,
        "structure_p": found.p,
        "unseen_gain": float(maps.halves.unseen_gain().mean()),
        "n_paper_clusters": maps.n_paper,
        "n_outliers": int(clusters.outlier.sum()),
        "pac": found.pac,
        "sampled_pairs": found.sampled_pairs,
        "bound": float(maps.latent.facts["bound"]),
        "stopped": maps.latent.facts["stopped"],
        "split_rows": len(frame) - len(maps.halves.rows[0]),
        "time_column": None if config.time in config.guides else config.time,
        "event_column": None if config.time in config.guides else config.event,
    }


def _refusals(config: StudyConfig) -> list[str]:
    """Why an outcome is not tested: subtypes that it helped to find differ in it by construction."""
    return [
        f"column {name!r} guided the map with weight {weight:g}: tests of it are refused, since the subtypes were "
        "found with its help; leave it out of guides to test it."
        for name, weight in config.guides.items()
    ]


def _notes(schema: Schema, values: Values, maps: Maps) -> list[str]:
    """Warnings of the fits and of counts out of scale; a result names no row."""
    out = [c for c in schema.used if out_of_scale_row(c, values[c.name].low) is not None]
    return sorted({*maps.notes, *(out_of_scale_message(c, None) for c in out)})
