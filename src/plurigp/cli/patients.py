"""`plurigp patients`: patients of whom a table has several rows."""

from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import CommandError, about
from plurigp.cli.files import check_folder, write_table
from plurigp.cli.options import (
    Decimal,
    FolderOut,
    Force,
    Missing,
    ModelIn,
    Sep,
    SpreadsheetSafe,
    TableIn,
    read_input,
)
from plurigp.cli.text import say, say_table

if TYPE_CHECKING:
    import pandas as pd

FEW_PATIENTS = 30  # below, intervals that take the covariances as known are too narrow


def describe_patients(
    model: ModelIn,
    table: TableIn,
    groups: Annotated[str, typer.Option(metavar="COLUMN", help="Column of the patient of a row.")],
    out: FolderOut,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    safe: SpreadsheetSafe = False,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Describe patients who have several rows.

    The position of a row is that of its patient plus a deviation. Writes positions.csv (one line per patient),
    effects.csv (the value expected of every patient and column, or the probability of a level, with its interval) and
    shares.csv (variance between and within patients by dimension). Fit the model with the patient's column excluded.

    \b
    Example:
      plurigp fit visits.csv --exclude patient_id --out model
      plurigp patients model visits.csv --groups patient_id --out patients
    """
    if not 0 < level < 1:
        raise CommandError(f"--level {level:g}: must lie between 0 and 1.")
    check_folder(out, force)
    from plurigp.estimator import load
    from plurigp.estimator.patients import patient_effects

    fitted, frame = load(model), read_input(table, sep, decimal, missing)
    with about(table):
        found = patient_effects(fitted, frame, groups, level)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("positions", "effects", "shares"):
        write_table(getattr(found, name), out / f"{name}.csv", safe)
    _say_shares(found.shares)
    say(f"{len(frame)} rows of {len(found.positions)} patients; wrote positions, effects and shares as CSV to {out}")
    if len(found.positions) < FEW_PATIENTS:
        say("so few patients say little of the variance between them: the intervals are too narrow")


def _say_shares(shares: "pd.DataFrame") -> None:
    from plurigp.report.words import percent

    lines = [
        (str(line["dimension"]), f"{line['between']:.3f}", f"{line['within']:.3f}", percent(line["share_between"]))
        for line in shares.to_dict("records")
    ]
    heads = ("dimension", "variance between patients", "within", "share between")
    say_table(heads, lines, right=heads)
