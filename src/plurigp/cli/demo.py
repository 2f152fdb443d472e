"""`plurigp demo`: the main job from end to end, a study of real patients that ends in its report."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from plurigp.cli.check import show_schema
from plurigp.cli.report import REPORT, write_page
from plurigp.cli.study import show
from plurigp.cli.text import say, say_table

if TYPE_CHECKING:
    import pandas as pd

SEED, HORIZON = 0, 180.0
OVERRIDES = {  # what a person knows and the numbers alone do not say
    "activity_limits_patient": {"kind": "binomial", "trials": 7},
    "activity_limits_surrogate": {"kind": "binomial", "trials": 7},
    "education": "gaussian",
    "respiratory_rate": "gaussian",
}
TIME, EVENT = "follow_up_days", "died"


def run_demo(out: Path, rows: int = 4500, epochs: int = 30, refits: int = 10, references: int = 19) -> None:
    """Infer the kinds, study a sample of the patients, and write everything into `out`; their deaths only judge."""
    import pandas as pd

    from plurigp import Study
    from plurigp.datasets import load_support
    from plurigp.study.run import settled_schema

    started = time.perf_counter()
    support = load_support()
    table = pd.concat([support.table, support.outcomes[[TIME, EVENT]]], axis=1)
    rows = min(rows, len(table))
    table = table.sample(rows, random_state=SEED, ignore_index=True)
    gaps = table[list(support.schema.names)].isna().to_numpy().mean()
    sampled = f"{len(table):,} of {len(support.table):,}"
    say(f"SUPPORT: {sampled} seriously ill hospital patients, {gaps:.0%} of cells missing")
    study = Study(
        out=out,
        verbose=True,
        title="Seriously ill hospital patients (SUPPORT)",
        n_components=(6,),
        n_restarts=1,
        max_epochs=epochs,
        max_subtypes=6,
        n_refits=refits,
        n_references=references,
        time=TIME,
        event=EVENT,
        horizons=(HORIZON,),
        random_state=SEED,
    )
    study.schema = settled_schema(table, OVERRIDES, study.config)
    show_schema(table, study.schema)
    say("a study of them: a map, subtypes, refits on halves, and structureless tables to compare with …")
    result = study.fit(table)
    result.model.impute(table).to_csv(out / "filled.csv", index=False)
    show_predictions(result.predictions)
    show(result, out, write_page(result, out / REPORT, out))
    say(f"wrote {out / 'filled.csv'}: the table with its gaps filled")
    say(f"done in {time.perf_counter() - started:.0f} s; open {out / REPORT}")


def show_predictions(predictions: "pd.DataFrame") -> None:
    """Hidden cells of patients kept apart, by family."""
    say("hidden cells, nats per cell (higher is better); the marginal knows each column, but not the patient:")
    sums = predictions.assign(
        model=predictions["model"] * predictions["cells"], marginal=predictions["marginal"] * predictions["cells"]
    )
    families = sums.groupby("kind")[["cells", "model", "marginal"]].sum()
    say_table(
        ("family", "cells", "plurigp", "marginal", "gain"),
        [
            (kind, f"{n:,.0f}", f"{model / n:.3f}", f"{alone / n:.3f}", f"{(model - alone) / n:+.3f}")
            for kind, n, model, alone in families.itertuples()
        ],
        right=("cells", "plurigp", "marginal", "gain"),
    )
