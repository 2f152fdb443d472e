"""The training table and its batches: every row once in an epoch, shuffled."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from plurigp.inference.bound import Batch


class TrainingTable(NamedTuple):
    """The training table in block order, in memory or on disk."""

    values: np.ndarray  # [N V]
    seen: np.ndarray  # [N D]
    weights: np.ndarray | None = None  # [N] how often each row counts; None = once

    @property
    def n_cells(self) -> float:
        """Observed cells, each as often as its row counts."""
        return float(self.seen.sum() if self.weights is None else self.weights @ self.seen.sum(1))

    def epoch(self, batch_size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Every row once, in batches; each stands for n_batches times its rows, so that their average is the bound."""
        rows, real = batches(len(self.values), batch_size, rng)
        mean = 1.0 if self.weights is None else self.weights.mean()
        weight = np.asarray(len(rows) * mean, self.values.dtype)
        relative = None if self.weights is None else (self.weights / mean).astype(self.values.dtype)
        for r, k in zip(rows, real, strict=True):
            yield Batch(self.values[r], self.seen[r], r, k, weight, None if relative is None else relative[r])


def batches(n_rows: int, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shuffled row numbers and whether each is real, both [n_batches B]; short batches are padded with row 0, not real.

    Sizes differ by one at most, so that no batch weighs its rows much more than another.
    """
    if n_rows < 1 or batch_size < 1:
        raise ValueError(f"n_rows and batch_size must be at least 1, got {n_rows} and {batch_size}.")
    n_batches = -(-n_rows // batch_size)
    rows = np.zeros((n_batches, -(-n_rows // n_batches)), dtype=np.int32)
    real = np.zeros(rows.shape, dtype=bool)
    for batch, part in enumerate(np.array_split(rng.permutation(n_rows).astype(np.int32), n_batches)):
        rows[batch, : len(part)] = part
        real[batch, : len(part)] = True
    return rows, real
