"""Options that give columns their roles, covariates, weights and views, and covariates their values."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.estimator import PluriGP

Covariate = Annotated[
    list[str] | None,
    typer.Option("--covariate", metavar="COLUMN", help="Adjust the map for this column, such as a site; repeatable."),
]
ModelGappedCovariates = Annotated[
    bool,
    typer.Option(
        "--model-gapped-covariates", help="A covariate with gaps is modelled as a column instead of being refused."
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="COLUMN=VALUE", help="Value of a covariate of the model; repeatable."),
]
Missingness = Annotated[
    list[str] | None,
    typer.Option("--missingness", metavar="COLUMN", help="Model which cells of this column are missing; repeatable."),
]
ColumnWeight = Annotated[
    list[str] | None,
    typer.Option("--column-weight", metavar="COLUMN=W", help="How much a column counts; 1 if not given; repeatable."),
]
View = Annotated[
    list[str] | None,
    typer.Option(
        "--view",
        metavar="NAME=COLUMNS",
        help="Columns, separated by commas, * for any text, that together count as any other view does; repeatable.",
    ),
]


def covariates_missing(modelled: bool) -> str | None:
    """PluriGP's parameter; None leaves its default."""
    return "model" if modelled else None


def as_covariates(given: list[str] | None) -> dict[str, str] | None:
    """{covariate: value} from COLUMN=VALUE."""
    values = {}
    for text in given or []:
        name, mark, value = text.partition("=")
        if not (name and mark and value):
            raise CommandError(f"--at {text!r}: write COLUMN=VALUE, such as site=B.")
        values[name] = value
    return values or None


def check_at(model: "PluriGP", given: dict[str, str] | None, rows: "pd.DataFrame") -> None:
    """An error in a value of --at is told of the option, before it is told of the table's rows."""
    from plurigp.core.types import DataError
    from plurigp.data import to_rows
    from plurigp.data.roles import covariate_frame

    try:
        model.coder_.covariate_values(covariate_frame(model.schema_, given, 1, to_rows(rows.head(1))))
    except DataError as error:
        raise CommandError(f"--at: {error}".replace(", row 0", "")) from None


def as_column_weights(given: list[str] | None, option: str = "--column-weight") -> dict[str, float] | None:
    """{column: weight} from COLUMN=W."""
    weights = {}
    for text in given or []:
        name, _, weight = text.rpartition("=")
        try:
            weights[name] = float(weight)
        except ValueError:
            name = ""
        if not name:
            raise CommandError(f"{option} {text!r}: write COLUMN=W with a number W, such as crp=0.5.")
    return weights or None


def as_views(given: list[str] | None, columns: Iterable[str]) -> dict[str, list[str]] | None:
    """{view: its columns} from NAME=COLUMNS; a pattern stands for all columns that it fits."""
    views: dict[str, list[str]] = {}
    known = [str(name) for name in columns]
    for text in given or []:
        name, mark, patterns = text.partition("=")
        if not (name and mark and patterns):
            raise CommandError(f"--view {text!r}: write NAME=COLUMNS, such as labs=crp,albumin or 'dx=dx_*'.")
        for pattern in patterns.split(","):
            fits = [pattern] if pattern in known else [one for one in known if fnmatchcase(one, pattern)]
            if not fits:
                raise CommandError(f"--view {text!r}: no column is called or fits {pattern!r}; correct it.")
            views.setdefault(name, []).extend(one for one in fits if one not in views.get(name, []))
    return views or None
