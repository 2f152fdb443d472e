"""StudyResult: all that a study found, as plain arrays and frames; saved to a folder and reopened from it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.forms import FormError
from plurigp.core.sealed import digest, sealed_arrays
from plurigp.core.types import DataError
from plurigp.estimator import PluriGP, load
from plurigp.study.contents import check_result, check_result_arrays, checked_frame
from plurigp.study.findings.cluster import Clusters
from plurigp.study.findings.consensus import Consensus
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.null import Nulls
from plurigp.study.findings.valley import Valleys
from plurigp.study.fits import store
from plurigp.study.fits.config import StudyConfig

RESULT_FORMAT = 4
RESULT_FILE, ARRAYS_FILE = "result.json", "arrays.safetensors"
ASSIGNMENTS_FILE, LATENT_FILE = "assignments.csv", "latent.csv"
TABLES_FOLDER, MODEL_FOLDER = "tables", "model"
ABOUT, PARTS = ("facts", "config", "seeds", "versions"), ("consensus", "nulls", "valleys")


@dataclass(frozen=True, eq=False)
class Map:
    """Where every row lies: mean and sd of q(x) [N Q], and a two-dimensional view [N 2] of the means."""

    mean: np.ndarray
    sd: np.ndarray
    view: np.ndarray
    gaps: np.ndarray  # [N] share of the used columns that is a gap in this row


@dataclass(frozen=True, eq=False)
class StudyResult:
    """A finished study. Frames and `facts` speak of groups of rows only; `latent` and `clusters` of single rows.

    facts: title, n_rows, n_columns, gap_share, n_components, n_subtypes (how many were found or asked for; 1 where none
      were found), n_strata (into how many the map is cut and by which it is described: the same, or more where no
      subtypes were found), n_groups (of strata with valleys between them; 1 is a continuum), n_robust, structured
      (whether there is more than one group), structure_p, unseen_gain (nats per unseen row that the strata's mixture
      gains over one Gaussian), level, choice ("evidence", "paper" or "given"), n_paper_clusters, n_outliers, n_refits,
      n_permutations, n_references, pac, sampled_pairs (0 = all), view_method ("umap" or "pca"), bound, stopped,
      test_rows, hidden_cells, split_rows, time_column and event_column or null, notes (warnings of the table and of
      fits).
    columns: column, kind, detail, reason, used, n_observed, gap_share.
    selection: n_components, fit, bound, group_gain (nats that groups add to the bound), score (nats per hidden cell),
      se, gap (to the best, paired), gap_se, best, chosen; one line per Q.
    traces: fit, epoch, bound, kl_x and kl_u per row, spread; fits are select-Q-restart, map-restart, refit-number.
    clusterings: n_clusters, gain (evidence over one cluster, nats per row), shrinkage (of covariances), chosen.
    subtypes: subtype, size, share, certainty, group (of strata without a valley between them), kind ("group": alone,
      "part of a continuum", or "remainder": more than three quarters of the rows), unseen_gain, nearest (the stratum it
      is least apart from), separation, depth and valley_p (from that one), agreement (of half maps), index (consensus),
      index_se, permutation_threshold, permutation_p, robust; one line per stratum, and so below.
    separations: subtype, other, separation (of centres, in sds), depth (density between them over that of the thinner
      flank), p (of there being no valley), apart (whether they are in different groups); one line per two strata.
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
    valleys: Valleys
    columns: pd.DataFrame
    selection: pd.DataFrame
    traces: pd.DataFrame
    clusterings: pd.DataFrame
    subtypes: pd.DataFrame
    separations: pd.DataFrame
    characteristics: pd.DataFrame
    associations: pd.DataFrame
    missingness: pd.DataFrame
    predictions: pd.DataFrame
    calibration: pd.DataFrame
    survival: pd.DataFrame
    risks: pd.DataFrame
    survival_tests: pd.DataFrame
    folder: Path | None = None
    fitted: PluriGP | None = None  # the map, where the study was run in this process

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
        """The fitted map, in memory or from the folder."""
        if self.fitted is not None:
            return self.fitted
        if self.folder is None:
            raise DataError("this study was not saved, so it has no model; run it with a folder.")
        return load(self.folder / MODEL_FOLDER)

    @property
    def plot(self) -> Any:
        """The report's figures for a notebook: `result.plot.consensus()`; `dir(result.plot)` names them all.

        Drawn by the report, which lies above the study: it is looked up by name, so that no study needs it.
        """
        return import_module("plurigp.report.plots").Plots(self)

    @property
    def by_means(self) -> bool:
        """Whether subtypes go by the means of positions alone, as those of the paper's rule do."""
        return bool(self.facts["choice"] == "paper")

    def assign(self, table: Any) -> pd.DataFrame:
        """Place new rows: subtype, a probability per subtype, outlier flag, latent mean and sd; the index is kept.

        The probabilities average over the uncertainty of a row's position: the fewer its cells, the flatter they are.
        The subtype is the likeliest; 0, an outlier, where the probabilities leave more to the outliers' clusters.
        """
        mean, sd = self.model.transform(table, return_std=True)
        subtype, probability = memberships(self.clusters.mixture, mean, None if self.by_means else sd)
        placed = pd.concat([_assignments(subtype, probability), _placed(mean, sd)], axis=1)
        return placed.set_axis(table.index, axis=0) if isinstance(table, pd.DataFrame) else placed

    def save(self, folder: str | Path) -> Path:
        """Write everything into the folder; the same result gives the same bytes."""
        folder = Path(folder)
        if folder != self.folder and (self.folder is not None or self.fitted is not None):
            self.model.save(folder / MODEL_FOLDER)
        (folder / TABLES_FOLDER).mkdir(parents=True, exist_ok=True)
        tables = {f"{TABLES_FOLDER}/{name}.csv": store.csv_bytes(frame) for name, frame in self.frames().items()}
        files = self._files_of_rows()
        content = {
            "format": RESULT_FORMAT,
            **{name: getattr(self, name) for name in ABOUT},
            "frames": {name: store.frame_to_plain(frame) for name, frame in self.frames().items()},
            "files": {name: digest(raw) for name, raw in files.items()},
        }
        written = {**tables, **files, RESULT_FILE: store.json_bytes(content)}
        store.write_whole({folder / name: raw for name, raw in written.items()})
        return folder

    def _files_of_rows(self) -> dict[str, bytes]:
        """Assignments and positions, row by row, and the arrays."""
        map_ = self.latent
        latent = _placed(map_.mean, map_.sd).assign(
            view_1=map_.view[:, 0], view_2=map_.view[:, 1], gap_share=map_.gaps, item_consensus=self.consensus.item
        )
        rows = (
            (ASSIGNMENTS_FILE, _assignments(self.clusters.subtype, self.clusters.probability)),
            (LATENT_FILE, latent),
        )
        files = {name: store.csv_bytes(frame.rename_axis("row").reset_index()) for name, frame in rows}
        parts: dict[str, Any] = {"mixture": self.clusters.mixture, **{name: getattr(self, name) for name in PARTS}}
        arrays = {f"{part}.{field}": array for part, value in parts.items() for field, array in vars(value).items()}
        del arrays["consensus.item"]  # is in the latent file
        return {**files, ARRAYS_FILE: sealed_arrays(arrays, {})}


