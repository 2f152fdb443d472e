"""Answers for a folder of Parquet files: one output file for each, in constant memory; a stopped run goes on."""

import json
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from plurigp.core.files import whole_file
from plurigp.core.text import file_name, jsonable
from plurigp.core.types import DataError
from plurigp.data.dataset import ParquetFolder
from plurigp.data.rows import PYARROW_ERRORS

PIECE_ROWS = 50_000  # that are read, answered and written at a time
ABOUT = "answers.json"  # says what the files of an output folder answer


class ShardCounts(NamedTuple):
    """What a run has written, and how many files were there from an earlier one."""

    n_rows: int
    n_files: int
    n_skipped: int


def pieces_of(file: Path) -> Iterator[pd.DataFrame]:
    """The rows of one file, some at a time."""
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file) as opened:
            for batch in opened.iter_batches(PIECE_ROWS):
                yield batch.to_pandas().reset_index(drop=True)
    except PYARROW_ERRORS as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file_name(file)}: not a readable Parquet file; write it again.") from None


def filled_schema(folder: ParquetFolder, used: set[str], gapped: Container[str | None] = ()) -> Any:
    """The Arrow schema of a folder's files once the gaps of these columns are filled: whole numbers with gaps, in the
    files or by the values that `gapped` ones declare missing, may be filled by others."""
    import pyarrow as pa
    from pyarrow.parquet import read_schema

    schema = read_schema(folder.files[0]).remove_metadata()
    for place, field in enumerate(schema):
        if (
            field.name in used
            and pa.types.is_integer(field.type)
            and (field.name in gapped or folder.has_gaps(field.name))
        ):
            schema = schema.set(place, field.with_type(pa.float64()))
    return schema


def write_shards(
    folder: ParquetFolder,
    out: Path,
    about: Mapping[str, Any],
    answer: Callable[[pd.DataFrame, int], pd.DataFrame],
    schema: Any = None,
) -> ShardCounts:
    """`answer(rows, number of the first row)` of every file into a file of its name, whole or not there.

    Files that are there are skipped. `about` says what is asked; a folder that answers something else is refused.
    """
    _start(out, {**about, "files": [[file.name, folder.rows_in(file)] for file in folder.files]})
    first, n_rows, n_skipped = 0, 0, 0
    for file in folder.files:
        n = folder.rows_in(file)
        if (out / file.name).exists():
            n_skipped += 1
        else:
            _write_shard(file, out / file.name, first, answer, schema)
            n_rows += n
        first += n
    return ShardCounts(n_rows, len(folder.files), n_skipped)


def remove_shards(folder: ParquetFolder, out: Path) -> None:
    """Of an earlier run, its answers and nothing else."""
    if (out / ABOUT).exists():
        for name in (*(file.name for file in folder.files), ABOUT):
            (out / name).unlink(missing_ok=True)


def _write_shard(
    file: Path,
    target: Path,
    first: int,
    answer: Callable[[pd.DataFrame, int], pd.DataFrame],
    schema: Any,
) -> None:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    with whole_file(target) as part:
        writer = None
        for rows in pieces_of(file):
            try:
                answered = pa.Table.from_pandas(answer(rows, first), schema, preserve_index=False)
            except DataError as error:
                raise DataError(f"{file_name(file)}, rows counted from row {first}: {error}") from None
            if writer is None:
                schema = answered.schema
                writer = ParquetWriter(part, schema)
            writer.write_table(answered)
            first += len(rows)
        if writer is None:  # a file without rows stays one
            writer = ParquetWriter(part, schema or pa.schema([]))
        writer.close()


def _start(out: Path, about: Mapping[str, Any]) -> None:
    """Say in the folder what it answers; another one's is refused."""
    now = jsonable(about)
    if (out / ABOUT).exists():
        held = json.loads((out / ABOUT).read_text(encoding="utf-8"))
        changed = next((part for part in now if held.get(part) != now[part]), None)
        if changed is not None:
            raise DataError(f"{file_name(out)}: holds answers to another {changed}; name a new folder.")
    elif out.exists() and any(out.iterdir()):
        raise DataError(f"{file_name(out)}: holds other files and no answers; name an empty or a new folder.")
    out.mkdir(parents=True, exist_ok=True)
    for unfinished in out.glob(".*.part"):  # of a run that was stopped while writing
        unfinished.unlink()
    with whole_file(out / ABOUT) as part:
        part.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
