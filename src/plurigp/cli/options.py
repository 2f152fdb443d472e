"""Arguments and options that several verbs share."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.data import Rows
    from plurigp.data.dataset import ParquetFolder

TableIn = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="A CSV, TSV, Parquet, Excel, Stata or SPSS file with names; - for standard input."
    ),
]
TableOrFolderIn = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="A CSV, TSV, Parquet, Excel, Stata or SPSS file, a folder of Parquet files, or - (CSV)."
    ),
]
Sep = Annotated[
    str | None, typer.Option("--sep", metavar="MARK", help="What separates the cells of TABLE: , ; | or tab.")
]
Decimal = Annotated[str | None, typer.Option("--decimal", metavar="MARK", help="Decimal mark of TABLE: . or ,")]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", metavar="[COLUMN=]VALUE", help="A value of TABLE that stands for a gap, such as 999; repeatable."
    ),
]
ModelIn = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="A folder written by `plurigp fit`.")]
SchemaIn = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="Schema file; overrides the inferred kinds.")
]
TableOut = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="Output table: .csv, .tsv, .csv.gz, .tsv.gz or .parquet.")
]
FolderOut = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results.")]
Exclude = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column out of the model; repeatable.")
]
Epochs = Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum passes over the rows.")]
PoolRareLevels = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Count levels that fewer than N rows have as one.", show_default="0"),
]
Refits = Annotated[int | None, typer.Option(metavar="N", min=2, help="Refits on random halves of the rows (even).")]
References = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Simulated tables without subtypes in which to repeat the test.", show_default="0"
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Random seed; repeats the result.")]
SpreadsheetSafe = Annotated[
    bool, typer.Option("--spreadsheet-safe", help="In CSV and TSV, put ' before text that looks like a formula.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def gap_values(missing: list[str] | None, columns: Iterable[str]) -> dict[str, list[str]]:
    """{column: values} from `VALUE`, for every column, and `COLUMN=VALUE`, for one."""
    values: dict[str, list[str]] = {}
    for text in missing or []:
        column, mark, value = text.rpartition("=")
        for name in [column] if mark else columns:
            values.setdefault(name, []).append(value)
    return values


def deltas_of(deltas: list[str] | None, columns: Iterable[str]) -> dict[str, Any]:
    """{column: amount} from `COLUMN=AMOUNT`, {column: {level: amount}} from `COLUMN:LEVEL=AMOUNT`."""
    from plurigp.cli.errors import CommandError

    known, found = set(columns), dict[str, Any]()
    for text in deltas or []:
        name, mark, amount = text.rpartition("=")
        column, colon, level = (name, "", "") if name in known else name.partition(":")
        try:
            number = float(amount)
        except ValueError:
            mark = ""
        if not mark:
            raise CommandError(f"--delta {text!r}: write COLUMN=AMOUNT, or COLUMN:LEVEL=AMOUNT for a category.")
        if colon:
            found.setdefault(column, {})[level] = number
        else:
            found[column] = number
    return found


def delta_ranges(deltas: list[str] | None, columns: Iterable[str]) -> dict[str, Any]:
    """The same options, each as one of a column's or level's amounts: {column: [amounts]}, 0 among them."""
    known, found = list(columns), dict[str, Any]()
    for text in deltas or []:
        for name, amount in deltas_of([text], known).items():
            own = {None: amount} if not isinstance(amount, dict) else amount
            for level, number in own.items():
                found.setdefault(name, {}).setdefault(level, {0.0}).add(number)
    ranges = {name: {level: sorted(own) for level, own in axes.items()} for name, axes in found.items()}
    return {name: axes[None] if set(axes) == {None} else axes for name, axes in ranges.items()}


def read_input(table: Path, sep: str | None, decimal: str | None, missing: list[str] | None) -> "pd.DataFrame":
    """The table that a verb was given, with the declared values as gaps."""
    from plurigp.cli.errors import about
    from plurigp.data import read_table
    from plurigp.data.sentinels import with_gaps_for

    with about(table):
        frame = read_table(table, sep, decimal)
        return with_gaps_for(frame, gap_values(missing, frame.columns))


def declared_gaps(frame: "pd.DataFrame", schema: Path | None) -> "pd.DataFrame":
    """The table with the values that a schema file declares missing as gaps."""
    from plurigp.data.schema import load_schema

    return frame if schema is None else load_schema(schema).with_gaps(frame)


def training_input(
    table: Path, sep: str | None, decimal: str | None, missing: list[str] | None
) -> "tuple[Rows | ParquetFolder, Rows]":
    """What to train on, and the rows that its schema is inferred from; a Parquet file is read column by column, and a
    folder of them by parts."""
    from plurigp.cli.errors import CommandError, about
    from plurigp.data import is_parquet, to_rows
    from plurigp.data.dataset import ParquetFolder, is_parquet_folder
    from plurigp.estimator.tables import sample_folder

    if is_parquet_folder(table):
        if missing:
            raise CommandError(f"{table}: --missing is for single files; declare missing = [...] in the schema file.")
        with about(table):
            folder = ParquetFolder(table)
            return folder, to_rows(sample_folder(folder).frame)
    with about(table):
        rows = to_rows(table if is_parquet(table) and not missing else read_input(table, sep, decimal, missing))
    return rows, rows


def given(**options: Any) -> dict[str, Any]:
    """The options that the command line sets."""
    return {name: value for name, value in options.items() if value is not None and value != []}
