"""How conclusions depend on gaps that are not at random: one analysis over a range of deltas."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from plurigp.answers.pooling import pool_fits
from plurigp.core.types import DataError
from plurigp.estimator.pluri_gp import PluriGP

MAX_SETTINGS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """Pooled estimates by delta.

    frame: one line per setting of the deltas and term: a column per delta, term, and those of `pool`.
    """

    frame: pd.DataFrame
    deltas: tuple[str, ...]  # the columns of `frame` that hold deltas

    def __repr__(self) -> str:
        return self.ranges().to_string()

    def ranges(self, null: float = 0.0) -> pd.DataFrame:
        """The range of conclusions per term: smallest and largest estimate, lowest and highest end of an interval, the
        largest p, in how many of how many settings the interval leaves `null` out, and whether all of these agree."""
        lines = {}
        for term, own in self.frame.groupby("term", sort=False):
            outside = (own["low"] > null) | (own["high"] < null)
            signs = set((own["estimate"] > null)[outside])
            lines[term] = {
                "estimate_min": own["estimate"].min(),
                "estimate_max": own["estimate"].max(),
                "low": own["low"].min(),
                "high": own["high"].max(),
                "p_max": own["p"].max(),
                "n_outside": int(outside.sum()),
                "n_settings": len(own),
                "same_conclusion": bool(outside.all() and len(signs) == 1) or not outside.any(),
            }
        return pd.DataFrame.from_dict(lines, orient="index").rename_axis("term")

    def tipping_point(self, term: Any, null: float = 0.0) -> pd.DataFrame:
        """The settings whose conclusion about this term differs from that without any delta, nearest to zero first."""
        own = self.frame[self.frame["term"] == term]
        deltas = own[list(self.deltas)].abs().sum(axis=1)
        verdict = (own["low"] > null).astype(int) - (own["high"] < null).astype(int)
        reference = verdict[deltas == 0]
        if own.empty or reference.empty:
            raise ValueError(f"term {term!r} was not analysed without a delta; add 0 to every column's values")
        return (
            own.assign(distance=deltas)[verdict != reference.iloc[0]].sort_values("distance").drop(columns="distance")
        )


def sensitivity(
    model: PluriGP,
    table: Any,
    fit: Callable[[pd.DataFrame], Any],
    deltas: Mapping[str, Any],
    n_draws: int = 20,
    random_state: int = 0,
    **pooling: Any,
) -> Sensitivity:
    """Fill the gaps, analyse and pool for every combination of the deltas: ``{"crp": [0, 0.5, 1]}``, or
    ``{"stage": {"late": [0, 0.5]}}`` for a level of a category.

    `fit` and `pooling` are those of `pool_fits`, deltas those of `impute_draws`. All settings share their random
    numbers, so that differences between them are due to delta.
    """
    axes = _axes(deltas)
    combinations = list(product(*(values for _, _, values in axes)))
    if not 0 < len(combinations) <= MAX_SETTINGS or not axes:
        raise DataError(f"deltas: {len(combinations)} combinations; give 1 to {MAX_SETTINGS} for at least one column")
    labels = tuple(name if level is None else f"{name}: {level}" for name, level, _ in axes)
    parts = []
    for amounts in combinations:
        delta: dict[str, Any] = {}
        for (name, level, _), amount in zip(axes, amounts, strict=True):
            if level is None:
                delta[name] = amount
            else:
                delta.setdefault(name, {})[level] = amount
        tables = model.impute_draws(table, n_draws, random_state=random_state, delta=delta)
        pooled = pool_fits(fit, tables, **pooling).frame.reset_index()
        parts.append(pd.concat([pd.DataFrame([dict(zip(labels, amounts, strict=True))] * len(pooled)), pooled], axis=1))
    return Sensitivity(pd.concat(parts, ignore_index=True), labels)


def _axes(deltas: Mapping[str, Any]) -> list[tuple[str, Any, list[Any]]]:
    """Column, level (None unless a category) and values of every delta."""
    axes: list[tuple[str, Any, list[Any]]] = []
    for name, values in deltas.items():
        by_level = values if isinstance(values, Mapping) else {None: values}
        axes += [(name, level, list(own)) for level, own in by_level.items()]
    return axes
