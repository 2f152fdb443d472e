"""Which family suits a column: candidate kinds compared in one map by the log density of hidden cells.

A count may look over-dispersed by itself only because its mean depends on the other columns. So every column enters the
model once per candidate kind, all copies share one latent position, and the weight of its prior grows with the number
of copies. Cells are hidden in folds: each is predicted once by every candidate.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from plurigp.core.types import DataError
from plurigp.data import KINDS, Coder, Column, Rows, Schema, to_rows
from plurigp.data.kinds import settled
from plurigp.data.schema import changed
from plurigp.estimator import PluriGP

MIN_GAIN = 2.5  # standard errors by which a kind must beat a safer one
WINSORISED = 0.02  # share of the differences, at either end, that count as the next ones do


@dataclass(frozen=True)
class Comparison:
    """One column: nats per hidden cell of each candidate, how much the best gains on each, and the advice."""

    name: str
    kind: str  # as it was
    recommended: str
    scores: dict[str, float]
    gains: dict[str, float]  # of the recommended kind over each candidate
    errors: dict[str, float]  # standard errors of the gains


def candidates(column: Column, rows: Rows) -> list[str]:
    """The kinds that a column's cells allow, among its kind's rivals; two columns of bounds are left as they are."""
    rivals = () if column.upper else KINDS[column.kind].rivals
    group = rivals if column.kind in rivals else (*rivals, column.kind)  # a kind from outside joins those it reads like
    return [kind for kind in group if kind == column.kind or _allows(column, kind, rows)]


def _allows(column: Column, kind: str, rows: Rows) -> bool:
    try:
        numbers = rows.numbers(_declared(column, kind, rows))
    except DataError:
        return False
    return not KINDS[kind].needs_zeros or bool((numbers[:, 0] == 0).any())


def _declared(column: Column, kind: str, rows: Rows) -> Column:
    if kind == column.kind:
        return column
    keep = {key: getattr(column, key) for key in KINDS[kind].settings if getattr(column, key)}
    other = changed(Column(column.name, kind, dtype=column.dtype), {"kind": kind, "missing": column.missing, **keep})
    return settled(other, rows.column_cells(other))


def compare_kinds(
    table: object, schema: Schema, n_components: int = 3, n_folds: int = 4, max_epochs: int = 250, random_state: int = 0
) -> dict[str, Comparison]:
    """A Comparison for every used column that has more than one candidate."""
    rows = to_rows(table)
    frame = rows.frame
    used = Coder.fit(rows, schema).schema.used
    kinds = {column.name: candidates(column, rows) for column in used}
    copies = {f"{c.name}: {kind}": _declared(c, kind, rows) for c in used for kind in kinds[c.name]}
    companions = sorted({c.companion for c in copies.values() if c.companion is not None})
    wide = pd.DataFrame(
        {name: frame[c.name] for name, c in copies.items()} | {name: frame[name] for name in companions}
    )
    columns = [replace(column, name=name) for name, column in copies.items()]
    model = PluriGP(
        n_components,
        schema=Schema((*columns, *(Column(name, "aside") for name in companions))),
        max_epochs=max_epochs,
        kl_weight=len(copies) / len(used),
        random_state=random_state,
        calibrate=False,
    )
    rng = np.random.default_rng(random_state)
    folds = {name: rng.integers(0, n_folds, len(frame)) for name in kinds}
    scores = np.full((len(frame), len(copies)), np.nan)
    for fold in range(n_folds):
        shown = wide.assign(**{name: wide[name].mask(folds[c.name] == fold) for name, c in copies.items()})
        cells = model.fit(shown).score_cells(shown, wide).to_numpy()
        scores = np.where(np.isnan(cells), scores, cells)
    by_copy = pd.DataFrame(scores, columns=list(copies))
    return {c.name: _compared(c, kinds[c.name], by_copy) for c in used if len(kinds[c.name]) > 1}


def _compared(column: Column, kinds: list[str], scores: pd.DataFrame) -> Comparison:
    """The best score wins, unless a safer kind does about as well."""
    cells = {kind: scores[f"{column.name}: {kind}"].dropna().to_numpy() for kind in kinds}
    means = {kind: float(part.mean()) for kind, part in cells.items()}
    best = max(kinds, key=means.__getitem__)
    for safer in KINDS[best].preferred_on_tie:
        best = safer if safer in cells and not _is_clear(cells[best] - cells[safer]) else best
    gains = {kind: cells[best] - part for kind, part in cells.items()}
    errors = {kind: _standard_error(gain) for kind, gain in gains.items()}
    return Comparison(
        column.name, column.kind, best, means, {kind: float(gain.mean()) for kind, gain in gains.items()}, errors
    )


def _is_clear(gain: np.ndarray) -> bool:
    """A gain beyond chance; winsorised, so that the few cells that a heavy tail explains do not drown it."""
    gain = np.clip(gain, *np.quantile(gain, [WINSORISED, 1 - WINSORISED]))
    return bool(gain.mean() >= MIN_GAIN * _standard_error(gain))


def _standard_error(gain: np.ndarray) -> float:
    return float(gain.std() / np.sqrt(len(gain)))
