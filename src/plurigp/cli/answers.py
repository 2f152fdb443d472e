"""What a trained model answers: `transform`, `impute`, `gaps`, `counterfactual`, `score` and `sample`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plurigp.cli.errors import CommandError, about
from plurigp.cli.files import check_table, table_suffix, write_table
from plurigp.cli.folders import answer_folder, asked_of, open_folder, score_folder
from plurigp.cli.options import (
    Decimal,
    Exclude,
    Force,
    Json,
    Missing,
    ModelIn,
    SchemaIn,
    Seed,
    Sep,
    SpreadsheetSafe,
    TableIn,
    TableOrFolderIn,
    TableOut,
    deltas_of,
    read_input,
)
from plurigp.cli.roles import At, as_covariates, check_at
from plurigp.cli.text import say, say_json, say_table

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.data.dataset import ParquetFolder
    from plurigp.estimator import PluriGP

MAX_DRAWN_CELLS = 100_000_000  # by one `sample`, all of them in memory


def transform(
    model: ModelIn,
    table: TableOrFolderIn,
    out: TableOut,
    std: Annotated[bool, typer.Option("--std", help="Add the standard deviation of each coordinate.")] = False,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Compute the latent position of every row.

    Writes one line per row: its number and the posterior mean of its latent position. Rows may have gaps. The position
    of a row does not depend on the other rows. Of a folder of Parquet files, each gets a file of positions in the
    folder --out; a command that was stopped goes on with the files that are not there yet.

    \b
    Example:
      plurigp transform model patients.csv --std --out latent.csv
    """
    folder = open_folder(table, missing)
    if folder is not None:
        fitted = _load(model)
        asked = asked_of("transform", model, std=std)
        answer_folder(folder, out, force, asked, lambda rows, first: _positions(fitted, rows, std, first))
        return
    check_table(out, force)
    fitted, frame = _model_and_rows(model, table, sep, decimal, missing)
    with about(table):
        write_table(_positions(fitted, frame, std), out)
    say(f"wrote the latent positions of {len(frame)} rows to {out}")


def _positions(fitted: "PluriGP", frame: "pd.DataFrame", std: bool, first: int = 0) -> "pd.DataFrame":
    """Row numbers, counted from `first`, and latent positions."""
    import numpy as np
    import pandas as pd

    names = [str(name) for name in fitted.get_feature_names_out()]
    means, sds = fitted.transform(fitted.schema_.matching(frame), return_std=True)
    columns = {"row": np.arange(first, first + len(frame)), **dict(zip(names, means.T, strict=True))}
    if std:
        columns |= dict(zip([f"{name}_sd" for name in names], sds.T, strict=True))
    return pd.DataFrame(columns)


def impute(  # long: its options
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL_DIR] TABLE",
            help="A folder written by `plurigp fit`, if there is one, and a CSV, TSV or Parquet file with a header; "
            "- for standard input.",
        ),
    ],
    out: TableOut,
    draws: Annotated[
        int | None, typer.Option(metavar="M", min=1, help="Multiple imputation: write M tables, OUT-1 to OUT-M.")
    ] = None,
    delta: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN[:LEVEL]=AMOUNT", help="With --draws: move what fills these gaps; repeatable."),
    ] = None,
    schema: SchemaIn = None,
    exclude: Exclude = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    seed: Seed = 0,
    safe: SpreadsheetSafe = False,
    force: Force = False,
) -> None:
    """Fill the gaps of a table.

    Fills every gap of the model's columns with its prediction from the observed cells of the row. Observed cells are
    written as they were read; columns set aside are not changed. With --draws, each of M tables holds a joint draw per
    row: analyse each table and pool the results by Rubin's rules. --delta asks what follows if gaps are not at random:
    it adds AMOUNT to what fills the column's gaps, in its own units, or to the log odds of yes or of LEVEL. Without
    MODEL_DIR a model is trained on the table itself, its dimensions chosen and its predictions corrected by trees;
    --schema and --exclude are for that case. TABLE may be a folder of Parquet files where there is a model.

    \b
    Example:
      plurigp impute patients.csv --out filled.csv
      plurigp impute model patients.csv --out filled.csv
      plurigp impute model patients.csv --draws 20 --seed 1 --out completed.csv
      plurigp impute model patients.csv --draws 20 --delta crp=5 --delta stage:late=0.5 --out shifted.csv
    """
    from plurigp.cli.filled import filled_text, spelling

    if delta and draws is None:
        raise CommandError("--delta moves draws; say how many with --draws M.")
    if len(paths) > 2:
        raise CommandError(f"[MODEL_DIR] TABLE: at most two paths, not {len(paths)}; fill one table at a time.")
    model, path = (None if len(paths) == 1 else paths[0]), paths[-1]
    if model is not None and (folder := open_folder(path, missing)) is not None:
        return _impute_folder(model, folder, out, draws, force)
    files = [out] if draws is None else [numbered(out, n + 1) for n in range(draws)]
    for file in files:
        check_table(file, force)
    if model is not None and (schema is not None or exclude):
        raise CommandError("--schema and --exclude are for a table without a model; a model has its columns.")
    loaded = None if model is None else _load(model)
    frame = read_input(path, sep, decimal, missing)
    with about(path):
        fitted = loaded or _trained_on(frame, schema, exclude, seed)
        frame = fitted.schema_.with_gaps(frame)
        rows, moved = fitted.schema_.matching(frame), deltas_of(delta, fitted.schema_.names)
        answers = [fitted.impute(rows)] if draws is None else fitted.impute_draws(rows, draws, seed, delta=moved)
    used = _filled_columns(fitted, frame.columns)
    dialect = spelling(path, out, sep, decimal)
    for answer, file in zip(answers, files, strict=True):
        filled = frame.assign(**{name: answer[name] for name in used})
        write_table(filled if dialect is None else filled_text(path, frame, filled, dialect.sep), file, safe)
    n_filled = int((frame[used].isna() & answers[0][used].notna()).to_numpy().sum())
    written = str(out) if draws is None else f"{files[0]} to {files[-1]}"
    say(f"filled {n_filled} gaps in {len(used)} columns and wrote {written}")


