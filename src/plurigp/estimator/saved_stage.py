"""A second stage as named arrays, and back; arrays that are not those of trees are refused."""

import re
from collections.abc import Mapping

import numpy as np

from plurigp.answers.forest import LEAF, Forest
from plurigp.answers.map_view import feature_owners
from plurigp.answers.pit import KNOTS
from plurigp.answers.ridge import Ridge
from plurigp.answers.second_stage import ColumnStage, SecondStage
from plurigp.answers.stacking import ResidualLaw
from plurigp.core.types import DataError
from plurigp.likelihoods.layout import Layout

PREFIX = "second_stage"
MOST_ROUNDS = 10
PLACE = re.compile(r"\d{1,2}\.\d{1,6}")  # round and column
N_RIDGE = len(Ridge._fields) - 1  # its numbers, beside the coefficients
N_LAW = len(ResidualLaw._fields) - 1  # its numbers, beside G


def stage_arrays(stage: SecondStage | None) -> dict[str, np.ndarray]:
    """Arrays named by round, column and field; nothing without a second stage."""
    named: dict[str, np.ndarray] = {}
    for number, corrections in enumerate(() if stage is None else stage.rounds):
        for d, column in corrections.items():
            path = f"{PREFIX}.{number}.{d}"
            named |= {f"{path}.{field}": array for field, array in column.forest._asdict().items()}
            law = [] if column.law is None else [*column.law[:N_LAW], *column.law.G]
            named[f"{path}.stacking"] = np.array([*column.weights, *law])
            if column.ridge is not None:
                named[f"{path}.ridge"] = np.array([*column.ridge[1:], *column.ridge.coef])
    return named


def stage_from_arrays(arrays: Mapping[str, np.ndarray], layout: Layout) -> SecondStage | None:
    """The inverse of `stage_arrays`; trees and regressions must read the features of the other columns."""
    if not any(name.startswith(f"{PREFIX}.") for name in arrays):
        return None
    n_features = np.bincount(feature_owners(layout), minlength=len(layout.order))
    found: dict[int, dict[int, ColumnStage]] = {}
    for name in arrays:
        parts = name.split(".")
        if parts[0] != PREFIX or parts[-1] != "stacking":
            continue
        place = ".".join(parts[1:-1])
        number, d = map(int, place.split(".")) if PLACE.fullmatch(place) else (MOST_ROUNDS, 0)
        path = f"{PREFIX}.{place}"
        missing = [field for field in Forest._fields if f"{path}.{field}" not in arrays]
        if missing or not (0 <= d < len(n_features) and 0 <= number < MOST_ROUNDS):
            raise DataError(f"the saved model's second stage is not whole at {path!r}; save the model again")
        forest = Forest(*(arrays[f"{path}.{field}"] for field in Forest._fields))
        stacking, ridge = arrays[name], arrays.get(f"{path}.ridge")
        n_inputs = int(n_features.sum() - n_features[d])
        if not _are_trees(forest, n_inputs) or stacking.shape not in ((2,), (2 + N_LAW + len(KNOTS),)):
            raise DataError(f"the saved model's arrays {path!r} are not those of trees; save the model again")
        found.setdefault(number, {})[d] = ColumnStage(forest, _ridge(ridge, n_inputs, path), *_stacking(stacking))
    if not found:
        return None
    return SecondStage(tuple(dict(sorted(found.get(number, {}).items())) for number in range(max(found) + 1)))


def _stacking(numbers: np.ndarray) -> tuple[tuple[float, float], ResidualLaw | None]:
    """The weights, and the law of residuals where there is one."""
    law = None if len(numbers) == 2 else ResidualLaw._make([*numbers[2 : 2 + N_LAW].tolist(), numbers[2 + N_LAW :]])
    return (float(numbers[0]), float(numbers[1])), law


def _ridge(numbers: np.ndarray | None, n_inputs: int, path: str) -> Ridge | None:
    if numbers is None:
        return None
    if numbers.shape != (N_RIDGE + n_inputs,) or not np.isfinite(numbers).all():
        raise DataError(f"the saved model's array '{path}.ridge' is not that of a regression; save the model again")
    return Ridge(numbers[N_RIDGE:], *numbers[:N_RIDGE].tolist())


def _are_trees(forest: Forest, n_inputs: int) -> bool:
    """One entry per node, and children behind their parents: every path ends at a leaf and reads what is there."""
    n = len(forest.feature)
    same_length = all(len(array) == n for array in forest[2:])
    if not same_length or forest.value.ndim != 2 or not ((forest.roots >= 0) & (forest.roots < n)).all():
        return False
    inner = np.flatnonzero(forest.feature != LEAF)
    sides = (forest.left[inner], forest.right[inner])
    known = (forest.feature >= LEAF) & (forest.feature < n_inputs)
    return bool(known.all() and all(((side > inner) & (side < n)).all() for side in sides))
