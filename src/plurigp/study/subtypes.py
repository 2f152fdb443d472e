"""From the half maps to subtypes: which row belongs to which, whether they are groups, and how robust each is."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from plurigp.study.findings import consensus, null
from plurigp.study.findings.certainty import calibrated
from plurigp.study.findings.cluster import Clusters, by_size
from plurigp.study.findings.consensus import Consensus
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.null import Nulls
from plurigp.study.findings.robustness import TOO_SMALL, Halves, matched, pair_agreement
from plurigp.study.findings.valley import Valleys, separate_groups
from plurigp.study.fits.config import StudyConfig
from plurigp.study.fits.learn import Maps

SHOWN_ROWS = 1500  # rows of the consensus matrix that a result keeps, at most
CDF_AT = np.linspace(0, 1, 101)
REMAINDER = 0.75  # a stratum with a larger share is what groups stand apart from, not a group itself
GROUP, PART, REST = "group", "part of a continuum", "remainder"  # what a stratum can be


@dataclass(frozen=True, eq=False)
class Subtypes:
    """The clusters of a map, and what is known of their being groups and of their robustness."""

    clusters: Clusters
    consensus: Consensus
    nulls: Nulls
    valleys: Valleys  # between the strata
    p: float  # of there being more than one group
    group: np.ndarray  # [K] number 1 … of the group that a stratum belongs to, by size
    frame: pd.DataFrame  # one line per stratum
    pac: float
    sampled_pairs: int  # 0 = all pairs

    @property
    def structured(self) -> bool:
        """Whether there is more than one group."""
        return bool(self.group.max() > 1)


def _strata_of(maps: Maps, config: StudyConfig) -> Clusters:
    """Rows in the strata of the cut, or in the paper's, whose mixture is one of the means alone."""
    mean, sd = positions_of(maps, config)
    mixture = maps.paper if sd is None else by_size(maps.cut.mixture, mean, sd, config.outlier_share)
    return Clusters(*memberships(mixture, mean, sd), mixture)


def positions_of(maps: Maps, config: StudyConfig) -> tuple[np.ndarray, np.ndarray | None]:
    """Means of positions and their sd, which the paper's rule does not look at."""
    arrays = maps.latent.arrays
    return arrays["mean"], None if config.n_subtypes == "paper" else arrays["sd"]


def _certain(clusters: Clusters, maps: Maps, config: StudyConfig) -> Clusters:
    """With memberships as certain as mixtures of other rows prove them; those of the paper's mixture are its own."""
    mean, sd = positions_of(maps, config)
    if sd is None:
        return clusters
    mixture = calibrated(clusters.mixture, maps.cut.shrinkage, mean, sd, config.seed_of("certainty"))
    return Clusters(*memberships(mixture, mean, sd), mixture)


def find_subtypes(maps: Maps, config: StudyConfig) -> Subtypes:
    """The strata of the map, which of them are groups by the valleys between them, their consensus and its null."""
    clusters, K = _certain(_strata_of(maps, config), maps, config), maps.cut.n_clusters
    summary, permuted, pac, n_pairs = _consensus_of(maps, clusters, config)
    component, strata = components_of(clusters, maps.cut.mixture, *positions_of(maps, config))
    valleys = _between_strata(maps.halves.valleys(component), strata)
    owner = _goes_with(maps.halves.found_again(component)[strata], clusters)
    valleys = replace(valleys, p=valleys.p[np.ix_(owner, owner)])
    group, p = _groups_of(valleys.p, owner, config.level)
    nulls = Nulls(permuted, np.array([_reference_p(own, config) for own in maps.references]))
    numbered = _by_rows(group, np.bincount(clusters.subtype, minlength=clusters.n_strata + 1)[1:])
    own = _own_agreement(maps, component, K, config)[strata]
    frame = _subtype_frame(maps, clusters, summary, own, nulls, valleys, numbered, config)
    return Subtypes(clusters, summary, nulls, valleys, p, numbered, frame, pac, n_pairs)


