"""`plurigp pool`: the analyses of completed tables as one answer."""

from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import CommandError
from plurigp.cli.files import check_table, write_table
from plurigp.cli.options import Decimal, Force, Missing, Sep, TableIn, TableOut, read_input
from plurigp.cli.text import say

if TYPE_CHECKING:
    import pandas as pd

NEEDED = ("term", "estimate", "se")


def pool_estimates(
    table: TableIn,
    out: TableOut,
    df: Annotated[
        float | None, typer.Option(metavar="N", min=0.0, help="Degrees of freedom of the analysis without gaps.")
    ] = None,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Pool the analyses of completed tables by Rubin's rules.

    TABLE has one line per completed table and term, with columns term, estimate and se (its standard error), in the
    order of the completed tables. Writes one line per term: estimate, standard error, Barnard and Rubin's degrees of
    freedom, t, p, interval, relative increase in variance and fraction of missing information.

    \b
    Example:
      plurigp impute model patients.csv --draws 20 --out completed.csv
      (analyse completed-1.csv to completed-20.csv, collect the coefficients in estimates.csv)
      plurigp pool estimates.csv --df 812 --out pooled.csv
    """
    from plurigp.answers.pooling import pool

    check_table(out, force)
    estimates, ses = by_term(read_input(table, sep, decimal, missing), str(table))
    try:
        pooled = pool(estimates, ses**2, df_complete=float("inf") if df is None else df, level=level)
    except ValueError as error:
        raise CommandError(f"{table}: {error}") from None
    write_table(pooled.frame.reset_index(), out)
    say(f"pooled {len(pooled.frame)} terms over {pooled.n_imputations} completed tables and wrote {out}")


def by_term(lines: "pd.DataFrame", source: str) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Estimates and standard errors, a line per completed table and a column per term; all terms as often."""
    for name in NEEDED:
        if name not in lines:
            raise CommandError(f"{source}: has no column {name!r}; it needs {', '.join(NEEDED)}.")
    counts = lines["term"].value_counts(sort=False)
    if counts.nunique() != 1 or lines["term"].isna().any():
        few = str(counts.idxmin()) if len(counts) else ""
        raise CommandError(f"{source}: term {few!r} is not there for every completed table; give each term as often.")
    lines = lines.assign(table=lines.groupby("term", sort=False).cumcount())
    order = lines["term"].drop_duplicates().tolist()
    estimates, ses = (lines.pivot(index="table", columns="term", values=name)[order] for name in ("estimate", "se"))
    return estimates, ses
