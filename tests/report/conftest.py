"""A study result without a fit: a simulated cohort, its planted subtypes, and hostile names where asked for."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plurigp.datasets import simulate_cohort
from plurigp.study import Clusters, Consensus, Map, Nulls, StudyConfig, StudyResult
from plurigp.study.findings.characterise import association_frame, characteristic_frame, missingness_frame, read_values
from plurigp.study.findings.mixture import Mixture
from plurigp.study.findings.survival import survival_by_subtype
from plurigp.study.findings.valley import HISTOGRAM, Valleys
from plurigp.study.findings.view import two_dimensions
from plurigp.study.subtypes import kinds_of, valley_frame

HORIZONS = (30.0, 180.0)
REFITS = 30


def valleys_between(group: np.ndarray) -> Valleys:
    """Strata of different groups [K] have an almost empty valley between them, those of one group have none."""
    K, same = len(group), group[:, None] == group[None, :]
    p, depth = np.where(same, 0.4, 1e-5), np.where(same, 0.85, 0.09)
    np.fill_diagonal(p, 1.0)
    middles = (HISTOGRAM[:-1] + HISTOGRAM[1:]) / 2
    peaks = np.exp(-(middles**2) / 0.05) + np.exp(-((middles - 1) ** 2) / 0.05)
    counts = np.where(same[:, :, None], 6 * np.exp(-((middles - 0.5) ** 2) / 0.4), 10 * peaks) * REFITS / 2
    return Valleys(p, depth, np.where(np.eye(K, dtype=bool), 0.0, np.where(same, 2.1, 4.2)), counts)


def regrouped(result: StudyResult, group: list[int], shares: list[float] | None = None) -> StudyResult:
    """The same strata in these groups, numbered from 1; more than one group makes the table structured."""
    numbers = np.array(group)
    valleys, n_rows = valleys_between(numbers), result.facts["n_rows"]
    table = result.subtypes if shares is None else result.subtypes.assign(share=shares, size=np.array(shares) * n_rows)
    kind, nearest = kinds_of(numbers, table["share"].to_numpy()), np.argmax(valleys.p - 2 * np.eye(len(group)), axis=1)
    own = np.arange(len(group)), nearest
    table = table.assign(
        group=numbers, kind=kind, nearest=nearest + 1, separation=valleys.separation[own], depth=valleys.depth[own],
        valley_p=valleys.p[own], robust=(kind == "group") & (table["index"] > table["permutation_threshold"]),
    )  # fmt: skip
    structured = bool(numbers.max() > 1)
    facts = result.facts | {
        "structured": structured, "structure_p": 2e-5 if structured else 0.4, "n_groups": int(numbers.max()),
        "n_subtypes": len(group) if structured else 1, "n_robust": int(table["robust"].sum()),
    }  # fmt: skip
    return replace(result, facts=facts, subtypes=table, valleys=valleys, separations=valley_frame(valleys, numbers))


def planted_result(n_rows=120, n_subtypes=3, n_binary=4, n_real=5, n_proportion=2, seed=5) -> StudyResult:
    """What a study would say of a cohort whose planted subtypes it found; two rows are outliers.

    All subtypes stand apart, but the last is no more often together than with permuted labels.
    """
    cohort = simulate_cohort(n_rows, n_subtypes, n_binary, n_real, n_proportion, random_state=seed)
    rng = np.random.default_rng(seed)
    subtype = cohort.subtype + 1
    subtype[:2] = 0
    values = read_values(cohort.table, cohort.schema)
    gaps = np.mean([~cells.seen for cells in values.values()], axis=0)
    names, kinds = zip(*((c.name, c.kind) for c in cohort.schema.used), strict=True)
    both = [
        pd.concat([make(rows) for rows in ("all", "split")], ignore_index=True)
        for make in (
            lambda rows: characteristic_frame(cohort.schema, values, lambda _: subtype, n_subtypes, rows),
            lambda rows: association_frame(cohort.schema, values, lambda _: subtype, rows),
        )
    ]
    days = np.ceil(rng.exponential(300 / np.maximum(subtype, 1)))
    survival, risks, tests = survival_by_subtype(
        np.minimum(days, 500.0), (days < 500).astype(float), subtype, n_subtypes, HORIZONS
    )
    order = np.lexsort((np.where(subtype > 0, subtype, 99),))
    together = np.where(subtype[:, None] == subtype[None, :], 0.9, 0.1) + 0.1 * (rng.random((n_rows, n_rows)) - 0.5)
    probability = 0.02 + 0.9 * (subtype[:, None] == np.arange(1, n_subtypes + 1))
    sizes = np.bincount(subtype, minlength=n_subtypes + 1)[1:]
    grid = np.linspace(0, 1, 11)
    config = StudyConfig(time="days", event="died", horizons=HORIZONS)
    last = np.arange(n_subtypes) == n_subtypes - 1
    made = StudyResult(
        facts={
            "title": "Patients of a simulated clinic", "n_rows": n_rows, "n_columns": len(names), "n_components": 4,
            "gap_share": float(gaps.mean()), "n_subtypes": n_subtypes, "n_strata": n_subtypes,
            "level": 0.05, "choice": "evidence", "unseen_gain": 0.62, "n_paper_clusters": 5, "n_outliers": 2,
            "n_refits": REFITS, "n_permutations": 1000, "n_references": 0, "pac": 0.08, "sampled_pairs": 0,
            "view_method": "pca", "bound": -100.0, "stopped": "plateau", "test_rows": n_rows // 5, "hidden_cells": 99,
            "split_rows": n_rows // 2, "time_column": "days", "event_column": "died", "notes": [],
        },
        config=config.to_dict(),
        seeds={"random_state": 0, "map-0": 7},
        versions={"plurigp": "0", "jax": "0"},
        latent=Map(cohort.x, np.full_like(cohort.x, 0.1), two_dimensions(cohort.x), gaps),
        clusters=Clusters(subtype, probability, Mixture(*(np.zeros(0) for _ in range(4)))),
        consensus=Consensus(order, together[np.ix_(order, order)], np.where(subtype > 0, 0.9, np.nan),
                            0.1 + 0.8 * np.eye(n_subtypes), np.zeros((n_subtypes, n_subtypes)), grid, grid),
        nulls=Nulls(0.3 + 0.05 * rng.random((50, n_subtypes)), np.zeros(0)),
        valleys=valleys_between(np.arange(n_subtypes)),
        columns=pd.DataFrame({
            "column": [*names, "days", "died"], "kind": [*kinds, "aside", "aside"], "detail": "",
            "reason": "simulated as this kind", "used": [True] * len(names) + [False] * 2,
            "n_observed": [int(values[name].seen.sum()) for name in names] + [n_rows] * 2,
            "gap_share": [float((~values[name].seen).mean()) for name in names] + [0.0] * 2}),
        selection=pd.DataFrame({
            "n_components": [2, 4, 6], "fit": "select", "bound": -1.0, "group_gain": 12.0, "se": 0.1,
            "score": [-1.6, -1.5, -1.49], "gap": [0.11, 0.01, 0.0], "gap_se": [0.02, 0.02, 0.0],
            "best": [False, False, True], "chosen": [False, True, False]}),
        traces=pd.DataFrame([
            {"fit": fit, "epoch": e, "bound": -90 - 30 / e - k, "kl_x": 1.0, "kl_u": 1.0, "spread": 1.0}
            for k, fit in enumerate(["select-02-0", "map-0", "refit-000", "refit-001"]) for e in range(1, 41)]),
        clusterings=pd.DataFrame({
            "n_clusters": [1, 2, 3, 4], "gain": [0.0, 0.2, 0.41, 0.3], "shrinkage": [0.0, 1.0, 8.0, 64.0],
            "chosen": [False, False, True, False]}),
        subtypes=pd.DataFrame({
            "subtype": np.arange(1, n_subtypes + 1), "size": sizes, "share": sizes / n_rows, "certainty": 0.92,
            "unseen_gain": 0.69, "agreement": 0.88, "index": np.where(last, 0.3, 0.93), "index_se": 0.0,
            "permutation_threshold": 0.36, "permutation_p": np.where(last, 0.4, 0.001)}),
        separations=pd.DataFrame(),
        characteristics=both[0],
        associations=both[1],
        missingness=missingness_frame(cohort.schema, values, subtype, n_subtypes),
        predictions=pd.DataFrame({
            "column": names, "kind": kinds, "cells": 40, "model": -1.0, "marginal": -1.2,
            "gain": np.linspace(-0.05, 0.6, len(names)), "se": 0.05}),
        calibration=pd.DataFrame([
            {"column": name, "kind": kind, "predicted": p, "observed": min(1.0, p + 0.03), "cells": 6}
            for name, kind in zip(names, kinds, strict=True) if kind == "bernoulli" for p in np.arange(0.05, 1, 0.1)]),
        survival=survival, risks=risks, survival_tests=tests,
    )  # fmt: skip
    return regrouped(made, list(range(1, n_subtypes + 1)))


def continuum(result: StudyResult) -> StudyResult:
    """The same table with no subtypes to defend, cut into as many strata to describe it."""
    strata = result.subtypes.assign(agreement=0.55, index=0.7, certainty=0.71, unseen_gain=-0.04)
    tried = result.clusterings.assign(gain=[0.0, 0.02, 0.06, 0.01])
    return regrouped(replace(result, subtypes=strata, clusterings=tried), [1] * len(strata))


def structureless(result: StudyResult) -> StudyResult:
    """The same table without subtypes and not cut either, as one group was asked for."""
    n = result.facts["n_rows"]
    one = Clusters(np.ones(n, int), np.ones((n, 1)), result.clusters.mixture)
    lone = result.subtypes.head(1).assign(size=n, share=1.0)
    facts = result.facts | {"n_strata": 1, "n_outliers": 0, "choice": "given", "unseen_gain": 0.0}
    empty = ("characteristics", "associations", "missingness", "survival_tests")
    none = {name: result.frames()[name].head(0) for name in empty}
    tried = result.clusterings.assign(chosen=False)
    config = result.config | {"n_subtypes": 1}
    made = replace(result, facts=facts, config=config, clusters=one, subtypes=lone, clusterings=tried, **none)
    return regrouped(made, [1])


def renamed(result: StudyResult, hostile: list[str]) -> StudyResult:
    """Every name and every word that comes from somebody's table is hostile."""
    used = result.columns["column"].to_list()
    new = {name: hostile[place % len(hostile)] + "\u200a" * (place // len(hostile)) for place, name in enumerate(used)}
    frames = {
        name: frame.assign(column=frame["column"].map(new)) if "column" in frame else frame
        for name, frame in result.frames().items()
    }
    frames["columns"] = frames["columns"].assign(detail=hostile[0], reason=hostile[1])
    frames["characteristics"] = frames["characteristics"].assign(
        level=frames["characteristics"]["level"].replace("True", hostile[2])
    )
    frames["traces"] = frames["traces"].assign(fit=hostile[3])
    facts = result.facts | {"title": " ".join(hostile)[:180], "time_column": hostile[4], "event_column": hostile[5],
                            "notes": hostile}  # fmt: skip
    about = {"config": result.config | {"title": hostile[6]}, "versions": {hostile[7]: hostile[8]}}
    return replace(result, facts=facts, **about, **frames)


@pytest.fixture(scope="session")
def result() -> StudyResult:
    """Small, with everything in it."""
    return planted_result()


@pytest.fixture(scope="session")
def regroup():
    """`regrouped`, to make a result with other groups."""
    return regrouped


@pytest.fixture(scope="session")
def graded(result) -> StudyResult:
    """A continuum, described in strata."""
    return continuum(result)


@pytest.fixture(scope="session")
def lone(result) -> StudyResult:
    """The same table without structure."""
    return structureless(result)


@pytest.fixture(scope="session")
def of_paper_size() -> StudyResult:
    """As many rows and columns as the paper's hospital data."""
    return planted_result(1400, 4, 20, 20, 6)


@pytest.fixture(scope="session")
def hostile() -> list[str]:
    """Fifty names meant to run a script, break the page or vanish."""
    return json.loads((Path(__file__).parent / "hostile.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def hostile_result(hostile) -> StudyResult:
    """A result with those names everywhere."""
    return renamed(planted_result(200, 3, 20, 25, 5), hostile)


@pytest.fixture(scope="session")
def forged_result(result) -> StudyResult:
    """A result whose column names look like what the browser returns for a figure."""
    url = "data:image/svg+xml,%3Cevil data:image/png;base64,AAAA"
    return renamed(result, [url, "</html>", "picture:evil:svg:<svg>", "../../evil"] * 3)


@pytest.fixture(scope="session")
def hostile_graded(hostile_result) -> StudyResult:
    """A continuum with those names."""
    return continuum(hostile_result)
