"""How large the subtypes are in the population that weighted rows stand for."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats

from plurigp.answers.heldout import ratio_se


def population_shares(
    labels: Int[np.ndarray, " N"],
    weights: Float[np.ndarray, " N"],
    level: float = 0.95,
    groups: Int[np.ndarray, " N"] | None = None,
) -> pd.DataFrame:
    """One line per label: Σ w over its rows / Σ w, with the interval of a ratio estimator on the logit scale.

    groups: rows of one group, such as the visits of a patient, are counted as one in the error.
    """
    labels, weights = np.asarray(labels), np.asarray(weights, float)
    group = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes, lines = np.bincount(group, weights), []
    for label in np.unique(labels):
        own = np.bincount(group, weights * (labels == label))
        share, se = own.sum() / weights.sum(), ratio_se(own, sizes)
        low, high = _logit_interval(share, se, level)
        lines.append((label, int((labels == label).sum()), share, se, low, high))
    return pd.DataFrame(lines, columns=["label", "n_rows", "share", "se", "low", "high"])


def _logit_interval(share: float, se: float, level: float) -> tuple[float, float]:
    """A share of nothing or of all has no error that rows could tell."""
    if not 0 < share < 1:
        return share, share
    centre, half = np.log(share / (1 - share)), stats.norm.ppf(0.5 + level / 2) * se / (share * (1 - share))
    return float(1 / (1 + np.exp(half - centre))), float(1 / (1 + np.exp(-half - centre)))
