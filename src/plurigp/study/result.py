"""StudyResult: all that a study found, as plain arrays and frames; saved to a folder and reopened from it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.types import DataError
from plurigp.estimator import PluriGP, load
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.fits.store import (
    frame_from_plain,
    frame_to_plain,
    read_arrays,
    read_csv,
    read_json,
    write_arrays,
    write_csv,
    write_json,
)

FORMAT = 1
RESULT, ARRAYS, ASSIGNMENTS, LATENT, TABLES, MODEL = (
    "result.json", "arrays.safetensors", "assignments.csv", "latent.csv", "tables", "model",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Map:
    """Where every row lies: mean and sd of q(x) [N Q], and a two-dimensional view [N 2] of the means."""

    mean: np.ndarray
    sd: np.ndarray
    view: np.ndarray
    gaps: np.ndarray  # [N] share of the used columns that is a gap in this row


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which stratum of the map every row belongs to, and the mixture that says so.

    Strata are 1 … K by size; 0 is an outlier, a row of a cluster too small to be one. They are subtypes where the table
    has structure, and describe a continuum where it has none; the columns are named `subtype` in either case.
    """

    subtype: np.ndarray  # [N] int
    probability: np.ndarray  # [N K], the columns are subtypes 1 … K; the rest to one is the outlier clusters' share
    mixture: Mixture

    @property
    def outlier(self) -> np.ndarray:
        """[N] bool."""
        return self.subtype == 0

    @property
    def n_strata(self) -> int:
        return self.probability.shape[1]


@dataclass(frozen=True, eq=False)
class Consensus:
    """How often rows are put together by refits on random halves (Monti et al. 2003).

    `matrix` holds the rows numbered in `rows`, ordered by subtype: all of them, or a sample of a large table.
    """

    rows: np.ndarray  # [n] row numbers
    matrix: np.ndarray  # [n n] in [0, 1]; NaN where two rows were never drawn together
    item: np.ndarray  # [N] mean consensus of a row with its own subtype; NaN for outliers
    between: np.ndarray  # [K K] mean consensus of pairs across (diagonal: within) subtypes
    between_se: np.ndarray  # [K K] standard error from sampling pairs; zero where all pairs were used
    cdf_at: np.ndarray  # [G] consensus values
    cdf: np.ndarray  # [G] share of pairs with at most that consensus


@dataclass(frozen=True, eq=False)
class Nulls:
    """What the indices would be without structure: R draws of each null."""

    permutation: np.ndarray  # [R K] consensus index of each subtype with its labels shuffled
    reference: (
        np.ndarray
    )  # [R k] smallest agreement of the half maps of structureless table r cut into 2, 3, … clusters
    reference_mean: np.ndarray  # [R] mean agreement of its clusters, at the chosen number of clusters


