"""`plurigp table-one`: the groups of a table side by side, as journals print them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import CommandError, about
from plurigp.cli.files import check_file
from plurigp.cli.options import Decimal, Force, Missing, SchemaIn, Sep, TableIn, read_input
from plurigp.cli.text import say

if TYPE_CHECKING:
    from plurigp.report.printed import TableOne

FORMATS = (".csv", ".html", ".md", ".docx")


def describe_groups(  # long: its options
    table: TableIn,
    out: Annotated[
        list[Path], typer.Option("--out", metavar="FILE", help="Output: .csv, .html, .md or .docx; repeatable.")
    ],
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that holds the groups.")] = None,
    study: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Compare the subtypes of this study; TABLE is what it studied.")
    ] = None,
    schema: SchemaIn = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Only these columns, in this order; repeatable.")
    ] = None,
    mean: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Describe by mean (SD), whatever its kind; repeatable.")
    ] = None,
    median: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Describe by median [Q1, Q3]; repeatable.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the table.")] = None,
    weights: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the rows' sampling weights.")] = None,
    groups: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of a row's patient; tests then count patients.")
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Write a Table 1: the groups of a table side by side.

    One line per column: n (%), mean (SD) or median [Q1, Q3] of everybody and of every group, missing cells,
    standardised mean differences, and p-values with the tests they come from. How a column is described follows from
    its kind. For the subtypes of a study, the columns that they were found in are not tested.

    \b
    Example:
      plurigp table-one patients.csv --by arm --schema schema.toml --out table1.docx --out table1.html
      plurigp table-one patients.csv --study run --out table1.docx
    """
    if by is not None and study is not None:
        raise CommandError("--by and --study both name groups; give one of the two.")
    for path in out:
        check_format(path)
        check_file(path, force)
    from plurigp.report.table_one import table_one
    from plurigp.study import load_study

    compared = by if study is None else load_study(study)
    frame = read_input(table, sep, decimal, missing)
    with about(table):
        made = table_one(frame, compared, schema, column, mean or (), median or (), title, weights, groups)
    for path in out:
        write_form(made, path)
        say(f"wrote {path}: {len(made.columns)} columns, {len(made.groups)} groups, {made.sizes[0]} rows")


def check_format(path: Path) -> None:
    """Refuse a file whose name does not say a format."""
    if path.suffix.lower() not in FORMATS:
        raise CommandError(f"{path}: unknown format; the name must end in {', '.join(FORMATS)}.")


def write_form(made: "TableOne", path: Path) -> None:
    """The table in the format of the file's name."""
    match path.suffix.lower():
        case ".csv":
            made.to_csv(path)
        case ".html":
            made.to_html(path)
        case ".md":
            made.to_markdown(path)
        case _:
            made.to_docx(path)
