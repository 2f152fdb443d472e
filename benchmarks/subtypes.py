"""Does a study find the groups that are there, and only those?

    python benchmarks/subtypes.py tables FOLDER [TABLE ...] [--hidden 0 0.2] [--peers]
    python benchmarks/subtypes.py level [--tables 100] [--rows 300]
    python benchmarks/subtypes.py power [--tables 20] [--rows 300 500 1000 3000] [--separations 2 3 4 5 6]
    python benchmarks/subtypes.py one [--tables 10] [--rows 500]
    python benchmarks/subtypes.py show

tables: adjusted Rand index of the strata on tables with known groups, which are used for scoring alone, with the number
of groups given and found; `--peers` also runs what a user would pick instead (labelled.py). A TABLE is a name of
labelled.py or the path of any CSV with the label in its last column. level: how often groups are claimed, and any
stratum is called a group, in continua of five shapes. power: the same where three groups are planted, beside the number
of clusters in the same map by a mixture and BIC, the gap statistic and HDBSCAN. one: how often one group of 15 % within
a continuum is reported as just that. Everything goes to results/subtypes.json after every table; what is there is not
run again, so that several of these may share the work with `--first`. `--refits`, `--restarts` and `--components` make
studies cheaper than the defaults; they are kept with the results.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import labelled
import numpy as np
import pandas as pd
from common import RESULTS, versions
from peers.groupers import PEERS, TIME_LIMIT, Worker
from planted import CONTINUA, NARROW, WIDE, continuum, one_group, planted_groups, table_of
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from plurigp.study import Study, StudyConfig, StudyResult
from plurigp.study.findings.certainty import calibrated
from plurigp.study.findings.cluster import Starts, by_size, fit_mixture, informative_part
from plurigp.study.findings.mixture import memberships
from plurigp.study.fits.learn import learn
from plurigp.study.fits.pool import Pool
from plurigp.study.fits.progress import StudyProgress
from plurigp.study.run import settled_schema
from plurigp.study.subtypes import find_subtypes

OURS = "plurigp"
BINS = np.linspace(0, 1, 11)
NOT_NEEDED = {"max_clusters": 2, "mixture_inits": 1, "n_permutations": 20}  # the paper's rule is not looked at
SMALL = 0.15  # share of the one group


def run_study(frame: pd.DataFrame, schema: Any, given: argparse.Namespace, key: str) -> tuple[StudyResult, float]:
    """A study with the defaults, but for what the command line makes cheaper; and its seconds."""
    started = time.perf_counter()
    out = given.keep / key.replace(" ", "-").replace("/", "_") if given.keep else None
    result = Study(schema=schema, out=out, n_jobs=given.jobs, **asked(given)).fit(frame)
    return result, time.perf_counter() - started


def asked(given: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line names."""
    settings = {"n_refits": given.refits, "n_restarts": given.restarts, "n_components": given.components}
    return {name: value for name, value in settings.items() if value is not None}


class Found(NamedTuple):
    """What a study says of groups, without what it says of columns, outcomes and the paper's rule."""

    mean: np.ndarray  # [N Q]
    sd: np.ndarray
    subtype: np.ndarray  # [N]
    facts: dict[str, Any]
    subtypes: pd.DataFrame


def find_groups(frame: pd.DataFrame, schema: Any, given: argparse.Namespace, seed: int) -> tuple[Found, float]:
    """The fits and the tests of a study in this process, where programs are compiled once for all tables."""
    started = time.perf_counter()
    config = StudyConfig.from_dict({**asked(given), "random_state": seed, **NOT_NEEDED})
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        pool = Pool(Path(folder), settled_schema(frame, schema, config), config, 0, None, StudyProgress(0, False))
        maps = learn(pool, frame, config)
    found = find_subtypes(maps, config)
    facts = {
        "n_components": maps.best.n_components,
        "n_strata": found.clusters.n_strata,
        "n_groups": int(found.group.max()),
        "n_robust": int(found.frame["robust"].sum()),
        "structured": found.structured,
        "structure_p": found.p,
        "unseen_gain": float(maps.halves.unseen_gain().mean()),
    }
    latent = maps.latent.arrays
    kept = Found(latent["mean"], latent["sd"], found.clusters.subtype, facts, found.frame)
    return kept, time.perf_counter() - started


