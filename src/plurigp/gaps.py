"""What a model knows about each gap: mean, spread and quantiles in the column's own units, or the likeliest level."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from plurigp.data import KINDS, Coder, Column, Table
from plurigp.predict import CHUNKS, Predictor, draw_given
from plurigp.ranks import FEWEST, level_of_draws, rank_map, ranks, unchanged

HIDDEN_SHARE = 0.2  # of observed cells; with more, rows are less like those that people ask about
N_DRAWS = 100  # among which a hidden cell is ranked
ROWS_PER_CHUNK, MOST_CHUNKS = 700, 8  # a chunk of rows for so many of the table's, but one for the first two


def describe(
    coder: Coder,
    table: Table,
    draws: Iterable[Float[np.ndarray, "S n D"]],
    levels: Sequence[float],
    maps: Float[np.ndarray, "D K"],
) -> pd.DataFrame:
    """One line per gap of a used column, from draws of its row: see `PluriGP.describe_gaps`."""
    parts, at = [], 0
    for chunk in draws:
        for d in range(chunk.shape[2]):
            rows = np.flatnonzero(~table.seen[at : at + chunk.shape[1], d])
            if len(rows):
                parts.append(_describe_column(coder, d, chunk[:, rows, d], at + rows, levels, maps[d]))
        at += chunk.shape[1]
    columns = ["row", "column", "kind", "mean", "sd", *map(quantile_name, levels), "level", "probability"]
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True)[columns].sort_values(["row"], kind="stable", ignore_index=True)


def quantile_name(level: float) -> str:
    """0.05 -> "q5"."""
    return f"q{100 * level:g}"


def _describe_column(
    coder: Coder,
    d: int,
    draws: Float[np.ndarray, "S n"],
    rows: np.ndarray,
    levels: Sequence[float],
    G: Float[np.ndarray, " K"],
) -> pd.DataFrame:
    column = coder.schema.used[d]
    facts = {"row": rows, "column": column.name, "kind": column.kind}
    nothing = np.full(len(rows), np.nan)
    if column.levels:
        counts = np.stack([(draws == code).mean(0) for code in range(len(column.levels))])  # [K n]
        best = counts.argmax(0)
        summary = {
            "mean": nothing,
            "sd": nothing,
            **{quantile_name(level): nothing for level in levels},
            "level": pd.Series([column.levels[code] for code in best], dtype=object),
            "probability": counts.max(0),
        }
    else:
        numbers = np.asarray(coder.undo(column.name, draws.ravel()), float).reshape(draws.shape)
        quantiles = np.quantile(numbers, level_of_draws(G, levels), axis=0, method="weibull")  # as `ranks` counts
        summary = {
            "mean": numbers.mean(0),
            "sd": numbers.std(0),
            **{quantile_name(level): q for level, q in zip(levels, quantiles, strict=True)},
            "level": pd.Series([None] * len(rows), dtype=object),
            "probability": nothing,
        }
    return pd.DataFrame(facts | summary)


# --- calibration ---


def some_rows(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows to calibrate with: whole chunks where the table has them, so that one compilation serves."""
    n = min(n_rows, CHUNKS[-1] * int(np.clip(n_rows // ROWS_PER_CHUNK - 1, 1, MOST_CHUNKS)))
    return np.sort(rng.choice(n_rows, n, replace=False))


def calibrate(predictor: Predictor, table: Table, rng: np.random.Generator) -> Float[np.ndarray, "D K"]:
    """A map of ranks for every column of numbers: where its observed cells rank when hidden from their rows.

    Columns of levels, and those with too few cells, keep the map that changes nothing; with no other column nothing is
    computed.
    """
    maps = unchanged(len(table.schema))
    hidden = table.seen & (rng.random(table.seen.shape) < HIDDEN_SHARE)
    numbers = [d for d, c in enumerate(table.schema) if not c.levels and hidden[:, d].sum() >= FEWEST]
    if not numbers:
        return maps
    shown = _hide(table, hidden)
    low, high = _bounds(table)
    found: dict[int, list[np.ndarray]] = {d: [] for d in numbers}
    at = 0
    for chunk in draw_given(predictor, shown, N_DRAWS, int(rng.integers(2**31))):
        for d in numbers:
            rows = np.flatnonzero(hidden[at : at + chunk.shape[1], d])
            found[d].append(ranks(chunk[:, rows, d], low[at + rows, d], high[at + rows, d], rng))
        at += chunk.shape[1]
    for d in numbers:
        maps[d] = rank_map(np.concatenate(found[d]))
    return maps


def _hide(table: Table, hidden: Bool[np.ndarray, "N D"]) -> Table:
    """The table with more gaps. A gap holds its kind's stand-in; the trials of successes are known all the same."""
    values = table.values.copy()
    for d, (column, first) in enumerate(zip(table.schema, first_slots(table.schema), strict=True)):
        stand_in = KINDS[column.kind].stand_in[: 1 if column.trials is not None else None]
        values[hidden[:, d], first : first + len(stand_in)] = stand_in
    return replace(table, values=values, seen=table.seen & ~hidden)


def _bounds(table: Table) -> tuple[Float[np.ndarray, "N D"], Float[np.ndarray, "N D"]]:
    """Between which values every cell is known to lie: equal but for cells known up to a limit."""
    first = first_slots(table.schema)
    last = first + np.array([_has_bounds(column) for column in table.schema], int)
    return table.values[:, first], table.values[:, last]


def _has_bounds(column: Column) -> bool:
    """Whether a cell is a lower bound, an upper bound and the log unit."""
    kind = KINDS[column.kind]
    return kind.own_units and kind.n_slots == 3


def first_slots(columns: Iterable[Column]) -> np.ndarray:
    """Where each column's values begin in a Table."""
    n_slots = [KINDS[column.kind].n_slots for column in columns]
    return np.cumsum([0, *n_slots[:-1]])
