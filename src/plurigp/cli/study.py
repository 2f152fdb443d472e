"""`plurigp study`: from a table to a folder of subtypes, their robustness and what distinguishes them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plurigp.cli.errors import about
from plurigp.cli.files import check_folder
from plurigp.cli.options import Epochs, Exclude, FolderOut, Json, References, Refits, SchemaIn, TableIn, given
from plurigp.cli.report import REPORT, write_page
from plurigp.cli.text import say, say_json, say_table

if TYPE_CHECKING:
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
        typer.Option(metavar="N", min=1, help="Number of subtypes or strata.", show_default="chosen by stability"),
    ] = None,
    refits: Refits = None,
    references: References = None,
    epochs: Epochs = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Time to the outcome or to censoring.")] = None,
    event: Annotated[str | None, typer.Option(metavar="COLUMN", help="Whether the outcome occurred.")] = None,
    horizon: Annotated[
        list[float] | None, typer.Option(metavar="T", help="Report the risk within this time; repeatable.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Random seed.", show_default="0")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Worker processes.", show_default="all cores")
    ] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler that runs the fits.")] = None,
    json: Json = False,
) -> None:
    """Find subtypes in a table and test how robust they are.

    Chooses the number of latent dimensions, clusters the latent positions, refits on random halves, compares with
    permuted labels and with simulated tables without subtypes, and describes what distinguishes each subtype. A table
    without subtypes is called a continuum and described in strata. Every finished fit is kept in --out: the same
    command resumes an interrupted study. The outcome (--time, --event) is not used in the fit.

    \b
    Example:
      plurigp study patients.csv --time days --event died --horizon 180 --out run
    """
    check_folder(out, force=True)  # a study resumes in its own folder
    from plurigp.data import infer_schema, read_table, to_rows
    from plurigp.study import Study, read_config

    options = given(n_components=components, n_subtypes=subtypes, n_refits=refits, n_references=references,
                    max_epochs=epochs, time=time, event=event, horizons=horizon, random_state=seed)  # fmt: skip
    settings = ({} if config is None else read_config(config)) | options
    planned = Study(out=out, n_jobs=jobs, dask=dask, verbose=not json, **settings)
    rows = to_rows(read_table(table))
    with about(table):
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
    say(verdict(facts, result.clusters.n_strata))
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


def verdict(facts: dict[str, Any], n: int) -> str:
    """Whether there is structure, in one sentence; n is the number of subtypes or strata."""
    from plurigp.study.findings.robustness import untested

    R, remedy = facts["n_references"], untested(facts)
    if facts["structured"] is None:
        return f"{n} clusters; robustness not tested: needs {remedy} or more, this study has {R}"
    p = f"{R} structureless tables (p = {facts['structure_p']:.3g})"
    if not facts["structured"]:
        asked = "" if facts["choice"] == "stability" else "requested "
        described = f"; the {n} {asked}strata describe the continuum and are not subtypes" if n > 1 else ""
        found = "no subtypes detected, treated as a continuum: clusters are not significantly more stable than in"
        return f"{found} {p}{described}"
    robust = f"robustness not tested (needs {remedy})" if remedy else f"{facts['n_robust']} of them robust"
    return f"{n} subtypes, {robust}; clusters are more stable than in {p}"