def _consensus_of(maps: Maps, clusters: Clusters, config: StudyConfig) -> tuple[Consensus, np.ndarray, float, int]:
    """Consensus, its indices with shuffled labels, the share of ambiguous pairs, and how many pairs were sampled."""
    rng = np.random.default_rng(config.seed_of("consensus"))
    labels, drawn = (clusters.subtype, clusters.n_strata), maps.halves.drawn
    if len(clusters.subtype) <= config.consensus_rows:
        n_pairs, matrix = 0, consensus.consensus_matrix(drawn)
        indices = consensus.matrix_indices(matrix, *labels)
        item = consensus.item_consensus(matrix, *labels)
        values = matrix[np.triu_indices(len(matrix), 1)]
        permuted = null.permuted_by_matrix(matrix, *labels, config.n_permutations, rng)
    else:
        n_pairs = config.sampled_pairs
        indices = consensus.sampled_indices(drawn, *labels, n_pairs // clusters.n_strata, rng)
        item = consensus.item_consensus_by_map(drawn, *labels)
        values = consensus.pair_consensus(drawn, *consensus.random_pairs(drawn.shape[1], n_pairs, rng))
        permuted = null.permuted_by_pairs(drawn, *labels, config.n_permutations, n_pairs, rng)
    rows = _shown_rows(clusters.subtype, item, rng)
    shown, cdf = consensus.consensus_matrix(drawn[:, rows]), consensus.cdf(values, CDF_AT)
    return Consensus(rows, shown, item, *indices, CDF_AT, cdf), permuted, consensus.pac(values), n_pairs


def _shown_rows(cluster: np.ndarray, item: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All rows or an even sample, ordered by subtype and by how firmly they belong to it; outliers last."""
    rows = np.sort(rng.choice(len(cluster), min(len(cluster), SHOWN_ROWS), replace=False))
    rank = np.where(cluster[rows] > 0, cluster[rows], np.iinfo(int).max)
    return rows[np.lexsort((-np.nan_to_num(item[rows]), rank))]


def components_of(
    clusters: Clusters, cut: Mixture, mean: np.ndarray, sd: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """What half maps are compared with: a cluster 0 … K−1 of every row [N], and the one of each stratum.

    `cut` numbers the clusters before small ones count as outliers. The paper's mixture (no sd) is none of its own cuts:
    there the rows of small components go to the nearest stratum.
    """
    mixture, K = clusters.mixture, clusters.n_strata
    if sd is None:
        return memberships(mixture, mean)[1].argmax(1), np.arange(K)
    first = [int(np.flatnonzero(mixture.subtype == k + 1)[0]) for k in range(K)]
    return memberships(cut, mean, sd)[0] - 1, cut.subtype[first] - 1


def _goes_with(again: np.ndarray, clusters: Clusters) -> np.ndarray:
    """The stratum that each [K] is judged as: itself if half maps find it again, or the one that its rows are likeliest
    to be in otherwise. A stratum that most half maps do not find is no group, and no bridge between others either."""
    if not again.any():
        return np.zeros(len(again), int)
    owner = np.arange(len(again))
    for k in np.flatnonzero(~again):
        owner[k] = np.where(again, clusters.probability[clusters.subtype == k + 1].sum(0), -1).argmax()
    return owner


def _groups_of(p: np.ndarray, owner: np.ndarray, level: float) -> tuple[np.ndarray, float]:
    """The group of each stratum [K], 0 …, and the p-value of there being more than one."""
    kept, place = np.unique(owner, return_inverse=True)
    group, found = separate_groups(p[np.ix_(kept, kept)], level)
    return group[place], found


def _between_strata(valleys: Valleys, strata: np.ndarray) -> Valleys:
    """Those between the components that are strata, in their order."""
    return Valleys(*(part[np.ix_(strata, strata)] for part in vars(valleys).values()))


def _reference_p(halves: Halves, config: StudyConfig) -> float:
    """The p-value of groups in a structureless table; small clusters are outliers there as they are in the data."""
    reference = halves.labels[0]
    shares = np.bincount(reference, minlength=halves.n_clusters) / len(reference)
    strata = np.flatnonzero((shares >= config.outlier_share) | (shares == shares.max()))
    return separate_groups(_between_strata(halves.valleys(reference), strata).p, config.level)[1]


def _by_rows(group: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The groups numbered 1 … by their rows, the largest first [K]."""
    order = np.argsort(-np.bincount(group, weights=sizes), kind="stable")
    return np.argsort(order)[group] + 1


def _own_agreement(maps: Maps, component: np.ndarray, K: int, config: StudyConfig) -> np.ndarray:
    """Agreement [K] of the half maps' clusters that are nearest to each component of the map."""
    pairs = pair_agreement(maps.halves, TOO_SMALL * config.outlier_share)  # [pairs 2 K]
    own = np.zeros(K)
    for r, label in enumerate(maps.halves.labels):
        own += pairs[r // 2, r % 2][matched(component, label, K)] / len(maps.halves.labels)
    return own


def clustering_frame(maps: Maps) -> pd.DataFrame:
    """One line per number of clusters; `gain` is its evidence over that of one cluster, in nats per row."""
    N = len(maps.latent.arrays["mean"])
    return pd.DataFrame(
        {
            "n_clusters": [rung.n_clusters for rung in maps.ladder],
            "gain": [(rung.evidence - maps.ladder[0].evidence) / N for rung in maps.ladder],
            "shrinkage": [rung.shrinkage for rung in maps.ladder],
            "chosen": [rung.n_clusters == maps.cut.n_clusters for rung in maps.ladder],
        }
    )


def valley_frame(valleys: Valleys, group: np.ndarray) -> pd.DataFrame:
    """One line for every two strata."""
    first, second = np.triu_indices(len(group), 1)
    return pd.DataFrame(
        {
            "subtype": first + 1,
            "other": second + 1,
            "separation": valleys.separation[first, second],
            "depth": valleys.depth[first, second],
            "p": valleys.p[first, second],
            "apart": group[first] != group[second],
        }
    )


def _subtype_frame(
    maps: Maps,
    clusters: Clusters,
    summary: Consensus,
    agreement: np.ndarray,
    nulls: Nulls,
    valleys: Valleys,
    group: np.ndarray,
    config: StudyConfig,
) -> pd.DataFrame:
    K, index, row_gain = clusters.n_strata, np.diag(summary.between), maps.halves.unseen_gain()
    sizes = np.bincount(clusters.subtype, minlength=K + 1)[1:]
    own = [clusters.subtype == k + 1 for k in range(K)]
    limit = null.threshold(nulls.permutation, config.level)
    nearest = np.argmax(np.where(np.eye(K, dtype=bool), -1, valleys.p), axis=1)
    kind = kinds_of(group, sizes / len(clusters.subtype))
    beyond = index > limit if len(nulls.permutation) else np.ones(K, dtype=bool)
    return pd.DataFrame(
        {
            "subtype": np.arange(1, K + 1),
            "size": sizes,
            "share": sizes / len(clusters.subtype),
            "certainty": [clusters.probability[rows, k].mean() for k, rows in enumerate(own)],
            "group": group,
            "kind": kind,
            "unseen_gain": [row_gain[rows].mean() for rows in own],
            "nearest": nearest + 1,
            "separation": valleys.separation[np.arange(K), nearest],
            "depth": valleys.depth[np.arange(K), nearest],
            "valley_p": valleys.p[np.arange(K), nearest] if K > 1 else np.ones(K),
            "agreement": agreement,
            "index": index,
            "index_se": np.diag(summary.between_se),
            "permutation_threshold": limit,
            "permutation_p": null.p_values(nulls.permutation, index),
            "robust": (kind == GROUP) & beyond,
        }
    )


def kinds_of(group: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What each stratum [K] is: alone in its group, one of several without a valley between them, or the remainder."""
    alone = np.bincount(group)[group] == 1
    kind = np.where(alone, np.where(shares > REMAINDER, REST, GROUP), PART)
    return kind if group.max() > 1 else np.full(len(group), PART)