def load_study(folder: str | Path) -> StudyResult:
    """Open a study that was saved; every file is checked, by its hash and by what it must hold, before it is used."""
    folder = Path(folder)
    path = folder / RESULT_FILE
    content = store.read_json(path, RESULT_FORMAT)
    if content.get("format", 0) != RESULT_FORMAT:
        raise DataError(f"{path}: was written by an older plurigp; {store.ANEW}")
    with store.errors_name(path):
        check_result(content)
        hashes = {name: str(content["files"].get(name)) for name in (ARRAYS_FILE, ASSIGNMENTS_FILE, LATENT_FILE)}
    arrays, _ = store.read_arrays(folder / ARRAYS_FILE, sha256=hashes[ARRAYS_FILE])
    rows, latent = (store.read_csv(folder / name, hashes[name]) for name in (ASSIGNMENTS_FILE, LATENT_FILE))
    frames: dict[str, Any] = {
        name: checked_frame(name, store.frame_from_plain(saved)) for name, saved in content["frames"].items()
    }
    with store.errors_name(folder / ARRAYS_FILE):
        arrays |= _row_arrays(rows, latent)
        check_result_arrays(arrays, content["facts"])
    settings = StudyConfig().to_dict() | content["config"]  # older results lack the newer ones
    return StudyResult(
        **{name: content[name] for name in ABOUT if name != "config"},
        config=settings,
        **frames,
        latent=Map(*(arrays[f"latent.{name}"] for name in ("x", "x_sd", "view", "gap_share"))),
        clusters=Clusters(
            arrays["assignments.subtype"].astype(int), arrays["assignments.p"], Mixture(**_part(arrays, "mixture"))
        ),
        consensus=Consensus(item=arrays["latent.item_consensus"], **_part(arrays, "consensus")),
        nulls=Nulls(**_part(arrays, "nulls")),
        valleys=Valleys(**_part(arrays, "valleys")),
        folder=folder,
    )


def _row_arrays(rows: pd.DataFrame, latent: pd.DataFrame) -> dict[str, np.ndarray]:
    """The columns of the two tables of rows as arrays."""
    needed = {"subtype"} - set(rows.columns) | {"view_1", "view_2", "gap_share", "item_consensus"} - set(latent.columns)
    if needed:
        raise FormError(f"column {sorted(needed)[0]!r} of {ASSIGNMENTS_FILE} or {LATENT_FILE} is missing")
    return {
        "assignments.subtype": rows["subtype"].to_numpy(float),
        "assignments.p": rows.filter(regex=r"^p_\d+$").to_numpy(float),
        "latent.x": latent.filter(regex=r"^x\d+$").to_numpy(float),
        "latent.x_sd": latent.filter(regex=r"^x\d+_sd$").to_numpy(float),
        "latent.view": latent[["view_1", "view_2"]].to_numpy(float),
        **{f"latent.{name}": latent[name].to_numpy(float) for name in ("gap_share", "item_consensus")},
    }


# --- the parts as columns and arrays ---


def _placed(mean: np.ndarray, sd: np.ndarray) -> pd.DataFrame:
    """Latent means and sds as columns x1, …, x1_sd, …"""
    axes = [f"x{q + 1}" for q in range(mean.shape[1])]
    return pd.DataFrame(np.hstack([mean, sd]), columns=[*axes, *(f"{axis}_sd" for axis in axes)])


def _assignments(subtype: np.ndarray, probability: np.ndarray) -> pd.DataFrame:
    shares = {f"p_{k + 1}": probability[:, k] for k in range(probability.shape[1])}
    return pd.DataFrame({"subtype": subtype, **shares, "outlier": subtype == 0})


def _part(arrays: Mapping[str, np.ndarray], part: str) -> dict[str, np.ndarray]:
    return {name.split(".")[1]: array for name, array in arrays.items() if name.split(".")[0] == part}
