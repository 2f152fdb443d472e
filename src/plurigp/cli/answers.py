"""What a trained model answers: `transform`, `impute`, `score` and `sample`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from plurigp.cli.errors import about
from plurigp.cli.files import check_table, table_suffix, write_table
from plurigp.cli.text import say, say_json, say_table

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.estimator import PluriGP


def run_transform(model_dir: Path, path: Path, out: Path, sd: bool, force: bool) -> None:
    """Row numbers and latent positions, as a table."""
    import numpy as np
    import pandas as pd

    check_table(out, force)
    model = _load(model_dir)
    frame = as_fitted(model, _read(path), path)
    names = [str(name) for name in model.get_feature_names_out()]
    with about(path):
        means, sds = model.transform(frame, return_std=True)
    columns = {"row": np.arange(len(frame)), **dict(zip(names, means.T, strict=True))}
    if sd:
        columns |= dict(zip([f"{name}_sd" for name in names], sds.T, strict=True))
    write_table(pd.DataFrame(columns), out)
    say(f"wrote the latent positions of {len(frame)} rows to {out}")


def run_impute(
    model_dir: Path, path: Path, out: Path, draws: int | None, seed: int, spreadsheet_safe: bool, force: bool
) -> None:
    """The table with its gaps filled; observed cells as they were read, from text to text to the letter."""
    files = [out] if draws is None else [numbered(out, n + 1) for n in range(draws)]
    for file in files:
        check_table(file, force)
    model, frame = _load(model_dir), _read(path)
    used = [name for column in model.schema_.used for name in (column.name, column.upper) if name is not None]
    with about(path):
        rows = as_fitted(model, frame, path)
        answers = [model.impute(rows)] if draws is None else model.impute_draws(rows, draws, random_state=seed)
    for answer, file in zip(answers, files, strict=True):
        _write_filled(path, frame, frame.assign(**{name: answer[name] for name in used}), file, spreadsheet_safe)
    n_filled = int((frame[used].isna() & answers[0][used].notna()).to_numpy().sum())
    written = str(out) if draws is None else f"{files[0]} to {files[-1]}"
    say(f"filled {n_filled} gaps in {len(used)} columns and wrote {written}")


def _write_filled(path: Path, frame: "pd.DataFrame", filled: "pd.DataFrame", out: Path, spreadsheet_safe: bool) -> None:
    from plurigp.cli.filled import filled_text

    as_text = not any(file.name.lower().endswith((".parquet", ".pq")) for file in (path, out))
    write_table(filled_text(path, frame, filled) if as_text else filled, out, spreadsheet_safe)


def numbered(path: Path, number: int) -> Path:
    """filled.csv.gz -> filled-3.csv.gz."""
    suffix = path.name[-len(table_suffix(path)) :]
    return path.with_name(f"{path.name[: -len(suffix)]}-{number}{suffix}")


def run_gaps(
    model_dir: Path, path: Path, out: Path, draws: int, seed: int, spreadsheet_safe: bool, force: bool
) -> None:
    """One line per gap, with what is known of the value that is missing."""
    check_table(out, force)
    model = _load(model_dir)
    frame = as_fitted(model, _read(path), path)
    with about(path):
        lines = model.describe_gaps(frame, n_draws=draws, random_state=seed)
    write_table(lines, out, spreadsheet_safe)
    say(f"described {len(lines)} gaps and wrote {out}")


def run_score(model_dir: Path, path: Path, json: bool) -> None:
    """Mean log density per row and per observed cell."""
    model = _load(model_dir)
    frame = as_fitted(model, _read(path), path)
    with about(path):
        answer = scores(model, frame)
    if json:
        say_json({"model": str(model_dir), "table": str(path), **answer})
        return
    rows = [("per row", f"{answer['per_row']:.4f}"), ("per observed cell", f"{answer['per_cell']:.4f}")]
    say_table(("mean log density", "nats"), rows, right=("nats",))
    say(f"{answer['rows']} rows, {answer['cells']} observed cells")


def scores(model: "PluriGP", frame: "pd.DataFrame") -> dict[str, Any]:
    """The figures behind `run_score`; a table without an observed cell has no mean per cell."""
    table = model.coder_.table(frame)
    total, cells = float(model.score_samples(table).sum()), int(table.seen.sum())
    per_cell = total / cells if cells else float("nan")
    return {"rows": len(frame), "cells": cells, "per_row": total / len(frame), "per_cell": per_cell}


def run_sample(model_dir: Path, n_rows: int, out: Path, seed: int, spreadsheet_safe: bool, force: bool) -> None:
    """Rows drawn from the model."""
    check_table(out, force)
    write_table(_load(model_dir).sample(n_rows, random_state=seed), out, spreadsheet_safe)
    say(f"drew {n_rows} rows and wrote {out}")


def as_fitted(model: "PluriGP", frame: "pd.DataFrame", path: Path) -> "pd.DataFrame":
    """The columns in the order of the fit: extra ones left out, those set aside made up as gaps where missing."""
    with about(path):
        return model.schema_.matching(frame)


def _load(model_dir: Path) -> "PluriGP":
    from plurigp.estimator import load

    return load(model_dir)


def _read(path: Path) -> "pd.DataFrame":
    from plurigp.data.read import read_table

    return read_table(path)
