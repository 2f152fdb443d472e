"""A line chart on logarithmic axes as a small SVG file, for the pages that show the results."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from plurigp.picture import COLOURS

WIDTH, HEIGHT, LEFT, BOTTOM, LEGEND = 520, 300, 70, 46, 200
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # name -> x, y


def line_chart(path: Path, title: str, x_label: str, y_label: str, series: Series, log_y: bool = True) -> None:
    """One line per series, every measured point marked; both axes logarithmic unless y may be negative."""
    xs, ys = (np.concatenate([np.asarray(pair[axis], float) for pair in series.values()]) for axis in (0, 1))
    x_at = _axis(xs, LEFT, WIDTH - 16, True)
    y_at = _axis(ys, HEIGHT - BOTTOM, 36, log_y)
    marks = []
    for number, (name, (x, y)) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x_at(a), y_at(b)) for a, b in zip(x, y, strict=True)]
        marks.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}" fill="none" '
                     f'stroke="{colour}" stroke-width="2"/>')  # fmt: skip
        marks += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        marks.append(_text(WIDTH + 24, 50 + 22 * number, name, f'fill="{colour}"'))
    for ticks, at, turned in ((_ticks(xs, True), x_at, False), (_ticks(ys, log_y), y_at, True)):
        for tick in ticks:
            spot = (LEFT - 6, at(tick) + 4, 'text-anchor="end"') if turned else (at(tick), HEIGHT - BOTTOM + 18, MIDDLE)
            marks.append(_text(*spot[:2], f"{tick:g}", spot[2]))
    frame = f'<path d="M{LEFT},30V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="#444"/>'
    marks += [
        _text(LEFT, 20, title, 'font-weight="bold"'),
        _text((LEFT + WIDTH) / 2, HEIGHT - 8, x_label, MIDDLE),
        f'<g transform="translate(16 {HEIGHT / 2}) rotate(-90)">{_text(0, 0, y_label, MIDDLE)}</g>',
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEGEND} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13"><rect width="100%" height="100%" fill="white"/>{frame}{"".join(marks)}</svg>\n',
        encoding="utf-8",
    )


MIDDLE = 'text-anchor="middle"'


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def _axis(values: np.ndarray, start: float, end: float, log: bool):
    low, high = (np.log(values.min()), np.log(values.max())) if log else (values.min(), values.max())
    margin = 0.05 * max(high - low, 1e-9)
    low, high = low - margin, high + margin
    return lambda v: float(start + ((np.log(v) if log else v) - low) / (high - low) * (end - start))


def _ticks(values: np.ndarray, log: bool) -> list[float]:
    """1, 2 and 5 times powers of ten within the range, thinned to seven at most."""
    if not log:
        return np.unique(np.linspace(values.min(), values.max(), 5).round(3)).tolist()
    tens = 10.0 ** np.arange(np.floor(np.log10(values.min())), np.log10(values.max()) + 1)
    found = [m * t for t in tens for m in (1, 2, 5) if values.min() * 0.95 <= m * t <= values.max() * 1.05]
    return found if len(found) <= 7 else [t for t in tens.tolist() if values.min() <= t <= values.max()]
