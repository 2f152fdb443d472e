"""Shuffled batches of one fixed size, as equal as can be."""

import numpy as np


def batches(n_rows: int, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers and whether each is real, both [n_batches B]; the short batches are padded with row 0, not real.

    Sizes differ by one at most, so that no batch weighs its rows much more than another.
    """
    if n_rows < 1 or batch_size < 1:
        raise ValueError(f"n_rows and batch_size must be at least 1, got {n_rows} and {batch_size}.")
    n_batches = -(-n_rows // batch_size)
    width = -(-n_rows // n_batches)
    rows = np.zeros((n_batches, width), dtype=np.int32)
    real = np.zeros((n_batches, width), dtype=bool)
    for batch, part in enumerate(np.array_split(rng.permutation(n_rows).astype(np.int32), n_batches)):
        rows[batch, : len(part)] = part
        real[batch, : len(part)] = True
    return rows, real
