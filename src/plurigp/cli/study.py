"""`plurigp study`: from a table to a folder of subtypes, their robustness and what distinguishes them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plurigp.cli.errors import about
from plurigp.cli.files import check_folder
from plurigp.cli.options import (
    Decimal,
    Epochs,
    Exclude,
    FolderOut,
    Json,
    Missing,
    PoolRareLevels,
    References,
    Refits,
    SchemaIn,
    Sep,
    TableIn,
    declared_gaps,
    given,
    read_input,
)
from plurigp.cli.report import REPORT, write_page
from plurigp.cli.roles import (
    ColumnWeight,
    Covariate,
    Missingness,
    ModelGappedCovariates,
    View,
    as_column_weights,
    as_views,
    covariates_missing,
)
from plurigp.cli.text import say, say_json, say_table

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from plurigp.report.tables import PageTable
    from plurigp.study import StudyResult


def study(  # long: its options
    table: TableIn,
    out: FolderOut,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file with the settings; options given here override it.")
    ] = None,
    schema: SchemaIn = None,
    exclude: Exclude = None,
    components: Annotated[
        list[int] | None, typer.Option(metavar="N", min=1, help="Candidate number of latent dimensions; repeatable.")
    ] = None,
    subtypes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of subtypes or strata.", show_default="by evidence"),
    ] = None,
    refits: Refits = None,
    references: References = None,
    epochs: Epochs = None,
    pool_rare_levels: PoolRareLevels = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Time to the outcome or to censoring.")] = None,
    event: Annotated[str | None, typer.Option(metavar="COLUMN", help="Whether the outcome occurred.")] = None,
    horizon: Annotated[
        list[float] | None, typer.Option(metavar="T", help="Report the risk within this time; repeatable.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of a row's patient; no split divides a patient.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that says how often each row counts.")
    ] = None,
    column_weight: ColumnWeight = None,
    guide: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=W", help="Outcome that informs the map with weight W, untested; repeatable."),
    ] = None,
    covariate: Covariate = None,
    model_gapped_covariates: ModelGappedCovariates = False,
    missingness: Missingness = None,
    view: View = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Random seed.", show_default="0")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Worker processes.", show_default="all cores")
    ] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler that runs the fits.")] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Find subtypes in a table and test whether they are groups.

    Chooses the number of latent dimensions and of clusters, refits on random halves, and looks for valleys: whether
    fewer of the rows that a refit has not seen lie between two clusters than in either. Describes what distinguishes
    each subtype. A table without valleys is called a continuum and described in strata. Every finished fit is kept in
    --out: the same command resumes an interrupted study. The outcome (--time, --event) is not used in the fit.

    \b
    Example:
      plurigp study patients.csv --time days --event died --horizon 180 --out run
    """
    check_folder(out, force=True)  # a study resumes in its own folder
    from plurigp.data import infer_schema, to_rows
    from plurigp.data.missingness import add_missingness
    from plurigp.study import Study, read_config

    options = given(n_components=components, n_subtypes=subtypes, n_refits=refits, n_references=references,
                    max_epochs=epochs, pool_rare_levels=pool_rare_levels,
                    time=time, event=event, horizons=horizon, random_state=seed, groups=groups,
                    weights=weights, guides=as_column_weights(guide, "--guide"))  # fmt: skip
    settings = ({} if config is None else read_config(config)) | options
    weighed = {"column_weights": as_column_weights(column_weight)}
    roles = given(covariates=covariate, covariates_missing=covariates_missing(model_gapped_covariates), **weighed)
    settings["model"] = {**settings.get("model", {}), **roles}
    studied: dict[str, Any] = {"out": out, "n_jobs": jobs, "dask": dask, "verbose": not json}
    planned = Study(**studied, **settings)
    rows = to_rows(read_input(table, sep, decimal, missing))
    with about(table):
        if missingness is not None:
            rows = to_rows(add_missingness(declared_gaps(rows.frame, schema), missingness))
        if view is not None:
            settings["model"] |= {"views": as_views(view, rows.columns)}
            planned = Study(**studied, **settings)
        planned.schema = infer_schema(rows, schema).override(dict.fromkeys(exclude or [], "aside"))
        result = planned.fit(rows)
    written = write_page(result, out / REPORT, out)
    if json:
        say_json({"study": str(out), "report": str(out / REPORT), **result.facts})
    else:
        say_study(result, out, written)


def say_study(result: "StudyResult", out: Path, written: list[str]) -> None:
    """The findings in a few lines and the report's own tables."""
    from plurigp.report.tables import page_tables

    facts = result.facts
    say(f"{facts['n_rows']} rows, {facts['n_columns']} columns, {facts['gap_share']:.0%} of cells are gaps")
    say(f"latent dimensions: {facts['n_components']}")
    for line in verdict(facts, result.subtypes, result.separations, result.nulls.reference):
        say(line)
    tables = page_tables(result)
    for name in ("subtypes", "risks"):
        if name in tables and (name != "subtypes" or result.clusters.n_strata > 1):
            say_page_table(tables[name])
    say(f"wrote {out}: result.json, assignments.csv, latent.csv, tables/ and model/")
    for report in written:
        say(report)


def say_page_table(table: "PageTable") -> None:
    """A table of the report on stdout."""
    say(table.caption)
    rows = [[cell.text for cell in row] for row in table.rows]
    say_table(table.heads, rows, right=[h for h, n in zip(table.heads, table.numeric(), strict=True) if n])


def verdict(
    facts: dict[str, Any], subtypes: "pd.DataFrame", separations: "pd.DataFrame", reference_p: "np.ndarray"
) -> list[str]:
    """Which groups there are, in the words of the report, and whatever qualifies that."""
    from plurigp.report.verdict import bridges, headline, references
    from plurigp.report.words import p_is

    test = f" (valleys: {p_is(facts['structure_p'])})" if len(subtypes) > 1 else ""
    found = f"{headline(facts, subtypes)}{test}"
    return [line for line in (found, bridges(facts, separations), references(facts, reference_p)) if line]
