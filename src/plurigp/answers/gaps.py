"""What a model knows about each gap: mean, spread and quantiles in the column's own units, or the likeliest level."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from plurigp.answers.draws import Chunk
from plurigp.answers.pit import level_of_draws
from plurigp.data import Coder, Table


def describe(
    coder: Coder,
    table: Table,
    chunks: Iterable[Chunk],
    levels: Sequence[float],
    maps: Float[np.ndarray, "D K"],
) -> pd.DataFrame:
    """One line per gap of a used column, from draws of its row: see `PluriGP.describe_gaps`."""
    parts = []
    for chunk in chunks:
        draws = np.stack(list(chunk.draws))
        for d in range(draws.shape[2]):
            rows = np.flatnonzero(~table.seen[chunk.rows, d])
            if len(rows):
                parts.append(_describe_column(coder, d, draws[:, rows, d], chunk.start + rows, levels, maps[d]))
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
