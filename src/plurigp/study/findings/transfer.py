"""Two labellings of the same rows: does a group structure that one cohort has found hold in another?"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

N_RESAMPLINGS = 200
STABLE, PATTERN = 0.75, 0.5  # Jaccard overlaps (Hennig 2007): valid and stable, and dissolved below


@dataclass(frozen=True, eq=False)
class Transfer:
    """How the labels that a first study gives to rows agree with a second study's own; 0 is an outlier.

    rand: the adjusted Rand index over rows that are outliers for neither, with its 95 % interval over rows.
    groups: one line per group of the first study: group, size and share of the rows it is assigned, certainty (mean
      probability), nearest (the second study's group that overlaps most), jaccard, verdict.
    counts: rows by the first study's group (lines) and the second's (columns).
    """

    n_rows: int
    rand: float
    low: float
    high: float
    outliers_first: int
    outliers_second: int
    groups: pd.DataFrame
    counts: pd.DataFrame


def measure_transfer(first: np.ndarray, probability: np.ndarray, second: np.ndarray, seed: int = 0) -> Transfer:
    """Labels [N] by the first study, their probabilities [N K] and labels [N] by the second."""
    both = (first > 0) & (second > 0)
    a, b = first[both], second[both]
    rng = np.random.default_rng(seed)
    draws = [rng.integers(len(a), size=len(a)) for _ in range(N_RESAMPLINGS)] if len(a) else []
    rands = [adjusted_rand_score(a[rows], b[rows]) for rows in draws]
    low, high = np.quantile(rands, (0.025, 0.975)).tolist() if rands else (np.nan, np.nan)
    counts = pd.crosstab(pd.Series(first, name="first"), pd.Series(second, name="second"))
    groups = pd.DataFrame([_group(k, first, probability, second) for k in range(1, probability.shape[1] + 1)])
    rand = float(adjusted_rand_score(a, b)) if len(a) else np.nan
    outliers = int((first == 0).sum()), int((second == 0).sum())
    return Transfer(len(first), rand, low, high, *outliers, groups, counts)


def _group(k: int, first: np.ndarray, probability: np.ndarray, second: np.ndarray) -> dict[str, object]:
    own, others = first == k, range(1, int(second.max(initial=0)) + 1)
    overlaps = [float((own & (second == j)).sum() / max((own | (second == j)).sum(), 1)) for j in others]
    nearest = int(np.argmax(overlaps)) + 1 if own.any() and overlaps else 0
    jaccard = overlaps[nearest - 1] if nearest else 0.0
    said = "transfers" if jaccard >= STABLE else "transfers in part" if jaccard >= PATTERN else "does not transfer"
    certainty = float(probability[own, k - 1].mean()) if own.any() else np.nan
    size = int(own.sum())
    figures = {"size": size, "share": size / len(first), "certainty": certainty}
    return {"group": k, **figures, "nearest": nearest, "jaccard": jaccard, "verdict": said}
