"""The verbs: what each takes and what it says of itself. The work is done in modules imported when the verb runs."""

import functools
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from plurigp.cli.errors import CommandError, one_line_errors

app = typer.Typer(
    name="plurigp",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

TableIn = Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV, TSV or Parquet file with a header.")]
ModelIn = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="A folder that `plurigp fit` wrote.")]
TableOut = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="Where to write: .csv, .tsv, .csv.gz or .parquet.")
]
SchemaIn = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="A schema file that overrides the inferred kinds.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Makes the result repeatable.", show_default="0"),
]
Safe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe", help="In CSV and TSV, put ' before text that a spreadsheet would run as a formula."
    ),
]


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Register a verb whose errors become one line and an exit code."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> None:
        with one_line_errors():
            function(*args, **options)

    return app.command()(guarded)


def _version(asked: bool) -> bool:
    if asked:
        from plurigp import __version__

        typer.echo(f"plurigp {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def plurigp(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Learn one probabilistic map of a table whose columns are of many kinds and whose cells have gaps.

    Every column keeps a likelihood of its own, every observed cell counts, and no gap is filled beforehand.

    \b
    The usual way:
      plurigp check patients.csv --write schema.toml    look at the kinds, edit what is wrong
      plurigp fit patients.csv --schema schema.toml --out model
      plurigp transform model patients.csv --out latent.csv
      plurigp impute model patients.csv --out filled.csv
      plurigp study patients.csv --out run              find subtypes, test them, write run/report.html
    """


@verb
def check(
    table: TableIn,
    schema: SchemaIn = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the schema as an editable file.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Fit other kinds that suit, too, and say which predicts hidden cells best."),
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Say what each column is taken for, and why.

    Reads the table, infers the kind of every column (real, yes/no, count, proportion, category, or set aside), checks
    every cell against it, and prints kind, detail, share of gaps and reason. With --write the result becomes a file to
    edit and hand back with --schema. With --compare the columns are fitted under every kind that suits them (a few
    minutes for a large table), and the one that predicts hidden cells best is named.

    \b
    Example:
      plurigp check patients.csv --write schema.toml
    """
    from plurigp.cli.check import run_check

    run_check(table, schema, write, force, json, compare)


@verb
def fit(
    table: TableIn,
    out: Annotated[Path, typer.Option("--out", metavar="MODEL_DIR", help="The folder for the model.")],
    schema: SchemaIn = None,
    components: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Latent dimensions.", show_default="2")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="At most so many passes over the rows.", show_default="600, fewer on a long table"
        ),
    ] = None,
    seed: Seed = None,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="rbf, matern52, linear, or a sum such as linear+rbf.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(metavar="NAME", help="factors, masked, paper or free.")] = None,
    inducing: Annotated[int | None, typer.Option(metavar="N", min=1, help="Inducing points.")] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="N", min=1, help="Rows per step.")] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Set this column aside; may be repeated.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Train a model on a table and write it to a folder.

    Kinds are inferred as in `plurigp check` unless --schema says otherwise. Gaps stay gaps: only observed cells count.
    Training stops by itself when the bound no longer rises; on a terminal it shows its progress. The folder holds
    numbers and JSON only, and the other verbs read it.

    \b
    Example:
      plurigp fit patients.csv --components 5 --exclude outcome --seed 1 --out model
    """
    from plurigp.cli.fit import run_fit

    options = {
        "n_components": components,
        "max_epochs": epochs,
        "random_state": 0 if seed is None else seed,
        "kernel": kernel,
        "encoder": encoder,
        "n_inducing": inducing,
        "batch_size": batch_size,
    }
    given = {name: value for name, value in options.items() if value is not None}
    run_fit(table, out, schema, exclude or [], given, force, json)


@verb
def transform(
    model: ModelIn,
    table: TableIn,
    out: TableOut,
    sd: Annotated[bool, typer.Option("--std", help="Add the standard deviation of each latent coordinate.")] = False,
    force: Force = False,
) -> None:
    """Place the rows of a table on the map.

    Writes one line per row: its number and the mean of its latent position. Rows may have gaps, and the place of a row
    does not depend on the other rows.

    \b
    Example:
      plurigp transform model patients.csv --std --out latent.csv
    """
    from plurigp.cli.answers import run_transform

    run_transform(model, table, out, sd, force)


@verb
def impute(
    model: ModelIn,
    table: TableIn,
    out: TableOut,
    draws: Annotated[
        int | None,
        typer.Option(metavar="M", min=1, help="Write M completed tables for multiple imputation: OUT-1 to OUT-M."),
    ] = None,
    seed: Seed = None,
    safe: Safe = False,
    force: Force = False,
) -> None:
    """Fill the gaps of a table.

    Writes the table with every gap of the model's columns filled by what the row's observed cells predict. Observed
    cells are written as they were read, columns set aside are left as they are. With --draws, each of M tables fills
    the gaps by a joint draw per row: analyse each and pool the results by Rubin's rules.

    \b
    Example:
      plurigp impute model patients.csv --out filled.csv
      plurigp impute model patients.csv --draws 20 --seed 1 --out completed.csv
    """
    from plurigp.cli.answers import run_impute

    run_impute(model, table, out, draws, 0 if seed is None else seed, safe, force)


@verb
def gaps(
    model: ModelIn,
    table: TableIn,
    out: TableOut,
    draws: Annotated[int, typer.Option(metavar="N", min=10, help="Draws behind each line.")] = 200,
    seed: Seed = None,
    safe: Safe = False,
    force: Force = False,
) -> None:
    """Say what is known about every gap of a table.

    Writes one line per gap: mean, standard deviation and quantiles of the missing number, or the likeliest level and
    its probability, in the column's own units, given the observed cells of its row.

    \b
    Example:
      plurigp gaps model patients.csv --out gaps.csv
    """
    from plurigp.cli.answers import run_gaps

    run_gaps(model, table, out, draws, 0 if seed is None else seed, safe, force)


@verb
def score(model: ModelIn, table: TableIn, json: Json = False) -> None:
    """Say how well the model predicts a table.

    Best a table it was not trained on. Prints the mean log density in nats, per row and per observed cell, in the
    columns' own units: higher is better. Compare models on the same table only.

    \b
    Example:
      plurigp score model new_patients.csv --json
    """
    from plurigp.cli.answers import run_score

    run_score(model, table, json)


@verb
def sample(
    model: ModelIn,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="How many rows to draw.")],
    out: TableOut,
    seed: Seed = None,
    safe: Safe = False,
    force: Force = False,
) -> None:
    """Draw new rows from the model.

    Writes a table of the model's columns, in their own units and levels, without gaps. The rows are invented, yet a
    model of few rows may resemble them: treat the result with the care the original asks for.

    \b
    Example:
      plurigp sample model --rows 1000 --seed 1 --out invented.csv
    """
    from plurigp.cli.answers import run_sample

    run_sample(model, rows, out, 0 if seed is None else seed, safe, force)


@verb
def study(
    table: TableIn,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the results.")],
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A TOML file with the settings of the study.")
    ] = None,
    schema: SchemaIn = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Set this column aside; may be repeated.")
    ] = None,
    components: Annotated[
        list[int] | None, typer.Option(metavar="N", min=1, help="Latent dimensions to choose from; may be repeated.")
    ] = None,
    subtypes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The number of subtypes, or strata.", show_default="chosen by stability"),
    ] = None,
    refits: Annotated[int | None, typer.Option(metavar="N", min=2, help="Refits on random halves.")] = None,
    references: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Structureless tables to compare with.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most so many passes over the rows.")
    ] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Time to the outcome, or so far without.")] = None,
    event: Annotated[str | None, typer.Option(metavar="COLUMN", help="Whether the outcome happened.")] = None,
    horizon: Annotated[
        list[float] | None, typer.Option(metavar="T", help="Report the risk by this time; may be repeated.")
    ] = None,
    seed: Seed = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Worker processes.", show_default="all cores")
    ] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler to run the fits on.")] = None,
    json: Json = False,
) -> None:
    """Find subtypes in a table and say how robust they are.

    Chooses the latent dimension, maps the rows, clusters the map, refits on random halves, compares with shuffled
    labels and with structureless tables, and says what distinguishes each subtype. Rows without subtypes are called a
    continuum and described in strata. Every finished fit is kept in --out: the same command goes on where it was
    stopped. Outcomes named by --time and --event stay out of the map.

    \b
    Example:
      plurigp study patients.csv --time days --event died --horizon 180 --out run
    """
    from plurigp.cli.study import run_study

    options = {
        "n_components": components or None,
        "n_subtypes": subtypes,
        "n_refits": refits,
        "n_references": references,
        "max_epochs": epochs,
        "time": time,
        "event": event,
        "horizons": horizon or None,
        "random_state": seed,
    }
    given = {name: value for name, value in options.items() if value is not None}
    run_study(table, out, config, schema, exclude or [], given, jobs, dask, json)


@verb
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="A folder that `plurigp study` wrote.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write the page.", show_default="RUN_FOLDER/report.html"),
    ] = None,
    pdf: Annotated[bool, typer.Option("--pdf", help="Print it to PDF too; needs Chromium, Chrome or Edge.")] = False,
    include_rows: Annotated[
        Path | None,
        typer.Option(
            "--include-rows", metavar="TABLE", help="The studied table: show row numbers and its columns on the map."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The title of the page.")] = None,
    force: Force = False,
) -> None:
    """Write the report of a finished study again.

    One HTML file for people, without network: what was found in plain words, the map, what distinguishes the subtypes,
    how robust they are, and the methods. It holds no row numbers and no cells unless --include-rows names the table.

    \b
    Example:
      plurigp report run --title "Heart failure, 2015 to 2020" --pdf
    """
    from plurigp.cli.report import run_report

    run_report(folder, out, pdf, include_rows, title, force)


@verb
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the results.")],
    rows: Annotated[int | None, typer.Option(metavar="N", min=100, help="Study so many of the patients.")] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most so many passes over the rows.")
    ] = None,
    refits: Annotated[int | None, typer.Option(metavar="N", min=2, help="Refits on random halves.")] = None,
    references: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Structureless tables to compare with.")
    ] = None,
) -> None:
    """Run the whole job on the bundled SUPPORT table.

    A study of 4,500 of its 9,105 seriously ill hospital patients: prints the kinds it inferred and why, maps the
    patients, finds subtypes, says how robust they are and what became of them, and ends with a report for people.
    When it was stopped it goes on from the same folder.

    \b
    Example:
      plurigp demo --out demo-output
    """
    from plurigp.cli.demo import run_demo

    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: is a file; --out must name a folder.")
    options = {"rows": rows, "epochs": epochs, "refits": refits, "references": references}
    run_demo(out, **{name: value for name, value in options.items() if value is not None})


for entry in entry_points(group="plurigp.verbs"):  # programs beside the library, such as the paper's experiments
    verb(entry.load())
