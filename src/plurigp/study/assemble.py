"""From finished fits to a StudyResult: subtypes, their robustness, what distinguishes them, what became of them."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import plurigp
from plurigp.data import Schema
from plurigp.data.schema import detail
from plurigp.estimator import load
from plurigp.study.findings.assess import assess
from plurigp.study.findings.characterise import (
    Groups,
    Values,
    associations,
    characteristics,
    missingness,
    read_values,
    split_groups,
)
from plurigp.study.findings.cluster import HALF_INITS, Choice, fixed_mixture, matched
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.robustness import Robustness, base_labels, choose, component_of, robustness, untested
from plurigp.study.findings.survival import no_outcome, read_outcome, survival_by_subtype
from plurigp.study.findings.view import view_of
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.learn import Maps
from plurigp.study.fits.pool import Pool
from plurigp.study.fits.tasks import FIRST_REFIT, held_out_rows, seed_of
from plurigp.study.result import Clusters, Map, StudyResult

PACKAGES = ("jax", "numpy", "pandas", "scikit-learn", "scipy")


def judge(
    pool: Pool, maps: Maps, frame: pd.DataFrame, schema: Schema, config: StudyConfig, out: Path | None
) -> StudyResult:
    """All that needs no further fit; the same fits give the same result."""
    mean, sd = maps.latent.arrays["mean"], maps.latent.arrays["sd"]
    choice = choose(maps.halves, maps.references, config)
    clusters, K = find_clusters(mean, sd, maps.paper, choice, config)
    found = robustness(mean, clusters, K, maps.halves, maps.references, choice, config)
    values = read_values(frame, schema)
    described = describe(pool, maps, frame, schema, clusters, K, config)
    curves, risks, tests = outcomes(frame, clusters, config)
    predictions, calibration = assess(pool.model_folder(maps.judged), frame, maps.judged.rows, config)
    view, method = view_of(mean, seed_of(config.random_state, "view"))
    gaps = np.mean([~cells.seen for cells in values.values()], axis=0)
    return StudyResult(
        facts=facts(frame, schema, maps, clusters, choice, found, config)
        | {"view_method": method, "hidden_cells": int(predictions["cells"].sum()), "gap_share": float(gaps.mean())},
        config=config.to_dict(),
        seeds={"random_state": config.random_state, maps.best.name: seed_of(config.random_state, maps.best.name)},
        versions={"plurigp": plurigp.__version__, "python": sys.version.split()[0]}
        | {name: version(name) for name in PACKAGES},
        latent=Map(mean, sd, view, gaps),
        clusters=clusters,
        consensus=found.consensus,
        nulls=found.nulls,
        columns=column_frame(frame, schema, values),
        selection=maps.selection,
        traces=maps.traces,
        clusterings=choice.frame(K),
        subtypes=found.subtypes,
        missingness=missingness(schema, values, clusters.subtype, clusters.n_strata),
        predictions=predictions,
        calibration=calibration,
        survival=curves,
        risks=risks,
        survival_tests=tests,
        folder=out,
        **described,
    )


def find_clusters(
    mean: np.ndarray, sd: np.ndarray, paper: Mixture, choice: Choice, config: StudyConfig
) -> tuple[Clusters, int]:
    """The strata of the map, and into how many clusters the half maps are to be cut to compare with them."""
    if config.n_subtypes == "paper":
        mixture, K = paper, int((paper.subtype > 0).sum())
    else:
        K = choice.described if config.n_subtypes == "stability" else int(config.n_subtypes)
        seed = seed_of(config.random_state, "mixture")
        mixture = fixed_mixture(mean, K, config.covariance, config.mixture_inits, config.outlier_share, seed, sd)
    return Clusters(*memberships(mixture, mean, sd), mixture), K


def describe(
    pool: Pool, maps: Maps, frame: pd.DataFrame, schema: Schema, clusters: Clusters, K: int, config: StudyConfig
) -> dict[str, Any]:
    """Characteristics and associations on all rows, and tested on the half that the first half map never saw."""
    n = clusters.n_strata
    values = read_values(frame, schema)

    def own(name: str) -> np.ndarray:
        return clusters.subtype

    if n < 2:
        return {
            "characteristics": characteristics(schema, values, own, 0, "all"),
            "associations": associations(Schema(()), values, own, "all"),
        }
    split, rows = split_test(pool, maps, frame, clusters, K, config)
    unseen = {name: cells[rows] for name, cells in values.items()}
    return {
        "characteristics": pd.concat(
            [characteristics(schema, values, own, n, "all"), characteristics(schema, unseen, split, n, "split")],
            ignore_index=True,
        ),
        "associations": pd.concat(
            [associations(schema, values, own, "all"), associations(schema, unseen, split, "split")],
            ignore_index=True,
        ),
    }


def split_test(
    pool: Pool, maps: Maps, frame: pd.DataFrame, clusters: Clusters, K: int, config: StudyConfig
) -> tuple[Groups, np.ndarray]:
    """Subtypes by the first half map and its own mixture, for the rows it never saw, numbered like the study's."""
    seen = maps.halves.rows[0]
    unseen = np.setdiff1d(np.arange(len(frame)), seen)
    model = load(pool.folder / FIRST_REFIT)
    x, sd = model.transform(frame.iloc[seen], return_std=True)
    mixture = fixed_mixture(x, K, config.covariance, HALF_INITS, 0.0, seed_of(config.random_state, "split"), sd)
    component, names = base_labels(clusters, maps.latent.arrays["mean"][seen], K)
    subtype = np.zeros(K, int)
    subtype[matched(component, component_of(mixture, x), K)] = names
    renamed = Mixture(mixture.weights, mixture.means, mixture.covariances, subtype)
    return split_groups(model, frame.iloc[unseen].reset_index(drop=True), renamed), unseen


