"""What a model knows about each gap: mean, sd and quantiles in the column's own units, or the likeliest level."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from plurigp.answers.draws import RowDraws
from plurigp.answers.pit import calibrated_levels
from plurigp.data import Coder, Table


def describe_gaps(
    coder: Coder, table: Table, drawn: Iterable[RowDraws], levels: Sequence[float], maps: Float[np.ndarray, "D K"]
) -> pd.DataFrame:
    """One line per gap of a used column, from draws of its row: see `PluriGP.describe_gaps`."""
    parts = []
    for chunk in drawn:
        draws = np.stack(list(chunk.draws))
        for d in range(draws.shape[2]):
            gaps = np.flatnonzero(~table.seen[chunk.rows, d])
            if len(gaps):
                summary = _summary(coder, d, draws[:, gaps, d], levels, maps[d])
                parts.append(pd.DataFrame({"row": chunk.rows.start + gaps, **summary}))
    if not parts:
        columns = ["row", "column", "kind", "mean", "sd", *map(quantile_name, levels), "level", "probability"]
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True).sort_values(["row"], kind="stable", ignore_index=True)


def quantile_name(level: float) -> str:
    """0.05 -> "q5"."""
    return f"q{100 * level:g}"


def _summary(
    coder: Coder, d: int, draws: Float[np.ndarray, "S n"], levels: Sequence[float], G: Float[np.ndarray, " K"]
) -> dict[str, object]:
    column, n, names = coder.schema.used[d], draws.shape[1], list(map(quantile_name, levels))
    mean = sd = probability = np.full(n, np.nan)
    quantiles, likeliest = np.full((len(names), n), np.nan), [None] * n
    if column.levels:
        shares = np.stack([(draws == code).mean(0) for code in range(len(column.levels))])  # [K n]
        likeliest, probability = [column.levels[code] for code in shares.argmax(0)], shares.max(0)
    else:
        numbers = np.asarray(coder.undo(column.name, draws.ravel()), float).reshape(draws.shape)
        mean, sd = numbers.mean(0), numbers.std(0)
        # Weibull's positions: n draws make n + 1 equal gaps, as `pit_values` has it
        quantiles = np.quantile(numbers, calibrated_levels(G, levels), axis=0, method="weibull")
    numeric = {"mean": mean, "sd": sd, **dict(zip(names, quantiles, strict=True))}
    of_levels = {"level": pd.Series(likeliest, dtype=object), "probability": probability}
    return {"column": column.name, "kind": column.kind, **numeric, **of_levels}
