"""Charts that several experiments draw: figure 4 (scores and their paired differences) and consensus indices."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plurigp_paper.charts import bar_chart, violin_chart
from plurigp_paper.runs import Figures

SCORES = {
    "reconstruction": "reconstruction, nats per row",
    "cells": "nats per hidden cell",
    "density": "density, nats per row",
}


def draw_panel(figure: Figures, panel: dict[str, Any]) -> None:
    """Figure 4: composite against Gaussian for all; the three approaches; paired differences."""
    for noise, found in panel.items():
        for score, label in SCORES.items():
            raw, mass = found[f"all/{score}/raw"], found[f"all/{score}/mass"]
            kinds = {
                "composite": raw["values"][0],
                "Gaussian, raw density": raw["values"][1],
                "Gaussian, by probability": mass["values"][1],
            }
            violin_chart(figure(f"panel-{noise}-{score}-all"), f"All columns, {noise} noise", label, kinds)
            first, third = found[f"real/{score}/1"], found[f"real/{score}/3"]
            three = {
                "approach 1": first["values"][1],
                "approach 2": first["values"][0],
                "approach 3": third["values"][1],
            }
            violin_chart(figure(f"panel-{noise}-{score}-real"), f"Real columns, {noise} noise", label, three)
            paired = {
                f"2 minus {other}": np.subtract(*found[f"real/{score}/{other}"]["values"]).tolist() for other in (1, 3)
            }
            title = f"Real columns, paired, {noise} noise"
            violin_chart(figure(f"panel-{noise}-{score}-paired"), title, label, paired, with_zero=True)


def draw_consensus(path: Path, clusters: Sequence[Mapping[str, Any]]) -> None:
    """Every cluster's consensus index with the threshold of shuffled labels."""
    bars = {f"cluster {c['subtype']}": (c["index"], c["permutation_threshold"]) for c in clusters}
    bar_chart(path, "Consensus indices and thresholds", "consensus index", bars)
