"""`plurigp cohort`: from hospital records to a table, as a specification says."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import CommandError
from plurigp.cli.files import check_file, check_table, table_suffix, write_table
from plurigp.cli.options import Force, Json, SpreadsheetSafe, TableOut
from plurigp.cli.text import say, say_json, say_progress, say_table

if TYPE_CHECKING:
    from plurigp.cohort import BuiltCohort

NOTES_SHOWN = 12


def cohort(  # long: its options and an example
    specification: Annotated[Path, typer.Argument(metavar="SPEC", help="A specification (TOML).")],
    out: TableOut,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory for DuckDB; beyond it, it uses the disk.")
    ] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", min=1, help="Threads for DuckDB.")] = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Make a table of one row per patient from hospital records.

    The specification says where the records are (long event tables, OMOP or MEDS; CSV, Parquet, DuckDB or PostgreSQL),
    which event makes a patient a member, who is eligible, and which columns the table has. Beside the table T.parquet
    are written T.schema.toml for `plurigp study --schema`, T.attrition.csv, T.quality.html (units seen, values left
    out, gaps) and T.sql, all that was run. Only the finished table and counts leave the database.

    \b
    A specification:
      [source]
      form = "omop"                       # or "long", "meds"
      path = "cdm"                        # folder, file or .duckdb; for PostgreSQL: connect_env = "HOSPITAL_DB"
      [index]
      codes = ["ICD10CM/G20*"]            # first occurrence; * = any continuation
      [eligibility]
      age = [18, 90]
      [[feature]]                         # one yes/no column per three-character code
      name = "dx"
      codes = ["ICD10CM/*"]
      group = 3
      window = ["-6 months", "42 months"]
      min_prevalence = 0.01
      [[feature]]
      name = "creatinine"
      codes = ["LOINC/2160-0"]
      value = "median"
      window = ["-6 months", "6 months"]
      unit = "umol/L"
      convert = { "mg/dL" = 88.42 }
      range = [10, 2000]

    \b
    Example:
      plurigp cohort parkinson.toml --out patients.parquet
      plurigp study patients.parquet --schema patients.schema.toml --out run
    """
    _check_outputs(out, force)
    from importlib.util import find_spec

    if find_spec("duckdb") is None:
        raise CommandError("the cohort builder needs DuckDB; pip install 'plurigp[cohort]'.")
    from plurigp.cohort import build_cohort
    from plurigp.cohort.output import write_side_files

    built = build_cohort(specification, memory, threads, say_progress)
    written = write_side_files(built, out, specification.stem)
    write_table(built.table, out, spreadsheet_safe)
    if json:
        say_json(cohort_facts(built, out, written))
        return
    say_cohort(built, out, written)


def _check_outputs(out: Path, force: bool) -> None:
    from plurigp.cohort.output import SIDE_FILES, side_file

    table_suffix(out)
    check_table(out, force)
    for ending in SIDE_FILES:
        check_file(side_file(out, ending), force)


def cohort_facts(built: "BuiltCohort", out: Path, written: list[Path]) -> dict:
    """What was made, for JSON; counts as they are shown."""
    attrition = built.quality.attrition.to_dict("records")
    columns = [{"name": column.name, "kind": column.kind} for column in built.schema]
    return {"table": str(out), "files": [str(path) for path in written], "attrition": attrition, "columns": columns,
            "notes": built.quality.notes}  # fmt: skip


def say_cohort(built: "BuiltCohort", out: Path, written: list[Path]) -> None:
    """Attrition, notes, files."""
    table = built.quality.attrition
    say_table(tuple(table.columns), table.itertuples(index=False, name=None), right=("patients left", "removed"))
    for note in built.quality.notes[:NOTES_SHOWN]:
        say(f"note: {note}")
    if len(built.quality.notes) > NOTES_SHOWN:
        say(f"{len(built.quality.notes) - NOTES_SHOWN} more notes are on the quality page")
    say(f"{len(built.schema.used)} columns for the model, {len(built.schema.aside)} set aside")
    say(f"wrote {out} and beside it {', '.join(path.name for path in written)}")
    schema = next(path for path in written if path.name.endswith("schema.toml"))
    say(f"next: plurigp study {out} --schema {schema} --out run")
