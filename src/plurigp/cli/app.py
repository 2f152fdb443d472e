"""The command line put together. Each verb has a module of its own, which imports what is heavy when the verb runs."""

import functools
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from plurigp.cli.answers import counterfactual, gaps, impute, sample, score, transform
from plurigp.cli.check import check
from plurigp.cli.cohort import cohort
from plurigp.cli.compare import compare_runs
from plurigp.cli.demo import demo
from plurigp.cli.errors import one_line_errors
from plurigp.cli.explain import explain_model
from plurigp.cli.explore import explore
from plurigp.cli.fit import fit
from plurigp.cli.patients import describe_patients
from plurigp.cli.pooling import pool_estimates
from plurigp.cli.report import report
from plurigp.cli.study import study
from plurigp.cli.table_one import describe_groups

VERBS = (cohort, check, fit, transform, impute, gaps, counterfactual, score, sample, study, report, explore, demo)
NAMED_VERBS: dict[str, Callable[..., None]] = {  # whose names are functions of the library already
    "pool": pool_estimates,
    "table-one": describe_groups,
    "explain": explain_model,
    "patients": describe_patients,
    "compare-studies": compare_runs,
}

app = typer.Typer(
    name="plurigp",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def add_verb(function: Callable[..., None], name: str | None = None) -> None:
    """Register a verb whose errors become one line and an exit code."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> None:
        with one_line_errors():
            function(*args, **options)

    app.command(name)(guarded)


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
    """Fit one latent map to a table with columns of mixed kinds and missing cells.

    Every column has its own likelihood. The model uses all observed cells; gaps need not be filled beforehand.

    \b
    Typical use:
      plurigp cohort records.toml --out patients.csv    from hospital records to a table
      plurigp check patients.csv --write schema.toml    inspect the kinds, correct them in the file
      plurigp fit patients.csv --schema schema.toml --out model
      plurigp transform model patients.csv --out latent.csv
      plurigp impute model patients.csv --out filled.csv
      plurigp study patients.csv --out run              find and test subtypes, write run/report.html
      plurigp explore run                               write run/explorer.html: place a patient, decode a point
    """


for function in VERBS:
    add_verb(function)
for name, named in NAMED_VERBS.items():
    add_verb(named, name)
for entry in entry_points(group="plurigp.verbs"):  # programs beside the library, such as the paper's experiments
    add_verb(entry.load())
