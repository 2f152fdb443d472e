"""Draws docs/valley.svg, what a valley is: `python tools/valley_picture.py`. By formulas, not from measurements."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

OUT = Path(__file__).resolve().parents[1] / "docs" / "valley.svg"
PLACES = np.linspace(-1.2, 2.2, 121)
PARTS = ((-0.17, 0.17, "#b45309", "flank"), (0.33, 0.67, "#334155", "middle"), (0.83, 1.17, "#b45309", "flank"))


def bump(mean: float, sd: float, weight: float = 1.0) -> np.ndarray:
    """A normal density at the places."""
    return weight * np.exp(-0.5 * ((PLACES - mean) / sd) ** 2) / sd


PANELS = {
    "Two groups: a valley": bump(0, 0.27) + bump(1, 0.27, 0.8),
    "A continuum: no valley": bump(0.5, 0.62),
    "A continuum with one dense end: no valley": bump(0, 0.35, 0.9) + bump(0.85, 0.5, 0.75),
}

mpl.rcParams.update({"svg.hashsalt": "valley", "svg.fonttype": "none", "font.family": "sans-serif"})
figure, axes = plt.subplots(1, 3, figsize=(9.6, 2.9))
for axis, (title, density) in zip(axes, PANELS.items(), strict=True):
    density = density / density.max()
    axis.fill_between(PLACES, density, color="#0f766e", alpha=0.22, linewidth=0)
    axis.plot(PLACES, density, color="#0f766e", linewidth=1.6)
    for low, high, colour, label in PARTS:
        place = np.linspace(low, high, 21)
        axis.fill_between(place, np.interp(place, PLACES, density), color=colour, alpha=0.45, linewidth=0)
        axis.text((low + high) / 2, -0.09, label, ha="center", va="top", color=colour, fontsize=8.5)
    axis.set(xticks=[], yticks=[], xlim=PLACES[[0, -1]], ylim=(0, 1.12))
    axis.set_title(title, fontsize=10)
    axis.spines[["top", "right", "left"]].set_visible(False)
axes[0].set_ylabel("unseen rows")
figure.tight_layout()
figure.savefig(OUT, metadata={"Date": None})