def _filled_columns(fitted: "PluriGP", columns: Iterable[Any]) -> list[str]:
    """Those of a table that a model fills; it may use further ones that are made of gaps."""
    used = {name for column in fitted.schema_.used for name in (column.name, column.upper)}
    return [name for name in columns if name in used]


def _impute_folder(model: Path, folder: "ParquetFolder", out: Path, draws: int | None, force: bool) -> None:
    from plurigp.data.shards import filled_schema

    if draws is not None:
        raise CommandError(f"{folder.path}: --draws is for single files; impute the folder's files one by one.")
    fitted = _load(model)
    used = _filled_columns(fitted, folder.columns)

    def fill(rows: "pd.DataFrame", first: int) -> "pd.DataFrame":
        answer = fitted.impute(fitted.schema_.matching(rows))
        return rows.assign(**{name: answer[name] for name in used})

    declared = {name for column in fitted.schema_.used if column.missing for name in (column.name, column.upper)}
    answer_folder(folder, out, force, asked_of("impute", model), fill, filled_schema(folder, set(used), declared))


def _trained_on(frame: "pd.DataFrame", schema: Path | None, exclude: list[str] | None, seed: int) -> "PluriGP":
    """A model for this table alone, with the settings that fill gaps best."""
    from plurigp.data import infer_schema
    from plurigp.estimator import PluriGP
    from plurigp.estimator.parameters import FOR_IMPUTATION

    settled = infer_schema(frame, schema).override(dict.fromkeys(exclude or [], "aside"))
    return PluriGP(**FOR_IMPUTATION, schema=settled, random_state=seed, verbose=True).fit(frame)


def numbered(path: Path, number: int) -> Path:
    """filled.csv.gz -> filled-3.csv.gz."""
    suffix = path.name[-len(table_suffix(path)) :]
    return path.with_name(f"{path.name[: -len(suffix)]}-{number}{suffix}")


def gaps(
    model: ModelIn,
    table: TableIn,
    out: TableOut,
    draws: Annotated[int, typer.Option(metavar="N", min=10, help="Posterior draws per row.")] = 200,
    seed: Seed = 0,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    safe: SpreadsheetSafe = False,
    force: Force = False,
) -> None:
    """Describe the predictive distribution of every gap.

    Writes one line per gap, given the observed cells of its row: mean, standard deviation and quantiles of a missing
    number in the column's own units, or the most probable level and its probability.

    \b
    Example:
      plurigp gaps model patients.csv --out gaps.csv
    """
    check_table(out, force)
    fitted, frame = _model_and_rows(model, table, sep, decimal, missing)
    with about(table):
        lines = fitted.describe_gaps(frame, n_draws=draws, random_state=seed)
    write_table(lines, out, safe)
    say(f"described {len(lines)} gaps and wrote {out}")


