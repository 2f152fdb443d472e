"""From the half maps to subtypes: how many, which row belongs to which, and how robust each of them is."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from plurigp.study.findings import consensus, null
from plurigp.study.findings.cluster import Clusters, fixed_mixture
from plurigp.study.findings.consensus import Consensus
from plurigp.study.findings.mixture import memberships, responsibilities
from plurigp.study.findings.null import Nulls
from plurigp.study.findings.robustness import TOO_SMALL, Choice, HalfLabels, matched, pair_agreement
from plurigp.study.fits.config import RULES, StudyConfig
from plurigp.study.fits.learn import Maps

SHOWN_ROWS = 1500  # rows of the consensus matrix that a result keeps, at most
CDF_AT = np.linspace(0, 1, 101)


@dataclass(frozen=True, eq=False)
class Subtypes:
    """The clusters of a map and what is known of their robustness."""

    choice: Choice
    clusters: Clusters
    n_clusters: int  # into which half maps are cut to compare with the clusters
    consensus: Consensus
    nulls: Nulls
    frame: pd.DataFrame  # one line per stratum
    pac: float
    sampled_pairs: int  # 0 = all pairs


def find_subtypes(maps: Maps, config: StudyConfig) -> Subtypes:
    """The number of clusters by stability, the paper's rule or as asked for; then their consensus and both nulls."""
    choice = choose_number(maps.halves, maps.references, config)
    clusters, K = _find_clusters(maps, choice, config)
    rng = np.random.default_rng(config.seed_of("consensus"))
    labels, drawn = (clusters.subtype, clusters.n_strata), maps.halves.drawn(K)
    if len(maps.latent.arrays["mean"]) <= config.consensus_rows:
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
    summary = Consensus(rows, shown, item, *indices, CDF_AT, cdf)
    by_table = np.zeros(0)
    if maps.references is not None:
        by_table = pair_agreement(maps.references, K, TOO_SMALL * config.outlier_share).mean((1, 2))
    nulls = Nulls(permuted, choice.reference, by_table)
    frame = _subtype_frame(clusters, summary, _own_agreement(maps, clusters, K, config), nulls, choice, config)
    return Subtypes(choice, clusters, K, summary, nulls, frame, consensus.pac(values), n_pairs)


def choose_number(halves: HalfLabels, references: HalfLabels | None, config: StudyConfig) -> Choice:
    """Stability by number of clusters, of the data and of every structureless table."""
    least = TOO_SMALL * config.outlier_share
    tried = [K for K in halves.n_clusters if config.max_subtypes >= K]

    def smallest(labels: HalfLabels) -> np.ndarray:
        return np.stack([pair_agreement(labels, K, least).min((1, 2)) for K in tried], axis=1)  # [pairs k]

    by_pair = smallest(halves)
    reference = np.zeros((0, len(tried))) if references is None else smallest(references)
    return Choice(np.array(tried), by_pair.mean(0), reference, config.level, by_pair[0])


def _find_clusters(maps: Maps, choice: Choice, config: StudyConfig) -> tuple[Clusters, int]:
    """The strata of the map, and into how many clusters the half maps are to be cut to compare with them."""
    mean, sd = maps.latent.arrays["mean"], maps.latent.arrays["sd"]
    if config.n_subtypes == "paper":
        mixture, K = maps.paper, maps.n_paper
    else:
        K = choice.described if config.n_subtypes in RULES else int(config.n_subtypes)
        seed = config.seed_of("mixture")
        mixture = fixed_mixture(mean, K, config.covariance, config.mixture_inits, config.outlier_share, seed, sd)
    return Clusters(*memberships(mixture, mean, sd), mixture), K


def _shown_rows(cluster: np.ndarray, item: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All rows or an even sample, ordered by subtype and by how firmly they belong to it; outliers last."""
    rows = np.sort(rng.choice(len(cluster), min(len(cluster), SHOWN_ROWS), replace=False))
    rank = np.where(cluster[rows] > 0, cluster[rows], np.iinfo(int).max)
    return rows[np.lexsort((-np.nan_to_num(item[rows]), rank))]


def _own_agreement(maps: Maps, clusters: Clusters, K: int, config: StudyConfig) -> np.ndarray:
    """Agreement of the half maps' clusters that are nearest to each subtype [n_strata]."""
    component, names = base_labels(clusters, maps.latent.arrays["mean"], K)
    pairs = pair_agreement(maps.halves, K, TOO_SMALL * config.outlier_share)  # [pairs 2 K]
    labels = maps.halves.at(K)
    own = np.zeros(K)
    for r, label in enumerate(labels):
        own += pairs[r // 2, r % 2][matched(component, label, K)] / len(labels)
    return own[np.argsort(names, kind="stable")][-clusters.n_strata :]


def base_labels(clusters: Clusters, x: np.ndarray, K: int) -> tuple[np.ndarray, np.ndarray]:
    """What half maps cut into K are matched with: a cluster 0 … K−1 for every row [N], and its subtype [K].

    By the means of the positions alone: it says which clusters correspond and labels no row.
    Where the mixture has further, small components (the paper's), their rows go to the nearest subtype.
    """
    if len(clusters.mixture.weights) == K:
        return responsibilities(clusters.mixture, x).argmax(1), clusters.mixture.subtype
    return memberships(clusters.mixture, x)[1].argmax(1), np.arange(1, K + 1)


def _subtype_frame(
    clusters: Clusters, summary: Consensus, own: np.ndarray, nulls: Nulls, choice: Choice, config: StudyConfig
) -> pd.DataFrame:
    K, reference, index = clusters.n_strata, nulls.reference_mean, np.diag(summary.between)
    sizes = np.bincount(clusters.subtype, minlength=K + 1)[1:]
    certainty = [clusters.probability[clusters.subtype == k + 1, k].mean() for k in range(K)]
    limit = null.threshold(nulls.permutation, config.level)
    reference_p = null.p_values(np.repeat(reference[:, None], K, axis=1), own)
    robust = (index > limit) & (K > 1) & (choice.structured is True)
    return pd.DataFrame(
        {
            "subtype": np.arange(1, K + 1),
            "size": sizes,
            "share": sizes / len(clusters.subtype),
            "certainty": certainty,
            "index": index,
            "index_se": np.diag(summary.between_se),
            "permutation_threshold": limit,
            "permutation_p": null.p_values(nulls.permutation, index),
            "agreement": own,
            "reference_threshold": np.quantile(reference, 1 - config.level) if len(reference) else np.nan,
            "reference_p": reference_p,
            "robust": robust & (reference_p <= config.level + 1e-12),
        }
    )