@dataclass(frozen=True, eq=False)
class StudyResult:
    """A finished study. Frames and `facts` speak of groups of rows only; `latent` and `clusters` of single rows.

    facts: title, n_rows, n_columns, gap_share, n_components, n_subtypes (how many were found or asked for; 1 where none
      were found), n_strata (into how many the map is cut and by which it is described: the same, or more where no
      subtypes were found), n_robust (null where that was not tested), structured (true, false, or null where the
      references are too few to tell), structure_p, level, choice ("stability", "paper" or "given"), n_paper_clusters,
      n_outliers, n_refits, n_permutations, n_references, pac, sampled_pairs (0 = all), view_method ("umap" or "pca"),
      bound, stopped, test_rows, hidden_cells, split_rows, time_column and event_column or null, notes (warnings of
      the table and of fits).
    columns: column, kind, detail, reason, used, n_observed, gap_share.
    selection: n_components, fit, bound, score (nats per hidden cell), se, gap (to the best, paired), gap_se, best,
      chosen; one line per Q.
    traces: fit, epoch, bound, kl_x and kl_u per row, spread; fits are select-Q-restart, map-restart, refit-number.
    clusterings: n_clusters, stability, reference_mean, reference_sd, threshold, gain, p, chosen (to cut the map).
    subtypes: subtype, size, share, certainty, index (consensus), index_se, permutation_threshold, permutation_p,
      agreement (of half maps), reference_threshold, reference_p, robust (false where it was not tested); one line per
      stratum, and so below.
    characteristics: rows, subtype, column, kind, level, measure, n_inside, n_outside, inside, outside, estimate, low,
      high, statistic, p, q, effect; `rows` is "all" (circular, to describe) or "split" (tested).
    associations: rows, column, kind, measure, effect, statistic, p, q; over all subtypes at once.
    missingness: subtype, column, n_inside, n_outside, inside, outside, estimate, low, high,
      statistic, p, q; shares of gaps and their log odds ratio.
    predictions: column, kind, cells, model, marginal, gain, se; nats per hidden cell of held-out rows.
    calibration: column, kind, predicted, observed, cells; binned probabilities of levels in hidden cells.
    survival: subtype, time, at_risk, survival, low, high; subtype 0 is everybody. Empty without an outcome.
    risks: subtype, time, at_risk, risk, low, high: one line per subtype and horizon; the risk is NaN where nobody was
      followed so long.
    survival_tests: test, statistic, degrees, p.
    """

    facts: dict[str, Any]
    config: dict[str, Any]
    seeds: dict[str, Any]
    versions: dict[str, str]
    latent: Map
    clusters: Clusters
    consensus: Consensus
    nulls: Nulls
    columns: pd.DataFrame
    selection: pd.DataFrame
    traces: pd.DataFrame
    clusterings: pd.DataFrame
    subtypes: pd.DataFrame
    characteristics: pd.DataFrame
    associations: pd.DataFrame
    missingness: pd.DataFrame
    predictions: pd.DataFrame
    calibration: pd.DataFrame
    survival: pd.DataFrame
    risks: pd.DataFrame
    survival_tests: pd.DataFrame
    folder: Path | None = None

    def frames(self) -> dict[str, pd.DataFrame]:
        """Every frame by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.type is pd.DataFrame}

    def table(self, name: str = "subtypes") -> pd.DataFrame:
        """One of the frames; the subtypes with their sizes and robustness unless another is named."""
        if name not in self.frames():
            raise KeyError(f"no table {name!r}; there are {', '.join(self.frames())}")
        return self.frames()[name]

    @cached_property
    def model(self) -> PluriGP:
        """The fitted map, from the folder."""
        if self.folder is None:
            raise DataError("this study was not saved, so it has no model; run it with a folder.")
        return load(self.folder / MODEL)

    @property
    def plot(self) -> Any:
        """The report's figures for a notebook: `result.plot.consensus()`; `dir(result.plot)` names them all.

        Drawn by the report, which lies above the study: it is looked up by name, so that no study needs it.
        """
        return import_module("plurigp.report.plots").Plots(self)

    def assign(self, table: Any) -> pd.DataFrame:
        """Place new rows: subtype, a probability per subtype, outlier flag, latent mean and sd; the index is kept.

        The probabilities average over the uncertainty of a row's position: the fewer its cells, the flatter they are.
        The subtype is the likeliest; 0, an outlier, where the probabilities leave more to the outliers' clusters.
        """
        mean, sd = self.model.transform(table, return_std=True)
        subtype, probability = memberships(self.clusters.mixture, mean, sd)
        index = table.index if isinstance(table, pd.DataFrame) else None
        latent = pd.DataFrame(np.hstack([mean, sd]), columns=_names(mean.shape[1]), index=index)
        return pd.concat([_assignments(subtype, probability).set_axis(latent.index, axis=0), latent], axis=1)

    def detached(self) -> "StudyResult":
        """The same with its model in memory and no folder."""
        alone = replace(self, folder=None)
        alone.__dict__["model"] = self.model
        return alone

    def save(self, folder: str | Path) -> Path:
        """Write everything into the folder; the same result gives the same bytes."""
        folder = Path(folder)
        if folder != self.folder and (self.folder is not None or "model" in self.__dict__):
            self.model.save(folder / MODEL)
        (folder / TABLES).mkdir(parents=True, exist_ok=True)
        row = pd.DataFrame({"row": np.arange(len(self.latent.mean))})
        assignments = _assignments(self.clusters.subtype, self.clusters.probability)
        write_csv(folder / ASSIGNMENTS, pd.concat([row, assignments], axis=1))
        write_csv(folder / LATENT, pd.concat([row, _latent_frame(self.latent, self.consensus.item)], axis=1))
        for name, frame in self.frames().items():
            write_csv(folder / TABLES / f"{name}.csv", frame)
        write_arrays(folder / ARRAYS, _arrays(self))
        about = {name: getattr(self, name) for name in ("facts", "config", "seeds", "versions")}
        frames = {name: frame_to_plain(frame) for name, frame in self.frames().items()}
        write_json(folder / RESULT, {"format": FORMAT, **about, "frames": frames})
        return folder


def load_study(folder: str | Path) -> StudyResult:
    """Open a study that was saved."""
    folder = Path(folder)
    content = read_json(folder / RESULT)
    if content.get("format", 0) > FORMAT:
        raise DataError(f"{folder / RESULT}: format {content['format']} is newer than this plurigp reads; upgrade it.")
    arrays, _ = read_arrays(folder / ARRAYS)
    rows, latent = read_csv(folder / ASSIGNMENTS), read_csv(folder / LATENT)
    try:
        frames: dict[str, Any] = {name: frame_from_plain(saved) for name, saved in content["frames"].items()}
        if not len(rows) == len(latent) == content["facts"]["n_rows"]:
            raise KeyError("rows")
        return StudyResult(
            facts=content["facts"],
            config=content["config"],
            seeds=content["seeds"],
            versions=content["versions"],
            **frames,
            latent=_map(latent),
            clusters=_clusters(rows, arrays),
            consensus=Consensus(item=latent["item_consensus"].to_numpy(float), **_part(arrays, "consensus")),
            nulls=Nulls(**_part(arrays, "nulls")),
            folder=folder,
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"{folder}: lacks or misstates {error}; run the study again into a new folder.") from None


# --- the parts as columns and arrays ---


def _names(Q: int) -> list[str]:
    return [f"x{q + 1}" for q in range(Q)] + [f"x{q + 1}_sd" for q in range(Q)]


def _assignments(subtype: np.ndarray, probability: np.ndarray) -> pd.DataFrame:
    shares = {f"p_{k + 1}": probability[:, k] for k in range(probability.shape[1])}
    return pd.DataFrame({"subtype": subtype, **shares, "outlier": subtype == 0})


def _latent_frame(latent: Map, item: np.ndarray) -> pd.DataFrame:
    both = pd.DataFrame(np.hstack([latent.mean, latent.sd]), columns=_names(latent.mean.shape[1]))
    return both.assign(view_1=latent.view[:, 0], view_2=latent.view[:, 1], gap_share=latent.gaps, item_consensus=item)


def _map(frame: pd.DataFrame) -> Map:
    sds = [name for name in frame.columns if name.endswith("_sd")]
    means = [name.removesuffix("_sd") for name in sds]
    mean, sd, view = (frame[names].to_numpy(float) for names in (means, sds, ["view_1", "view_2"]))
    return Map(mean, sd, view, frame["gap_share"].to_numpy(float))


def _clusters(frame: pd.DataFrame, arrays: Mapping[str, np.ndarray]) -> Clusters:
    shares = [name for name in frame.columns if name.startswith("p_")]
    return Clusters(frame["subtype"].to_numpy(int), frame[shares].to_numpy(float), Mixture(**_part(arrays, "mixture")))


def _arrays(result: StudyResult) -> dict[str, np.ndarray]:
    parts: dict[str, Any] = {"mixture": result.clusters.mixture, "consensus": result.consensus, "nulls": result.nulls}
    return {
        f"{part}.{field.name}": getattr(value, field.name)
        for part, value in parts.items()
        for field in fields(value)
        if field.name != "item"
    }


def _part(arrays: Mapping[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    return {name.split(".")[1]: array for name, array in arrays.items() if name.split(".")[0] == part}
