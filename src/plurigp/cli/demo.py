"""`plurigp demo`: a study of real patients from end to end."""

import time
from typing import Annotated

import typer

from plurigp.cli.check import say_schema
from plurigp.cli.explore import EXPLORER
from plurigp.cli.files import check_folder
from plurigp.cli.options import Epochs, FolderOut, References, Refits, given
from plurigp.cli.report import REPORT, write_page
from plurigp.cli.study import say_page_table, say_study
from plurigp.cli.text import say

SEED, HORIZON = 0, 180.0
OVERRIDES = {  # what a person knows and the numbers alone do not say
    "activity_limits_patient": {"kind": "binomial", "trials": 7},
    "activity_limits_surrogate": {"kind": "binomial", "trials": 7},
    "education": "gaussian",
    "respiratory_rate": "gaussian",
}
TIME, EVENT = "follow_up_days", "died"


def demo(
    out: FolderOut,
    rows: Annotated[int, typer.Option(metavar="N", min=100, help="Number of patients to study.")] = 4500,
    epochs: Epochs = 30,
    refits: Refits = 10,
    references: References = 0,
) -> None:
    """Run a whole study on the bundled SUPPORT table.

    Studies 4,500 of its 9,105 seriously ill hospital patients: prints the inferred kinds, looks for subtypes, tests
    whether they are groups, compares their survival, and writes a report, a page to explore the map with and the
    completed table. The same command resumes an interrupted run.

    \b
    Example:
      plurigp demo --out demo-output
    """
    check_folder(out, force=True)  # a study resumes in its own folder
    import pandas as pd

    from plurigp import Study
    from plurigp.datasets import load_support
    from plurigp.report.tables import page_tables
    from plurigp.study.run import settled_schema

    started = time.perf_counter()
    support = load_support()
    table = pd.concat([support.table, support.outcomes[[TIME, EVENT]]], axis=1)
    table = table.sample(min(rows, len(table)), random_state=SEED, ignore_index=True)
    missing = table[list(support.schema.names)].isna().to_numpy().mean()
    say(f"{len(table):,} of {len(support.table):,} seriously ill hospital patients (SUPPORT), {missing:.0%} gaps")
    study = Study(
        out=out, verbose=True, title="Seriously ill hospital patients (SUPPORT)", n_components=(6,), n_restarts=1,
        max_subtypes=6, time=TIME, event=EVENT, horizons=(HORIZON,), random_state=SEED,
        **given(max_epochs=epochs, n_refits=refits, n_references=references),
    )  # fmt: skip
    study.schema = settled_schema(table, OVERRIDES, study.config)
    say_schema(table, study.schema)
    result = study.fit(table)
    result.model.impute(table).to_csv(out / "filled.csv", index=False)
    say_page_table(page_tables(result)["predictions"])
    say_study(result, out, write_page(result, out / REPORT, out))
    say(f"wrote {out / 'filled.csv'}: the table with its gaps filled")
    say(f"done in {time.perf_counter() - started:.0f} s; open {out / REPORT} and {out / EXPLORER}")
