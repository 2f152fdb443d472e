"""`transform`, `impute` and `score` of a folder of Parquet files: one output file for each, in constant memory."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plurigp.cli.errors import CommandError, about
from plurigp.cli.text import say

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.data.dataset import ParquetFolder
    from plurigp.estimator import PluriGP


def open_folder(path: Path, missing: list[str] | None = None) -> "ParquetFolder | None":
    """The folder of files that a verb was given as its table; None for a file."""
    from plurigp.data.dataset import ParquetFolder, is_parquet_folder

    if not is_parquet_folder(path):
        return None
    if missing:
        raise CommandError(f"{path}: --missing is for single files; declare missing = [...] in the schema of the fit.")
    with about(path):
        return ParquetFolder(path)


def answer_folder(
    folder: "ParquetFolder",
    out: Path,
    force: bool,
    asked: dict[str, Any],
    answer: "Callable[[pd.DataFrame, int], pd.DataFrame]",
    schema: Any = None,
) -> None:
    """Write the answers file by file; with --force from the beginning, otherwise what an earlier run left undone."""
    from plurigp.data.shards import remove_shards, write_shards

    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: is a file; for a folder of tables --out names a folder.")
    if force:
        remove_shards(folder, out)
    with about(folder.path):
        done = write_shards(folder, out, asked, answer, schema)
    skipped = f"; {done.n_skipped} were there already" if done.n_skipped else ""
    say(f"wrote {done.n_rows} rows in {done.n_files - done.n_skipped} of {done.n_files} files to {out}{skipped}")


def asked_of(verb: str, model: Path, **options: Any) -> dict[str, Any]:
    """What answers are the answers to; a model is known by its manifest, which has the hash of its arrays."""
    from plurigp.estimator.persistence import MANIFEST

    return {"verb": verb, "model": hashlib.sha256((model / MANIFEST).read_bytes()).hexdigest(), "options": options}


def score_folder(fitted: "PluriGP", folder: "ParquetFolder") -> tuple[float, int]:
    """The summed log density of all rows, and their observed cells."""
    from plurigp.data.shards import pieces_of

    total, cells = 0.0, 0
    for file in folder.files:
        with about(file):
            for rows in pieces_of(file):
                coded = fitted.coder_.table(fitted.schema_.matching(rows))
                total += float(fitted.score_samples(coded).sum())
                cells += int(coded.seen.sum())
    return total, cells
