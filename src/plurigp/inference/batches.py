"""The training table and its batches: every row once in an epoch, shuffled."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jax.sharding import Mesh

from plurigp.inference.bound import Batch
from plurigp.inference.parallel import RowShards, on_every_device, spread_rows, sum_over_processes


class RowSample(NamedTuple):
    """Some or all rows of the whole table, the same in every process, for what looks at some rows only."""

    values: np.ndarray  # [n V]
    seen: np.ndarray  # [n D]
    rows: np.ndarray  # [n] their numbers in the table


class TrainingTable(NamedTuple):
    """The training table in block order, in memory or on disk; in one of several processes, its rows of it."""

    values: np.ndarray  # [N V]
    seen: np.ndarray  # [N D]
    weights: np.ndarray | None = None  # [N] how often each row counts; None = once
    shards: RowShards | None = None  # None: one, with all rows
    sampled: RowSample | None = None  # None: all rows

    @property
    def n_rows(self) -> int:
        """Of the whole table."""
        return len(self.values) if self.shards is None else self.shards.n_rows

    @property
    def mesh(self) -> Mesh | None:
        """The devices that have the rows; None: one."""
        return None if self.shards is None else self.shards.mesh

    @property
    def sample(self) -> RowSample:
        """Rows of the whole table, the same in every process."""
        if self.sampled is not None:
            return self.sampled
        return RowSample(self.values, self.seen, np.arange(len(self.values), dtype=np.int32))

    def count_seen(self) -> np.ndarray:
        """Observed cells of every column of the whole table [D]; all processes have to ask."""
        return sum_over_processes(self.mesh, self.seen.sum(0))

    def count_cells(self) -> np.ndarray:
        """The same, each as often as its row counts; only a table of one shard has weights."""
        return self.count_seen() if self.weights is None else self.weights @ self.seen

    def epoch(self, batch_size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Every row once, in batches; each stands for n_batches times its rows, so that their average is the bound."""
        shards = self.shards or RowShards(len(self.values))
        first = shards.own_rows.start
        rows, real = sharded_batches(shards, batch_size, rng)
        mean = 1.0 if self.weights is None else self.weights.mean()
        weight = on_every_device(shards.mesh, np.asarray(len(rows) * mean, self.values.dtype))
        relative = None if self.weights is None else (self.weights / mean).astype(self.values.dtype)
        for r, k in zip(rows, real, strict=True):
            own = (self.values[r - first], self.seen[r - first], r, k)
            values, seen, numbers, are_real = spread_rows(shards.mesh, own)
            yield Batch(values, seen, numbers, are_real, weight, None if relative is None else relative[r])


def sharded_batches(shards: RowShards, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As `batches`, with equally many rows of every shard in each batch; of them, those of this process.

    Every process draws the same number and shuffles its own shards by it.
    """
    if shards.n_shards == 1:
        return batches(shards.n_rows, batch_size, rng)
    n_batches, seed = -(-shards.n_rows // batch_size), int(rng.integers(2**63))
    width = max(-(-len(shards.rows_of(shard)) // n_batches) for shard in range(shards.n_shards))
    parts = []
    for shard in shards.own:
        of_shard = shards.rows_of(shard)
        rows, real = _dealt(len(of_shard), n_batches, width, np.random.default_rng([seed, shard]))
        parts.append((rows + of_shard.start, real))
    rows, real = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return rows, real


def batches(n_rows: int, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Shuffled row numbers and whether each is real, both [n_batches B]; short batches are padded with row 0, not real.

    Sizes differ by one at most, so that no batch weighs its rows much more than another.
    """
    if n_rows < 1 or batch_size < 1:
        raise ValueError(f"n_rows and batch_size must be at least 1, got {n_rows} and {batch_size}.")
    n_batches = -(-n_rows // batch_size)
    return _dealt(n_rows, n_batches, -(-n_rows // n_batches), rng)


def _dealt(n_rows: int, n_batches: int, width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = np.zeros((n_batches, width), dtype=np.int32)
    real = np.zeros(rows.shape, dtype=bool)
    for batch, part in enumerate(np.array_split(rng.permutation(n_rows).astype(np.int32), n_batches)):
        rows[batch, : len(part)] = part
        real[batch, : len(part)] = True
    return rows, real
