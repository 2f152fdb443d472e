"""How often intervals cover, and whether probabilities mean what they say: what the benchmarks of gaps share."""

import numpy as np
import pandas as pd

from plurigp import PluriGP
from plurigp.answers.corrected import draw_gaps_given
from plurigp.answers.pit import KNOTS, pit_values
from plurigp.likelihoods.layout import first_slots

NOMINAL = (0.5, 0.8, 0.9)
N_DRAWS = 400


def coverage(model: PluriGP, shown: pd.DataFrame, truth: pd.DataFrame, seed: int = 0) -> dict[str, dict[str, float]]:
    """By kind, over the cells that `truth` has and `shown` has not: how often nominal intervals cover numbers, and the
    calibration error of level probabilities.

    The intervals are central: a number is inside the 80 % one if its calibrated rank among draws of its cell lies
    between 10 and 90 %, that is, between the quantiles of `describe_gaps`; "raw 80%" is by the draws' own quantiles.
    Draws equal to it, as counts often are, count as below it in a share drawn at random: an interval that must end on
    whole numbers could not cover exactly 80 % however true the model.
    """
    coder = model.coder_
    hidden, complete = (coder.table(frame[list(coder.schema.names)]) for frame in (shown, truth))
    slots = first_slots(coder.schema.used)
    rng = np.random.default_rng(seed)
    ranked: dict[str, list[np.ndarray]] = {}
    likeliest: dict[str, list[np.ndarray]] = {}
    for chunk in draw_gaps_given(model.predictor_, model.second_stage_, hidden, N_DRAWS, seed):
        everything, here = np.stack(list(chunk.draws)), chunk.rows
        for d, column in enumerate(coder.schema.used):
            rows = np.flatnonzero(complete.seen[here, d] & ~hidden.seen[here, d])
            y, draws = complete.values[here][rows, slots[d]], everything[:, rows, d]
            if column.levels:
                shares = np.stack([(draws == code).mean(0) for code in range(len(column.levels))])
                found = np.stack([shares.max(0), shares.argmax(0) == y])
                likeliest.setdefault(column.kind, []).append(found)
            else:
                u = pit_values((draws < y).sum(0), (draws == y).sum(0), len(draws), rng)
                ranked.setdefault(column.kind, []).append(np.stack([u, np.interp(u, KNOTS, model.pit_maps_[d])]))
    out: dict[str, dict[str, float]] = {}
    for kind, parts in ranked.items():
        raw, calibrated = np.abs(np.concatenate(parts, 1) - 0.5)
        covers = {f"{p:.0%}": float(np.mean(calibrated <= p / 2)) for p in NOMINAL}
        out[kind] = {"cells": len(raw), **covers} | {f"raw {p:.0%}": float(np.mean(raw <= p / 2)) for p in NOMINAL}
    for kind, parts in likeliest.items():
        probability, right = np.concatenate(parts, 1)
        out[kind] = {"cells": len(right), "calibration_error": calibration_error(probability, right)}
    return out


def calibration_error(probability: np.ndarray, right: np.ndarray, n_bins: int = 10) -> float:
    """Expected calibration error of the likeliest level's probability."""
    bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    gaps = [abs(probability[bins == b].mean() - right[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)]
    return float(np.sum(gaps))