def verdict(result: Found | StudyResult) -> dict[str, Any]:
    """What the study says of groups."""
    facts = result.facts
    names = ("n_components", "n_strata", "n_groups", "n_robust", "structured", "structure_p", "unseen_gain")
    kinds = result.subtypes["kind"].tolist()
    return {name: facts[name] for name in names} | {
        "kinds": kinds,
        "shares": result.subtypes["share"].round(3).tolist(),
    }


def cut_into(mean: np.ndarray, sd: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities of the study's map cut into K, as `n_subtypes = K` does it."""
    part = informative_part(mean, sd)
    cut = part.embed(fit_mixture(part.x, K, Starts(part.x, 0), rows=part.rows))
    mixture = by_size(cut.mixture, mean, sd, StudyConfig().outlier_share)
    return memberships(calibrated(mixture, cut.shrinkage, mean, sd, 0), mean, sd)


def calibration(label: np.ndarray, probability: np.ndarray, truth: np.ndarray) -> list[list[float]]:
    """Per bin of the largest probability: rows, its sum, and how many belong to the true group that the stratum is."""
    strata, groups = np.arange(1, probability.shape[1] + 1), np.unique(truth)
    shared = np.array([[np.sum((label == k) & (truth == g)) for g in groups] for k in strata])
    own = dict(zip(strata[(match := linear_sum_assignment(-shared))[0]], groups[match[1]], strict=True))
    right = np.array([own.get(k) == g for k, g in zip(label, truth, strict=True)])
    largest = probability.max(1)
    place = np.clip(np.digitize(largest, BINS) - 1, 0, len(BINS) - 2)
    return [
        [int((place == b).sum()), float(largest[place == b].sum()), int(right[place == b].sum())]
        for b in range(len(BINS) - 1)
    ]


# --- what is run ---


def tables(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """One entry per table and share of hidden cells; K given and found come from the same map."""
    for name in given.names or list(labelled.TABLES):
        for share in given.hidden:
            key = f"{name} {share:g}"
            if key in given.done:
                continue
            frame, labels, schema = labelled.load(name, given.folder)
            result, seconds = run_study(labelled.hide(frame, share, seed=0), schema, given, key)
            K = len(np.unique(labels))
            cut, probability = cut_into(result.latent.mean, result.latent.sd, K)
            yield (
                key,
                {
                    **verdict(result),
                    "rows": len(frame),
                    "K": K,
                    "given": float(adjusted_rand_score(labels, cut)),
                    "found": float(adjusted_rand_score(labels, result.clusters.subtype)),
                    "calibration": calibration(cut, probability, labels),
                    "seconds": seconds,
                },
            )


def level(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Continua without groups, narrow tables with gaps."""
    for seed in range(given.first, given.first + given.tables):
        for shape in given.shapes:
            key = f"{shape} {given.rows[0]} {seed}"
            if key not in given.done:
                x = continuum(shape, given.rows[0], np.random.default_rng([seed, 3]))
                result, seconds = find_groups(*table_of(x, seed, NARROW), given, seed)
                yield key, {**verdict(result), "seconds": seconds}


def power(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Three planted groups, in tables as wide as the paper's."""
    for seed in range(given.first, given.first + given.tables):
        for n_rows in given.rows:
            for separation in given.separations:
                key = f"{separation:g} {n_rows} {seed}"
                if key in given.done:
                    continue
                x, group = planted_groups(3, separation, n_rows, np.random.default_rng([seed, 5]))
                result, seconds = find_groups(*table_of(x, seed, WIDE), given, seed)
                cut, probability = cut_into(result.mean, result.sd, 3)
                yield (
                    key,
                    {
                        **verdict(result),
                        "given": float(adjusted_rand_score(group, cut)),
                        "found": float(adjusted_rand_score(group, result.subtype)),
                        **rivals(informative_part(result.mean, result.sd).x),
                        "calibration": calibration(cut, probability, group),
                        "seconds": seconds,
                    },
                )


def rivals(x: np.ndarray) -> dict[str, int]:
    """How many clusters other rules find in the same map; more than one claims groups."""
    return {"bic": by_bic(x), "gap": by_gap(x), "hdbscan": by_hdbscan(x)}


def by_bic(x: np.ndarray) -> int:
    """scikit-learn's mixture with the least BIC."""
    fits = [GaussianMixture(K, n_init=3, random_state=0, reg_covar=1e-3).fit(x) for K in range(1, 7)]
    return int(np.argmin([fit.bic(x) for fit in fits])) + 1


def by_gap(x: np.ndarray, n_draws: int = 20) -> int:
    """The gap statistic of k-means (Tibshirani et al. 2001) with uniform references along the principal axes."""
    rng, centred = np.random.default_rng(0), x - x.mean(0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    turned = centred @ axes.T

    def log_inertias(points: np.ndarray) -> np.ndarray:
        return np.log([KMeans(K, n_init=3, random_state=0).fit(points).inertia_ for K in range(1, 7)])

    draws = [rng.uniform(turned.min(0), turned.max(0), x.shape) for _ in range(n_draws)]
    logs = np.stack([log_inertias(draw) for draw in draws])
    gap, s = logs.mean(0) - log_inertias(turned), logs.std(0) * np.sqrt(1 + 1 / n_draws)
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - s[1:])
    return int(enough[0]) + 1 if len(enough) else len(gap)


def by_hdbscan(x: np.ndarray) -> int:
    """HDBSCAN with clusters of at least 5 % of the rows; all noise is one group."""
    found = HDBSCAN(min_cluster_size=max(2, len(x) // 20), copy=True).fit_predict(x)
    return max(1, int(found.max()) + 1)


def one(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """One group of 15 % beside a continuum, `--away` of its sds from its middle."""
    for seed in range(given.first, given.first + given.tables):
        for shape in given.shapes[:2]:
            key = f"{shape} {given.away:g} {given.rows[0]} {seed}"
            if key in given.done:
                continue
            x, group = one_group(shape, SMALL, given.away, given.rows[0], np.random.default_rng([seed, 9]))
            result, seconds = find_groups(*table_of(x, seed, WIDE), given, seed)
            alone = result.subtypes[result.subtypes["robust"].astype(bool)]["subtype"].tolist()
            members = [float(np.mean(group[result.subtype == k])) for k in alone]
            yield key, {**verdict(result), "members": members, "seconds": seconds}


RUNS = {"tables": tables, "level": level, "power": power, "one": one}


def keep(path: Path, section: str, entries: Iterator[tuple[str, dict[str, Any]]], settings: dict[str, Any]) -> None:
    """Every entry as soon as it is there, beside what others have written meanwhile."""
    for key, entry in entries:
        held = json.loads(path.read_text()) if path.exists() else {}
        held["versions"] = versions()
        held.setdefault(section, {})[key] = entry | {"settings": settings}
        path.write_text(json.dumps(held, indent=1) + "\n")
        shown = {name: entry[name] for name in ("given", "found", "n_strata", "n_groups", "n_robust") if name in entry}
        print(f"{section} {key}: {shown} p {entry['structure_p']:.3g}, {entry['seconds']:.0f} s", flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=[*RUNS, "show"])
    parser.add_argument("folder", nargs="?", type=Path, help="where the labelled tables are")
    parser.add_argument("names", nargs="*", help="tables, or paths of CSV files")
    parser.add_argument("--hidden", nargs="+", type=float, default=[0.0, 0.2])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", nargs="+", type=int, default=[500])
    parser.add_argument("--shapes", nargs="+", choices=CONTINUA, default=list(CONTINUA))
    parser.add_argument("--separations", nargs="+", type=float, default=[2, 3, 4, 5, 6])
    parser.add_argument("--away", type=float, default=5.0)
    parser.add_argument("--refits", type=int)
    parser.add_argument("--restarts", type=int)
    parser.add_argument("--components", nargs="+", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder to keep the studies of the labelled tables in")
    parser.add_argument("--out", type=Path, default=RESULTS / "subtypes.json")
    return parser.parse_args()


if __name__ == "__main__":
    given = parsed()
    held = json.loads(given.out.read_text()) if given.out.exists() else {}
    if given.section == "show":
        from subtypes_tables import sections

        peers = given.out.with_name("subtypes_peers.json")
        print(*sections(held, json.loads(peers.read_text()) if peers.exists() else {}), sep="\n")
    else:
        given.done = set(held.get(given.section, {}))
        settings = {name: getattr(given, name) for name in ("refits", "restarts", "components")}
        keep(given.out, given.section, RUNS[given.section](given), settings)
        if given.section == "tables" and given.peers:
            worker, out = Worker(TIME_LIMIT), given.out.with_name("subtypes_peers.json")
            for name in given.names or list(labelled.TABLES):
                for share in given.hidden:
                    labelled.one(worker, name, labelled.load(name, given.folder), share, list(PEERS), out, again=False)
