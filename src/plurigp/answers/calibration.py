"""Calibration after a fit: PIT values of cells hidden in some training rows, and the maps made from them."""

from concurrent.futures import Future

import numpy as np
from jaxtyping import Bool, Float

from plurigp.answers.draws import compile_draws, draw_given
from plurigp.answers.pit import identity_maps, pit_maps, pit_values
from plurigp.answers.predictor import CHUNK_SIZES, Predictor, in_precision
from plurigp.data import Schema
from plurigp.likelihoods.layout import Layout, arranged_back, cell_bounds

STREAM = 1  # separates its random numbers from those of training
HIDDEN_SHARE = 0.2  # of observed cells; with more, rows are less like those of later questions
N_DRAWS = 50  # per hidden cell
MIN_CELLS = 40  # hidden cells below which a column keeps its draws' own quantiles
ROWS_PER_CHUNK, MAX_CHUNKS = 500, 8  # one chunk of rows for so many of the table's, after the first 500
MAX_CELLS = 2**18  # of these rows; a table with more columns is calibrated by fewer rows
PRECISION = np.float32  # enough to weigh draws of x against each other


def calibration_rows(n_rows: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Rows to calibrate with: whole chunks where the table has them, so that one compiled program serves. A wide table
    has enough hidden cells in fewer rows, and its rows are expensive."""
    smaller, larger = CHUNK_SIZES[-2:]
    many = larger * int(np.clip(n_rows // ROWS_PER_CHUNK - 1, 1, MAX_CHUNKS))
    n = min(n_rows, many if many * n_columns <= MAX_CELLS else smaller)
    return np.sort(rng.choice(n_rows, n, replace=False))


class Calibration:
    """Of one fit. Rows, and cells to hide in them, are chosen before training, its program is compiled in the
    background, and the PIT map of every numeric column follows after training.

    Columns of levels and columns with too few cells keep the identity; with no other column nothing is computed.
    """

    def __init__(
        self, layout: Layout, values: Float[np.ndarray, "N V"], seen: Bool[np.ndarray, "N D"], schema: Schema, seed: int
    ) -> None:
        self.rng = np.random.default_rng([seed, STREAM])
        rows = calibration_rows(len(seen), seen.shape[1], self.rng)
        self.table = arranged_back(layout, values[rows], seen[rows], schema)
        self.hidden = self.table.seen & (self.rng.random(self.table.seen.shape) < HIDDEN_SHARE)
        enough = self.hidden.sum(0) >= MIN_CELLS
        self.numbers = [d for d, column in enumerate(self.table.schema) if not column.levels and enough[d]]
        self.compiling: Future[None] | None = None

    def compile_in_background(self, untrained: Predictor) -> None:
        """Start to compile, unless that was done before; only the predictor's shapes matter."""
        if self.numbers and self.compiling is None:
            self.compiling = compile_draws(in_precision(untrained, PRECISION), len(self.hidden))

    def maps(self, predictor: Predictor) -> Float[np.ndarray, "D K"]:
        """G of every column, at the knots."""
        maps = identity_maps(len(self.table.schema))
        if not self.numbers:
            return maps
        if self.compiling is not None:
            self.compiling.result()
        shown, (low, high) = self.table.hidden(self.hidden), cell_bounds(self.table)
        below, within = np.zeros(self.hidden.shape, int), np.zeros(self.hidden.shape, int)
        narrow, seed = in_precision(predictor, PRECISION), int(self.rng.integers(2**31))
        for chunk in draw_given(narrow, shown, N_DRAWS, seed, self.numbers, once=True):
            for draw in chunk.draws:
                below[chunk.rows] += draw < low[chunk.rows]
                within[chunk.rows] += (draw >= low[chunk.rows]) & (draw <= high[chunk.rows])
        values = pit_values(below, within, N_DRAWS, self.rng)
        maps[self.numbers] = pit_maps([values[self.hidden[:, d], d] for d in self.numbers])
        return maps