def counterfactual(
    model: ModelIn,
    table: TableIn,
    at: Annotated[list[str], typer.Option(metavar="COLUMN=VALUE", help="Another value of a covariate; repeatable.")],
    out: TableOut,
    level: Annotated[
        float | None, typer.Option(metavar="P", help="Add the interval of every expected number, such as 0.95.")
    ] = None,
    force: Force = False,
    safe: SpreadsheetSafe = False,
    missing: Missing = None,
    sep: Sep = None,
    decimal: Decimal = None,
) -> None:
    """Predict the same rows with other covariates.

    Places every row by its own cells and covariates and writes the value expected of every column, or its
    most probable level, with the covariates given by --at. Other covariates stay as they are. The model must have been
    fitted with --covariate. With --level, columns "crp (low)" and "crp (high)" hold the interval of the expected value.

    \b
    Example:
      plurigp counterfactual model patients.csv --at site=B --out at_site_b.csv
      plurigp counterfactual model patients.csv --at site=B --level 0.95 --out at_site_b.csv
    """
    if level is not None and not 0 < level < 1:
        raise CommandError(f"--level {level:g}: must lie between 0 and 1, such as 0.95.")
    check_table(out, force)
    fitted, frame = _model_and_rows(model, table, sep, decimal, missing)
    other = as_covariates(at)
    check_at(fitted, other, frame)
    with about(table):
        found = fitted.counterfactual(frame, other, level)
    expected = found if level is None else _with_intervals(*found)
    write_table(expected, out, safe)
    say(f"predicted {len(expected)} rows at {', '.join(at)} and wrote {out}")


def _with_intervals(expected: "pd.DataFrame", low: "pd.DataFrame", high: "pd.DataFrame") -> "pd.DataFrame":
    """Every number followed by the ends of its interval; levels have none."""
    import pandas as pd

    parts = []
    for name in expected:
        own = [expected[name], low[name].rename(f"{name} (low)"), high[name].rename(f"{name} (high)")]
        parts += own[:1] if low[name].isna().all() else own
    return pd.concat(parts, axis=1)


def score(
    model: ModelIn,
    table: TableOrFolderIn,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Measure how well the model predicts a table.

    Prints the mean log density in nats per row and per observed cell, in the columns' own units; higher is better. Use
    a table that was not used in training, and compare models on the same table only.

    \b
    Example:
      plurigp score model new_patients.csv --json
    """
    folder = open_folder(table, missing)
    if folder is not None:
        n_rows, (total, cells) = len(folder), score_folder(_load(model), folder)
    else:
        fitted, frame = _model_and_rows(model, table, sep, decimal, missing)
        with about(table):
            coded = fitted.coder_.table(frame)
            n_rows, total, cells = len(frame), float(fitted.score_samples(coded).sum()), int(coded.seen.sum())
    means = {"per_row": total / n_rows, "per_cell": total / cells if cells else float("nan")}
    if json:
        say_json({"model": str(model), "table": str(table), "rows": n_rows, "cells": cells, **means})
        return
    rows = [("per row", f"{means['per_row']:.4f}"), ("per observed cell", f"{means['per_cell']:.4f}")]
    say_table(("mean log density", "nats"), rows, right=("nats",))
    say(f"{n_rows} rows, {cells} observed cells")


def sample(
    model: ModelIn,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="Number of rows to draw.")],
    out: TableOut,
    at: At = None,
    seed: Seed = 0,
    safe: SpreadsheetSafe = False,
    force: Force = False,
) -> None:
    """Draw new rows from the model.

    Writes a table of the model's columns, in their own units and levels, without gaps. The rows are simulated, but a
    model trained on few rows may reproduce some of them closely: protect the output as you protect the original.

    \b
    Example:
      plurigp sample model --rows 1000 --seed 1 --out simulated.csv
    """
    check_table(out, force)
    fitted = _load(model)
    if rows > (most := MAX_DRAWN_CELLS // len(fitted.schema_.used)):
        finding = f"--rows {rows} is more than the {most:,} rows of this model that are drawn at once"
        raise CommandError(f"{finding}; draw fewer, in several files with a --seed each.")
    write_table(fitted.sample(rows, random_state=seed, covariates=as_covariates(at)), out, safe)
    say(f"drew {rows} rows and wrote {out}")


def _load(model_dir: Path) -> "PluriGP":
    from plurigp.estimator import load

    return load(model_dir)


def _model_and_rows(
    model_dir: Path, path: Path, sep: str | None, decimal: str | None, missing: list[str] | None
) -> tuple["PluriGP", "pd.DataFrame"]:
    """With the columns in the order of the fit: extra ones left out, those set aside made up as gaps where missing."""
    fitted, frame = _load(model_dir), read_input(path, sep, decimal, missing)
    with about(path):
        return fitted, fitted.schema_.matching(frame)
