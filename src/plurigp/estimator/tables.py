"""Training tables: a table in memory or in one file, coded as a whole, or a folder of files of which each process reads
its part."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from plurigp.core.types import DataError
from plurigp.data import Coder, Rows
from plurigp.data.dataset import ParquetFolder, ParquetRange, SampledRows
from plurigp.inference.batches import RowSample, TrainingTable
from plurigp.inference.parallel import row_shards
from plurigp.likelihoods.layout import arrange_columns, make_layout

SAMPLE_ROWS = 200_000  # of a folder's rows, from which kinds, levels, units and the start of training are taken


def check_sharded(given: Mapping[str, Any], is_folder: bool, sample_weight: Any) -> None:
    """What needs all rows in one place is refused before they are read."""
    if sample_weight is not None and (is_folder or given["n_shards"] != 1):
        raise ValueError("sample_weight needs the table in one process: give one file or frame, and n_shards=1")


def training_table(
    rows: Rows, coder: Coder, given: Mapping[str, Any], weights: np.ndarray | None = None
) -> TrainingTable:
    """The rows coded, in block order, with their weights [N]; in one of several processes, with its shards of them."""
    coded = _coded(rows, coder, given)
    if given["n_shards"] == 1:
        return TrainingTable(*coded, weights)
    shards = row_shards(len(rows), int(given["n_shards"]), given["device"])
    values, seen = (part[shards.own_rows] for part in coded)
    return TrainingTable(values, seen, None, shards, RowSample(*coded, np.arange(len(rows), dtype=np.int32)))


def sample_folder(folder: ParquetFolder) -> SampledRows:
    """The rows that speak for a folder's table; all of them, unless there are more than SAMPLE_ROWS."""
    return folder.sample(SAMPLE_ROWS)


def folder_table(folder: ParquetFolder, sampled: SampledRows, coder: Coder, given: Mapping[str, Any]) -> TrainingTable:
    """A folder's rows; this process reads the row groups of its own shards and those of the sample."""
    if given["encoder"] == "free" and len(sampled.rows) < len(folder):
        finding = f"encoder='free' keeps a position per row, and there are more than {SAMPLE_ROWS:,}"
        raise ValueError(f"{finding}; use another encoder, or fit a part of the folder")
    shards = row_shards(len(folder), int(given["n_shards"]), given["device"])
    own = range(len(folder))[shards.own_rows]
    try:
        values, seen = _coded(Rows(ParquetRange(folder, own)), coder, given)
    except DataError as error:
        raise DataError(f"{folder.source}, rows counted from row {own.start}: {error}") from None
    numbers = sampled.rows.astype(np.int32)
    return TrainingTable(values, seen, None, shards, RowSample(*_coded(Rows(sampled.frame), coder, given), numbers))


def _coded(rows: Rows, coder: Coder, given: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    layout, columns = make_layout(coder.schema), coder.coded_columns(rows)
    return arrange_columns(layout, columns, len(rows), given["dtype"], coder.covariate_values(rows))
