"""What a trained model answers: `transform`, `impute`, `gaps`, `score` and `sample`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import CommandError, about
from plurigp.cli.files import check_table, table_suffix, write_table
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
    TableOut,
    read_input,
)
from plurigp.cli.text import say, say_json, say_table

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.estimator import PluriGP

MAX_DRAWN_CELLS = 100_000_000  # by one `sample`, all of them in memory


def transform(
    model: ModelIn,
    table: TableIn,
    out: TableOut,
    std: Annotated[bool, typer.Option("--std", help="Add the standard deviation of each coordinate.")] = False,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Compute the latent position of every row.

    Writes one line per row: its number and the posterior mean of its latent position. Rows may have gaps. The position
    of a row does not depend on the other rows.

    \b
    Example:
      plurigp transform model patients.csv --std --out latent.csv
    """
    import numpy as np
    import pandas as pd

    check_table(out, force)
    fitted, frame = _model_and_rows(model, table, sep, decimal, missing)
    names = [str(name) for name in fitted.get_feature_names_out()]
    with about(table):
        means, sds = fitted.transform(frame, return_std=True)
    columns = {"row": np.arange(len(frame)), **dict(zip(names, means.T, strict=True))}
    if std:
        columns |= dict(zip([f"{name}_sd" for name in names], sds.T, strict=True))
    write_table(pd.DataFrame(columns), out)
    say(f"wrote the latent positions of {len(frame)} rows to {out}")


def impute(  # long: its options
    model: Annotated[Path, typer.Argument(metavar="[MODEL_DIR]", help="A folder written by `plurigp fit`.")],
    out: TableOut,
    table: Annotated[
        Path | None,
        typer.Argument(metavar="TABLE", help="A CSV, TSV or Parquet file with a header; - for standard input."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(metavar="M", min=1, help="Multiple imputation: write M tables, OUT-1 to OUT-M.")
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
    row: analyse each table and pool the results by Rubin's rules. Without MODEL_DIR a model is trained on the table
    itself, its dimensions chosen and its predictions corrected by trees; --schema and --exclude are for that case.

    \b
    Example:
      plurigp impute patients.csv --out filled.csv
      plurigp impute model patients.csv --out filled.csv
      plurigp impute model patients.csv --draws 20 --seed 1 --out completed.csv
    """
    from plurigp.cli.filled import filled_text, spelling

    files = [out] if draws is None else [numbered(out, n + 1) for n in range(draws)]
    for file in files:
        check_table(file, force)
    if table is not None and (schema is not None or exclude):
        raise CommandError("--schema and --exclude are for a table without a model; a model has its columns.")
    path = model if table is None else table
    loaded = None if table is None else _load(model)
    frame = read_input(path, sep, decimal, missing)
    with about(path):
        fitted = loaded or _trained_on(frame, schema, exclude, seed)
        rows = fitted.schema_.matching(frame)
        answers = [fitted.impute(rows)] if draws is None else fitted.impute_draws(rows, draws, random_state=seed)
    used = [name for column in fitted.schema_.used for name in (column.name, column.upper) if name is not None]
    dialect = spelling(path, out, sep, decimal)
    for answer, file in zip(answers, files, strict=True):
        filled = frame.assign(**{name: answer[name] for name in used})
        write_table(filled if dialect is None else filled_text(path, frame, filled, dialect.sep), file, safe)
    n_filled = int((frame[used].isna() & answers[0][used].notna()).to_numpy().sum())
    written = str(out) if draws is None else f"{files[0]} to {files[-1]}"
    say(f"filled {n_filled} gaps in {len(used)} columns and wrote {written}")


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


def score(
    model: ModelIn,
    table: TableIn,
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
    fitted, frame = _model_and_rows(model, table, sep, decimal, missing)
    with about(table):
        coded = fitted.coder_.table(frame)
        total, cells = float(fitted.score_samples(coded).sum()), int(coded.seen.sum())
    means = {"per_row": total / len(frame), "per_cell": total / cells if cells else float("nan")}
    if json:
        say_json({"model": str(model), "table": str(table), "rows": len(frame), "cells": cells, **means})
        return
    rows = [("per row", f"{means['per_row']:.4f}"), ("per observed cell", f"{means['per_cell']:.4f}")]
    say_table(("mean log density", "nats"), rows, right=("nats",))
    say(f"{len(frame)} rows, {cells} observed cells")


def sample(
    model: ModelIn,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="Number of rows to draw.")],
    out: TableOut,
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
    write_table(fitted.sample(rows, random_state=seed), out, safe)
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
