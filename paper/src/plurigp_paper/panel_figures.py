"""Figure 4 drawn: violins with boxes of the scores, and of their paired differences."""

from typing import Any

import numpy as np

from plurigp_paper.charts import violin_chart
from plurigp_paper.runs import Runs

SCORES = {
    "reconstruction": "reconstruction, nats per row",
    "cells": "nats per hidden cell",
    "density": "density, nats per row",
}


def draw_panel(runs: Runs, panel: dict[str, Any]) -> None:
    """Figure 4: composite against Gaussian for all; the three approaches; paired differences."""
    for noise, found in panel.items():
        for score, label in SCORES.items():
            raw, mass = found[f"all/{score}/raw"], found[f"all/{score}/mass"]
            kinds = {
                "composite": raw["values"][0],
                "Gaussian, raw density": raw["values"][1],
                "Gaussian, like with like": mass["values"][1],
            }
            violin_chart(runs.figure(f"panel-{noise}-{score}-all"), f"All columns, {noise} noise", label, kinds)
            first, third = found[f"real/{score}/1"], found[f"real/{score}/3"]
            three = {
                "approach 1": first["values"][1],
                "approach 2": first["values"][0],
                "approach 3": third["values"][1],
            }
            violin_chart(runs.figure(f"panel-{noise}-{score}-real"), f"Real columns, {noise} noise", label, three)
            paired = {
                f"2 minus {other}": np.subtract(*found[f"real/{score}/{other}"]["values"]).tolist() for other in (1, 3)
            }
            title = f"Real columns, paired, {noise} noise"
            violin_chart(runs.figure(f"panel-{noise}-{score}-paired"), title, label, paired, with_zero=True)
