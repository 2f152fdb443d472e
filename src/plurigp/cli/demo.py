"""`plurigp demo`: the main job from end to end on 9,105 real patients."""

import time
from pathlib import Path

from plurigp.cli.check import show_schema
from plurigp.cli.text import say, say_table

SHARE, SEED = 0.1, 0
OVERRIDES = {  # what a person knows and the numbers alone do not say
    "activity_limits_patient": {"kind": "binomial", "trials": 7},
    "activity_limits_surrogate": {"kind": "binomial", "trials": 7},
    "education": "gaussian",
    "respiratory_rate": "gaussian",
}


def run_demo(out: Path, rows: int | None = None, epochs: int = 60) -> None:
    """Infer, hide a tenth of the cells, train, score what was hidden, and write everything into `out`."""
    import numpy as np
    import pandas as pd

    from plurigp import PluriGP, infer_schema
    from plurigp.datasets import load_support
    from plurigp.heldout import by, cell_scores, hide_cells
    from plurigp.picture import write_map

    started = time.perf_counter()
    table = load_support().table
    table = table if rows is None else table.sample(rows, random_state=SEED, ignore_index=True)
    gaps = table.isna().to_numpy().mean()
    say(f"SUPPORT: {len(table):,} seriously ill hospital patients, {gaps:.0%} of cells missing")
    schema = infer_schema(table, OVERRIDES)
    show_schema(table, schema)
    shown = hide_cells(table, schema, SHARE, SEED)
    say(f"hiding {SHARE:.0%} of the observed cells and training on the rest …")
    model = PluriGP(
        n_components=10, schema=schema, max_epochs=epochs, batch_size=1000, random_state=SEED, verbose=True
    ).fit(shown)
    say(f"{model.n_iter_} epochs, bound {model.elbo_ / len(table):.2f} nats per patient")
    scores = cell_scores(model, shown, table)
    families = by(scores, "kind")
    say("hidden cells, nats per cell (higher is better); the marginal knows each column, but not the patient:")
    say_table(
        ("family", "cells", "plurigp", "marginal", "gain", "± se"),
        [
            (k, f"{r.cells:,.0f}", f"{r.model:.3f}", f"{r.marginal:.3f}", f"{r.gain:+.3f}", f"{r.se:.3f}")
            for k, r in families.iterrows()
        ],
        right=("cells", "plurigp", "marginal", "gain", "± se"),
    )
    out.mkdir(parents=True, exist_ok=True)
    x, sd = model.transform(shown, return_std=True)
    names = [f"x{q + 1}" for q in range(x.shape[1])]
    latent = pd.DataFrame(np.hstack([x, sd]), columns=[*names, *(f"{n}_sd" for n in names)])
    latent.to_csv(out / "latent.csv", index_label="row", float_format="%.6g")
    model.impute(table).to_csv(out / "filled.csv", index=False)
    by(scores, "column").to_csv(out / "scores_by_column.csv", float_format="%.5f")
    write_map(out / "map.svg", x, table["diagnosis_group"].astype(str).to_numpy(), "diagnosis group")
    model.save(out / "model")
    say(f"wrote to {out}: latent.csv (the map), filled.csv (gaps filled), map.svg (a picture),")
    say("  scores_by_column.csv and model/ (reopen it with plurigp.load)")
    say(f"done in {time.perf_counter() - started:.0f} s")
