"""`plurigp explain`: what the latent dimensions of a model are about."""

from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import about
from plurigp.cli.files import check_folder
from plurigp.cli.options import Decimal, FolderOut, Force, Missing, ModelIn, Seed, Sep, TableIn, read_input
from plurigp.cli.roles import View, as_views
from plurigp.cli.text import say, say_table

if TYPE_CHECKING:
    import pandas as pd


def explain_model(
    model: ModelIn,
    table: TableIn,
    out: FolderOut,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Turn dimensions so that each is about few columns (varimax).")
    ] = False,
    view: View = None,
    seed: Seed = 0,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Say what each latent dimension is about.

    Divides the deviance that the map explains of every column among its dimensions, says in which direction a column
    changes along each, and draws the curves with their uncertainty. Writes explanation.html, tables as CSV and, where
    a browser is installed, the figures as SVG and PNG. Views (--view labs=crp,albumin, or those that the model was
    fitted with) add what each dimension explains of each view. --rotate changes how dimensions are read, not the model.

    \b
    Example:
      plurigp explain model patients.csv --rotate --out explained
    """
    check_folder(out, force)
    from plurigp.core.text import listing, printable
    from plurigp.estimator import load
    from plurigp.estimator.explaining import explain
    from plurigp.report.explained import write_explanation

    fitted, frame = load(model), read_input(table, sep, decimal, missing)
    with about(table):
        views = as_views(view, fitted.schema_.names)
        found = explain(fitted, fitted.schema_.matching(frame), rotate, seed, views)
    lines = [
        (str(line["dimension"]), f"{line['share']:.0%}", listing(printable(name, 30) for name in line["columns"]))
        for line in found.dimensions.to_dict("records")
    ]
    say_table(("dimension", "explains", "first columns"), lines, right=("dimension", "explains"))
    if len(found.views):
        _say_views(found.views)
    written = write_explanation(found, out)
    say(f"wrote {written[0]} and {len(written) - 1} files beside it")


def _say_views(views: "pd.DataFrame") -> None:
    from plurigp.core.text import printable

    heads = ("view", "dimension", "columns", "of what is explained", "R²")
    lines = [
        (printable(line["view"], 30), str(line["dimension"]), str(line["columns"]), f"{line['share']:.0%}",
         f"{line['r2']:.2f}") for line in views.to_dict("records")
    ]  # fmt: skip
    say("")
    say_table(heads, lines, right=heads[1:])
