"""What a model knows about each gap: mean, spread and quantiles in the column's own units, or the likeliest level."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from plurigp.compiling import Compilation
from plurigp.data import KINDS, Coder, Schema, Table
from plurigp.likelihoods.blocks import Layout, arranged_back, first_slots
from plurigp.predict import CHUNKS, Chunk, Predictor, compile_draws, draw_given, in_precision
from plurigp.ranks import level_of_draws, rank_maps, ranks_by_counts, unchanged

STREAM = 1  # tells its random numbers from those of training
HIDDEN_SHARE = 0.2  # of observed cells; with more, rows are less like those that people ask about
N_DRAWS = 50  # among which a hidden cell is ranked
FEWEST = 40  # hidden cells below which a column keeps its draws' own quantiles
ROWS_PER_CHUNK, MOST_CHUNKS = 500, 8  # a chunk of rows for so many of the table's, but one for the first two
MOST_CELLS = 2**18  # of these rows; a table with more columns is calibrated by fewer rows


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


# --- calibration ---


def some_rows(n_rows: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Rows to calibrate with: whole chunks where the table has them, so that one compilation serves. A wide table has
    hidden cells enough in fewer rows, and its rows are dear."""
    smaller, larger = CHUNKS[-2:]
    many = larger * int(np.clip(n_rows // ROWS_PER_CHUNK - 1, 1, MOST_CHUNKS))
    n = min(n_rows, many if many * n_columns <= MOST_CELLS else smaller)
    return np.sort(rng.choice(n_rows, n, replace=False))


class Calibration:
    """Of one fit: chosen before it are rows and the cells to hide in them, its program is compiled beside the training,
    and its maps follow: for every column of numbers, where hidden cells rank among draws of their rows.

    Columns of levels, and those with too few cells, keep the map that changes nothing; with no other column nothing is
    computed.
    """

    def __init__(
        self, layout: Layout, values: Float[np.ndarray, "N V"], seen: Bool[np.ndarray, "N D"], schema: Schema, seed: int
    ) -> None:
        self.rng = np.random.default_rng([seed, STREAM])
        rows = some_rows(len(seen), seen.shape[1], self.rng)
        self.table = arranged_back(layout, values[rows], seen[rows], schema)
        self.hidden = self.table.seen & (self.rng.random(self.table.seen.shape) < HIDDEN_SHARE)
        enough = self.hidden.sum(0) >= FEWEST
        self.numbers = [d for d, column in enumerate(self.table.schema) if not column.levels and enough[d]]
        self.compiling: Compilation | None = None

    def compile_in_background(self, untrained: Predictor) -> None:
        """Begin to compile; only the predictor's shapes matter."""
        if self.numbers:
            self.compiling = compile_draws(self._weighing(untrained), len(self.hidden))

    def wait(self) -> None:
        if self.compiling is not None:
            self.compiling.wait()

    def maps(self, predictor: Predictor) -> Float[np.ndarray, "D K"]:
        """G of every column, at the knots."""
        maps = unchanged(len(self.table.schema))
        if not self.numbers:
            return maps
        shown, (low, high) = self.table.hidden(self.hidden), _bounds(self.table)
        below, within = np.zeros(self.hidden.shape, int), np.zeros(self.hidden.shape, int)
        seed = int(self.rng.integers(2**31))
        for chunk in draw_given(self._weighing(predictor), shown, N_DRAWS, seed, self.numbers, warn=False):
            for draw in chunk.draws:
                below[chunk.rows] += draw < low[chunk.rows]
                within[chunk.rows] += (draw >= low[chunk.rows]) & (draw <= high[chunk.rows])
        found = ranks_by_counts(below, within, N_DRAWS, self.rng)
        maps[self.numbers] = rank_maps([found[self.hidden[:, d], d] for d in self.numbers])
        return maps

    @staticmethod
    def _weighing(predictor: Predictor) -> Predictor:
        """In float32: it only weighs draws of x against each other, for ranks that a few digits decide."""
        return in_precision(predictor, np.float32)


def _bounds(table: Table) -> tuple[Float[np.ndarray, "N D"], Float[np.ndarray, "N D"]]:
    """Between which values every cell is known to lie: equal but for cells known up to a limit."""
    first = first_slots(table.schema)
    last = first + np.array([KINDS[column.kind].has_bounds for column in table.schema], int)
    return table.values[:, first], table.values[:, last]
