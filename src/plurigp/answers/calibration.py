"""PIT calibration: where hidden cells of training rows rank among draws, and the quantiles corrected by it."""

import numpy as np
from jaxtyping import Bool, Float

from plurigp.answers.draws import compile_draws, draw_given
from plurigp.answers.pit import rank_maps, ranks_by_counts, unchanged
from plurigp.answers.predictor import CHUNKS, Predictor, in_precision
from plurigp.data import KINDS, Schema, Table
from plurigp.inference.compiling import Compilation
from plurigp.likelihoods.layout import Layout, arranged_back, first_slots

STREAM = 1  # tells its random numbers from those of training
HIDDEN_SHARE = 0.2  # of observed cells; with more, rows are less like those that people ask about
N_DRAWS = 50  # among which a hidden cell is ranked
FEWEST = 40  # hidden cells below which a column keeps its draws' own quantiles
ROWS_PER_CHUNK, MOST_CHUNKS = 500, 8  # a chunk of rows for so many of the table's, but one for the first two
MOST_CELLS = 2**18  # of these rows; a table with more columns is calibrated by fewer rows


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
