"""What the charts are drawn with: text, axes, ticks and the frame of a small SVG file. No plotting library needed."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import numpy as np

MIDDLE, END = 'text-anchor="middle"', 'text-anchor="end"'
Number = int | float
Place = Callable[[Number], float]


def text(x: Number, y: Number, words: str, more: str = "") -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def turned(x: Number, y: Number, words: str) -> str:
    """Words along a vertical axis."""
    return f'<g transform="translate({x:.1f} {y:.1f}) rotate(-90)">{text(0, 0, words, MIDDLE)}</g>'


def axis(values: np.ndarray, start: Number, end: Number, log: bool) -> Place:
    """From a value to its place between start and end, with a margin on both sides."""
    low, high = (np.log(values.min()), np.log(values.max())) if log else (values.min(), values.max())
    margin = 0.05 * max(high - low, 1e-9)
    low, high = low - margin, high + margin
    return lambda v: float(start + ((np.log(v) if log else v) - low) / (high - low) * (end - start))


def ticks(values: np.ndarray, log: bool) -> list[float]:
    """1, 2 and 5 times powers of ten within the range, thinned to seven at most; round steps on a straight axis."""
    low, high = float(values.min()), float(values.max())
    if not log:
        step = max(high - low, 1e-9) / 4
        unit = 10.0 ** np.floor(np.log10(step))
        step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= step * 0.99)
        return [float(t) for t in step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)]
    tens = 10.0 ** np.arange(np.floor(np.log10(low)), np.log10(high) + 1)
    found = [m * t for t in tens for m in (1, 2, 5) if low * 0.95 <= m * t <= high * 1.05]
    return found if len(found) <= 7 else [t for t in tens.tolist() if low <= t <= high]


def write_svg(path: Path, width: Number, height: Number, marks: Sequence[str]) -> None:
    """The file, on white."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" '
        f'font-size="13"><rect width="100%" height="100%" fill="white"/>{"".join(marks)}</svg>\n',
        encoding="utf-8",
    )
