"""Repeated rows: what is expected of each patient, and how much rows of one patient differ."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from plurigp.answers.repeated import (
    expected_of_patients,
    fit_variation,
    patient_posterior,
    row_evidence,
    shares_between,
)
from plurigp.core.types import DataError
from plurigp.data import to_frame
from plurigp.data.groups import row_groups
from plurigp.estimator.explaining import expected_by_level
from plurigp.estimator.pluri_gp import PluriGP
from plurigp.likelihoods.layout import arrange


@dataclass(frozen=True, eq=False, repr=False)
class PatientEffects:
    """Patients of whom the table has several rows: x of a row is the patient's position plus the row's deviation.

    positions: one line per patient: patient, rows, and mean and sd of the position in every dimension.
    effects: one line per patient, column and level: patient, column, level, mean, low, high: the value expected of the
      patient over rows, or the probability of the level, in the column's own units; the interval is of this
      expectation, not of one measurement.
    shares: one line per dimension: variance between patients and within, and the share between (intraclass
      correlation; NaN for a dimension that the map has switched off).
    covariances [G Q Q]: of the positions; between, within [Q Q]: covariances of positions and of deviations.
    """

    positions: pd.DataFrame
    effects: pd.DataFrame
    shares: pd.DataFrame
    covariances: np.ndarray
    between: np.ndarray
    within: np.ndarray

    def __repr__(self) -> str:
        return self.shares.to_string(index=False)


def patient_effects(model: PluriGP, table: Any, groups: Any, level: float = 0.95) -> PatientEffects:
    """Positions and expected values of patients from all of their rows, with intervals.

    groups: the column that names a row's patient (set aside in the model), or a label per row. Each row counts by what
    its cells say of its position, so that a visit with many gaps counts less. Intervals take the covariances between
    and within patients as known: with few patients they are too narrow. Covariates, if the model has any, are held at
    their average in `effects`.

    Examples
    --------
    >>> import plurigp
    >>> from plurigp.datasets import simulate
    >>> visits = simulate(90, 2, {"gaussian": 3, "bernoulli": 1}, missing=0.1).table
    >>> visits["patient"] = [f"p{row // 3}" for row in range(90)]
    >>> model = plurigp.PluriGP(2, schema={"patient": "aside"}, max_epochs=3, random_state=0).fit(visits)
    >>> found = plurigp.patient_effects(model, visits, "patient")
    >>> found.positions.shape, found.effects.columns.tolist()
    ((30, 6), ['patient', 'column', 'level', 'mean', 'low', 'high'])
    """
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must lie between 0 and 1")
    frame = to_frame(table)
    patient, labels = row_groups(groups, frame)
    _check_repeated(np.bincount(patient))
    coded, predictor = model.coder_.table(frame), model.predictor_
    evidence = row_evidence(predictor, coded)
    variation = fit_variation(evidence, patient)
    found = patient_posterior(evidence, patient, variation)
    values, _ = arrange(predictor.layout, coded)
    _, first = np.unique(patient, return_index=True)
    blocks = expected_of_patients(predictor, values[first], found, variation.within, level)
    sd = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
    return PatientEffects(
        _position_lines(model, labels, np.bincount(patient), found.mean, sd),
        _effect_lines(model, labels, blocks),
        _share_lines(variation.between, variation.within, shares_between(evidence, variation)),
        found.covariance,
        variation.between,
        variation.within,
    )


def _check_repeated(sizes: np.ndarray) -> None:
    if len(sizes) < 2 or (sizes > 1).sum() < 2:
        raise DataError(
            f"groups: {int((sizes > 1).sum())} of {len(sizes)} patients have more than one row; what differs between "
            "patients and what within takes at least two such patients. Check the column, or use transform."
        )


def _position_lines(
    model: PluriGP, labels: np.ndarray, sizes: np.ndarray, mean: np.ndarray, sd: np.ndarray
) -> pd.DataFrame:
    names = [str(name) for name in model.get_feature_names_out()]
    columns: dict[str, Any] = {"patient": labels, "rows": sizes, **dict(zip(names, mean.T, strict=True))}
    return pd.DataFrame(columns | dict(zip([f"{name}_sd" for name in names], sd.T, strict=True)))


def _share_lines(between: np.ndarray, within: np.ndarray, shares: np.ndarray) -> pd.DataFrame:
    variances = {"between": np.diagonal(between), "within": np.diagonal(within), "share_between": shares}
    return pd.DataFrame({"dimension": np.arange(1, len(shares) + 1), **variances})


def _effect_lines(model: PluriGP, labels: np.ndarray, blocks: tuple[list[np.ndarray], ...]) -> pd.DataFrame:
    """By patient, and in the schema's order of columns."""
    layout, parts = model.predictor_.layout, {}
    for block, found in enumerate(zip(*blocks, strict=True)):
        start, end = layout.blocks[block].columns
        for c, d in enumerate(layout.order[start:end]):
            name = model.schema_.used[d].name
            parts[d] = [
                pd.DataFrame({"column": name, "level": of, "mean": mean, "low": low, "high": high})
                for of, (mean, low, high) in expected_by_level(model.coder_, d, [part[:, c] for part in found])
            ]
    lines = pd.concat([part for d in sorted(parts) for part in parts[d]])  # the index is the patient's number
    lines = lines.sort_index(kind="stable")
    lines.insert(0, "patient", labels[lines.index])
    return lines.reset_index(drop=True)
