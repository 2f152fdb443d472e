"""How large the subtypes are in the population that weighted rows stand for."""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats

from plurigp.answers.heldout import ratio_se


def population_shares(
    labels: Int[np.ndarray, " N"], weights: Float[np.ndarray, " N"], level: float = 0.95
) -> pd.DataFrame:
    """One line per label: Σ w over its rows / Σ w, with the interval of a ratio estimator on the logit scale."""
    labels, weights = np.asarray(labels), np.asarray(weights, float)
    lines = []
    for label in np.unique(labels):
        own = weights * (labels == label)
        share, se = own.sum() / weights.sum(), ratio_se(own, weights)
        centre, half = np.log(share / (1 - share)), stats.norm.ppf(0.5 + level / 2) * se / (share * (1 - share))
        low, high = 1 / (1 + np.exp(-np.array([centre - half, centre + half])))
        lines.append((label, int((labels == label).sum()), share, se, low, high))
    return pd.DataFrame(lines, columns=["label", "n_rows", "share", "se", "low", "high"])