def outcomes(
    frame: pd.DataFrame, clusters: Clusters, config: StudyConfig
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Survival by subtype where the table has an outcome pair."""
    if config.time is None or config.event is None:
        return no_outcome()
    time, event = read_outcome(frame, config.time, config.event)
    return survival_by_subtype(time, event, clusters.subtype, clusters.n_strata, config.horizons)


def column_frame(frame: pd.DataFrame, schema: Schema, values: Values) -> pd.DataFrame:
    """What every column was taken for, and how much of it is there: an open end beside a limit is no gap."""
    seen = {name: cells.seen for name, cells in values.items()}
    observed = [int(np.sum(seen.get(name, frame[name].notna()))) for name in schema.names]
    return pd.DataFrame(
        {
            "column": list(schema.names),
            "kind": [column.kind for column in schema],
            "detail": [detail(column) for column in schema],
            "reason": [column.reason for column in schema],
            "used": [column.kind != "aside" for column in schema],
            "n_observed": observed,
            "gap_share": [1 - n / len(frame) for n in observed],
        }
    )


def facts(
    frame: pd.DataFrame,
    schema: Schema,
    maps: Maps,
    clusters: Clusters,
    choice: Choice,
    found: Robustness,
    config: StudyConfig,
) -> dict[str, Any]:
    """The numbers that a summary in words is made of."""
    asked = config.n_subtypes if config.n_subtypes in ("stability", "paper") else "given"
    test = {"structured": choice.structured, "level": config.level, "n_permutations": config.n_permutations}
    return {
        **test,
        "title": config.title,
        "n_rows": len(frame),
        "n_columns": len(schema.used),
        "n_components": int(maps.best.n_components),
        "n_subtypes": 1 if asked == "stability" and choice.structured is False else clusters.n_strata,
        "n_strata": clusters.n_strata,
        "n_robust": None if untested(test) else int(found.subtypes["robust"].sum()),
        "choice": asked,
        "structure_p": choice.p,
        "n_paper_clusters": int((maps.paper.subtype > 0).sum()),
        "n_outliers": int(clusters.outlier.sum()),
        "n_refits": config.n_refits,
        "n_references": config.n_references,
        "pac": found.pac,
        "sampled_pairs": found.sampled_pairs,
        "bound": float(maps.latent.facts["bound"]),
        "stopped": maps.latent.facts["stopped"],
        "test_rows": len(held_out_rows(len(frame), maps.judged.rows, config)),
        "split_rows": len(frame) - len(maps.halves.rows[0]),
        "time_column": config.time,
        "event_column": config.event,
        "notes": maps.notes,
    }
