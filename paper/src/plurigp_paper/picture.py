"""A map of the rows as a small SVG file: two dimensions, one colour per level. No plotting library needed."""

from html import escape
from pathlib import Path

import numpy as np

from plurigp.study.findings.view import two_dimensions

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a500")  # colour-blind safe
SIZE, MARGIN, LEGEND = 640, 24, 230


def write_map(path: str | Path, x: np.ndarray, group: np.ndarray, title: str) -> None:
    """Rows at latent positions x, coloured by group; axes without units, since the map has none."""
    flat = two_dimensions(np.asarray(x, float))
    low, high = np.quantile(flat, 0.002, axis=0), np.quantile(flat, 0.998, axis=0)
    at = MARGIN + (np.clip(flat, low, high) - low) / np.maximum(high - low, 1e-12) * (SIZE - 2 * MARGIN)
    names, counts = np.unique(np.asarray(group, dtype=str), return_counts=True)
    order = np.argsort(-counts)
    colour = {names[k]: COLOURS[rank % len(COLOURS)] for rank, k in enumerate(order)}
    dots = [
        f'<circle cx="{a:.1f}" cy="{SIZE - b:.1f}" r="2.2" fill="{colour[str(g)]}"/>'
        for (a, b), g in zip(at, np.asarray(group, dtype=str), strict=True)
    ]
    legend = [
        f'<circle cx="{SIZE + 12}" cy="{70 + 26 * i}" r="6" fill="{colour[names[k]]}"/>'
        f'<text x="{SIZE + 26}" y="{75 + 26 * i}">{escape(names[k])} ({counts[k]:,})</text>'
        for i, k in enumerate(order)
    ]
    width = SIZE + LEGEND
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {SIZE}" font-family="sans-serif" font-size="14">'
        f'<rect width="{width}" height="{SIZE}" fill="white"/>'
        f'<rect x="8" y="8" width="{SIZE - 16}" height="{SIZE - 16}" fill="#fafafa" stroke="#dddddd"/>'
        f'<g fill-opacity="0.55">{"".join(dots)}</g>'
        f'<text x="{SIZE}" y="34" font-weight="bold">{escape(title)}</text>{"".join(legend)}</svg>\n',
        encoding="utf-8",
    )
